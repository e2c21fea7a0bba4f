"""Where the lines of a record come from: a live engine, a file of the past, or memory."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

from preflight.events import decode
from preflight.link.client import LinkClient, LinkError
from preflight.link.socket import find_socket
from preflight.views.clock import seconds

RECORD_NAME = "events.ndjson"
_CHUNK_BYTES = 256 * 1024


class FileRecord:
    """The record of a run on disk, opened when it is first read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def read(self, offset: int, length: int) -> bytes:
        """Give the bytes at ``offset``; fewer, or none, where the file ends before."""
        try:
            if self._fd < 0:
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(self._fd, length, offset)
        except OSError:
            return b""

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class MemoryRecord:
    """A record that is kept in memory, for demos and tests."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, line: bytes) -> None:
        """Append a line, given without its newline."""
        self._data += line + b"\n"

    def read(self, offset: int, length: int) -> bytes:
        """Give the bytes at ``offset``."""
        return bytes(self._data[offset : offset + length])


class FileFeed:
    """The record of a past run; a last line that was cut off is passed over by the store."""

    live = False

    def __init__(self, path: Path) -> None:
        self._path = path

    async def batches(self, offset: int = 0) -> AsyncIterator[list[bytes]]:
        """Give the lines that the file has now, from ``offset`` on."""
        record = FileRecord(self._path)
        rest = b""
        try:
            while chunk := record.read(offset, _CHUNK_BYTES):
                offset += len(chunk)
                *lines, rest = (rest + chunk).split(b"\n")
                yield lines
                await asyncio.sleep(0)
        finally:
            record.close()
        if rest:
            yield [rest]

    async def cancel(self, path: str, kill: bool = False) -> None:
        """Do nothing: the run is over."""

    async def close(self) -> None:
        """Do nothing: the file is closed when it was read."""


class MemoryFeed:
    """Lines from memory: what a demo plays and what tests push; remembers what was asked of it."""

    def __init__(self, lines: list[bytes], *, live: bool = False) -> None:
        self.live = live
        self.record = MemoryRecord()
        self.asked: list[tuple[str, bool]] = []
        self.count = 0
        self._queue: asyncio.Queue[list[bytes] | None] = asyncio.Queue()
        self.push(lines)
        if not live:
            self._queue.put_nowait(None)

    def push(self, lines: list[bytes]) -> None:
        """Give the console more lines."""
        self.count += len(lines)
        for line in lines:
            self.record.add(line)
        self._queue.put_nowait(lines)

    def end(self) -> None:
        """Say that no more lines will come, as when an engine is gone."""
        self._queue.put_nowait(None)

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Give what was pushed."""
        while (batch := await self._queue.get()) is not None:
            yield batch

    async def cancel(self, path: str, kill: bool = False) -> None:
        """Remember what was asked."""
        self.asked.append((path, kill))

    async def close(self) -> None:
        """Do nothing."""


class PacedFeed:
    """The record of a past run, played as it was, ``speed`` times as fast."""

    live = False

    def __init__(self, path: Path, speed: float) -> None:
        self._file = FileFeed(path)
        self._speed = speed

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Give each line when its time has come."""
        began, first = time.monotonic(), 0.0
        async for batch in self._file.batches():
            for line in batch:
                event = decode(line)
                at = seconds(event.ts) if event is not None else 0.0
                first = first or at
                due = began + (at - first) / self._speed
                if at and (early := due - time.monotonic()) > 0:
                    await asyncio.sleep(early)
                yield [line]

    async def cancel(self, path: str, kill: bool = False) -> None:
        """Do nothing: the run is over."""

    async def close(self) -> None:
        """Do nothing: the file is closed when it was read."""


class LinkFeed:
    """A live engine, over the link; what it could not send at its end is read from the record."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.live = find_socket(folder).exists()
        self._client: LinkClient | None = None
        self._position = 0

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Give the lines until the engine is gone, then what the record has beyond them."""
        try:
            self._client = await LinkClient.connect(self._folder)
        except LinkError:
            self.live = False
        else:
            async for batch in self._client.batches():
                self._position += sum(map(len, batch)) + len(batch)
                yield batch
            await self._client.close()
        async for batch in FileFeed(self._folder / RECORD_NAME).batches(self._position):
            if batch:
                yield batch

    async def cancel(self, path: str, kill: bool = False) -> None:
        """Ask the engine; raises :class:`LinkError` when it is gone."""
        if self._client is None:
            raise LinkError("the engine is not there")
        await self._client.cancel(path, kill=kill)

    async def close(self) -> None:
        """Leave the run; it goes on."""
        if self._client is not None:
            await self._client.close()
