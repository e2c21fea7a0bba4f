"""The one way out of the engine: events are numbered, timed, masked and given to every sink."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Literal, TypeVar, cast, get_origin

import msgspec

from preflight.events import Diagnostic, Event

Sink = Callable[[Event], None]
S = TypeVar("S", bound=msgspec.Struct)

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
        self._waiting: deque[Event] = deque()
        self._emitting = False
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

    def mask(self, text: str) -> str:
        """Give ``text`` with every secret masked."""
        for secret in self._secrets:
            text = text.replace(secret, _MASK)
        return text

    def elapsed_ms(self) -> float:
        """Tell the milliseconds since the bus was made."""
        return round((self._clock() - self._start) * 1000, 1)

    def emit(self, event: Event) -> None:
        """Publish ``event``; ``seq``, ``ts`` and ``run_id`` are set here.

        What a sink emits comes after the event that it was given, for every sink.
        """
        self._waiting.append(self._stamped(event))
        if self._emitting:
            return
        self._emitting = True
        try:
            while self._waiting:
                self._deliver(self._waiting.popleft())
        finally:
            self._emitting = False

    def _stamped(self, event: Event) -> Event:
        self._seq += 1
        now = self._wall + timedelta(seconds=self._clock() - self._start)
        if self._secrets:
            event = self._masked(event)
        return msgspec.structs.replace(
            event,
            seq=self._seq,
            ts=now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            run_id=self.run_id,
        )

    def _deliver(self, event: Event) -> None:
        for sink in tuple(self._sinks):
            try:
                sink(event)
            except Exception as exc:  # a sink is isolated: the run outlives a full disk
                self.remove_sink(sink)
                name = getattr(sink, "__qualname__", type(sink).__name__)
                self.emit(
                    Diagnostic(
                        level="error",
                        summary=f"{name} takes no more events: {exc}",
                        detail="the run goes on without it",
                    )
                )

    def _masked(self, struct: S) -> S:
        changed = {name: self._mask(getattr(struct, name)) for name in _free_fields(type(struct))}
        return msgspec.structs.replace(struct, **changed)

    def _mask(self, value: object) -> object:
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, list):
            return [self._mask(item) for item in cast("list[object]", value)]
        if isinstance(value, dict):
            return {key: self._mask(item) for key, item in cast("dict[str, object]", value).items()}
        return self._masked(value) if isinstance(value, msgspec.Struct) else value


@cache
def _free_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Name the fields that may hold somebody's text; a closed word is never a secret."""
    return tuple(
        field.name
        for field in msgspec.structs.fields(kind)
        if get_origin(field.type) is not Literal and field.type not in (int, float, bool)
    )
