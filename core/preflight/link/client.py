"""The console's side of the link."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from preflight.link.socket import Ask, find_socket

_CHUNK_BYTES = 256 * 1024
_CONNECT_S = 5.0


class LinkError(Exception):
    """The run can't be joined: it has ended, or its engine does not listen."""


class LinkClient:
    """A connection to a running engine. Make it with :meth:`connect`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, run_folder: Path, *, first_seq: int = 1) -> LinkClient:
        """Join the run of ``run_folder`` and follow it from event ``first_seq`` on.

        Raises :class:`LinkError`.
        """
        place = find_socket(run_folder)
        try:
            async with asyncio.timeout(_CONNECT_S):
                reader, writer = await asyncio.open_unix_connection(str(place))
        except (OSError, TimeoutError) as exc:
            raise LinkError(f"no engine listens for the run in {run_folder}") from exc
        client = cls(reader, writer)
        await client._ask(Ask(do="follow", first_seq=first_seq))
        return client

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Give the record's lines, without newlines, as many at a time as have come.

        Ends when the engine has ended, or is gone.
        """
        rest = b""
        while True:
            try:
                chunk = await self._reader.read(_CHUNK_BYTES)
            except ConnectionError:
                return
            if not chunk:
                return
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            if lines:
                yield lines

    async def cancel(self, path: str, *, kill: bool = False) -> None:
        """Ask to cancel what ``path`` names; events tell what becomes of it.

        Raises :class:`LinkError` when the engine is gone.
        """
        await self._ask(Ask(do="cancel", path=path, kill=kill))

    async def close(self) -> None:
        """Leave the run; it goes on."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _ask(self, ask: Ask) -> None:
        try:
            self._writer.write(msgspec.json.encode(ask) + b"\n")
            await self._writer.drain()
        except ConnectionError as exc:
            raise LinkError("the engine is gone") from exc
