"""A line that is bad on purpose: delays, counts, freezes and cuts what goes between two ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Proxy:
    """Passes bytes on to one port; ``turns`` counts how often the client spoke after listening."""

    def __init__(self, port: int, delay_s: float) -> None:
        self.port = 0
        self.sent_bytes = 0
        self.turns = 0
        self.connections = 0
        self._to = port
        self._delay_s = delay_s
        self._client_spoke = False
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()

    def freeze(self) -> None:
        """Let nothing through any more, and say nothing about it."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Let everything through again, what was held included."""
        self._flowing.set()

    def cut(self) -> None:
        """Reset every connection."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect one client."""
        self.connections += 1
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there_writer}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, there_writer, outward=True))
                group.create_task(self._pass(there_reader, writer, outward=False))
        finally:
            for one in (writer, there_writer):
                self._writers.discard(one)
                one.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, outward: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def send() -> None:
            while True:
                due, data = await queue.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                await self._flowing.wait()
                if not data:
                    if writer.can_write_eof():
                        writer.write_eof()
                    return
                writer.write(data)
                await writer.drain()

        async def receive() -> None:
            while True:
                try:
                    data = await reader.read(65536)
                except ConnectionError:
                    data = b""
                if outward:
                    self.sent_bytes += len(data)
                    self.turns += not self._client_spoke
                self._client_spoke = outward
                queue.put_nowait((loop.time() + self._delay_s, data))
                if not data:
                    return

        with contextlib.suppress(ConnectionError, OSError):
            async with asyncio.TaskGroup() as group:
                group.create_task(send())
                group.create_task(receive())


@asynccontextmanager
async def proxy(port: int, *, delay_s: float = 0.0) -> AsyncGenerator[Proxy]:
    """Open a proxy to a port on loopback; ``delay_s`` is added in each direction."""
    made = Proxy(port, delay_s)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.get_running_loop().create_task(made.serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
