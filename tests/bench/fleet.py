"""The same work on many targets, by this project and its peers; prints, never asserts.

``python tests/bench/fleet.py``: an OpenSSH server of its own on loopback plays 1, 10, 50 and 200
targets that already have the twenty directories the playbook asks for, at 0 and at 50 ms of round
trip. Peers that are installed take part; ``PREFLIGHT_BENCH_BIN`` names a folder with more of them.
CPU and memory are the controller's, all its processes together; the servers share the cores.
The goals are for 50 targets at 0 ms on an idle machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "core")]

from tests.support.bench_peers import Job, Peer, peers  # noqa: E402  # the path comes first
from tests.support.sshd import Sshd, sshd, why_no_sshd  # noqa: E402
from tests.support.tcp_proxy import Proxy, proxy  # noqa: E402

_SAMPLE_S = 0.05
_LIMIT_S = 900.0
_GOALS = {"ansible": 50.0, "ansible+mitogen": 12.0, "pyinfra": 3.0, "plain asyncssh": 0.5}

_IDLE = """
import asyncio, os, sys
from preflight.model.inventory import Host
from preflight.targets.ssh import SshTarget
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024
async def main(port, account, key, known, count):
    async def more(number):
        for _ in range(number):
            host = Host(name="x", address="127.0.0.1", port=port, username=account, private_key=key,
                        known_hosts_file=known, ssh_config=False)
            await SshTarget(host).__aenter__()
    await more(10)
    before = rss()
    await more(count)
    print((rss() - before) / count, flush=True)
    os._exit(0)
asyncio.run(main(int(sys.argv[1]), *sys.argv[2:5], int(sys.argv[5])))
"""

_LINES = """
import asyncio, json, sys, time
from preflight.model.inventory import Host
from preflight.targets.ssh import SshTarget
SCRIPT = "perl -MTime::HiRes=time,sleep -e '$|=1; for (1..50) { print time, qq(\\\\n); sleep 0.1 }'"
async def main(port, account, key, known, count):
    late = []
    def note(_, text):
        late.append(time.time() - float(text))
    async def one():
        host = Host(name="x", address="127.0.0.1", port=port, username=account, private_key=key,
                    known_hosts_file=known, ssh_config=False)
        async with SshTarget(host) as target:
            ready.append(1)
            while len(ready) < count:
                await asyncio.sleep(0.05)
            await target.exec(SCRIPT, on_line=note)
    ready = []
    await asyncio.gather(*[one() for _ in range(count)])
    print(json.dumps(late))
asyncio.run(main(int(sys.argv[1]), *sys.argv[2:5], int(sys.argv[5])))
"""


@dataclass(frozen=True)
class Cost:
    """What a run took: seconds, seconds of CPU, MiB."""

    wall: float
    cpu: float
    peak: float


class Sampler:
    """Adds up the memory of a process and its descendants, while they run."""

    def __init__(self, pid: int) -> None:
        self.peak_mib = 0.0
        self._process = psutil.Process(pid)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE_S):
            total = 0
            try:
                for one in [self._process, *self._process.children(recursive=True)]:
                    total += one.memory_info().rss
            except psutil.NoSuchProcess:
                continue
            self.peak_mib = max(self.peak_mib, total / 1024 / 1024)


def run(peer: Peer, job: Job) -> Cost | None:
    """Run a tool once; ``None`` where it failed or took too long."""
    command = peer.command(job)
    env = os.environ | peer.env | {"HOME": str(job.folder), "PYTHONPATH": f"{ROOT}:{ROOT / 'core'}"}
    begin = time.perf_counter()
    with (job.folder / "out").open("wb") as out:
        process = subprocess.Popen(
            command, cwd=job.folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
        sampler = Sampler(process.pid)
        timer = threading.Timer(_LIMIT_S, process.kill)
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
        sampler.stop()
    if process.returncode:
        tail = (job.folder / "out").read_text(errors="replace")[-400:]
        print(f"  {peer.name}: exit code {process.returncode}: {tail}")
        return None
    return Cost(wall, used.ru_utime + used.ru_stime, sampler.peak_mib)


class Line:
    """A proxy in a thread of its own, for a round trip of so many milliseconds."""

    def __init__(self, port: int, delay_ms: int) -> None:
        self.port = port
        self.turns = 0
        self._made: Proxy | None = None
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(port, delay_ms)))
        self._thread.start()
        self._up.wait()

    async def _serve(self, port: int, delay_ms: int) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with proxy(port, delay_s=delay_ms / 2000) as self._made:
            self.port = self._made.port
            self._up.set()
            await self._stop.wait()

    def take_turns(self) -> int:
        """How often the client spoke after it had listened, since the last time."""
        made = self._made
        if made is None:
            return 0
        taken, self.turns = made.turns - self.turns, made.turns
        return taken

    def close(self) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


def compare(server: Sshd, tools: list[Peer], counts: list[int], tasks: int, delay_ms: int) -> None:
    """Print one table for each number of targets."""
    line = Line(server.port, delay_ms) if delay_ms else None
    for count in counts:
        print(f"\n{count} targets x {tasks} tasks, {delay_ms} ms")
        costs: dict[str, Cost] = {}
        for tool in tools:
            with tempfile.TemporaryDirectory() as folder:
                paths = [f"/tmp/preflight-bench-{number}" for number in range(tasks)]
                job = Job(server, line.port if line else server.port, count, paths, Path(folder))
                cost = run(tool, job)
            if cost is not None:
                costs[tool.name] = cost
                show(
                    tool.name, cost, costs.get("preflight-tui"), goals=count == 50 and not delay_ms
                )
    if line is not None:
        line.close()


def show(name: str, cost: Cost, ours: Cost | None, *, goals: bool) -> None:
    ratios = ""
    if ours is not None and name != "preflight-tui":
        ratios = (
            f"  ours is {cost.wall / ours.wall:5.1f} times as fast, has "
            f"{ours.cpu / cost.cpu:5.2f} of the CPU, {ours.peak / cost.peak:4.2f} of the memory"
        )
        if goals and name in _GOALS:
            ratios += f"  (goal: {_GOALS[name]:g} times as fast)"
    print(
        f"  {name:<16} {cost.wall:7.2f} s  CPU {cost.cpu:7.2f} s  peak {cost.peak:7.1f} MiB"
        + ratios,
        flush=True,
    )


def round_trips(server: Sshd) -> None:
    """Print the round trips of a satisfied task: 21 tasks against one, counted on a line."""
    line = Line(server.port, 50)
    tool, turns = peers()[0], list[int]()
    for tasks in (1, 21):
        with tempfile.TemporaryDirectory() as folder:
            paths = [f"/tmp/preflight-bench-{number % 20}" for number in range(tasks)]
            run(tool, Job(server, line.port, 1, paths, Path(folder)))
        turns.append(line.take_turns())
    line.close()
    print(f"\nround trips of a satisfied task  {(turns[1] - turns[0]) / 20:.2f} (goal: 1)")


def scripts(server: Sshd) -> None:
    """Print the memory of an idle target, and how late lines come."""
    with tempfile.TemporaryDirectory() as folder:
        known = f"{folder}/known_hosts"
        shared = [str(server.port), server.me, str(server.key_file), known]
        env = os.environ | {"PYTHONPATH": str(ROOT / "core")}

        def python(code: str, count: int) -> str:
            command = [sys.executable, "-c", code, *shared, str(count)]
            return subprocess.run(
                command, env=env, capture_output=True, text=True, check=True, timeout=_LIMIT_S
            ).stdout

        print(f"an idle target                   {float(python(_IDLE, 150)):.0f} KiB (goal: 80)")
        late = sorted(json.loads(python(_LINES, 50)))
    p99 = late[int(len(late) * 0.99)] * 1000
    print(
        f"a line, 50 targets x 10 a second median {statistics.median(late) * 1000:.1f} ms, "
        f"p99 {p99:.1f} ms (goal: 50), n={len(late)}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--targets", type=int, nargs="+", default=[1, 10, 50, 200])
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--delays", type=int, nargs="+", default=[0, 50])
    parser.add_argument("--only", nargs="+", default=[], help="names of tools")
    words = parser.parse_args()
    if why_no_sshd():
        sys.exit(why_no_sshd())
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"load {os.getloadavg()[0]:.1f}")
    tools = [tool for tool in peers() if not words.only or tool.name in words.only]
    with sshd("MaxStartups 500:30:1000") as server:
        for number in range(words.tasks):
            Path(f"/tmp/preflight-bench-{number}").mkdir(exist_ok=True)
        try:
            for delay_ms in words.delays:
                compare(server, tools, words.targets, words.tasks, delay_ms)
            round_trips(server)
            scripts(server)
        finally:
            for number in range(words.tasks):
                shutil.rmtree(f"/tmp/preflight-bench-{number}")


if __name__ == "__main__":
    main()
