"""Bytes to lines, in bounded memory."""

from __future__ import annotations

HEAD_BYTES = 4096
"""How much of a line over the limit is kept, to look for its id (protocol.md section 1)."""


class Oversize:
    """A line over the limit: its start and its full length, without its newline."""

    __slots__ = ("head", "size")

    def __init__(self, head: bytes, size: int) -> None:
        self.head = head
        self.size = size


class Framer:
    """Splits a stream at newlines, wherever its chunks are cut.

    A line of ``limit`` bytes is accepted (its newline does not count), one byte more is
    not: from there on its bytes are dropped as they come, and an Oversize stands for it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None

    def feed(self, chunk: bytes) -> list[bytes | Oversize]:
        """The lines this chunk completes, in order."""
        lines: list[bytes | Oversize] = []
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._keep(chunk[start:end])
            lines.append(self._take())
            start = end + 1
        if start < len(chunk):
            self._keep(chunk[start:] if start else chunk)
        return lines

    def end(self) -> list[bytes | Oversize]:
        """What is left when the stream ends without a newline: the last frame."""
        return [self._take()] if self._size else []

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._head is not None:
            return
        self._parts.append(piece)
        if self._size > self._limit:
            self._head = b"".join(self._parts)[:HEAD_BYTES]
            self._parts.clear()

    def _take(self) -> bytes | Oversize:
        line: bytes | Oversize
        if self._head is not None:
            line = Oversize(self._head, self._size)
        else:
            line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        self._size = 0
        self._head = None
        return line
