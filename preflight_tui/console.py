"""The console's process: opens a run, shows it, and tells the launcher how it was left."""

from __future__ import annotations

import argparse
import locale
import os
import signal
import sys
import threading
import time
import tomllib
from pathlib import Path
from typing import cast

from preflight.modules import BUILTINS
from preflight.views.clock import EngineClock
from preflight.views.farewell import farewell
from preflight.views.store import Store
from preflight_tui.app import ConsoleApp
from preflight_tui.bridge import Bridge
from preflight_tui.demos.scenes import SCENES
from preflight_tui.feeds import (
    RECORD_NAME,
    FileFeed,
    FileRecord,
    LinkFeed,
    MemoryFeed,
    PacedFeed,
)
from preflight_tui.viewer import Options

_WATCH_S = 0.5
REPORT_NAME = "console-error.txt"


def main(argv: list[str] | None = None) -> int:
    """Open the console on a run's folder, or on a scene; returns the exit code."""
    told = _parser().parse_args(argv)
    app = _scene(told) if told.scene else _run(told)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: app.told_to_go(number))
    if told.result_fd >= 0:
        threading.Thread(target=_watch_launcher, args=(app, os.getppid()), daemon=True).start()
    try:
        code = app.run(mouse=not told.no_mouse)
    finally:
        sys.stdout.flush()
    if code is None:
        print(f"the console ended on an error of its own: {app.options.report}", file=sys.stderr)  # noqa: T201  # the terminal is the operator's again
        return app.return_code or 70
    over = app.store.grid.finished is not None
    for line in farewell(app.store, app.options.record, app.options.run_id, gone=app.bridge.ended):
        print(line)  # noqa: T201  # idem
    if told.result_fd >= 0:
        os.write(told.result_fd, f"{code} {'over' if over else 'left'}\n".encode())
    return code


def _watch_launcher(app: ConsoleApp, launcher: int) -> None:
    """Leave when the launcher is gone: a thread, as a dead terminal holds the loop up."""
    while os.getppid() == launcher:
        time.sleep(_WATCH_S)
    app.told_to_go(signal.SIGHUP)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="preflight-tui console", add_help=False)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--run-id", default="")
    parser.add_argument("--scene", choices=sorted(SCENES))
    parser.add_argument("--result-fd", type=int, default=-1)
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("--theme", default="")
    parser.add_argument("--speed", type=float, default=0.0)
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
    past = PacedFeed(path, told.speed) if told.speed else FileFeed(path)
    source = feed if feed.live else past
    clock = EngineClock(time.monotonic if feed.live else None)
    store = Store(clock, builtins=frozenset(BUILTINS))
    options = Options(
        ascii=wants_ascii(told.ascii),
        zone_s=float(time.localtime().tm_gmtoff),
        theme=told.theme,
        report=folder / REPORT_NAME,
        run_id=told.run_id or folder.name,
        record=str(path),
    )
    return ConsoleApp(Bridge(store, source, FileRecord(path)), options, keys=user_keys())


def user_keys() -> dict[str, str]:
    """Give the operator's own keys: ``id = "keys"`` in ``keys.toml``; none where that is bad."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    path = Path(base) / "preflight-tui" / "keys.toml"
    try:
        with path.open("rb") as file:
            told = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, tomllib.TOMLDecodeError) as exc:
        print(f"{path} is not used: {exc}", file=sys.stderr)  # noqa: T201  # before the screen is taken
        return {}
    return flat_keys(told)


def flat_keys(told: dict[str, object]) -> dict[str, str]:
    """Give ids and keys from tables such as ``[run]`` with ``cancel = "x"``."""
    found: dict[str, str] = {}
    for name, value in told.items():
        if isinstance(value, str):
            found[name] = value
        elif isinstance(value, dict):
            inner = flat_keys(cast("dict[str, object]", value))
            found |= {f"{name}.{key}": keys for key, keys in inner.items()}
    return found


def _scene(told: argparse.Namespace) -> ConsoleApp:
    scene = SCENES[told.scene]()
    feed = MemoryFeed(scene.lines, live=True)
    options = Options(ascii=wants_ascii(told.ascii), theme=told.theme, run_id=scene.run_id)
    return ConsoleApp(Bridge(Store(EngineClock()), feed, feed.record), options)


if __name__ == "__main__":
    sys.exit(main())
