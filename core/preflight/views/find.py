"""Find text in the output of a task, a slice at a time, so that the screen never waits."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from preflight.views.clean import plain
from preflight.views.log import LogReader

MAX_HITS = 100_000
"""Hits that are kept: 4 bytes each; more are counted."""


class Find:
    """The lines that hold ``needle``; capitals matter only where the needle has some.

    The search runs from the newest event to the oldest, as what is wrong stands at the end.
    Events that come later are searched as well.
    """

    def __init__(self, reader: LogReader, needle: str) -> None:
        self.needle = needle
        self.count = 0
        self._fold = needle == needle.lower()
        self._reader = reader
        self._older = self._newer = reader.events
        self._before = array("I")
        self._after = array("I")
        # The bytes of a record hold such a needle as it is: whole events can be passed over.
        self._bytes = needle.encode() if needle.isascii() and needle.isalnum() else b""

    @property
    def done(self) -> bool:
        """Tell whether every line was looked at."""
        return self._older == 0 and self._newer == self._reader.events

    def step(self, more: Callable[[], bool]) -> None:
        """Look at events as long as ``more()`` is true, new ones first."""
        while not self.done and more():
            if self._newer < self._reader.events:
                self._after.extend(self._look(self._newer))
                self._newer += 1
            else:
                self._older -= 1
                self._before.extend(reversed(self._look(self._older)))

    def span(self, text: str) -> list[tuple[int, int]]:
        """Give where the needle stands in a harmless ``text``."""
        where = text.lower() if self._fold else text
        found: list[tuple[int, int]] = []
        start = where.find(self.needle)
        while start >= 0:
            found.append((start, start + len(self.needle)))
            start = where.find(self.needle, start + len(self.needle))
        return found

    def number(self, line: int) -> int:
        """Tell which hit ``line`` is, from 1 for the oldest that is known; 0 for none."""
        hits = self._hits()
        at = bisect_left(hits, line)
        return at + 1 if at < len(hits) and hits[at] == line else 0

    def beyond(self, line: int, *, newer: bool) -> int | None:
        """Give the next hit after, or before, ``line``, around the end; ``None`` without hits."""
        hits = self._hits()
        if not hits:
            return None
        if newer:
            return hits[bisect_right(hits, line) % len(hits)]
        return hits[bisect_left(hits, line) - 1]

    def _hits(self) -> array[int]:
        return self._before[::-1] + self._after

    def _look(self, event: int) -> list[int]:
        """Give the lines of an event that hold the needle."""
        if self._bytes and self._reader.lacks(event, self._bytes, fold=self._fold):
            return []
        first, rows = self._reader.rows(event)
        hits: list[int] = []
        for line, row in enumerate(rows, first):
            text = plain(row.text)
            if self.needle in (text.lower() if self._fold else text):
                hits.append(line)
        self.count += len(hits)
        return hits if len(self._before) + len(self._after) < MAX_HITS else []
