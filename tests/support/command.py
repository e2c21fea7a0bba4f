"""The installed command, run as a user would run it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

HEADLESS = str(Path(sys.executable).with_name("preflight"))
PATIENCE_S = 30.0


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def environment(folder: Path, **extra: str) -> dict[str, str]:
    """Give an environment in which nothing of the user's own is seen or changed."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(folder / "home"), "PYTHONWARNINGS": "error", **extra}


def preflight(
    folder: Path, *words: str, env: Mapping[str, str] | None = None, stdin: str = ""
) -> Outcome:
    """Run ``preflight`` in ``folder`` to its end."""
    done = subprocess.run(
        [HEADLESS, *words],
        cwd=folder,
        env=environment(folder) if env is None else dict(env),
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Outcome(done.returncode, done.stdout, done.stderr)


class Running:
    """A command that goes on; its stdout is read line by line."""

    def __init__(self, folder: Path, words: Sequence[str], *, before: Sequence[str] = ()) -> None:
        self._process = subprocess.Popen(
            [*before, HEADLESS, *words],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self.lines: list[str] = []

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        """The engine's pid."""
        return self._process.pid

    def until(self, word: str) -> str:
        """Read on to the line that holds ``word``."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))
            if word in line:
                return line
        raise AssertionError(f"no line with {word!r} in {self.lines}")

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the command alone, not to its group."""
        self._process.send_signal(number)

    def close_stdout(self) -> None:
        """Go away as a reader."""
        assert self._process.stdout is not None
        self._process.stdout.close()

    def end(self) -> Outcome:
        """Wait for the end."""
        if self._process.stdout is not None and not self._process.stdout.closed:
            self.lines += self._process.stdout.read().splitlines()
        assert self._process.stderr is not None
        err = self._process.stderr.read()
        code = self._process.wait(PATIENCE_S)
        assert "Traceback" not in err, err
        return Outcome(code, "\n".join(self.lines), err)


def is_running(pid: int) -> bool:
    """Tell whether a process is there and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")
