"""Output over SSH: how soon it comes, and what much of it costs."""

from __future__ import annotations

import asyncio
import resource
import time

import pytest

from tests.support.running import Watch
from tests.support.ssh_places import Servers, ssh_target
from tests.support.sshd import why_no_sshd

pytestmark = pytest.mark.skipif(bool(why_no_sshd()), reason=why_no_sshd() or "-")


async def test_a_line_comes_when_it_is_written(servers: Servers) -> None:
    """F13: each line holds the time at which it was written; one clock, since it is loopback."""
    late: list[float] = []

    def on_line(_stream: object, text: str) -> None:
        late.append(time.time() - float(text))

    async with ssh_target(servers.get()) as target:
        await target.exec("for i in $(seq 20); do date +%s.%N; sleep 0.02; done", on_line=on_line)
    assert len(late) == 20
    assert sorted(late)[18] < 0.15


async def test_progress_without_a_newline_is_shown_when_it_rests(servers: Servers) -> None:
    """F15"""
    watch = Watch()
    script = r"printf '10%%\r20%%\r'; sleep 0.6; printf '\r30%%'; sleep 0.6; printf '\r100%%\n'"
    async with ssh_target(servers.get()) as target:
        result = await target.exec(script, on_line=watch)
    assert [text.strip("\r") for text in watch.of("out")] == ["20%", "30%", "100%"]
    assert result.stdout == b"10%\r20%\r\r30%\r100%\n"


async def test_half_a_line_is_never_shown(servers: Servers) -> None:
    watch = Watch()
    async with ssh_target(servers.get()) as target:
        await target.exec("printf half; sleep 0.5; echo ' whole'", on_line=watch)
    assert watch.of("out") == ["half whole"]


async def test_a_flood_delays_no_other_target_and_fills_no_memory(servers: Servers) -> None:
    """F16: 100 MiB from one, ten others that talk slowly."""
    server = servers.get()
    late: list[float] = []

    def on_line(_stream: object, text: str) -> None:
        late.append(time.time() - float(text))

    async def talk(done: asyncio.Event) -> None:
        async with ssh_target(server) as target:
            while not done.is_set():
                await target.exec("date +%s.%N; sleep 0.05; date +%s.%N", on_line=on_line)

    flooded = 0

    def count(_stream: object, text: str) -> None:
        nonlocal flooded
        flooded += len(text) + 1

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with asyncio.timeout(50), asyncio.TaskGroup() as group:
        done = asyncio.Event()
        for _ in range(10):
            group.create_task(talk(done))
        async with ssh_target(server) as target:
            result = await target.exec(
                "yes 0123456789012345678901234567890123456789012345678901234567890 | "
                "head -c 104857600",
                on_line=count,
                keep_bytes=1000,
            )
        done.set()
    assert result.truncated
    assert flooded in (104_857_600, 104_857_601)  # the last line has no newline
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 * 1024  # KiB
    assert len(late) > 20
    assert sorted(late)[int(len(late) * 0.95)] < 0.25
