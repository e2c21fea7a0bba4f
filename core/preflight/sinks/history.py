"""The record of a run: ``.preflight/runs/<run-id>/events.ndjson``, written as the run goes.

One event a line, and the line's number is the event's ``seq``. Nothing is kept in memory and
nothing is buffered here: what was emitted survives a SIGKILL of the engine.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from preflight.errors import ConfigError
from preflight.events import Event, RunFinished, RunStarted, decode, encode

RECORD_NAME = "events.ndjson"
DEFAULT_KEPT = 20

_RUN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_TAIL_BYTES = 64 * 1024  # the last event of a record is looked for in here


class History:
    """Writes one run's record; also a sink that wakes whoever follows it."""

    def __init__(self, folder: Path) -> None:
        """Open ``folder`` for a new run; it must exist."""
        self.folder = folder
        self.path = folder / RECORD_NAME
        self.watchers: list[Callable[[], None]] = []
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(self.path, flags, 0o600)

    def __call__(self, event: Event) -> None:
        """Append one event."""
        rest = memoryview(encode(event))
        while rest:
            rest = rest[os.write(self._fd, rest) :]
        for watcher in self.watchers:
            watcher()

    def close(self) -> None:
        """Let go of the file. Safe to repeat."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run as ``runs`` lists it; ``finished`` is None while it goes on, or after a crash."""

    run_id: str
    folder: Path
    started: RunStarted | None
    finished: RunFinished | None

    @property
    def record(self) -> Path:
        """The file of its events."""
        return self.folder / RECORD_NAME


def runs_folder(project: Path) -> Path:
    """Give the folder that holds a project's runs."""
    return project / ".preflight" / "runs"


def create_run_folder(project: Path, run_id: str) -> Path:
    """Make the folder of a new run, for its owner alone.

    Raises :class:`ConfigError` for an id that is taken, or that would leave the folder.
    """
    if not _RUN_ID.fullmatch(run_id):
        raise ConfigError(
            f"--run-id {run_id!r}: letters, digits, '-', '_' and '.', 64 at most, "
            "not beginning with '.' or '-'"
        )
    folder = runs_folder(project) / run_id
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise ConfigError(f"--run-id {run_id}: there is a run of that name already") from None
    except OSError as exc:
        raise ConfigError(f"can't make {folder}: {exc.strerror or exc}") from exc
    return folder


def list_runs(project: Path) -> list[PastRun]:
    """List a project's runs, the newest first."""
    root = runs_folder(project)
    found: list[PastRun] = []
    with contextlib.suppress(OSError):
        folders = [folder for folder in root.iterdir() if (folder / RECORD_NAME).is_file()]
        found.extend(read_run(folder) for folder in folders)
    return sorted(found, key=lambda run: run.started.ts if run.started else "", reverse=True)


def read_run(folder: Path) -> PastRun:
    """Read a run's first and last word; a record that was cut off in mid-line is no error."""
    path = folder / RECORD_NAME
    with path.open("rb") as file:
        first = decode(file.readline())
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        lines = file.read().splitlines()
    last = decode(lines[-1]) if lines else None
    return PastRun(
        run_id=folder.name,
        folder=folder,
        started=first if isinstance(first, RunStarted) else None,
        finished=last if isinstance(last, RunFinished) else None,
    )


def prune(project: Path, keep: int) -> None:
    """Remove the oldest finished runs, so that ``keep`` finished ones stay."""
    finished = [run for run in list_runs(project) if run.finished is not None]
    for run in finished[max(0, keep) :]:
        shutil.rmtree(run.folder, ignore_errors=True)
