"""A run joined from outside: real sockets, a real record."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from preflight.bus import Bus
from preflight.control import RunControl
from preflight.events import CancelRequested, Diagnostic
from preflight.link.client import LinkClient, LinkError
from preflight.link.server import LinkServer
from preflight.link.socket import SOCKET_NAME, find_socket
from preflight.sinks.history import History
from tests.support.events import PATIENCE_S, Recorder


class Run:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bus = Bus("r")
        self.control = RunControl(self.bus)
        self.seen = Recorder(self.bus)
        self.history = History(folder)
        self.bus.add_sink(self.history)

    def say(self, *words: str) -> None:
        for word in words:
            self.bus.emit(Diagnostic(level="info", summary=word))


@asynccontextmanager
async def listening(folder: Path) -> AsyncGenerator[Run]:
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder)
    async with asyncio.timeout(PATIENCE_S):
        async with LinkServer(folder, run.history.path, run.control) as server:
            run.history.watchers.append(server.wake)
            yield run
        run.history.close()


async def read(client: LinkClient, count: int) -> list[bytes]:
    lines: list[bytes] = []
    async for batch in client.batches():
        lines += batch
        if len(lines) >= count:
            break
    return lines


async def test_a_client_gets_the_past_and_then_what_comes(tmp_path: Path) -> None:
    async with listening(tmp_path) as run:
        run.say("a", "b")
        client = await LinkClient.connect(tmp_path)
        assert len(await read(client, 2)) == 2
        run.say("c")
        (line,) = await read(client, 1)
        assert b'"summary":"c"' in line
        assert line == run.history.path.read_bytes().splitlines()[2]
        await client.close()


async def test_a_client_that_comes_back_names_the_first_event_it_wants(tmp_path: Path) -> None:
    async with listening(tmp_path) as run:
        run.say("a", "b", "c")
        client = await LinkClient.connect(tmp_path, first_seq=3)
        assert b'"seq":3' in (await read(client, 1))[0]
        await client.close()


async def test_what_was_emitted_last_still_reaches_a_client_when_the_engine_ends(
    tmp_path: Path,
) -> None:
    async with listening(tmp_path) as run:
        client = await LinkClient.connect(tmp_path)
        run.say("first")
        await read(client, 1)
        run.say(*(str(n) for n in range(5000)))
        reading = asyncio.ensure_future(read(client, 10_000))
    assert len(await reading) == 5000
    await client.close()


async def test_a_client_that_never_reads_delays_neither_the_run_nor_its_end(
    tmp_path: Path,
) -> None:
    loop = asyncio.get_running_loop()
    async with listening(tmp_path) as run:
        client = await LinkClient.connect(tmp_path)
        client._reader._transport.pause_reading()  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType]  # a terminal that stalls
        for n in range(200):
            run.say(str(n) * 10_000)
            await asyncio.sleep(0)
        start = loop.time()
    assert loop.time() - start < 5
    await client.close()


async def test_a_cancel_is_acknowledged_by_an_event(tmp_path: Path) -> None:
    async with listening(tmp_path) as run:
        client = await LinkClient.connect(tmp_path)
        await client.cancel("kiosk/copy", kill=True)
        event = await run.seen.wait_for(CancelRequested)
        assert (event.path, event.by, event.kill) == ("kiosk/copy", "operator", True)
        await client.close()


async def test_nonsense_from_a_client_ends_nothing(tmp_path: Path) -> None:
    async with listening(tmp_path) as run:
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / SOCKET_NAME))
        writer.write(b'not json\n{"do":"dance"}\n{"do":"cancel","path":7}\n')
        writer.write(b'{"do":"cancel","path":"x"}\n')
        await run.seen.wait_for(CancelRequested, path="x")
        writer.write(b"x" * 200_000)  # no newline within the longest request: hung up on
        assert await reader.read() == b""
        writer.close()
        client = await LinkClient.connect(tmp_path)
        assert len(await read(client, 1)) >= 1
        await client.close()


async def test_the_socket_is_its_owners_alone_and_gone_afterwards(tmp_path: Path) -> None:
    async with listening(tmp_path):
        mode = stat.S_IMODE(os.stat(tmp_path / SOCKET_NAME).st_mode)
        assert mode & 0o077 == 0
    assert not (tmp_path / SOCKET_NAME).exists()
    with pytest.raises(LinkError, match="no engine listens"):
        await LinkClient.connect(tmp_path)


async def test_a_folder_too_deep_for_a_socket_address_works_all_the_same(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    async with listening(deep) as run:
        run.say("a")
        client = await LinkClient.connect(deep)
        assert len(await read(client, 1)) == 1
        await client.close()
        short = find_socket(deep)
    assert not short.parent.exists()
