"""Between a feed of record lines and the store: drained at most 20 times a second, never behind."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from preflight.views.log import LogReader, Record
from preflight.views.store import Key, Store

DRAIN_S = 0.05
"""Seconds between two drains."""

SLICE_S = 0.012  # of each drain: what is left of 50 ms is for keys and painting
FULL_BYTES = 8 * 1024 * 1024  # lines that wait here before the feed is no longer read


class Feed(Protocol):
    """A source of the record's lines; ``live`` when an engine is behind it."""

    live: bool

    def batches(self) -> AsyncIterator[list[bytes]]:
        """Give the lines from the first one on, in order; ends when no more can come."""
        ...

    async def cancel(self, path: str, kill: bool = False) -> None:
        """Ask the engine to stop what ``path`` names; its events tell what becomes of it."""
        ...

    async def close(self) -> None:
        """Let go of the source; a run goes on."""
        ...


class Bridge:
    """Carry the lines of a feed into the store, and cancels back."""

    def __init__(
        self,
        store: Store,
        feed: Feed,
        record: Record,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.feed = feed
        self.record = record
        self.ended = False
        self._monotonic = monotonic
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._readers: dict[Key, LogReader] = {}

    @property
    def live(self) -> bool:
        """Tell whether an engine is there that more events come from."""
        return self.feed.live and not self.ended

    @property
    def behind_bytes(self) -> int:
        """Tell how much has come that is not in the store yet."""
        return self._waiting_bytes

    def reader(self, key: Key) -> LogReader:
        """Give the lines of a (target, task)."""
        if key not in self._readers:
            if len(self._readers) > 8:
                self._readers.clear()
            self._readers[key] = LogReader(self.record, self.store.log(key))
        return self._readers[key]

    async def pump(self) -> None:
        """Take lines from the feed until it ends; waits while too much is undrained."""
        async for batch in self.feed.batches():
            self._waiting.extend(batch)
            self._waiting_bytes += sum(map(len, batch))
            while self._waiting_bytes > FULL_BYTES:
                self._room.clear()
                await self._room.wait()
        self.ended = True

    def drain(self, slice_s: float = SLICE_S) -> bool:
        """Put waiting lines into the store, for ``slice_s`` seconds at most; True if there were."""
        if not self._waiting:
            if self.ended:
                self.store.clock.stop()
            return False
        until = self._monotonic() + slice_s
        while self._waiting and self._monotonic() < until:
            lines = [self._waiting.popleft() for _ in range(min(16, len(self._waiting)))]
            self.store.feed_all(lines)
            self._waiting_bytes -= sum(map(len, lines))
        if self._waiting_bytes <= FULL_BYTES // 2:
            self._room.set()
        return True
