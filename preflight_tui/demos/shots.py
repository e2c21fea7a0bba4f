"""Every screen and state worth a picture; ``python -m preflight_tui.demos.shots`` makes them.

The pictures in ``screenshots/`` and the snapshots of the tests come from this one table.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import NamedTuple

from textual.pilot import Pilot

from preflight.modules import BUILTINS
from preflight.views.clock import EngineClock
from preflight.views.store import Store
from preflight_tui.app import ConsoleApp
from preflight_tui.bridge import Bridge
from preflight_tui.demos.scenes import SCENES
from preflight_tui.feeds import MemoryFeed
from preflight_tui.viewer import Options

Size = tuple[int, int]
SMALL: Size = (80, 24)
MIDDLE: Size = (120, 36)
LARGE: Size = (200, 50)


class Shot(NamedTuple):
    """A picture: a scene at a size after some keys; ``shown`` when it is for people as well."""

    scene: str
    size: Size = SMALL
    keys: tuple[str, ...] = ()
    theme: str = ""
    ascii: bool = False
    shown: bool = False


SHOTS: dict[str, Shot] = {
    "run": Shot("running", MIDDLE, shown=True),
    "run-small": Shot("running", shown=True),
    "run-large": Shot("fleet", LARGE, shown=True),
    "run-fleet": Shot("fleet", MIDDLE),
    "run-light": Shot("running", MIDDLE, theme="preflight-light", shown=True),
    "run-contrast": Shot("running", MIDDLE, theme="preflight-contrast"),
    "run-ansi": Shot("running", MIDDLE, theme="preflight-ansi"),
    "run-ascii": Shot("running", MIDDLE, ascii=True),
    "run-green": Shot("green"),
    "run-failures": Shot("failures", MIDDLE, ("n",), shown=True),
    "run-failures-small": Shot("failures", SMALL, ("n",)),
    "run-refused": Shot("failures", MIDDLE, ("N",)),
    "run-zoomed": Shot("running", SMALL, ("z",)),
    "run-too-small": Shot("running", (50, 12)),
    "output": Shot("running", MIDDLE, ("2",)),
    "output-find": Shot("running", MIDDLE, ("2", "slash", *"img", "enter"), shown=True),
    "output-hostile": Shot("hostile", MIDDLE, ("2", "tab", "g"), shown=True),
    "output-unwrapped": Shot("hostile", SMALL, ("2", "w", "tab", "g")),
    "cancel": Shot("running", SMALL, ("c",), shown=True),
    "cancel-run": Shot("running", MIDDLE, ("C",)),
    "cancelling": Shot("unwinding", MIDDLE, ("K",), shown=True),
    "cancelling-small": Shot("unwinding", SMALL, ("K",)),
    "cancelling-matrix": Shot("unwinding", MIDDLE),
    "killed": Shot("killed", MIDDLE, ("K",), shown=True),
    "finished-first": Shot("finished-first", SMALL, ("K",)),
    "lost": Shot("lost", SMALL, ("K",)),
    "quit": Shot("running", SMALL, ("q",)),
    "help": Shot("running", MIDDLE, ("question_mark",), shown=True),
    "help-small": Shot("running", SMALL, ("question_mark",)),
    "plugins": Shot("plugins", MIDDLE, ("3", "down"), shown=True),
    "plugins-small": Shot("plugins", SMALL, ("3", "down", "down", "down")),
    "plugins-none": Shot("fleet", SMALL, ("3",)),
    "capabilities": Shot("plugins", MIDDLE, ("4", "down", "down", "down"), shown=True),
    "capabilities-small": Shot("plugins", SMALL, ("4", "down", "down", "down")),
    "wire": Shot("wire", MIDDLE, ("5", *["up"] * 5), shown=True),
    "wire-small": Shot("wire", SMALL, ("5",)),
    "wire-light": Shot("wire", MIDDLE, ("5",), theme="preflight-light"),
    "wire-none": Shot("running", SMALL, ("5",)),
    "summary": Shot("failures", SMALL, ("6",), shown=True),
    "summary-wide": Shot("killed", MIDDLE, ("6",)),
    "summary-green": Shot("green", SMALL, ("6",)),
}


def console(shot: Shot) -> ConsoleApp:
    """Give the console that a picture is taken of; its clock stands at the scene's end."""
    scene = SCENES[shot.scene]()
    feed = MemoryFeed([], live=True)
    store = Store(EngineClock(), builtins=frozenset(BUILTINS))
    # All at once: where the cursor comes to rest must not depend on how fast events were shown.
    for line in scene.lines:
        feed.record.add(line)
    store.feed_all(scene.lines)
    theme = shot.theme or "preflight-dark"
    options = Options(theme=theme, ascii=shot.ascii, run_id=scene.run_id)
    return ConsoleApp(Bridge(store, feed, feed.record), options)


async def pose(pilot: Pilot[int], shot: Shot) -> None:
    """Bring the console to where the picture is taken."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    async with asyncio.timeout(60):
        app.tick()
        app.paint(None)
        await pilot.pause()
        for key in shot.keys:
            await pilot.press(key)
            await pilot.pause()
        app.tick()
        app.paint(None)
        await pilot.pause()
        await pilot.pause()


async def picture(shot: Shot) -> str:
    """Give a picture as SVG."""
    app = console(shot)
    async with app.run_test(size=shot.size) as pilot:
        await pose(pilot, shot)
        return app.export_screenshot(title="preflight-tui")


def main() -> int:
    """Write the pictures that are for people into a folder, ``screenshots`` by default."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots")
    folder.mkdir(exist_ok=True)
    for name, shot in SHOTS.items():
        if shot.shown:
            svg = asyncio.run(picture(shot))
            (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
