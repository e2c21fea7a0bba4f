"""What can be done with the output of a task: copied, written to a file, opened in a pager."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from preflight.views.clean import plain
from preflight.views.detail import cell_title
from preflight.views.log import LogReader
from preflight_tui.clipboard import copy
from preflight_tui.viewer import Viewer

MAX_COPY_LINES = 100_000  # a clipboard is no place for more


def lines(reader: LogReader) -> Iterator[str]:
    """Give the lines of a task's output, harmless, with their times and kinds."""
    for event in range(reader.events):
        for row in reader.rows(event)[1]:
            yield f"{row.ts[11:23]:<12} {row.kind:<6} {plain(row.text)}"


def export(reader: LogReader, path: Path) -> None:
    """Write all lines to a file that only its owner can read."""
    path.touch(mode=0o600, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for line in lines(reader):
            file.write(line + "\n")


def file_name(subject: str) -> str:
    """Give a name for a file about a task: its words, without what a path must not have."""
    kept = "".join(char if char.isalnum() or char in "-_." else "-" for char in subject)
    return "-".join(part for part in kept.strip(".").split("-") if part)[:80] + ".txt"


def open_pager(path: Path) -> None:
    """Show a file in ``$PAGER``, or less; the console must be suspended meanwhile."""
    command = shlex.split(os.environ.get("PAGER", "") or "less")
    subprocess.run([*command, str(path)], check=False)


def copy_sight(app: Viewer) -> None:
    """Copy what is selected, or the lines that are in sight; says where they went."""
    view = app.view()
    _copied(app, app.screen.get_selected_text() or (view.text if view is not None else ""))


def copy_all(app: Viewer) -> None:
    """Copy the whole output of the task, where it is not too long for that."""
    view = app.view()
    if view is None or view.reader is None:
        return
    if len(view.reader) > MAX_COPY_LINES:
        app.notify("Too long to copy: e writes it to a file.", markup=False)
    else:
        _copied(app, "\n".join(lines(view.reader)))


def exported(app: Viewer) -> Path | None:
    """Write the output that is on the screen to a file; gives its path, ``None`` without."""
    view = app.view()
    if view is None or view.reader is None:
        return None
    path = folder(app) / file_name(cell_title(app.store, *app.cursor))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        export(view.reader, path)
    except OSError as exc:
        app.notify(f"{path} can't be written: {exc}", severity="error", markup=False)
        return None
    return path


def folder(app: Viewer) -> Path:
    """Give where files for the operator go: the run's folder, or a temporary one."""
    record = app.options.record
    base = Path(record).parent if record else Path(tempfile.gettempdir()) / "preflight-tui"
    return base / "exports"


def _copied(app: Viewer, text: str) -> None:
    if not text:
        return
    count = text.count("\n") + 1
    try:
        where = copy(text, app.copy_to_clipboard, folder(app))
    except (OSError, subprocess.TimeoutExpired) as exc:
        where = f"nowhere: {exc}"
    noun = "line" if count == 1 else "lines"
    app.notify(f"Copied {count} {noun} {where}", timeout=2, markup=False)
