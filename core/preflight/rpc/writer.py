"""Frames on their way into a pipe: never blocks the loop, and never keeps more than a bound."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable

# Frames that the peer has not read: it asks and asks, and listens to no answer.
_MOST_QUEUED = 10_000


class _Outgoing:
    __slots__ = ("begun", "call_id", "rest", "written")

    def __init__(self, frame: bytes, call_id: int, written: asyncio.Future[None] | None) -> None:
        self.rest = memoryview(frame)
        self.call_id = call_id
        self.written = written
        self.begun = False


class Writer:
    """Writes whole frames in order to a non-blocking fd, which stays the caller's to close.

    ``on_break`` is told once, in a turn of its own, why nothing can be written any more.
    """

    def __init__(self, fd: int, on_break: Callable[[str], None]) -> None:
        self._fd = fd
        self._on_break = on_break
        self._queue: deque[_Outgoing] = deque()
        self._waiting = False
        self._ended = False
        self._loop = asyncio.get_running_loop()

    @property
    def ended(self) -> bool:
        """Whether nothing is written any more."""
        return self._ended

    def send(
        self,
        frame: bytes,
        *,
        call_id: int = 0,
        written: asyncio.Future[None] | None = None,
        urgent: bool = False,
    ) -> None:
        """Write a frame, or queue it; an urgent one goes ahead of all that was not begun.

        Not to be called when it has :attr:`ended`.

        ``written`` is resolved when it was written whole; ``call_id`` lets it be taken back.
        """
        outgoing = _Outgoing(frame, call_id, written)
        if urgent and self._queue:
            self._queue.insert(1 if self._queue[0].begun else 0, outgoing)
        else:
            self._queue.append(outgoing)
        if not self._waiting:
            self._writable()
        elif len(self._queue) > _MOST_QUEUED:
            self._break("it does not read its answers")

    def take_back(self, call_id: int) -> bool:
        """Unsend the request of a call; False when it is gone, or has begun to go."""
        for outgoing in self._queue:
            if outgoing.call_id == call_id and not outgoing.begun:
                self._queue.remove(outgoing)
                return True
        return False

    def end(self) -> None:
        """Drop what is queued and write nothing more. Safe to repeat."""
        self._ended = True
        self._queue.clear()
        self._stop_waiting()

    def _writable(self) -> None:
        try:
            while self._queue:
                first = self._queue[0]
                while first.rest:
                    first.rest = first.rest[os.write(self._fd, first.rest) :]
                    first.begun = True
                self._queue.popleft()
                if first.written is not None and not first.written.done():
                    first.written.set_result(None)
        except BlockingIOError:
            if not self._waiting:
                self._waiting = True
                self._loop.add_writer(self._fd, self._writable)
        except OSError as exc:
            self._break(f"write error: {exc.strerror}")
        else:
            self._stop_waiting()

    def _break(self, why: str) -> None:
        self.end()
        # Not at once: the caller may be in the middle of what the peer said before.
        self._loop.call_soon(self._on_break, why)

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._fd)
