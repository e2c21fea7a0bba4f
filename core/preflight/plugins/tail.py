"""The stderr of a plugin: always drained, shown as it comes, its end kept for a report."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable

from preflight.events import Stream
from preflight.lines import LineReader

TAIL_BYTES = 64 * 1024
"""How much of the end is kept. Source: plugin-scenarios row 54."""

_CHUNK_BYTES = 64 * 1024
_QUOTED_LINES = 20
# What a full pipe holds, at most; more is there only if somebody writes on: a child that escaped.
_LAST_BYTES = 1024 * 1024


class StderrTail:
    """Reads a pipe to its end, whatever comes: binary, endless lines, ten megabytes at once."""

    def __init__(self, fd: int, on_lines: Callable[[list[str]], None]) -> None:
        self._fd = fd
        self._on_lines = on_lines
        self._lines: deque[str] = deque()
        self._bytes = 0
        self._batch: list[str] = []
        self._reader = LineReader("err", self._keep, keep_bytes=0)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._readable)

    @property
    def lines(self) -> list[str]:
        """The last lines, 64 KiB at most."""
        return list(self._lines)

    @property
    def quote(self) -> list[str]:
        """The last twenty lines that say something, for a report."""
        return [line for line in self._lines if line.strip()][-_QUOTED_LINES:]

    def close(self) -> None:
        """Read what is there already, then let go of the pipe."""
        for _ in range(_LAST_BYTES // _CHUNK_BYTES):
            if self._fd < 0 or not self._readable():
                break
        self._release()

    def _release(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._fd = -1
            self._reader.close()
            self._flush()

    def _readable(self) -> bool:
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self._release()
            return False
        self._reader.feed(chunk)
        self._flush()
        return True

    def _keep(self, stream: Stream, line: str) -> None:
        self._batch.append(line)
        self._lines.append(line)
        self._bytes += len(line) + 1
        while self._bytes > TAIL_BYTES and len(self._lines) > 1:
            self._bytes -= len(self._lines.popleft()) + 1

    def _flush(self) -> None:
        if self._batch:
            batch, self._batch = self._batch, []
            self._on_lines(batch)
