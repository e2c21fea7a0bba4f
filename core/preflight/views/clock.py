"""The engine's clock as seen from here: the time of the events, carried on between them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime


def seconds(ts: str) -> float:
    """Give an event's ``ts`` in seconds since 1970; 0.0 for one that is empty or broken."""
    try:
        moment = datetime.fromisoformat(ts)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class EngineClock:
    """Tell what time it is for the engine, from the ``ts`` of events.

    With a ``monotonic`` clock the time goes on between events. The event that was least delayed
    on its way tells most about the engine's clock: the largest difference seen is kept.
    Without one the time stands still at the last event, as for a run of the past.
    """

    def __init__(self, monotonic: Callable[[], float] | None = None) -> None:
        self._monotonic = monotonic
        self._ahead: float | None = None
        self._last = 0.0

    def observe(self, at: float) -> None:
        """Take the time of an event, in seconds since 1970."""
        self._last = max(self._last, at)
        if self._monotonic is not None:
            ahead = at - self._monotonic()
            self._ahead = ahead if self._ahead is None else max(self._ahead, ahead)

    def stop(self) -> None:
        """Stand still from now on: no more events will come."""
        self._monotonic = None

    def now(self) -> float:
        """Give the engine's time in seconds since 1970; 0.0 before the first event."""
        if self._monotonic is None or self._ahead is None:
            return self._last
        return max(self._last, self._monotonic() + self._ahead)


def span(elapsed_s: float) -> str:
    """Give a length of time for people: ``412 ms``, ``2.6 s``, ``04:02``, ``1:04:02``."""
    if elapsed_s < 0.9995:
        return f"{max(0, round(elapsed_s * 1000))} ms"
    if elapsed_s < 59.95:
        return f"{elapsed_s:.1f} s"
    return watch(elapsed_s)


def watch(elapsed_s: float) -> str:
    """Give a length of time as a stop watch does: ``02:14`` or ``1:02:14``."""
    minutes, rest = divmod(int(max(0.0, elapsed_s)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def time_of_day(ts: str, zone_s: float = 0.0) -> str:
    """Give the clock's time of an event, to the millisecond, ``zone_s`` seconds east of UTC."""
    if not zone_s:
        return ts[11:23].ljust(12)
    moment = datetime.fromtimestamp(seconds(ts) + zone_s, UTC)
    return moment.strftime("%H:%M:%S.") + f"{moment.microsecond // 1000:03}"
