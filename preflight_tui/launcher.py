"""Start the engine and the console as two processes, and give the terminal back whatever happens.

This process does nothing else: it saves the terminal's settings, waits, and restores them where
the console could not. The engine is detached: closing the terminal does not end the run.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from types import FrameType

RECORD_NAME = "events.ndjson"
LOG_NAME = "engine.log"

# Keyboard protocol, mouse, focus and paste reports off, wrapping and main screen on, cursor shown.
RESTORE = (
    b"\x1b[<u\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1004l\x1b[?2004l"
    b"\x1b[?2026l\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[0m\r\n"
)

_CRASHED = 70
_TAIL_BYTES = 4096  # of the record: more than its last event is long


def run(argv: list[str], looks: Sequence[str] = ()) -> int:
    """Run a command of the command line with a console; returns the exit code.

    ``looks`` are words for the console alone, such as ``--ascii``; so they are below.
    The run's code when it has finished, 0 when the console was detached, 130 when it was left.
    An engine that ends before it is ready gets no console: what it said is printed.
    """
    run_id, command = _run_id(argv)
    log = Path(tempfile.mkdtemp(prefix="preflight-")) / LOG_NAME
    engine, ready = _start_engine(command, run_id, log)
    folder = _wait_ready(engine, ready)
    if folder is None:
        code = _stopped_early(engine, log)
        shutil.rmtree(log.parent, ignore_errors=True)
        return code
    _keep_log(log, folder)
    return _show(folder, run_id, looks)


def attach(run_folder: Path, looks: Sequence[str] = ()) -> int:
    """Open the console on a run that goes on, or that is over; returns the exit code."""
    return _show(run_folder, run_folder.name, looks)


def replay(run_folder: Path, speed: float, looks: Sequence[str] = ()) -> int:
    """Play a past run in the console, ``speed`` times as fast as it was; gives its exit code."""
    return _show(run_folder, run_folder.name, ["--speed", str(speed), *looks])


def scene(name: str, looks: Sequence[str] = ()) -> int:
    """Show a scene of :data:`preflight_tui.demos.scenes.SCENES`: a run that never was."""
    line = [sys.executable, "-m", "preflight_tui.console", "--scene", name, *looks]
    with _terminal() as terminal:
        console = subprocess.Popen(line)
        with _signals(console):
            code = console.wait()
        if code < 0:
            terminal.restore()
    return 128 - code if code < 0 else code


def _run_id(argv: list[str]) -> tuple[str, list[str]]:
    """Give the run's id, and the command with it."""
    for place, word in enumerate(argv):
        if word == "--run-id" and place + 1 < len(argv):
            return argv[place + 1], argv
        if word.startswith("--run-id="):
            return word.partition("=")[2], argv
    run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    return run_id, [*argv, "--run-id", run_id]


def _start_engine(
    command: list[str], run_id: str, log: Path
) -> tuple[subprocess.Popen[bytes], int]:
    ready, tell = os.pipe()
    line = [sys.executable, "-m", "preflight_tui", "--no-ui", *command]
    with log.open("wb") as out:
        engine = subprocess.Popen(
            [*line, "--engine-ready-fd", str(tell)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            pass_fds=[tell],
            start_new_session=True,
        )
    os.close(tell)
    return engine, ready


def _wait_ready(engine: subprocess.Popen[bytes], ready: int) -> Path | None:
    """Give the run's folder when the engine listens; ``None`` when it ended before."""
    try:
        with os.fdopen(ready, "rb") as pipe:
            line = pipe.readline()
    except KeyboardInterrupt:
        engine.send_signal(signal.SIGINT)
        return None
    return Path(os.fsdecode(line.rstrip(b"\n"))) if line.endswith(b"\n") else None


def _stopped_early(engine: subprocess.Popen[bytes], log: Path) -> int:
    code = engine.wait()
    sys.stderr.buffer.write(log.read_bytes())
    sys.stderr.flush()
    return code if code >= 0 else 128 - code


def _keep_log(log: Path, folder: Path) -> None:
    """Move the engine's log into the run's folder; the engine goes on writing to it."""
    with contextlib.suppress(OSError):
        try:
            log.rename(folder / LOG_NAME)
            log.parent.rmdir()
        except OSError:  # another file system: the log stays, and the folder tells where
            (folder / LOG_NAME).symlink_to(log)


def _show(folder: Path, run_id: str, more: Sequence[str] = ()) -> int:
    """Run the console until it ends; returns the exit code."""
    told, tell = os.pipe()
    line = [sys.executable, "-m", "preflight_tui.console", "--folder", str(folder)]
    with _terminal() as terminal, os.fdopen(told, "rb") as result:
        console = subprocess.Popen(
            [*line, "--run-id", run_id, "--result-fd", str(tell), *more], pass_fds=[tell]
        )
        os.close(tell)
        with _signals(console):
            code = console.wait()
        words = result.read().split()
        if len(words) == 2:
            return int(words[0])
        terminal.restore()
    print(_whereabouts(folder, run_id), file=sys.stderr)  # noqa: T201  # the console can't say it any more
    return 128 - code if code < 0 else code or _CRASHED


def _whereabouts(folder: Path, run_id: str) -> str:
    """Tell how to come back to the run, whether it goes on or is over."""
    with contextlib.suppress(OSError), (folder / RECORD_NAME).open("rb") as record:
        record.seek(max(0, record.seek(0, os.SEEK_END) - _TAIL_BYTES))
        if b'"type":"run_finished"' in record.read():
            return f"the run is over: preflight-tui replay {run_id}"
    return f"the run goes on: preflight-tui attach {run_id}"


@contextlib.contextmanager
def _signals(console: subprocess.Popen[bytes]) -> Generator[None]:
    """Leave ctrl+c to the console; when this process is told to go, close the console."""

    def close(_number: int, _frame: FrameType | None) -> None:
        console.terminate()

    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, close),
        signal.SIGHUP: signal.signal(signal.SIGHUP, close),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Terminal:
    """The settings of the terminal, if there is one."""

    def __init__(self) -> None:
        self._settings: list[int | list[bytes | int]] | None = None
        with contextlib.suppress(termios.error, OSError, ValueError):
            self._settings = termios.tcgetattr(sys.stdin.fileno())

    def restore(self) -> None:
        """Bring back the screen, the keys and the settings."""
        with contextlib.suppress(termios.error, OSError, ValueError):
            if sys.stderr.isatty():
                os.write(sys.stderr.fileno(), RESTORE)
            if self._settings is not None:
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, self._settings)


@contextlib.contextmanager
def _terminal() -> Generator[_Terminal]:
    terminal = _Terminal()
    try:
        yield terminal
    except BaseException:
        terminal.restore()
        raise
