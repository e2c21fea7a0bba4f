"""Bytes of a stream, turned into whole lines and a bounded beginning."""

from __future__ import annotations

from preflight.events import Stream
from preflight.ports.target import OnLine

MAX_LINE_BYTES = 64 * 1024
"""A longer line is handed on in pieces, so that a stream without newlines costs bounded memory."""


class LineReader:
    """One stream: feeds whole lines to ``on_line`` and keeps at most ``keep_bytes``.

    A character that is split over two chunks stays whole; bytes that are not UTF-8 are replaced
    in the lines and kept as they are in :attr:`kept`.
    """

    def __init__(self, stream: Stream, on_line: OnLine | None, keep_bytes: int) -> None:
        self.truncated = False
        self._stream: Stream = stream
        self._on_line = on_line
        self._keep_bytes = keep_bytes
        self._chunks: list[bytes] = []
        self._kept_bytes = 0
        self._rest = b""

    @property
    def kept(self) -> bytes:
        """The beginning of the stream, ``keep_bytes`` at most."""
        return b"".join(self._chunks)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._keep(chunk)
        if self._on_line is None:
            return
        whole, newline, rest = chunk.rpartition(b"\n")
        if newline:
            self._emit_lines(self._rest + whole)
            self._rest = rest
        else:
            self._rest += chunk
        self._rest = self._emit_pieces(self._rest)

    def close(self) -> None:
        """Hand on a last line that has no newline."""
        if self._rest:
            self._emit(self._rest.decode("utf-8", "replace"))
            self._rest = b""

    def _emit_lines(self, data: bytes) -> None:
        if len(data) <= MAX_LINE_BYTES:
            for line in data.decode("utf-8", "replace").split("\n"):
                self._emit(line)
            return
        for line in data.split(b"\n"):
            self._emit(self._emit_pieces(line).decode("utf-8", "replace"))

    def _emit_pieces(self, line: bytes) -> bytes:
        """Hand on a line's beginnings while it is too long; gives what is left of it."""
        start = 0
        while len(line) - start > MAX_LINE_BYTES:
            end = _whole_characters(line, start + MAX_LINE_BYTES)
            self._emit(line[start:end].decode("utf-8", "replace"))
            start = end
        return line[start:]

    def _emit(self, line: str) -> None:
        if self._on_line is not None:
            self._on_line(self._stream, line.removesuffix("\r"))

    def _keep(self, chunk: bytes) -> None:
        room = self._keep_bytes - self._kept_bytes
        if len(chunk) > room:
            self.truncated = True
            chunk = chunk[:room]
        if chunk:
            self._chunks.append(chunk)
            self._kept_bytes += len(chunk)


def _whole_characters(data: bytes, end: int) -> int:
    """Give ``end``, or up to three less, so that no character is cut in two there."""
    for back in range(4):
        if data[end - back] & 0xC0 != 0x80:  # not a continuation: a character begins here
            return end - back
    return end  # not UTF-8 at all
