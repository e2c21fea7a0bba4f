"""Marks in a byte stream: lines that begin with 0x1e and a token, cut out wherever they stand."""

from __future__ import annotations

from collections.abc import Callable


class MarkCutter:
    """Splits one stream into what is output and what is a mark, whatever the chunks are.

    Holds back at most the beginning of a mark. ``on_output`` gets bytes as they come, ``on_mark``
    the words of a mark.
    """

    def __init__(
        self,
        token: str,
        on_output: Callable[[bytes], None],
        on_mark: Callable[[list[str]], None],
    ) -> None:
        self._token = b"\x1e" + token.encode()
        self._on_output = on_output
        self._on_mark = on_mark
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        data = self._rest + chunk if self._rest else chunk
        self._rest = b""
        while data:
            at = data.find(self._token)
            if at < 0:
                at = self._beginning(data)
            end = data.find(b"\n", at)
            if at:
                self._on_output(data[:at])
            if at == len(data):
                return
            if end < 0:
                self._rest = data[at:]
                return
            self._on_mark(data[at + len(self._token) : end].decode("ascii", "replace").split())
            data = data[end + 1 :]

    def close(self) -> None:
        """Hand on what looked like the beginning of a mark and never became one."""
        if self._rest:
            self._on_output(self._rest)
            self._rest = b""

    def _beginning(self, data: bytes) -> int:
        """Where a mark may have begun at the end of ``data``; its length where none has."""
        at = data.rfind(b"\x1e", max(0, len(data) - len(self._token) + 1))
        return at if at >= 0 and self._token.startswith(data[at:]) else len(data)
