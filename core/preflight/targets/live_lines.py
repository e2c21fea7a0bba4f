"""One stream of an operation: kept bytes, whole lines, and progress that has no newline."""

from __future__ import annotations

import asyncio

from preflight.events import Stream
from preflight.lines import LineReader
from preflight.ports.target import OnLine

IDLE_S = 0.2
"""A line that is being rewritten with carriage returns is shown after so long without a change."""
_PROGRESS_BYTES = 4096  # a progress line is short; what is longer waits for its newline


class LiveLines:
    """Feeds ``on_line`` and keeps at most ``keep_bytes``, like :class:`LineReader`.

    A line with a carriage return in it and no newline yet is progress: its last state is shown
    once nothing has come for ``IDLE_S`` seconds. Every other line is only handed on whole.
    """

    def __init__(self, stream: Stream, on_line: OnLine | None, keep_bytes: int) -> None:
        self._kept = LineReader(stream, None, keep_bytes)
        self._stream: Stream = stream
        self._on_line = on_line
        self._lines = LineReader(stream, on_line, 0)
        self._tail = b""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def kept(self) -> bytes:
        """The beginning of the stream."""
        return self._kept.kept

    @property
    def truncated(self) -> bool:
        """Whether the stream was longer than what was to be kept."""
        return self._kept.truncated

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._kept.feed(chunk)
        if self._on_line is None:
            return
        self._lines.feed(chunk)
        newline = chunk.rfind(b"\n")
        self._tail = chunk[newline + 1 :] if newline >= 0 else self._tail + chunk
        self._stop_timer()
        if len(self._tail) > _PROGRESS_BYTES:
            self._tail = self._tail[-_PROGRESS_BYTES:]
        elif b"\r" in self._tail:
            self._timer = asyncio.get_running_loop().call_later(IDLE_S, self._show_progress)

    def close(self) -> None:
        """Hand on a last line that has no newline."""
        self._stop_timer()
        self._lines.close()

    def _show_progress(self) -> None:
        self._timer = None
        states = [state for state in self._tail.split(b"\r") if state.strip()]
        if states and self._on_line is not None:
            self._lines = LineReader(self._stream, self._on_line, 0)
            self._tail = b""
            self._on_line(self._stream, states[-1].decode("utf-8", "replace"))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
