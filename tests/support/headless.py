"""The installed command, run as its users run it: a process of its own, its events as they come."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self, cast

PATIENCE_S = 20.0
ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "plugins"

Fields = dict[str, object]


class Command:
    """A headless run in a folder, its events on stdout; a context manager that leaves nothing."""

    def __init__(self, folder: Path, *words: str, json_output: bool = True) -> None:
        argv = [sys.executable, "-m", "preflight_tui", "--no-ui", *words]
        if json_output:
            argv += ["--output", "json"]
        self.events: list[Fields] = []
        self.process = subprocess.Popen(
            argv,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(folder),
            start_new_session=True,
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def wait_for(self, type: str, **fields: object) -> Fields:
        """The first event of a type whose fields are as given, now or later."""
        deadline = time.monotonic() + PATIENCE_S
        seen = 0
        while True:
            for event in self.events[seen:]:
                if event["type"] == type and all(event.get(k) == v for k, v in fields.items()):
                    return event
            seen = len(self.events)
            self._next(deadline, f"{type} {fields}")

    def finish(self) -> int:
        """Wait for the end and give the exit code."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        while not self._lines.empty():
            self.events.append(json.loads(self._lines.get()))
        return code

    def types(self) -> list[object]:
        """The types of all events so far, in order."""
        return [event["type"] for event in self.events]

    def lines(self) -> list[str]:
        """The text of all output lines so far, in order."""
        batches = [event["lines"] for event in self.events if event["type"] == "task_output"]
        return [line["text"] for batch in batches for line in cast("list[dict[str, str]]", batch)]

    def stderr(self) -> str:
        """All that was written to stderr; only after the end."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def _next(self, deadline: float, what: str) -> None:
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            shown = [event["type"] for event in self.events]
            raise TimeoutError(f"no {what}; came: {shown}") from None
        self.events.append(json.loads(line))


def environment(folder: Path) -> dict[str, str]:
    """An environment without the developer's own: home and state are in the test's folder."""
    return {
        **os.environ,
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "NO_COLOR": "1",
        "PYTHONWARNDEFAULTENCODING": "",
    }


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as text."""
    return subprocess.run(
        [sys.executable, "-m", "preflight_tui", "--no-ui", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(folder),
        timeout=PATIENCE_S * 2,
        check=False,
    )


def wait_until(what: Callable[[], bool], within_s: float = PATIENCE_S) -> float:
    """Wait until something outside this process is so; gives the seconds that it took."""
    start = time.monotonic()
    pause = threading.Event()
    while not what():
        if time.monotonic() - start > within_s:
            raise TimeoutError("it never became so")
        pause.wait(0.002)
    return time.monotonic() - start


def gone(pids: Sequence[int]) -> bool:
    """Whether none of the processes is there any more; a zombie is not there."""
    return not any(_alive(pid) for pid in pids)


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")
