"""Bytes into lines, with a bound: a line over the limit costs no memory and ends nothing.

Source: docs/protocol.md, Framing. Each chunk is searched once and joined once, whatever the size
of the line (tests/bench/wire.py).
"""

from __future__ import annotations

import msgspec

HEAD_BYTES = 4096
"""How much of a line that is too long is kept, to look for its id in."""

_BOM = b"\xef\xbb\xbf"


class Oversize(msgspec.Struct, frozen=True):
    """A line that passed the limit and was dropped as it came: its size and its beginning."""

    size: int
    head: bytes


class Framer:
    """Cuts a stream into lines.

    ``limit`` bounds one line in bytes, its newline not counted; the verdict does not depend on
    how the stream is cut into chunks. Blank lines are passed over, ``\\r\\n`` is accepted, and so
    is a byte order mark on the first line.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._dropping = False
        self._first = True

    @property
    def pending(self) -> bool:
        """Whether a line has begun that is not whole yet."""
        return self._size > 0

    def feed(self, chunk: bytes) -> list[bytes | Oversize]:
        """Take the next bytes; give the lines that they complete."""
        frames: list[bytes | Oversize] = []
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._add(chunk[start:end])
            self._finish(frames)
            start = end + 1
        if start < len(chunk):
            self._add(chunk[start:] if start else chunk)
        return frames

    def close(self) -> list[bytes | Oversize]:
        """Give the last line, if the stream ended without a newline."""
        frames: list[bytes | Oversize] = []
        if self._size:
            self._finish(frames)
        return frames

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._dropping:
            self._head += piece[: HEAD_BYTES - len(self._head)]
            return
        self._parts.append(piece)
        # One byte of grace for the \r of a \r\n that is at the very limit.
        if self._size > self.limit and not (self._size == self.limit + 1 and self._ends_in_cr()):
            self._head = b"".join(self._parts)[:HEAD_BYTES]
            self._parts.clear()
            self._dropping = True

    def _ends_in_cr(self) -> bool:
        """Tell by the last piece that is not empty: the newline may begin a chunk of its own."""
        return next((part[-1:] == b"\r" for part in reversed(self._parts) if part), False)

    def _finish(self, frames: list[bytes | Oversize]) -> None:
        if self._dropping:
            frames.append(Oversize(self._size, self._head))
        else:
            line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            if self._first:
                line = line.removeprefix(_BOM)
            if line.endswith(b"\r"):
                line = line[:-1]
            if line and not line.isspace():
                frames.append(line)
                self._first = False
        self._parts.clear()
        self._size = 0
        self._dropping = False
