"""A headless run: how long it takes to start, and what a million printed lines cost.

Prints numbers with the machine and n, asserts nothing: ``uv run python tests/bench/headless.py``.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_RUNS = 11
_LINES = 1_000_000

IDLE: dict[str, object] = {"tasks": [{"name": "Idle", "shell": {"cmd": "true"}}]}
FLOOD: dict[str, object] = {
    "tasks": [{"name": "Flood", "shell": {"cmd": "seq", "args": [str(_LINES)]}}]
}


def main() -> None:
    """Measure and print."""
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    _starts()
    idle_s, idle_kib = _run(IDLE)
    flood_s, flood_kib = _run(FLOOD)
    print(f"a run of one task        {idle_s:6.2f} s  peak {idle_kib / 1024:6.1f} MiB")
    print(f"{_LINES:,} printed lines  {flood_s:6.2f} s  peak {flood_kib / 1024:6.1f} MiB")
    print(
        f"over idle                           {(flood_kib - idle_kib) / 1024:6.1f} MiB (goal: 100)"
    )
    print(f"lines a second           {_LINES / (flood_s - idle_s):,.0f}")


def _starts() -> None:
    for name, code in (
        ("bare interpreter", "pass"),
        ("headless command line", "import preflight_tui.cli"),
        ("console", "import preflight_tui.app"),
    ):
        times = [_timed(code) for _ in range(_RUNS)]
        print(f"import: {name:<22} median {statistics.median(times) * 1000:6.1f} ms (n={_RUNS})")


def _timed(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def _run(playbook: dict[str, object]) -> tuple[float, int]:
    """Give the seconds and the peak memory in KiB of one run, its record checked."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "site.yml").write_text(json.dumps(playbook))
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "preflight_tui", "--no-ui", "apply", "site.yml"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        elapsed = time.perf_counter() - start
        if process.returncode != 0:
            raise SystemExit(f"the run failed with {process.returncode}")
        return elapsed, usage.ru_maxrss


if __name__ == "__main__":
    main()
