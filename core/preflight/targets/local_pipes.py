"""The pipes of a child: read to lines, and written, a chunk a turn of the loop."""

from __future__ import annotations

import asyncio
import os

from preflight.lines import LineReader
from preflight.procs import Process

_CHUNK_BYTES = 256 * 1024


class PipeReader:
    """Feeds one of a process's pipes to a :class:`LineReader`, a chunk a turn of the loop."""

    def __init__(self, fd: int, lines: LineReader) -> None:
        self._fd = fd
        self._lines = lines
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._readable)

    async def drain(self, within_s: float) -> None:
        """Read what is there, at most for ``within_s`` seconds."""
        deadline = self._loop.time() + within_s
        while not self._ended.is_set() and self._loop.time() < deadline:
            if not self._readable():
                return
            await asyncio.sleep(0)

    def close(self) -> None:
        """Let go of the pipe, and hand on a last line that has no newline."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._fd = -1
            self._lines.close()
        self._ended.set()

    def _readable(self) -> bool:
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return False
        self._lines.feed(chunk)
        return True


class PipeWriter:
    """Writes what the script reads from its stdin, then closes it."""

    def __init__(self, process: Process, data: bytes) -> None:
        self._process = process
        self._rest = memoryview(data)
        self._loop = asyncio.get_running_loop()
        self._fd = process.stdin_fd
        self._waiting = False
        self._writable()

    def close(self) -> None:
        """Send the end of the input."""
        if self._fd >= 0:
            if self._waiting:
                self._loop.remove_writer(self._fd)
            self._fd = -1
            self._process.close_stdin()

    def _writable(self) -> None:
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._fd, self._rest[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            if not self._waiting:
                self._waiting = True
                self._loop.add_writer(self._fd, self._writable)
            return
        except OSError:  # the script does not want its stdin
            pass
        self.close()
