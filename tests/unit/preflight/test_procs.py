"""Children in groups of their own: watched, ended as a group, and never leaked."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from preflight import procs
from preflight.procs import Process, exit_words, group_members, signal_name
from tests.support.fake_plugin import is_alive, session_of
from tests.support.loop import in_loop


def shell(script: str) -> Process:
    return Process(["sh", "-c", script])


def wait_blocking(pid: int, *, reap: bool = False) -> None:
    """Wait for a child's end with the loop standing still."""
    os.waitid(os.P_PID, pid, os.WEXITED | (0 if reap else os.WNOWAIT))


async def line_of(process: Process) -> str:
    """The next line that the child writes."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(process.stdout_fd, readable.set)
    async with asyncio.timeout(20):
        await readable.wait()
    loop.remove_reader(process.stdout_fd)
    return os.read(process.stdout_fd, 1000).decode().strip()


@in_loop
async def test_a_child_leads_a_session_and_its_end_is_noticed() -> None:
    process = shell("echo hi; read x; exit 3")
    assert await line_of(process) == "hi"
    assert session_of(process.pid) == process.pid
    assert not process.has_exited()
    assert not await process.wait_exit(0.01)
    process.close_stdin()
    assert process.stdin_fd == -1
    assert await process.wait_exit(20)
    assert await process.wait_exit()
    assert process.has_exited()
    assert process.returncode is None
    process.kill_rest()
    process.reap()
    assert process.returncode == 3
    assert process.has_exited()
    assert (process.stdout_fd, process.stderr_fd) == (-1, -1)


@in_loop
async def test_an_end_is_seen_before_the_loop_was_told() -> None:
    process = shell("exit 0")
    wait_blocking(process.pid)
    assert not process.exited.is_set()
    assert process.has_exited()
    process.reap()


@in_loop
async def test_an_end_that_somebody_else_collected_is_an_end() -> None:
    process = shell("exit 0")
    wait_blocking(process.pid, reap=True)
    assert process.has_exited()
    await process.wait_exit()
    process.reap()


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("echo up; exec sleep 60", "SIGTERM"),
        ("trap '' TERM; echo up; while :; do sleep 60; done", "SIGKILL"),
        ("sleep 60 & echo up; read x", "SIGTERM"),
    ],
)
def test_a_stop_ends_the_group_by_the_mildest_means(script: str, how: str) -> None:
    @in_loop
    async def test() -> None:
        process = shell(script)
        await line_of(process)
        report = await process.stop(term_s=0.3)
        assert report.how == how
        assert report.survivors == []
        assert group_members(process.pid) == []
        process.reap()
        assert process.returncode == -signal.Signals[how]

    test()


@in_loop
async def test_a_group_outlives_its_leader_no_longer_than_the_stop() -> None:
    process = shell("trap '' TERM; sleep 60 & echo $!")
    child = int(await line_of(process))
    await process.wait_exit()
    assert is_alive(child)
    assert group_members(process.pid) == [child]
    report = await process.stop(term_s=0.2)
    assert report.how == "SIGKILL"
    assert report.elapsed_ms >= 200
    assert not is_alive(child)
    process.reap()
    assert process.returncode == 0


@in_loop
async def test_a_stop_of_what_has_ended_needs_no_signal() -> None:
    process = shell("exit 0")
    await process.wait_exit()
    assert (await process.stop()).how == "exited"
    process.reap()
    assert (await process.stop()).how == "exited"


@in_loop
async def test_a_kill_is_at_once() -> None:
    process = shell("trap '' TERM; echo up; while :; do sleep 60; done")
    await line_of(process)
    start = time.monotonic()
    await process.kill()
    assert time.monotonic() - start < 1
    process.reap()
    assert process.returncode == -signal.SIGKILL


@in_loop
async def test_nobody_is_signalled_once_the_leader_was_reaped() -> None:
    process = shell("exit 0")
    await process.wait_exit()
    process.reap()
    process.signal_group(signal.SIGKILL)
    assert group_members(process.pid) == []


@in_loop
async def test_the_last_resort_kills_all_that_is_not_reaped() -> None:
    one, two = shell("sleep 60"), shell("sleep 60")
    procs.kill_all()
    for process in (one, two):
        assert await process.wait_exit(20)
        process.reap()
        assert process.returncode == -signal.SIGKILL


@in_loop
async def test_a_child_that_can_not_be_watched_is_not_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(pid: int, flags: int = 0) -> int:
        raise OSError(24, "too many open files")

    monkeypatch.setattr(os, "pidfd_open", full)
    with pytest.raises(OSError, match="too many"):
        shell("sleep 60")


@in_loop
async def test_an_end_is_noticed_without_pidfds_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    process = shell("exit 4")
    assert await process.wait_exit(20)
    process.reap()
    assert process.returncode == 4


@in_loop
async def test_what_can_not_be_executed_is_an_os_error() -> None:
    with pytest.raises(FileNotFoundError):
        Process(["/nowhere/at/all"])


@pytest.mark.parametrize("group", [-1, 0, 1])
def test_no_group_below_two_is_ever_looked_at(group: int) -> None:
    assert group_members(group) == []


def test_without_proc_nothing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procs, "_PROC", "/nowhere")
    assert group_members(os.getpgid(0)) == []


def test_our_own_group_has_us_in_it() -> None:
    assert os.getpid() in group_members(os.getpgid(0))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (None, "did not exit"),
        (0, "exited (status 0)"),
        (3, "exited (status 3)"),
        (-9, "killed by SIGKILL"),
        (-40, "killed by signal 40"),
    ],
)
def test_how_a_process_ended_in_words(code: int | None, words: str) -> None:
    assert exit_words(code) == words


def test_a_signal_without_a_name_has_its_number() -> None:
    assert signal_name(15) == "SIGTERM"
    assert signal_name(40) == "signal 40"
