"""A bus whose events a test can wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from preflight.bus import Bus
from preflight.events import Event

PATIENCE_S = 10.0

E = TypeVar("E", bound=Event)


class Recorder:
    """A sink that keeps every event and wakes whoever waits for one."""

    def __init__(self, bus: Bus) -> None:
        self.events: list[Event] = []
        self._changed = asyncio.Event()
        bus.add_sink(self._take)

    def _take(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    def of(self, kind: type[E], **fields: object) -> list[E]:
        """All events of a kind whose fields are as given."""
        return [
            event
            for event in self.events
            if isinstance(event, kind)
            and all(getattr(event, name) == value for name, value in fields.items())
        ]

    async def wait_for(
        self, kind: type[E], when: Callable[[E], bool] = lambda event: True, **fields: object
    ) -> E:
        """The first event of a kind, now or later."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for event in self.of(kind, **fields):
                    if when(event):
                        return event
                self._changed.clear()
                await self._changed.wait()
