"""The one way out of the engine: events are numbered, timed, masked and given to every sink."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import cast

import msgspec

from preflight.events import AnyEvent, Diagnostic, Event

Sink = Callable[[Event], None]

_SHORTEST_SECRET = 4  # characters: masking shorter ones would blacken ordinary text
_MASK = "******"


class Bus:
    """Give every event a number and a time, mask secrets, and hand it to the sinks in order.

    ``emit`` is synchronous and never raises, so that it works in ``finally`` and while a task is
    being cancelled. A sink that raises is taken off and reported to the others.
    """

    def __init__(self, run_id: str = "", *, clock: Callable[[], float] = time.monotonic) -> None:
        self.run_id = run_id
        self._clock = clock
        self._start = clock()
        self._wall = datetime.now(UTC)
        self._seq = 0
        self._sinks: list[Sink] = []
        self._secrets: list[str] = []

    def add_sink(self, sink: Sink) -> None:
        """Give ``sink`` every event from now on."""
        self._sinks.append(sink)

    def remove_sink(self, sink: Sink) -> None:
        """Stop giving events to ``sink``; one that is not there is no error."""
        if sink in self._sinks:
            self._sinks.remove(sink)

    def hide(self, secret: str) -> None:
        """Mask ``secret`` in every string of every later event."""
        if len(secret) >= _SHORTEST_SECRET and secret not in self._secrets:
            self._secrets.append(secret)
            self._secrets.sort(key=len, reverse=True)

    def elapsed_ms(self) -> float:
        """Tell the milliseconds since the bus was made."""
        return round((self._clock() - self._start) * 1000, 1)

    def emit(self, event: Event) -> None:
        """Publish ``event``; ``seq``, ``ts`` and ``run_id`` are set here."""
        self._seq += 1
        now = self._wall + timedelta(seconds=self._clock() - self._start)
        stamped = msgspec.structs.replace(
            event,
            seq=self._seq,
            ts=now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            run_id=self.run_id,
        )
        if self._secrets:
            stamped = self._masked(stamped)
        broken: list[tuple[Sink, Exception]] = []
        for sink in tuple(self._sinks):
            try:
                sink(stamped)
            except Exception as exc:  # a sink is isolated: the run outlives a full disk
                broken.append((sink, exc))
        for sink, exc in broken:
            self.remove_sink(sink)
            name = getattr(sink, "__qualname__", type(sink).__name__)
            self.emit(
                Diagnostic(
                    level="error",
                    summary=f"{name} takes no more events: {exc}",
                    detail="the run goes on without it",
                )
            )

    def _masked(self, event: Event) -> Event:
        plain = msgspec.to_builtins(event)
        return msgspec.convert(self._mask(plain), AnyEvent)

    def _mask(self, value: object) -> object:
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, _MASK)
            return value
        if isinstance(value, list):
            return [self._mask(item) for item in cast("list[object]", value)]
        if isinstance(value, dict):
            return {key: self._mask(item) for key, item in cast("dict[str, object]", value).items()}
        return value
