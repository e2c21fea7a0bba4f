"""A thousand items, one call each against batches, side by side; prints, never asserts.

Run it: ``python tests/bench/batch.py``. It drives ``for_each`` as the runner does, with a plugin of
the SDK whose items are in place already. Goals: at least 100 times fewer frames, at most 0.4 times
the bytes where common params dominate, at most a fifth of the time. ``--large`` runs 10,000 items
whose args make 200 MB, in a process of its own; the goal is at most 400 MB of host memory.
"""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "core"), str(ROOT / "plugins")]

from preflight.bus import Bus  # noqa: E402  # the path comes first
from preflight.control import RunControl  # noqa: E402
from preflight.model.playbook import TaskSpec  # noqa: E402
from preflight.model.settings import Settings  # noqa: E402
from preflight.model.template import Scope as Names  # noqa: E402
from preflight.plugins.discovery import Found  # noqa: E402
from preflight.plugins.module import PluginModule  # noqa: E402
from preflight.plugins.pool import PluginPool  # noqa: E402
from preflight.ports.module import TaskContext  # noqa: E402
from preflight.rpc import peer, writer  # noqa: E402
from preflight.run.items import ItemsRun  # noqa: E402
from preflight.targets.local import LocalTarget  # noqa: E402

ITEMS = 1000
ROUNDS = 5
PLUGIN = f"""\
#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT / "plugins")!r})
from preflight_sdk import ApplyResult, CheckResult, serve

class Demo:
    name = "demo"
    version = "1"

    def check(self, ctx, args, handle):
        return CheckResult(False)

    def apply(self, ctx, args, handle):
        return ApplyResult()

serve(Demo)
"""


class Meter:
    """Counts what crosses the wire, at the file descriptors."""

    def __init__(self) -> None:
        self.frames = 0
        self.bytes = 0

    def count(self, data: bytes | bytearray | memoryview) -> None:
        """Some bytes have crossed."""
        self.frames += bytes(data).count(b"\n")
        self.bytes += len(data)


class MeteredOs:
    """The ``os`` that the peer sees: every read and write is counted."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def read(self, fd: int, size: int) -> bytes:
        """Read, and count."""
        data = os.read(fd, size)
        self._meter.count(data)
        return data

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write, and count what was taken."""
        taken = os.write(fd, data)
        self._meter.count(memoryview(data)[:taken])
        return taken


async def run(plugin: Path, spec: TaskSpec, names: Names, *, batches: bool) -> float:
    """One task with ``for_each``. Units: seconds, without the plugin's start."""
    bus = Bus("bench")
    control = RunControl(bus)
    found = Found(name="demo", path=plugin, source="bench")
    async with (
        PluginPool(target="box", emit=bus.emit, settings=Settings()) as pool,
        control.scope("box/one") as scope,
    ):
        ctx = TaskContext(
            target=LocalTarget("box"),
            task="one",
            scope=scope,
            emit=bus.emit,
            output=lambda stream, line: None,
            folder=Path("/"),
        )
        session = await pool.session(found, ctx)
        session.takes_batches = batches
        items = ItemsRun(spec, names, ctx, emit=bus.emit, flush=lambda: None)
        began = time.perf_counter()
        await items.check(PluginModule(found, pool))
        took = time.perf_counter() - began
        if set(items.statuses) != {"ok"}:
            raise RuntimeError(f"items went wrong: {items.summary} {items.first_failure}")
    return took


def task(params: dict[str, object], count: int) -> TaskSpec:
    """A task that runs for each of so many names."""
    return TaskSpec(
        key="one",
        name="one",
        module="demo",
        params=params,
        for_each=[f"name {n}" for n in range(count)],
    )


def side_by_side(
    title: str, plugin: Path, params: dict[str, object], meter: Meter, *, bytes_goal: float
) -> None:
    """Both ways in turn, so that what else the machine does meets both."""
    took: dict[bool, list[float]] = {False: [], True: []}
    wire: dict[bool, tuple[int, int]] = {}
    for _ in range(ROUNDS):
        for batches in (False, True):
            meter.frames = meter.bytes = 0
            spec = task(params, ITEMS)
            took[batches].append(asyncio.run(run(plugin, spec, Names(), batches=batches)))
            wire[batches] = meter.frames, meter.bytes
    print(f"\n{title}: {ITEMS} items, median of {ROUNDS}")
    for batches, name in ((False, "one call each"), (True, "batches")):
        frames, size = wire[batches]
        wall = statistics.median(took[batches]) * 1e3
        print(f"  {name:<14} {frames:6} frames {size:10} bytes {wall:9.1f} ms")
    one, many = statistics.median(took[False]), statistics.median(took[True])
    ratio(wire[False][0] / wire[True][0], "times fewer frames", 100, lambda got, goal: got >= goal)
    ratio(
        wire[True][1] / wire[False][1], "times the bytes", bytes_goal, lambda got, goal: got <= goal
    )
    ratio(one / many, "times faster", 5, lambda got, goal: got >= goal)


def ratio(got: float, what: str, goal: float, met: Callable[[float, float], bool]) -> None:
    """Print a ratio beside its goal."""
    print(f"  {got:8.2f} {what:<20} goal {goal:g}: {'met' if met(got, goal) else 'MISSED'}")


def large(plugin: Path) -> None:
    """10,000 items of 20 kB each, within the usual limit."""
    spec = task({"text": "{{ vars.text }}{{ item }}"}, 10_000)
    names = Names(vars={"text": "x" * 20_000})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    took = asyncio.run(run(plugin, spec, names, batches=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"\n10,000 items of 20 kB: {took:.1f} s, host {before:.0f} MiB before, {peak:.0f} at most"
    )
    ratio(peak, "MiB of host memory", 400, lambda got, goal: got <= goal)


def main() -> None:
    """Print the ratios beside their goals."""
    print(
        f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores,"
        f" load {os.getloadavg()[0]:.1f}"
    )
    meter = Meter()
    with tempfile.TemporaryDirectory() as folder:
        plugin = Path(folder) / "preflight-plugin-demo"
        plugin.write_text(PLUGIN, encoding="utf-8")
        plugin.chmod(0o755)
        if "--large" in sys.argv:
            large(plugin)
            return
        for module in (peer, writer):
            setattr(module, "os", MeteredOs(meter))  # noqa: B010  # no attribute that it exports
        small: dict[str, object] = {"path": "/x/{{ item }}"}
        side_by_side("small params", plugin, small, meter, bytes_goal=1)
        common: dict[str, object] = {"path": "/x/{{ item }}", "content": "y" * 2000}
        side_by_side("common params dominate", plugin, common, meter, bytes_goal=0.4)


if __name__ == "__main__":
    main()
