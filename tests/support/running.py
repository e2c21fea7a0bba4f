"""What runs on a target: watched line by line, looked for in the process table, cancelled."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from preflight.events import Stream
from preflight.ports.target import KillReport, Target


class Watch:
    """Collects lines, and lets a test wait for one."""

    def __init__(self) -> None:
        self.lines: list[tuple[Stream, str]] = []
        self._news = asyncio.Event()

    def __call__(self, stream: Stream, text: str) -> None:
        self.lines.append((stream, text))
        self._news.set()

    def of(self, stream: Stream) -> list[str]:
        return [text for one, text in self.lines if one == stream]

    async def wait(self, seen: Callable[[Watch], bool]) -> None:
        while not seen(self):
            self._news.clear()
            await self._news.wait()


def alive(pid: int) -> bool:
    """Whether a process runs, as seen from outside of any namespace."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1]
    except OSError:
        return False
    return state not in b"ZX"


def sleepers(seconds: str) -> list[int]:
    """The processes that run ``sleep`` with this odd number of seconds."""
    wanted = f"sleep\0{seconds}\0".encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes() == wanted:
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if alive(pid)]


def odd_seconds() -> str:
    """A duration that no other test sleeps for."""
    return f"{random.randint(10_000, 99_999)}.{random.randint(1, 999_999)}"


async def there(seconds: str, *, within_s: float = 5.0) -> None:
    """Wait until a process sleeps so long: what was forked may not have been executed yet."""
    async with asyncio.timeout(within_s):
        while not sleepers(seconds):  # noqa: ASYNC110  # somebody else's child is no event
            await asyncio.sleep(0.01)


async def gone(seconds: str, *, within_s: float = 5.0) -> float:
    """Wait until no process sleeps so long; gives how long that took."""
    begin = time.monotonic()
    async with asyncio.timeout(within_s):
        while sleepers(seconds):  # noqa: ASYNC110  # the end of somebody else's child is no event
            await asyncio.sleep(0.01)
    return time.monotonic() - begin


async def cancelled(target: Target, script: str) -> list[KillReport]:
    """Run a script that says ``ready``, cancel it then, and give what was reported."""
    reports: list[KillReport] = []
    watch = Watch()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(target.exec(script, on_line=watch, on_kill=reports.append))
        await watch.wait(lambda seen: "ready" in seen.of("out"))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    return reports
