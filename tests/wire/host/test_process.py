"""The plugin's process: how it ends, whatever it does, and what is told of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from preflight.control import Stopped
from preflight.errors import Reason
from preflight.events import PluginReady, PluginSpawned, PluginStopped
from tests.support.fake_plugin import (
    R1,
    R2,
    Action,
    abort,
    child,
    close,
    daemon,
    eof,
    ignore,
    is_alive,
    kill,
    lay,
    leave,
    note,
    open_fds,
    open_tty,
    output,
    read,
    shaken,
    sleep,
    stderr,
    write,
)
from tests.support.loop import in_loop
from tests.support.stage import Stage

STUBBORN: list[Action] = [ignore(signal.SIGTERM), *shaken(read(), write(R2), sleep(60))]


def wait_dead(pid: int) -> None:
    """Block until a child has exited, loop and all: the host is told of nothing meanwhile."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@in_loop
async def test_a_daemon_that_holds_the_stdout_hides_no_exit(tmp_path: Path) -> None:
    # P96: the exit of the process itself is what counts
    plugin = lay(tmp_path, *shaken(daemon(note("daemon"), sleep(3)), read(), sleep(0.1), leave(7)))
    stage = Stage()
    async with stage.open():
        start = time.monotonic()
        failure = await stage.failure(plugin)
        assert time.monotonic() - start < 1.5
        assert "status 7" in failure.message


@in_loop
async def test_a_daemon_that_holds_the_stdout_hides_no_last_words(tmp_path: Path) -> None:
    # P96
    plugin = lay(tmp_path, *shaken(daemon(sleep(3)), read(), write(output("bye") + R2), leave(0)))
    stage = Stage()
    async with stage.open():
        assert not (await stage.check(plugin)).needs_change
        assert stage.lines == ["bye"]


@in_loop
async def test_a_daemon_at_the_start_hides_no_exit(tmp_path: Path) -> None:
    # P96
    plugin = lay(tmp_path, daemon(sleep(3)), leave(7))
    stage = Stage()
    async with stage.open():
        start = time.monotonic()
        failure = await stage.failure(plugin)
        assert time.monotonic() - start < 1.5
        assert "status 7" in failure.message


@in_loop
async def test_children_in_the_plugins_group_end_with_it(tmp_path: Path) -> None:
    # P97
    waits = child(ignore(signal.SIGTERM), note("child"), sleep(60))
    plugin = lay(tmp_path, *shaken(waits, read(), write(R2), eof()))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert not is_alive(plugin.pid_of("child"))


@in_loop
async def test_a_plugin_that_ignores_everything_is_killed_in_time(tmp_path: Path) -> None:
    # P97: 2 s from the end of stdin, 1 s from SIGTERM
    plugin = lay(tmp_path, *STUBBORN)
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
        start = time.monotonic()
    assert 2.9 < time.monotonic() - start < 4
    (stopped,) = stage.of(PluginStopped)
    assert (stopped.how, stopped.signal) == ("killed", "SIGKILL")


@in_loop
async def test_twenty_stubborn_plugins_are_ended_in_parallel(tmp_path: Path) -> None:
    # P99
    plugins = [
        lay(
            tmp_path,
            ignore(signal.SIGTERM),
            *shaken(read(), write(R2), sleep(60), handshake=R1.replace(b"demo", b"p%d" % number)),
            name=f"p{number}",
        )
        for number in range(20)
    ]
    stage = Stage()
    async with stage.open():
        for number, plugin in enumerate(plugins):
            await stage.check(plugin, str(number))
        start = time.monotonic()
    assert time.monotonic() - start < 5
    assert [event.how for event in stage.of(PluginStopped)] == ["killed"] * 20


@in_loop
async def test_a_crash_in_a_call_is_reported_whole_and_the_next_task_starts_it_again(
    tmp_path: Path,
) -> None:
    # P101
    noise = stderr(b"".join(b"line %d\n" % number for number in range(30)))
    plugin = lay(tmp_path, *shaken(read(), noise, sleep(0.2), abort()))
    stage = Stage()
    async with stage.open():
        for task in ("one", "two", "three"):
            failure = await stage.failure(plugin, task)
            assert failure.reason is Reason.PLUGIN_CRASHED
            for part in ("killed by SIGABRT", "during check", "after 0.", "line 29", "line 10"):
                assert part in failure.message
            assert "line 9\n" not in failure.message
        last = await stage.failure(plugin, "four")
        assert last.reason is Reason.PLUGIN_CRASHED
        assert "not started again" in last.message
    assert len(stage.of(PluginSpawned)) == 3
    stopped = stage.of(PluginStopped)
    assert [(event.how, event.signal) for event in stopped] == [("crashed", "SIGABRT")] * 3
    assert stopped[0].stderr_tail[-1] == "line 29"


@in_loop
async def test_a_crash_between_calls_is_no_error(tmp_path: Path) -> None:
    # P102: also where the host has not been told of it yet
    plugin = lay(tmp_path, *shaken(read(), write(R2), read()))
    stage = Stage()
    async with stage.open():
        for task in ("one", "two", "three", "four", "five"):
            assert not (await stage.check(plugin, task)).needs_change
            pid = stage.of(PluginReady)[-1].pid
            os.kill(pid, signal.SIGKILL)
            wait_dead(pid)
    stopped = stage.of(PluginStopped)
    assert [(event.how, event.signal) for event in stopped] == [("crashed", "SIGKILL")] * 5


@in_loop
async def test_a_crash_with_an_answer_in_the_pipe_loses_no_answer(tmp_path: Path) -> None:
    # P103
    plugin = lay(tmp_path, *shaken(read(), write(R2), kill(signal.SIGKILL)))
    stage = Stage()
    async with stage.open():
        for task in range(10):
            assert not (await stage.check(plugin, str(task))).needs_change
            wait_dead(stage.of(PluginReady)[-1].pid)


@in_loop
async def test_a_plugin_has_no_terminal(tmp_path: Path) -> None:
    # P104
    plugin = lay(tmp_path, open_tty(), *shaken(read(), write(R2), read()))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert plugin.notes == ["No such device or address"]


@in_loop
async def test_a_failed_task_is_no_reason_for_a_new_process(tmp_path: Path) -> None:
    fails = write(R2.replace(b'"needs_change":false', b'"needs_change":false,"error":"no"'))
    plugin = lay(
        tmp_path, *shaken(read(), fails, read(), write(R2.replace(b'"id":2', b'"id":3')), read())
    )
    stage = Stage()
    async with stage.open():
        with pytest.raises(Exception, match="no"):
            await stage.check(plugin)
        await stage.check(plugin, "two")
    assert len(stage.of(PluginSpawned)) == 1


@in_loop
async def test_an_ordinary_end_waits_for_the_plugin_and_is_no_failure(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(R2), eof(), sleep(0.3), note("saved"), leave(3)))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert plugin.notes == ["saved"]
    (stopped,) = stage.of(PluginStopped)
    assert (stopped.how, stopped.exit_code) == ("closed", 3)


@in_loop
async def test_a_request_while_the_session_closes_goes_nowhere_else(tmp_path: Path) -> None:
    # Its stdin is closed by then, and that number may be somebody else's fd already.
    ask = b'{"jsonrpc":"2.0","id":7,"method":"rm_rf"}\n'
    plugin = lay(tmp_path, *shaken(read(), write(R2), eof(), write(ask, times=100), sleep(0.3)))
    stage = Stage()
    watched = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    async with stage.open():
        await stage.check(plugin)
        before = set(open_fds())
        closing = asyncio.ensure_future(stage.pool.close())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        freed = before - set(open_fds())
        taken = [os.dup(watched) for _ in freed]  # the lowest free numbers
        assert set(taken) & freed
        await closing
        for fd in taken:
            os.close(fd)
    assert os.fstat(watched).st_size == 0
    os.close(watched)


@in_loop
async def test_two_hundred_sessions_leave_no_fd_and_no_zombie(tmp_path: Path) -> None:
    # Each session is used once: what is left over would be seen by in_loop, and here on the way
    plugin = lay(tmp_path, leave(0))
    plugin.path.write_bytes(  # a shell starts in a tenth of the time
        b"#!/bin/sh\nread line\necho '%b'\nread line\necho '%b'\n" % (R1.strip(), R2.strip())
    )
    stage = Stage()
    async with stage.open():
        await stage.check(plugin, "first")
        most = len(open_fds()) + 4
        for number in range(200):
            wait_dead(stage.of(PluginReady)[-1].pid)
            await stage.check(plugin, str(number))
            assert len(open_fds()) <= most
    assert len(stage.of(PluginStopped)) == 201


@in_loop
async def test_the_environment_holds_no_secret_of_the_controllers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2hunter2")
    monkeypatch.setenv("LC_TIME", "C")
    plugin = lay(tmp_path, leave(0))
    seen = tmp_path / "seen"
    plugin.path.write_text(f"#!/bin/sh\nenv > {seen}\n", encoding="ascii")
    stage = Stage()
    async with stage.open():
        await stage.failure(plugin)
    text = seen.read_text(encoding="utf-8")
    assert "hunter2" not in text
    assert "PATH=" in text
    assert "LC_TIME=C" in text


@in_loop
async def test_the_body_of_a_pool_fails_as_itself(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(R2), read()))
    stage = Stage()

    async def fail() -> None:
        async with stage.open():
            await stage.check(plugin)
            raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        await fail()
    assert [event.how for event in stage.of(PluginStopped)] == ["closed"]


@in_loop
async def test_a_pool_that_is_cancelled_ends_its_plugins_first(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(R2), eof(), sleep(0.3), note("saved")))
    stage = Stage()
    ready = asyncio.Event()

    async def work() -> None:
        async with stage.open():
            await stage.check(plugin)
            ready.set()
            await asyncio.sleep(60)

    working = asyncio.ensure_future(work())
    await ready.wait()
    working.cancel()
    await asyncio.sleep(0)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert plugin.notes == ["saved"]


HOST = """\
import asyncio, sys
sys.path[:0] = {path!r}
from pathlib import Path
from preflight.events import PluginSpawned
from tests.support.stage import Stage, found_at

async def main():
    stage = Stage()
    async with stage.open():
        print("ready", flush=True)
        await stage.check(found_at(Path({plugin!r})))
        print("done", len(stage.of(PluginSpawned)), flush=True)

asyncio.run(main())
"""


def test_a_host_that_was_stopped_kills_nobody_when_it_wakes(tmp_path: Path) -> None:
    # P128: stopped for longer than an init_timeout would be unkind to the suite; see
    # test_an_answer_that_came_while_the_host_stood_still_counts for that.
    plugin = lay(tmp_path, *shaken(read(), stderr(b"x\n"), sleep(0.6), write(R2), read()))
    code = HOST.format(path=sys.path, plugin=str(plugin.path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "ready\n"
        host.send_signal(signal.SIGSTOP)
        time.sleep(1)  # the host stands still meanwhile: that is the scenario
        host.send_signal(signal.SIGCONT)
        assert host.stdout.readline() == "done 1\n"
        assert host.wait(20) == 0


@in_loop
async def test_a_plugin_that_only_closes_its_pipes_is_ended(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), close(2), close(0), close(1), sleep(60)))
    stage = Stage()
    async with stage.open():
        failure = await stage.failure(plugin)
        assert failure.reason is Reason.PLUGIN_CRASHED
        assert not is_alive(stage.of(PluginReady)[0].pid)


@in_loop
async def test_stopped_and_failed_calls_alternate_without_a_trace(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(output("at it")), sleep(60)))
    stage = Stage()
    async with stage.open():
        before = len(open_fds())
        for number in range(5):
            calling = asyncio.ensure_future(stage.check(plugin, str(number)))
            async with asyncio.timeout(20):
                while stage.lines.count("at it") <= number:
                    await stage.wait_change()
            stage.control.cancel(f"box/{number}", "operator", kill=True)
            with pytest.raises(Stopped):
                await calling
            assert len(open_fds()) == before
