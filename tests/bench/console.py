"""What the console costs, in CPU time, against the budgets of its design.

Run it with ``python tests/bench/console.py``; it prints a line for each budget. CPU time is
measured in this process, without a terminal: turning lines into bytes for one adds a third.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from preflight.events import Line, TaskOutput, TaskStarted, encode
from preflight.views.clock import EngineClock
from preflight.views.log import LineIndex
from preflight.views.store import Store
from preflight_tui.app import ConsoleApp
from preflight_tui.bridge import Bridge
from preflight_tui.demos.scene import Scene
from preflight_tui.demos.scenes import SCENES
from preflight_tui.feeds import MemoryFeed

TEXT = "the quick brown fox jumps over the lazy dog, then does it again, and once more"
BATCH = 250


def report(name: str, value: float, limit: float, unit: str) -> None:
    """Print a budget: what it is, what was measured, whether it holds."""
    verdict = "ok  " if value <= limit else "OVER"
    print(f"{verdict} {name:<58} {value:9.2f} {unit:<3} (limit {limit:g})")


def flood(lines: int, target: str = "web-001", task: str = "t13") -> list[bytes]:
    """Give events with that many lines of output."""
    batch = [Line("out", f"{number:07} {TEXT}") for number in range(BATCH)]
    event = encode(TaskOutput(target=target, task=task, lines=batch, ts=TS)).rstrip(b"\n")
    return [event] * (lines // BATCH)


TS = "2026-03-02T12:06:00.000000Z"


def console(lines: list[bytes]) -> ConsoleApp:
    """Make a console that knows the events."""
    feed = MemoryFeed([], live=True)
    store = Store(EngineClock())
    for line in lines:
        feed.record.add(line)
    store.feed_all(lines)
    return ConsoleApp(Bridge(store, feed, feed.record))


async def frame_in_a_flood() -> None:
    """The run screen at 200x50 while 50,000 lines a second come: CPU of a frame."""
    app = console(SCENES["fleet"]().lines)
    feed = app.bridge.feed
    assert isinstance(feed, MemoryFeed)
    async with app.run_test(size=(200, 50)) as pilot:
        app.paint(None)
        await pilot.pause()
        costs: list[float] = []
        for _ in range(40):  # each stands for a tenth of a second
            feed.push(flood(5_000))
            await pilot.pause()
            began = time.process_time()
            app.bridge.drain(1.0)
            app.paint(app.collect())
            await pilot.pause()
            costs.append((time.process_time() - began) * 1000)
        report(
            "frame of the run screen, 200x50, 50,000 lines/s", statistics.median(costs), 30, "ms"
        )


async def key_in_a_flood() -> None:
    """A key to its painting while the same comes."""
    app = console(SCENES["fleet"]().lines)
    feed = app.bridge.feed
    assert isinstance(feed, MemoryFeed)
    async with app.run_test(size=(200, 50)) as pilot:
        app.paint(None)
        await pilot.pause()
        waits: list[float] = []
        costs: list[float] = []
        for number in range(60):
            feed.push(flood(5_000))
            await asyncio.sleep(0.05)
            wall, cpu = time.perf_counter(), time.process_time()
            await pilot.press("down" if number % 4 < 2 else "up")
            await pilot.pause()
            waits.append((time.perf_counter() - wall) * 1000)
            costs.append((time.process_time() - cpu) * 1000)
        report(
            "key to paint in that flood, p95, CPU", statistics.quantiles(costs, n=20)[18], 100, "ms"
        )
        p95 = statistics.quantiles(waits, n=20)[18]
        report("the same on the clock (an idle machine alone tells)", p95, 100, "ms")


async def matrix_updates() -> None:
    """Two hundred changes of cells and the painting, 120x36."""
    lines = SCENES["fleet"]().lines
    app = console(lines)
    async with app.run_test(size=(120, 36)) as pilot:
        app.paint(None)
        await pilot.pause()
        costs: list[float] = []
        for turn in range(20):
            events = [
                TaskStarted(
                    target=f"web-{number:03}",
                    task=f"t{20 + turn:02}",
                    name="x",
                    module="y",
                    index=20 + turn,
                    phase="check",
                    ts=TS,
                )
                for number in range(1, 201)
            ]
            raw = [encode(event).rstrip(b"\n") for event in events]
            began = time.process_time()
            app.store.feed_all(raw)
            app.paint(app.collect())
            await pilot.pause()
            costs.append((time.process_time() - began) * 1000)
        report("200 changes of cells and the painting, 120x36", statistics.median(costs), 20, "ms")


def append_a_line() -> None:
    """One line into the store: CPU, and memory of the index."""
    store = Store(EngineClock())
    scene = Scene()
    scene.start(["web-001"], [("print", "shell")])
    store.feed_all(scene.lines)
    lines = flood(1_000_000, task="t01")
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    store.feed_all(lines)
    spent = time.process_time() - began
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = len(store.log(("web-001", "t01")))
    report("append one line, in batches", spent / count * 1e6, 5, "us")
    report("memory after a million lines", (after - before) / 1024, 40, "MB")
    index = LineIndex()
    began = time.process_time()
    for number in range(200_000):
        index.append(number * 100, 100, 1)
    report("append one line of its own to the index", (time.process_time() - began) * 5, 5, "us")


def start() -> None:
    """The start to the first painting, in CPU of a process of its own."""
    code = (
        "import asyncio,time\n"
        "from tests.bench.console import console, SCENES\n"
        "async def main():\n"
        "    app = console(SCENES['running']().lines)\n"
        "    async with app.run_test(size=(120, 36)) as pilot:\n"
        "        app.paint(None)\n"
        "        await pilot.pause()\n"
        "asyncio.run(main())\n"
        "print(time.process_time())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    report("start to the first painting", float(done.stdout), 1.0, "s")


async def idle() -> None:
    """A console in which nothing happens: share of a core."""
    app = console(SCENES["running"]().lines)
    async with app.run_test(size=(200, 50)) as pilot:
        app.paint(None)
        await pilot.pause()
        began, clock = time.process_time(), time.perf_counter()
        await asyncio.sleep(10)
        share = (time.process_time() - began) / (time.perf_counter() - clock) * 100
        report("idle console, 200x50", share, 1.0, "%")


def main() -> None:
    """Measure everything."""
    append_a_line()
    start()
    steps: list[Callable[[], object]] = [
        lambda: asyncio.run(frame_in_a_flood()),
        lambda: asyncio.run(key_in_a_flood()),
        lambda: asyncio.run(matrix_updates()),
        lambda: asyncio.run(idle()),
    ]
    for step in steps:
        step()


if __name__ == "__main__":
    main()
