"""The lines of one task, on their way to events: batched, and their end kept."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from preflight.events import Event, Line, Stream, TaskOutput

_FLUSH_S = 0.05
"""An operator sees a line at most this much later; 20 events a second and task at rest."""
_BATCH_LINES = 500
_BATCH_CHARS = 64 * 1024
_LINE_CHARS = 64 * 1024  # a plugin's line may be as long as a message; an event is not
_TAIL_LINES = 20


class TaskOutputBuffer:
    """Collects lines and emits them in batches; :meth:`flush` before the task is reported done."""

    def __init__(self, target: str, task: str, emit: Callable[[Event], None]) -> None:
        self._target = target
        self._task = task
        self._emit = emit
        self._lines: list[Line] = []
        self._chars = 0
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._item = ""
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def tail(self) -> list[str]:
        """The last twenty lines."""
        return list(self._tail)

    def for_item(self, index: int) -> Callable[[Stream, str], None]:
        """Give the function that takes one item's lines."""
        item = str(index)
        return lambda stream, text: self.add(stream, text, item)

    def add(self, stream: Stream, text: str, item: str = "") -> None:
        """Take one line, of an item where ``item`` is its index; a huge one comes in pieces."""
        for start in range(_LINE_CHARS, len(text), _LINE_CHARS):
            self._add(stream, text[start - _LINE_CHARS : start], item)
        rest = (len(text) - 1) // _LINE_CHARS * _LINE_CHARS if text else 0
        self._add(stream, text[rest:] if rest else text, item)

    def _add(self, stream: Stream, text: str, item: str) -> None:
        if item != self._item:
            self.flush()
            self._item = item
        self._lines.append(Line(stream, text))
        self._tail.append(text)
        self._chars += len(text)
        if len(self._lines) >= _BATCH_LINES or self._chars >= _BATCH_CHARS:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(_FLUSH_S, self.flush)

    def flush(self) -> None:
        """Emit what was collected; nothing if there is nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._lines:
            lines, self._lines, self._chars = self._lines, [], 0
            self._emit(
                TaskOutput(target=self._target, task=self._task, lines=lines, item=self._item)
            )
