"""Two ends of a wire in one process: what is written, when, and what is told of it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest

from preflight.rpc.machine import Large, Machine, Violation
from preflight.rpc.messages import Notification, Request, RpcError
from preflight.rpc.peer import Closed, Peer
from tests.support.loop import in_loop

PIPE_BYTES = 64 * 1024


class Owner:
    """Takes what the peer tells, in order."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.closed: list[str] = []
        self.bugs: list[Exception] = []
        self.fail: Exception | None = None

    def on_request(self, request: Request) -> None:
        self.told.append(("request", request.id, request.method))
        if self.fail is not None:
            raise self.fail

    def on_notification(self, notification: Notification) -> None:
        self.told.append(("notification", notification.method))
        if self.fail is not None:
            raise self.fail

    def on_violation(self, violation: Violation) -> None:
        self.told.append(("violation", violation.reason))

    def on_large(self, large: Large) -> None:
        self.told.append(("large", large.method, large.outgoing))

    def on_bug(self, exc: Exception) -> None:
        self.bugs.append(exc)

    def on_close(self, why: str) -> None:
        self.closed.append(why)


class Wire:
    """A peer, and the raw other end of its two pipes."""

    def __init__(self, limit: int) -> None:
        self.owner = Owner()
        read_fd, self.there_out = os.pipe()
        self.there_in, write_fd = os.pipe()
        self.fds = {read_fd, write_fd, self.there_in, self.there_out}
        for fd in (read_fd, write_fd, self.there_in):
            os.set_blocking(fd, False)
        self.peer = Peer(read_fd, write_fd, Machine(limit=limit), self.owner)

    def say(self, **members: object) -> None:
        """Write a frame to the peer."""
        os.write(self.there_out, json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")

    def read(self) -> bytes:
        """What the peer has written so far."""
        found = b""
        try:
            while chunk := os.read(self.there_in, 1 << 20):
                found += chunk
        except BlockingIOError:
            pass
        return found

    def frames(self) -> list[dict[str, object]]:
        """The same, as frames."""
        return [json.loads(line) for line in self.read().splitlines()]

    def shut(self, fd: int) -> None:
        """Close one of the fds."""
        self.fds.discard(fd)
        os.close(fd)

    async def turns(self, count: int = 5) -> None:
        """Let the loop turn."""
        for _ in range(count):
            await asyncio.sleep(0)


@asynccontextmanager
async def wire(limit: int = 1_000_000) -> AsyncGenerator[Wire]:
    made = Wire(limit)
    try:
        yield made
    finally:
        made.peer.close()
        for fd in tuple(made.fds):
            made.shut(fd)


@in_loop
async def test_a_call_gives_its_result_or_its_error() -> None:
    async with wire() as one:
        good = asyncio.ensure_future(one.peer.call("check", b'{"a":1}'))
        bad = asyncio.ensure_future(one.peer.call("apply", b"{}"))
        await one.turns()
        assert [frame["method"] for frame in one.frames()] == ["check", "apply"]
        assert one.peer.waits_for(1)
        one.say(id=2, error={"code": -5, "message": "no"})
        one.say(id=1, result={"b": 2})
        assert msgspec.json.decode(await good) == {"b": 2}
        assert not one.peer.waits_for(1)
        with pytest.raises(RpcError, match="no") as caught:
            await bad
        assert caught.value.code == -5


@in_loop
async def test_a_call_that_is_cancelled_is_abandoned() -> None:
    # P87
    async with wire() as one:
        for _ in range(1000):
            calling = asyncio.ensure_future(one.peer.call("check", b"{}"))
            await asyncio.sleep(0)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            one.read()
        assert one.peer.machine.pending == ()
        one.say(id=1000, result={})
        await one.turns()
        assert one.owner.told == []


@in_loop
async def test_requests_of_the_peer_are_answered_once() -> None:
    async with wire() as one:
        one.say(id=7, method="m")
        one.say(id="a", method="n")
        await one.turns()
        assert one.owner.told == [("request", 7, "m"), ("request", "a", "n")]
        one.peer.answer(7, b"1")
        one.peer.answer(7, b"2")
        one.peer.refuse("a", -5, "no")
        one.peer.refuse("a", -5, "no")
        assert one.frames() == [
            {"jsonrpc": "2.0", "id": 7, "result": 1},
            {"jsonrpc": "2.0", "id": "a", "error": {"code": -5, "message": "no"}},
        ]


@in_loop
async def test_a_cancel_jumps_the_queue_between_frames() -> None:
    async with wire() as one:
        call = one.peer.start("first", b"{}")
        one.peer.notify("blocks", b'"%b"' % (b"x" * 2 * PIPE_BYTES))
        one.peer.notify("waits", b"{}")
        written = one.peer.cancel(call)
        assert not written.done()
        text = one.read()
        while b"waits" not in text:
            await asyncio.sleep(0)
            text += one.read()
        methods = [json.loads(line)["method"] for line in text.splitlines()]
        assert methods == ["first", "blocks", "cancel", "waits"]
        assert written.done()
        one.peer.abandon(call)


@in_loop
async def test_a_call_of_which_nothing_was_written_is_taken_back() -> None:
    # P77
    async with wire() as one:
        one.peer.notify("blocks", b'"%b"' % (b"x" * 2 * PIPE_BYTES))
        call = one.peer.start("check", b"{}")
        other = one.peer.start("apply", b"{}")
        assert one.peer.cancel(call).done()
        with pytest.raises(RpcError, match="never sent"):
            await call.answer
        text = b""
        while b"apply" not in text:
            await asyncio.sleep(0)
            text += one.read()
        assert b"check" not in text
        assert b"cancel" not in text
        assert one.peer.machine.pending == (other.id,)
        one.peer.abandon(other)


@in_loop
async def test_a_large_frame_is_read_and_written_at_the_same_time() -> None:
    async with wire(limit=10_000_000) as one:
        one.peer.notify("big", b'"%b"' % (b"x" * 5_000_000))
        calling = asyncio.ensure_future(one.peer.call("check", b"{}"))
        await asyncio.sleep(0)
        rest = memoryview(
            json.dumps({"jsonrpc": "2.0", "id": 1, "result": "y" * 5_000_000}).encode() + b"\n"
        )
        os.set_blocking(one.there_out, False)
        got = 0
        async with asyncio.timeout(20):
            while not calling.done():
                with suppress(BlockingIOError):
                    rest = rest[os.write(one.there_out, rest) :] if rest else rest
                got += len(one.read())
                await asyncio.sleep(0)
        assert len(await calling) == 5_000_002
        assert got > 5_000_000


@in_loop
async def test_the_end_of_the_stream_fails_what_is_pending_after_the_last_frame() -> None:
    async with wire() as one:
        first = one.peer.start("check", b"{}")
        second = one.peer.start("check", b"{}")
        os.write(one.there_out, b'{"jsonrpc":"2.0","id":1,"result":5}')
        one.shut(one.there_out)
        await one.turns()
        assert bytes(await first.answer) == b"5"
        with pytest.raises(Closed, match="end of file"):
            await second.answer
        assert one.owner.closed == ["end of file"]
        with pytest.raises(Closed):
            one.peer.start("check", b"{}")
        with pytest.raises(Closed):
            await one.peer.call("check", b"{}")
        one.peer.notify("x", b"{}")
        one.peer.close()
        assert one.owner.closed == ["end of file"]


@in_loop
async def test_a_write_error_closes_after_the_last_words_were_read_in_order() -> None:
    async with wire() as one:
        call = one.peer.start("check", b"{}")
        one.shut(one.there_in)
        # The answer to the first frame breaks the wire while the second is still to be taken.
        os.write(one.there_out, b'[{}]\n{"jsonrpc":"2.0","id":1,"result":5}\n')
        await one.turns()
        assert bytes(await call.answer) == b"5"
        assert one.owner.closed == ["write error: Broken pipe"]
        with pytest.raises(Closed, match="write error"):
            one.peer.start("check", b"{}")


@in_loop
async def test_a_peer_that_never_reads_is_given_up() -> None:
    async with wire() as one:
        call = one.peer.start("check", b"{}")
        one.peer.notify("blocks", b'"%b"' % (b"x" * 2 * PIPE_BYTES))
        for _ in range(10_001):
            one.peer.notify("x", b"{}")
        with pytest.raises(Closed, match="nothing can be written"):
            one.peer.start("check", b"{}")
        await one.turns()
        with pytest.raises(Closed, match="does not read"):
            await call.answer


@in_loop
async def test_nothing_is_written_after_the_end_of_writing_but_reading_goes_on() -> None:
    async with wire() as one:
        one.peer.notify("blocks", b'"%b"' % (b"x" * 2 * PIPE_BYTES))
        one.peer.end_writing()
        one.read()
        one.say(id=7, method="m")
        await one.turns()
        assert one.owner.told == [("request", 7, "m")]
        one.peer.refuse(7, 1, "no")
        await one.turns()
        assert one.read() == b""


@in_loop
async def test_a_bug_of_the_owner_ends_nothing_and_is_answered() -> None:
    async with wire() as one:
        one.owner.fail = KeyError("ours")
        one.say(method="note")
        one.say(id=7, method="m")
        await one.turns()
        one.owner.fail = None
        one.say(id=8, method="m")
        await one.turns()
        assert len(one.owner.bugs) == 2
        (answer,) = one.frames()
        assert answer["id"] == 7
        assert "-32603" in str(answer)
        assert one.owner.told[-1] == ("request", 8, "m")


@in_loop
async def test_warnings_come_for_both_directions() -> None:
    async with wire(limit=100) as one:
        one.peer.machine.peer_limit = 100
        one.say(method="note", params="x" * 40)
        one.say(id=7, method="m")
        await one.turns()
        one.peer.answer(7, b'"%b"' % (b"x" * 45))
        call = one.peer.start("check", b'"%b"' % (b"x" * 30))
        assert one.owner.told == [
            ("notification", "note"),
            ("large", "note", False),
            ("request", 7, "m"),
            ("large", "result", True),
            ("large", "check", True),
        ]
        one.say(id=1, result="x" * 100)
        with pytest.raises(RpcError, match="the answer to check has 141 bytes, limit 100"):
            await call.answer


@in_loop
async def test_a_trace_sees_every_frame() -> None:
    async with wire() as one:
        seen: list[tuple[str, bytes, int]] = []
        one.peer.trace(lambda way, frame, size: seen.append((way, frame, size)))
        call = one.peer.start("check", b"{}")
        sent = one.read()[:-1]
        one.say(id=1, result=5)
        await call.answer
        assert seen[0] == ("out", sent, len(sent))
        assert [way for way, _, _ in seen] == ["out", "in"]
        assert (json.loads(seen[1][1])["result"], len(seen[1][1])) == (5, seen[1][2])


@in_loop
async def test_draining_takes_what_is_there_and_no_more() -> None:
    async with wire() as one:
        one.say(method="last words")
        one.peer.drain()
        assert one.owner.told == [("notification", "last words")]
        one.peer.drain()
        one.peer.close("gone")
        one.peer.drain()
        assert one.owner.closed == ["gone"]


@in_loop
async def test_a_read_error_closes() -> None:
    owner = Owner()
    folder = os.open("/", os.O_RDONLY)
    read_fd, there = os.pipe()
    peer = Peer(read_fd, there, Machine(), owner)
    os.dup2(folder, read_fd)  # which can't be read
    peer.drain()
    assert owner.closed == ["read error: Is a directory"]
    for fd in (folder, read_fd, there):
        os.close(fd)


@in_loop
async def test_an_answer_that_nobody_waits_for_any_more_is_left_alone() -> None:
    async with wire(limit=200) as one:
        call = one.peer.start("check", b"{}")
        one.say(id=1, result=5)
        await call.answer
        one.peer.abandon(call)
        assert call.answer.done()
        other = one.peer.start("check", b"{}")
        other.answer.cancel()
        one.say(id=2, result=5)
        await one.turns()
        third = one.peer.start("check", b"{}")
        third.answer.cancel()
        one.say(id=3, result="x" * 200)
        await one.turns()
        fourth = one.peer.start("check", b"{}")
        fourth.answer.cancel()
        one.peer.close()
