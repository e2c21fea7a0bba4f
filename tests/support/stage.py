"""What a plugin is driven with: the engine's own classes around it, and every event collected."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from preflight.bus import Bus
from preflight.control import RunControl
from preflight.errors import PluginError
from preflight.events import CancelFinished, Event, PluginWarning
from preflight.model.settings import Settings
from preflight.plugins.discovery import Found
from preflight.plugins.module import PluginModule
from preflight.plugins.pool import PluginPool
from preflight.ports.module import TaskContext
from preflight.targets.local import LocalTarget

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from preflight.control import Scope
    from preflight.ports.module import ApplyResult, CheckResult
    from preflight.ports.target import Target
    from tests.support.fake_plugin import FakePlugin

PATIENCE_S = 20.0  # on a busy machine; nothing waits this long unless it is broken

E = TypeVar("E", bound=Event)


class Stage:
    """One target, its plugins, a way to cancel, and what was told."""

    def __init__(self, settings: Settings | None = None, *, target: Target | None = None) -> None:
        self.settings = settings or Settings()
        self.bus = Bus("test")
        self.control = RunControl(self.bus)
        self.target: Target = target or LocalTarget("box")
        self.events: list[Event] = []
        self.lines: list[str] = []
        self.line_cost_s = 0.0  # what every output line costs whoever consumes it
        self.on_line: Callable[[str], object] = lambda _: None
        self._changed = asyncio.Event()
        self.bus.add_sink(self._take)
        self.pool = PluginPool(target="box", emit=self.bus.emit, settings=self.settings)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[PluginPool]:
        """Have the pool open; everything is bounded by the patience."""
        async with asyncio.timeout(PATIENCE_S * 2), self.pool:
            yield self.pool

    async def check(
        self, plugin: FakePlugin | Found, task: str = "one", **args: object
    ) -> CheckResult:
        """Let the plugin check, as one task; raises ``Stopped`` when that was cancelled."""
        async with self.control.scope(f"box/{task}") as scope:
            return await self.module(plugin).check(args, self.context(scope, task))

    async def apply(
        self, plugin: FakePlugin | Found, task: str = "one", **args: object
    ) -> ApplyResult:
        """Let the plugin apply, as one task; raises ``Stopped`` when that was cancelled."""
        async with self.control.scope(f"box/{task}") as scope:
            return await self.module(plugin).apply(args, self.context(scope, task))

    async def failure(self, plugin: FakePlugin | Found, task: str = "one") -> PluginError:
        """Let the plugin check, which must fail; gives how."""
        try:
            result = await self.check(plugin, task)
        except PluginError as exc:
            return exc
        raise AssertionError(f"it did not fail: {result}")

    def module(self, plugin: FakePlugin | Found) -> PluginModule:
        """The plugin as the runner sees it."""
        found = plugin if isinstance(plugin, Found) else found_at(plugin.path)
        return PluginModule(found, self.pool)

    def context(self, scope: Scope, task: str = "one") -> TaskContext:
        """What a call of that task is given."""
        return TaskContext(
            target=self.target,
            task=task,
            scope=scope,
            emit=self.bus.emit,
            output=self._take_line,
            folder=Path("/"),
        )

    async def wait_for(
        self, kind: type[E], where: Callable[[E], bool] = lambda _: True, *, count: int = 1
    ) -> E:
        """Wait for an event of that kind; with ``count``, for so many, and give the last."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = [one for one in self.of(kind) if where(one)]
                if len(found) >= count:
                    return found[count - 1]
                self._changed.clear()
                await self._changed.wait()

    async def wait_change(self) -> None:
        """Wait until something more was told."""
        self._changed.clear()
        await self._changed.wait()

    async def wait_line(self, text: str) -> None:
        """Wait until the plugin has sent that line as output."""
        async with asyncio.timeout(PATIENCE_S):
            while text not in self.lines:
                self._changed.clear()
                await self._changed.wait()

    async def cancelled(self, task: str = "one") -> CancelFinished:
        """Wait until the cancel of that task has come to its end."""
        return await self.wait_for(CancelFinished, lambda event: event.path == f"box/{task}")

    def of(self, kind: type[E]) -> list[E]:
        """The events of that kind so far."""
        return [event for event in self.events if isinstance(event, kind)]

    def warnings(self, kind: str) -> list[str]:
        """What was warned of, of that kind."""
        return [event.detail for event in self.of(PluginWarning) if event.kind == kind]

    def _take(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    def _take_line(self, stream: str, text: str) -> None:
        assert stream in ("plugin", "out", "err")
        if self.line_cost_s:
            time.sleep(self.line_cost_s)
        self.lines.append(text)
        self.on_line(text)
        self._changed.set()


def found_at(path: Path) -> Found:
    """What discovery says of a plugin that lies there."""
    return Found(name=path.name.removeprefix("preflight-plugin-"), path=path, source="test")


def args_of(frame: Mapping[str, object]) -> object:
    """The args that a call's frame carries."""
    params = frame["params"]
    assert isinstance(params, dict)
    return params["args"]  # pyright: ignore[reportUnknownVariableType]
