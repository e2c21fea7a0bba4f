"""The engine's side of the link: the record goes out, cancels come in.

A client is served from the record on disk, not from a queue: one that stops reading costs
nothing and delays nothing, and one that comes late misses nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, cast

import msgspec

from preflight.events import By
from preflight.link.socket import Ask, place_socket, remove_socket

_CHUNK_BYTES = 256 * 1024
_LONGEST_ASK_BYTES = 64 * 1024
# What a client that keeps up may still be owed when the engine ends.
_FAREWELL_S = 2.0


class Control(Protocol):
    """What the link may do to a run."""

    def cancel(self, path: str, by: By, *, kill: bool = False) -> object:
        """Stop what is at and below ``path``."""
        ...


class LinkServer:
    """Serves one run's record and takes cancels; an async context manager."""

    def __init__(self, folder: Path, record: Path, control: Control) -> None:
        self._folder = folder
        self._record = record
        self._control = control
        self._server: asyncio.Server | None = None
        self._clients: set[_Client] = set()
        self._ended = False

    async def __aenter__(self) -> LinkServer:
        place = place_socket(self._folder)
        old = os.umask(0o177)  # the socket is its owner's alone, from its first moment
        try:
            self._server = await asyncio.start_unix_server(
                self._serve, path=str(place), limit=_LONGEST_ASK_BYTES
            )
        finally:
            os.umask(old)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._ended = True
        self.wake()
        if self._server is not None:
            self._server.close()
        serving = [client.task for client in self._clients]
        if serving:
            await asyncio.wait(serving, timeout=_FAREWELL_S)
        for client in tuple(self._clients):
            client.abort()
        if serving:
            await asyncio.wait(serving, timeout=_FAREWELL_S)
        remove_socket(self._folder)

    def wake(self) -> None:
        """Tell every client's sender that the record has grown; cheap, never waits."""
        for client in self._clients:
            client.grown.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(self._record, writer, lambda: self._ended)
        self._clients.add(client)
        try:
            async with asyncio.TaskGroup() as group:
                listener = group.create_task(self._listen(reader, client))
                sender = group.create_task(client.send())
                await asyncio.wait([listener, sender], return_when="FIRST_COMPLETED")
                listener.cancel()
                sender.cancel()
        except* OSError:
            pass  # the client is gone: nothing is owed to it
        finally:
            self._clients.discard(client)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _listen(self, reader: asyncio.StreamReader, client: _Client) -> None:
        while True:
            try:
                line = await reader.readline()
            except ValueError:  # longer than any request may be
                return
            if not line:
                return
            with contextlib.suppress(msgspec.DecodeError):
                ask = msgspec.json.decode(line, type=Ask)
                if ask.do == "cancel":
                    self._control.cancel(ask.path, "operator", kill=ask.kill)
                else:
                    client.follow(ask.first_seq)


class _Client:
    """One console: where it is in the record, and the task that sends it on."""

    def __init__(
        self, record: Path, writer: asyncio.StreamWriter, is_ended: Callable[[], bool]
    ) -> None:
        self.grown = asyncio.Event()
        self.task = cast("asyncio.Task[None]", asyncio.current_task())
        self._record = record
        self._writer = writer
        self._is_ended = is_ended
        self._first_seq = 0
        self._asked = asyncio.Event()

    def follow(self, first_seq: int) -> None:
        """Begin to send from this event on."""
        self._first_seq = max(1, first_seq)
        self._asked.set()

    def abort(self) -> None:
        """Hang up on a client that does not read."""
        self._writer.transport.abort()

    async def send(self) -> None:
        await self._asked.wait()
        with self._record.open("rb") as file:
            for _ in range(self._first_seq - 1):  # the line's number is the event's
                file.readline()
            while True:
                self.grown.clear()
                chunk = file.read(_CHUNK_BYTES)
                if chunk:
                    self._writer.write(chunk)
                    await self._writer.drain()
                elif self._is_ended():
                    return
                else:
                    await self.grown.wait()
