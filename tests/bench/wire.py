"""Round trips and MiB a second over the plugin wire, and events a second; prints, never asserts.

Run it: ``python tests/bench/wire.py``. The host is measured against a raw peer that blocks in its
reads, the SDK against a raw host that does; CPU is this side's and, for the SDK, the plugin's.
The goals on an idle machine: 8,000 round trips a second, and 250 MiB/s for 1 MiB messages.
"""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "core"), str(ROOT / "plugins")]

from preflight.bus import Bus  # noqa: E402  # the path comes first
from preflight.events import Line, TaskOutput  # noqa: E402
from preflight.rpc.machine import Large, Machine, Violation  # noqa: E402
from preflight.rpc.messages import Notification, Request  # noqa: E402
from preflight.rpc.peer import Peer  # noqa: E402
from preflight.sinks.history import History  # noqa: E402

MIB = 1024 * 1024
LIMIT = 64 * MIB
SIZES = ((0, 0, 10_000), (MIB, 0, 100), (0, MIB, 100), (32 * MIB, 0, 5), (0, 32 * MIB, 5))

RAW_PEER = """
import os, sys
body = b',"result":{"needs_change":false,"message":"' + b"x" * int(sys.argv[1]) + b'"}}\\n'
buffer, seen = bytearray(), 0
while chunk := os.read(0, 1 << 16):
    buffer += chunk
    while (end := buffer.find(b"\\n", seen)) >= 0:
        id = bytes(buffer[:60]).partition(b'"id":')[2].partition(b",")[0]
        del buffer[:end + 1]
        seen = 0
        out = memoryview(b'{"jsonrpc":"2.0","id":' + id + body)
        while out:
            out = out[os.write(1, out):]
    seen = len(buffer)
"""

SDK_PLUGIN = f"""
import sys
sys.path.insert(0, {str(ROOT / "plugins")!r})
from preflight_sdk import ApplyResult, CheckResult, serve

class Demo:
    name = "demo"
    version = "1"

    def check(self, ctx, args, handle):
        return CheckResult(False, "x" * args.get("size", 0))

    def apply(self, ctx, args, handle):
        return ApplyResult()

serve(Demo)
"""

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
    b'{"protocol_version":2,"min_protocol_version":2,"target":{}}}\n'
)


class Deaf:
    """Takes whatever the peer tells."""

    def on_request(self, request: Request) -> None: ...
    def on_notification(self, notification: Notification) -> None: ...
    def on_violation(self, violation: Violation) -> None: ...
    def on_large(self, large: Large) -> None: ...
    def on_bug(self, exc: Exception) -> None: ...
    def on_close(self, why: str) -> None: ...


def row(name: str, count: int, took_s: float, cpu_s: float, size: int) -> None:
    speed = f"{count * size / MIB / took_s:8.0f} MiB/s" if size else " " * 14
    each = cpu_s / count * 1e6
    print(f"{name:<38} n={count:<6} {count / took_s:9.0f}/s {speed} {each:10.1f} us CPU a call")


def way(up: int, down: int) -> str:
    return f"{up // MIB} MiB out" if up else f"{down // MIB} MiB in" if down else "round trips"


async def host(up: int, down: int, count: int) -> None:
    """Our host against a raw peer."""
    command = [sys.executable, "-IS", "-c", RAW_PEER, str(down)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, bufsize=0) as child:  # at once
        assert child.stdin is not None
        assert child.stdout is not None
        for pipe in (child.stdin, child.stdout):
            os.set_blocking(pipe.fileno(), False)
        peer = Peer(child.stdout.fileno(), child.stdin.fileno(), Machine(limit=LIMIT), Deaf())
        params = b'{"args":{"x":"%b"}}' % (b"y" * up)
        await peer.call("check", params)
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            await peer.call("check", params)
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
        peer.close()
        child.stdin.close()
    row(f"host, {way(up, down)}", count, took, cpu, up + down)


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sdk(script: Path, up: int, down: int, count: int) -> None:
    """A raw host against a plugin built with our SDK."""
    with subprocess.Popen([sys.executable, str(script)], stdin=-1, stdout=-1, bufsize=0) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        fd_in, fd_out = child.stdin.fileno(), child.stdout.fileno()

        def call(frame: bytes) -> None:
            rest = memoryview(frame)
            while rest:
                rest = rest[os.write(fd_in, rest) :]
            while not os.read(fd_out, 1 << 16).endswith(b"\n"):
                pass

        call(INITIALIZE)
        args = b'{"size":%d,"x":"%b"}' % (down, b"y" * up)
        frame = b'{"jsonrpc":"2.0","id":%d,"method":"check","params":{"args":%b}}\n'
        call(frame % (2, args))
        start, cpu = time.perf_counter(), cpu_of(child.pid)
        for number in range(count):
            call(frame % (number + 3, args))
        took, cpu = time.perf_counter() - start, cpu_of(child.pid) - cpu
        child.stdin.close()
    row(f"SDK, {way(down, up)}", count, took, cpu, up + down)


def events(folder: Path, *, secrets: int) -> None:
    """The bus with the record as its sink."""
    bus, history, count = Bus("bench"), History(folder), 50_000
    bus.add_sink(history)
    for number in range(secrets):
        bus.hide(f"secret number {number}")
    event = TaskOutput(target="box", task="one", lines=[Line("out", "x" * 60)] * 5)
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        bus.emit(event)
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    history.close()
    row(f"bus and record, {secrets} secrets", count, took, cpu, 0)


def main() -> None:
    print(
        f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores, ",
        end="",
    )
    print(f"load {os.getloadavg()[0]:.1f}")
    for up, down, count in SIZES:
        asyncio.run(host(up, down, count))
    with tempfile.TemporaryDirectory() as name:
        script = Path(name, "plugin.py")
        script.write_text(SDK_PLUGIN, encoding="utf-8")
        for up, down, count in SIZES:
            sdk(script, up, down, count)
        for secrets in (0, 10):
            folder = Path(name, str(secrets))
            folder.mkdir()
            events(folder, secrets=secrets)


if __name__ == "__main__":
    main()
