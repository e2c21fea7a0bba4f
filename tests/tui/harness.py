"""A console over a feed in memory, driven by keys, on a clock that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from textual.pilot import Pilot

from preflight.views.clock import EngineClock
from preflight.views.store import Store
from preflight_tui.app import ConsoleApp
from preflight_tui.bridge import Bridge
from preflight_tui.demos.scenes import SCENES
from preflight_tui.feeds import MemoryFeed
from preflight_tui.viewer import Options

WAIT_S = 10.0


class Console:
    """A console under test: its app, its feed, and what can be seen of it."""

    def __init__(self, app: ConsoleApp, feed: MemoryFeed, pilot: Pilot[int]) -> None:
        self.app = app
        self.feed = feed
        self.pilot = pilot

    @property
    def text(self) -> str:
        """Everything that can be read on the screen."""
        width, height = self.app.size
        strips = self.app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]  # what is on the screen has no public name
        lines = ["".join(segment.text for segment in strip) for strip in strips]
        return "\n".join(line[:width].rstrip() for line in lines[:height])

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self.app.tick()
                await self.pilot.pause()

    async def sees(self, *texts: str) -> None:
        """Wait until the screen shows all of the texts."""
        try:
            await self.until(lambda: all(text in self.text for text in texts))
        except TimeoutError:
            missing = [text for text in texts if text not in self.text]
            pytest.fail(f"{missing} not on the screen:\n{self.text}")

    async def push(self, lines: list[bytes]) -> None:
        """Let more events come, and wait until they are shown."""
        wanted = self.app.store.events + self.app.store.unknown + len(lines)
        self.feed.push(lines)
        await self.until(lambda: self.app.store.events + self.app.store.unknown >= wanted)
        self.app.paint(self.app.collect())
        await self.pilot.pause()


Opener = Callable[..., AbstractAsyncContextManager[Console]]


@asynccontextmanager
async def open_console(
    lines: list[bytes],
    *,
    size: tuple[int, int] = (120, 36),
    live: bool = True,
    options: Options | None = None,
    own: dict[str, str] | None = None,
    keys: tuple[str, ...] = (),
) -> AsyncGenerator[Console]:
    feed = MemoryFeed(lines, live=live)
    app = ConsoleApp(
        Bridge(Store(EngineClock()), feed, feed.record),
        options or Options(run_id="7f3a"),
        keys=own,
    )
    async with app.run_test(size=size, notifications=True) as pilot:
        console = Console(app, feed, pilot)
        await console.until(lambda: app.store.events + app.store.unknown >= len(lines))
        if not live:
            await console.until(lambda: app.bridge.ended)
        app.paint(None)
        await pilot.pause()
        await console.press(*keys)
        yield console


def scene_lines(name: str) -> list[bytes]:
    """Give the record of a scene."""
    return SCENES[name]().lines
