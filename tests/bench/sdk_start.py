"""How long a plugin takes from exec to its answer to `initialize`, beside a bare interpreter.

Run it: ``python tests/bench/sdk_start.py``. The goal is a ratio of at most 1.5.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 41
PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
PLUGIN = f"""
import sys
sys.path.insert(0, {str(PLUGINS)!r})
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
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
    b'{"protocol_version":2,"min_protocol_version":2,"target":{}}}\n'
)


def bare_s() -> float:
    """Units: seconds for an interpreter that does nothing."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - started


def answered_s(script: str, env: dict[str, str]) -> float:
    """Units: seconds until the answer to `initialize` was read."""
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=env
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE)
        if b'"result"' not in process.stdout.readline():
            raise RuntimeError("initialize was not answered with a result")
        return time.perf_counter() - started


def main() -> None:
    """Print both medians and their ratio."""
    env = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        env["PYTHONPYCACHEPREFIX"] = folder  # the byte code of an installed SDK, not ours
        script = Path(folder) / "preflight-plugin-demo"
        script.write_text(PLUGIN, encoding="utf-8")
        answered_s(str(script), env)
        bare: list[float] = []
        plugin: list[float] = []
        for _ in range(ROUNDS):
            bare.append(bare_s())
            plugin.append(answered_s(str(script), env))
    low, high = statistics.median(bare) * 1e3, statistics.median(plugin) * 1e3
    print(f"bare interpreter        median {low:6.1f} ms  n={ROUNDS}")
    print(f"initialize answered     median {high:6.1f} ms  n={ROUNDS}")
    print(f"ratio                   {high / low:.2f} (goal: at most 1.50)")


if __name__ == "__main__":
    main()
