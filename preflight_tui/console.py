"""The console's process: opens a run, shows it, and tells the launcher how it was left."""

from __future__ import annotations

import argparse
import locale
import os
import sys
import time
from pathlib import Path

from preflight.views.clock import EngineClock
from preflight.views.farewell import farewell
from preflight.views.store import Store
from preflight_tui.app import ConsoleApp
from preflight_tui.bridge import Bridge
from preflight_tui.demos.scenes import SCENES
from preflight_tui.feeds import RECORD_NAME, FileFeed, FileRecord, LinkFeed, MemoryFeed
from preflight_tui.viewer import Options

REPORT_NAME = "console-error.txt"


def main(argv: list[str] | None = None) -> int:
    """Open the console on a run's folder, or on a scene; returns the exit code."""
    told = _parser().parse_args(argv)
    app = _scene(told) if told.scene else _run(told)
    try:
        code = app.run(mouse=not told.no_mouse)
    finally:
        sys.stdout.flush()
    if code is None:
        print(f"the console ended on an error of its own: {app.options.report}", file=sys.stderr)  # noqa: T201  # the terminal is the operator's again
        return app.return_code or 70
    over = app.store.grid.finished is not None
    for line in farewell(app.store, app.options.record, app.options.run_id):
        print(line)  # noqa: T201  # idem
    if told.result_fd >= 0:
        os.write(told.result_fd, f"{code} {'over' if over else 'left'}\n".encode())
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="preflight-tui console", add_help=False)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--run-id", default="")
    parser.add_argument("--scene", choices=sorted(SCENES))
    parser.add_argument("--result-fd", type=int, default=-1)
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("--theme", default="")
    parser.add_argument("--no-mouse", action="store_true")
    return parser


def wants_ascii(asked: bool) -> bool:
    """Tell whether the terminal is to get ASCII alone: asked for, or its locale has no UTF-8."""
    encoding = locale.getpreferredencoding(False).lower().replace("-", "")
    return asked or encoding not in ("utf8", "utf8sig")


def _run(told: argparse.Namespace) -> ConsoleApp:
    folder: Path = told.folder
    path = folder / RECORD_NAME
    feed = LinkFeed(folder)
    source = feed if feed.live else FileFeed(path)
    clock = EngineClock(time.monotonic if feed.live else None)
    options = Options(
        ascii=wants_ascii(told.ascii),
        zone_s=float(time.localtime().tm_gmtoff),
        theme=told.theme,
        report=folder / REPORT_NAME,
        run_id=told.run_id or folder.name,
        record=str(path),
    )
    return ConsoleApp(Bridge(Store(clock), source, FileRecord(path)), options)


def _scene(told: argparse.Namespace) -> ConsoleApp:
    scene = SCENES[told.scene]()
    feed = MemoryFeed(scene.lines, live=True)
    options = Options(ascii=wants_ascii(told.ascii), theme=told.theme, run_id=scene.run_id)
    return ConsoleApp(Bridge(Store(EngineClock()), feed, feed.record), options)


if __name__ == "__main__":
    sys.exit(main())
