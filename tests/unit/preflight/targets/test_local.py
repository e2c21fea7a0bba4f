"""What is particular to the local target; what all targets promise is in tests/contract."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from preflight.errors import TargetError
from preflight.ports.target import KillReport
from preflight.targets import local
from preflight.targets.local import LocalTarget
from tests.support.fake_plugin import is_alive
from tests.support.loop import in_loop

MIB = 1024 * 1024


class Lines:
    """Takes lines, and lets a test wait for one."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []
        self._changed = asyncio.Event()

    def take(self, stream: str, line: str) -> None:
        self.all.append((stream, line))
        self._changed.set()

    async def wait(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.all) < count:
                self._changed.clear()
                await self._changed.wait()


@in_loop
async def test_a_grandchild_that_holds_the_pipes_delays_nothing() -> None:
    start = time.monotonic()
    done = await LocalTarget("box").exec("sleep 60 & echo $!")
    assert time.monotonic() - start < 2
    assert done.exit_code == 0
    await gone(int(done.text))


@in_loop
async def test_a_grandchild_that_has_left_the_group_delays_nothing() -> None:
    start = time.monotonic()
    done = await LocalTarget("box").exec("setsid sh -c 'sleep 2' & echo hi")
    assert time.monotonic() - start < 1.5
    assert done.text == "hi\n"


@in_loop
async def test_a_daemon_that_writes_without_end_delays_little() -> None:
    start = time.monotonic()
    script = "setsid sh -c 'trap \"\" TERM; timeout 5 yes' & sleep 0.1; echo hi >&2"
    done = await LocalTarget("box").exec(script, keep_bytes=1000)
    assert time.monotonic() - start < 3
    assert done.error_text == "hi\n"
    assert len(done.stdout) == 1000


async def gone(pid: int) -> None:
    """Wait until a process that was killed is gone: nobody is told of a grandchild's end."""
    async with asyncio.timeout(10):
        while is_alive(pid):  # noqa: ASYNC110  # idem
            await asyncio.sleep(0.005)


async def cancelled(
    script: str, act: Callable[[asyncio.Task[object]], object] | None = None
) -> tuple[list[int], list[KillReport], float]:
    """Cancel a script once it has told its pids; gives them, the reports and the seconds."""
    lines, reports = Lines(), list[KillReport]()
    running: asyncio.Task[object] = asyncio.ensure_future(
        LocalTarget("box").exec(script, on_line=lines.take, on_kill=reports.append)
    )
    await lines.wait(1)
    start = time.monotonic()
    running.cancel()
    if act is not None:
        await asyncio.sleep(0)
        act(running)
    with pytest.raises(asyncio.CancelledError):
        await running
    return [int(word) for word in lines.all[0][1].split()], reports, time.monotonic() - start


@in_loop
async def test_a_cancel_ends_the_group_by_sigterm() -> None:
    pids, (report,), elapsed = await cancelled("sleep 60 & echo $$ $!; wait")
    assert not any(is_alive(pid) for pid in pids)
    assert elapsed < 0.5
    assert (report.op, report.pid, report.how, report.survivors) == ("exec", pids[0], "SIGTERM", [])


@in_loop
async def test_a_group_that_ignores_sigterm_is_killed_after_a_second() -> None:
    script = "trap '' TERM; sleep 60 & echo $$ $!; wait; sleep 60"
    pids, (report,), elapsed = await cancelled(script)
    assert not any(is_alive(pid) for pid in pids)
    assert 1.0 <= elapsed < 1.6
    assert report.how == "SIGKILL"


@in_loop
async def test_a_script_that_cleans_up_on_sigterm_is_let_finish() -> None:
    script = "trap 'sleep 0.2; exit 9' TERM; echo $$; while :; do sleep 0.05; done"
    pids, (report,), elapsed = await cancelled(script)
    assert not is_alive(pids[0])
    assert 0.2 <= elapsed < 1
    assert report.how == "SIGTERM"


@in_loop
async def test_a_second_cancel_does_not_leave_the_group_alive() -> None:
    script = "trap '' TERM; echo $$; while :; do sleep 60; done"
    pids, reports, elapsed = await cancelled(script, lambda running: running.cancel())
    assert not is_alive(pids[0])
    assert elapsed >= 1.0
    assert len(reports) <= 1


@in_loop
async def test_a_million_lines_cost_a_bounded_memory_and_none_is_lost() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = peak_kib()
    count = 0

    def take(_: str, line: str) -> None:
        nonlocal count
        count += 1
        assert line == str(count)

    done = await LocalTarget("box").exec("seq 1000000", on_line=take, keep_bytes=MIB)
    assert count == 1_000_000
    assert done.truncated
    assert len(done.stdout) == MIB
    assert peak_kib() - before < 32 * 1024


def peak_kib() -> int:
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in text.splitlines() if line.startswith("VmHWM")).split()[1])


@in_loop
async def test_streams_are_apart_whole_and_in_order() -> None:
    lines = Lines()
    script = "printf 'a\\nb'; printf 'x\\n' >&2; sleep 0.05; printf 'c\\n\\377\\n'"
    done = await LocalTarget("box").exec(script, on_line=lines.take)
    assert [line for stream, line in lines.all if stream == "out"] == ["a", "bc", "\ufffd"]
    assert [line for stream, line in lines.all if stream == "err"] == ["x"]
    assert done.stdout == b"a\nbc\n\xff\n"
    assert done.error_text == "x\n"
    assert not done.truncated


@in_loop
async def test_lines_come_as_they_are_written() -> None:
    lines = Lines()
    running = asyncio.ensure_future(
        LocalTarget("box").exec("echo one; read x; echo two", stdin=b"", on_line=lines.take)
    )
    await lines.wait(1)
    await running
    assert [line for _, line in lines.all] == ["one", "two"]


@in_loop
async def test_a_script_of_a_megabyte_runs_and_keeps_its_stdin() -> None:
    script = "# " + "x" * MIB + "\nread line; echo got $line; exit 5"
    done = await LocalTarget("box").exec(script, stdin=b"hello\n")
    assert (done.text, done.exit_code) == ("got hello\n", 5)


@in_loop
async def test_a_large_stdin_is_written_while_the_output_is_read() -> None:
    data = os.urandom(3 * MIB)
    done = await LocalTarget("box").exec("cat", stdin=data, keep_bytes=4 * MIB)
    assert done.stdout == data


@in_loop
async def test_a_script_that_reads_nothing_is_no_error() -> None:
    assert (await LocalTarget("box").exec("exit 0", stdin=b"x" * MIB)).exit_code == 0


@in_loop
async def test_the_exit_code_of_a_signal_is_128_and_its_number() -> None:
    assert (await LocalTarget("box").exec("kill -TERM $$")).exit_code == 143


@in_loop
async def test_variables_are_added_to_the_environment() -> None:
    done = await LocalTarget("box").exec('echo "$A-${PATH:+path}"', env={"A": "b c"})
    assert done.text == "b c-path\n"


@pytest.mark.parametrize("script", ["a\0b", "\ud800"])
def test_a_script_that_no_shell_can_take_is_refused(script: str) -> None:
    @in_loop
    async def test() -> None:
        with pytest.raises(TargetError, match="can't start sh"):
            await LocalTarget("box").exec(script)

    test()


@in_loop
async def test_a_shell_that_is_not_there_is_a_target_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(TargetError, match="can't start sh"):
        await LocalTarget("box").exec("true", env={"PATH": "/nowhere"})


@in_loop
async def test_the_probe_and_the_facts_are_gathered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LocalTarget("box") as target:
        assert target.info.family == "linux"
        assert target.info.runtime_kind == "posix-shell"
        facts = await target.facts()
        assert facts["cpus"]
        monkeypatch.setattr(target, "exec", None)
        assert await target.facts() is facts


# --- files


@in_loop
async def test_a_file_is_replaced_at_once_and_keeps_its_mode(tmp_path: Path) -> None:
    target, place = LocalTarget("box"), tmp_path / "deep" / "er" / "file"
    await target.put_file(str(place), b"\0\xff\n")
    assert place.read_bytes() == b"\0\xff\n"
    assert stat.S_IMODE(place.stat().st_mode) == 0o644
    place.chmod(0o600)
    before = place.stat().st_ino
    with place.open("rb") as old:
        await target.put_file(str(place), b"new")
        assert old.read() == b"\0\xff\n"
    assert place.stat().st_ino != before
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    await target.put_file(str(place), b"", mode=0o750)
    assert stat.S_IMODE(place.stat().st_mode) == 0o750
    assert os.listdir(place.parent) == ["file"]


@in_loop
async def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    await LocalTarget("box").put_file(str(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@in_loop
async def test_a_put_that_is_cancelled_replaces_nothing_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"old")
    reached, go_on = threading.Event(), threading.Event()
    chmod = os.chmod

    def slow(path: str, mode: int) -> None:
        reached.set()
        assert go_on.wait(20)
        chmod(path, mode)

    monkeypatch.setattr(local.os, "chmod", slow)
    putting = asyncio.ensure_future(LocalTarget("box").put_file(str(place), b"new"))
    assert await asyncio.to_thread(reached.wait, 20)
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    go_on.set()
    await asyncio.get_running_loop().shutdown_default_executor()
    assert place.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@in_loop
async def test_a_put_that_fails_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(local.os, "replace", full)
    with pytest.raises(TargetError, match="No space left"):
        await LocalTarget("box").put_file(str(tmp_path / "file"), b"x")
    assert os.listdir(tmp_path) == []


@in_loop
async def test_only_regular_files_are_read_and_replaced(tmp_path: Path) -> None:
    # A FIFO would block a thread for ever, and a device would be replaced by a file.
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    target = LocalTarget("box")
    for place in (str(fifo), "/dev/zero", str(tmp_path)):
        with pytest.raises(TargetError, match=r"regular file|directory"):
            await target.get_file(place, limit_bytes=10)
        with pytest.raises(TargetError, match=r"regular file|directory"):
            await target.put_file(place, b"x")
    assert stat.S_ISFIFO(fifo.stat().st_mode)


@pytest.mark.parametrize("path", ["", "a\0b", "/nowhere/x", "\ud800"])
def test_a_path_that_can_not_be_is_a_target_error(path: str) -> None:
    @in_loop
    async def test() -> None:
        with pytest.raises(TargetError, match="can't read"):
            await LocalTarget("box").get_file(path)

    test()


@in_loop
async def test_a_file_longer_than_its_limit_is_refused_by_its_size(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"x" * 11)
    target = LocalTarget("box")
    assert await target.get_file(str(place), limit_bytes=11) == b"x" * 11
    assert await target.get_file(str(place)) == b"x" * 11
    with pytest.raises(TargetError, match="has 11 bytes, more than the 10"):
        await target.get_file(str(place), limit_bytes=10)
