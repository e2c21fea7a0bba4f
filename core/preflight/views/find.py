"""Find text in the output of a task, a slice at a time, so that the screen never waits."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from preflight.views.clean import plain
from preflight.views.log import LogReader

MAX_HITS = 100_000
"""Hits that are kept: 4 bytes each; the count says when there are more."""


class Find:
    """The lines that hold ``needle``; capitals matter only where the needle has some.

    The search runs from the newest line to the oldest, as what is wrong stands at the end. Lines
    that come later are searched as well.
    """

    def __init__(self, reader: LogReader, needle: str) -> None:
        self.needle = needle
        self._fold = needle == needle.lower()
        self._reader = reader
        self._older = len(reader)
        self._newer = len(reader)
        self._before = array("I")
        self._after = array("I")

    @property
    def done(self) -> bool:
        """Tell whether every line was looked at."""
        return self._older == 0 and self._newer == len(self._reader)

    @property
    def count(self) -> int:
        """Tell how many lines hold the needle, so far."""
        return len(self._before) + len(self._after)

    def step(self, more: Callable[[], bool]) -> None:
        """Look at lines as long as ``more()`` is true, new ones first."""
        while not self.done and more():
            if self._newer < len(self._reader):
                self._look(self._newer, self._after)
                self._newer += 1
            else:
                self._older -= 1
                self._look(self._older, self._before)

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

    def _look(self, line: int, hits: array[int]) -> None:
        if self.count < MAX_HITS and self.span(plain(self._reader.row(line).text)):
            hits.append(line)
