"""A machine driven over two pipes: reads as bytes come, writes without ever blocking the loop.

Reader and writer are independent, so that two sides that write at once never wait for each
other. A cancel jumps the queue, between frames.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from preflight.rpc.machine import Incoming, Large, Machine, TooLarge, Violation
from preflight.rpc.messages import (
    CANCELLED,
    INTERNAL_ERROR,
    TOO_LARGE,
    Id,
    Notification,
    Request,
    Response,
    RpcError,
)
from preflight.rpc.writer import Writer

# A pipe holds no more, and one read a turn of the loop lets a flood starve nobody. Larger buffers
# cost twice the CPU for a small message (tests/bench/wire.py).
_CHUNK_BYTES = 64 * 1024
# What a process that has exited may have left in its pipe: a pipe's usual limit.
_LAST_BYTES = 1024 * 1024

Direction = Literal["out", "in"]
Trace = Callable[[Direction, bytes, int], None]
"""Sees a frame without its newline (of one that was too long the beginning) and its whole size.

Must not raise.
"""


class Closed(Exception):
    """The wire is gone: end of file or a write error; the text says which."""


class Handler(Protocol):
    """What a peer tells its owner. Called in the order of the wire; must not block."""

    def on_request(self, request: Request) -> None:
        """Answer later with :meth:`Peer.answer` or :meth:`Peer.refuse`, once."""
        ...

    def on_notification(self, notification: Notification) -> None:
        """Take note."""
        ...

    def on_violation(self, violation: Violation) -> None:
        """Show it; the session goes on."""
        ...

    def on_large(self, large: Large) -> None:
        """Show it; a message is near the limit."""
        ...

    def on_bug(self, exc: Exception) -> None:
        """Report what one of the others raised: a bug of ours ends no session."""
        ...

    def on_close(self, why: str) -> None:
        """Know that nothing more will come; pending calls have failed already."""
        ...


class Call:
    """One request of ours under way; :attr:`answer` gives the raw result or raises."""

    __slots__ = ("answer", "id", "method")

    def __init__(self, id: int, method: str, answer: asyncio.Future[msgspec.Raw]) -> None:
        self.id = id
        self.method = method
        self.answer = answer


class Peer:
    """One session over two non-blocking fds, which stay the caller's to close."""

    def __init__(self, read_fd: int, write_fd: int, machine: Machine, handler: Handler) -> None:
        self.machine = machine
        self.closed = ""
        self._trace: Trace | None = None
        self._read_fd = read_fd
        self._handler = handler
        self._calls: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._writer = Writer(write_fd, self._wire_broke)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(read_fd, self._readable)

    def trace(self, trace: Trace) -> None:
        """Show every frame to ``trace`` from now on: as it is read, and as it is queued."""
        self._trace = trace
        self.machine.tap = lambda frame, size: trace("in", frame, size)

    def start(self, method: str, params: bytes) -> Call:
        """Send a request, or queue it behind what the peer has not read yet.

        Raises :class:`Closed`, and ``MessageTooLarge`` before a byte was written.
        """
        if self.closed or self._writer.ended:
            raise Closed(self.closed or "nothing can be written any more")
        id, frame = self.machine.request(method, params)
        future: asyncio.Future[msgspec.Raw] = self._loop.create_future()
        self._calls[id] = future
        self._warn_if_large(method, frame)
        self._send(frame, call_id=id)
        return Call(id, method, future)

    async def call(self, method: str, params: bytes) -> msgspec.Raw:
        """Send a request and wait for its result.

        Raises :class:`RpcError`, :class:`Closed` or ``MessageTooLarge``.
        Cancel: the call is abandoned; the peer is told nothing (see :meth:`cancel`).
        """
        call = self.start(method, params)
        try:
            return await call.answer
        except asyncio.CancelledError:
            self.abandon(call)
            raise

    def notify(self, method: str, params: bytes) -> None:
        """Send a notification; does nothing when the wire is gone."""
        self._send(self.machine.notification(method, params))

    def cancel(self, call: Call) -> asyncio.Future[None]:
        """Tell the peer that nobody waits for ``call`` any more, ahead of all that is queued.

        Gives a future that is done when the notice was written whole. A call of which no byte
        was written yet is taken back instead, and its answer is that it was cancelled.
        """
        written: asyncio.Future[None] = self._loop.create_future()
        if self._writer.take_back(call.id):
            self.machine.abandon(call.id)
            self._settle(Response(call.id, msgspec.Raw(), (CANCELLED, "it was never sent")))
            written.set_result(None)
            return written
        frame = self.machine.notification("cancel", b'{"id":%d}' % call.id)
        self._send(frame, written=written, urgent=True)
        return written

    def waits_for(self, id: int) -> bool:
        """Tell whether our request ``id`` has no answer yet, of all that was handed on."""
        return id in self._calls

    def abandon(self, call: Call) -> None:
        """Drop whatever the peer may still answer to ``call``."""
        self.machine.abandon(call.id)
        future = self._calls.pop(call.id, None)
        if future is not None:
            future.cancel()

    def answer(self, id: Id, result: bytes) -> None:
        """Answer a request of the peer; a second answer is dropped."""
        frame = self.machine.result(id, result)
        if frame is not None:
            self._warn_if_large("result", frame)
            self._send(frame)

    def refuse(self, id: Id, code: int, message: str) -> None:
        """Answer a request of the peer with an error; a second answer is dropped."""
        frame = self.machine.error(id, code, message)
        if frame is not None:
            self._send(frame)

    def end_writing(self) -> None:
        """Write nothing more, before the fd to write to is closed; reading goes on."""
        self._writer.end()

    def close(self, why: str = "closed") -> None:
        """Let go of the fds, before they are closed, and fail what is pending. Safe to repeat."""
        if self.closed:
            return
        self.closed = why
        self._loop.remove_reader(self._read_fd)
        self._writer.end()
        for future in self._calls.values():
            if not future.done():
                future.set_exception(Closed(why))
                future.exception()  # the caller may be gone: no complaint then
        self._calls.clear()
        self._handler.on_close(why)

    def drain(self) -> None:
        """Read what is there already: the last words of a process that has exited.

        Bounded, since a child of that process may write on for ever.
        """
        taken = 0
        while not self.closed and taken < _LAST_BYTES and (size := self._read_some()):
            taken += size

    def _readable(self) -> None:
        self._read_some()

    def _read_some(self) -> int:
        try:
            chunk = os.read(self._read_fd, _CHUNK_BYTES)
        except BlockingIOError:
            return 0
        except OSError as exc:
            self.close(f"read error: {exc.strerror}")
            return 0
        if not chunk:
            self._dispatch(self.machine.receive_end())
            self.close("end of file")
            return 0
        self._dispatch(self.machine.receive(chunk))
        return len(chunk)

    def _dispatch(self, messages: list[Incoming]) -> None:
        for message in messages:
            try:
                self._take(message)
            except Exception as exc:  # the wire boundary: what comes after it is still read
                self._handler.on_bug(exc)
                if isinstance(message, Request):
                    self.refuse(message.id, INTERNAL_ERROR, f"a bug of the host: {exc}")

    def _take(self, message: Incoming) -> None:
        handler = self._handler
        match message:
            case Response():
                self._settle(message)
            case Notification():
                handler.on_notification(message)
            case Request():
                handler.on_request(message)
            case Violation():
                handler.on_violation(message)
            case Large():
                handler.on_large(message)
            case TooLarge():
                self._fail_too_large(message)
            case _:
                self._send(message.frame)

    def _settle(self, response: Response) -> None:
        future = self._calls.pop(response.id, None) if isinstance(response.id, int) else None
        if future is None or future.done():
            return
        if response.error is not None:
            future.set_exception(RpcError(*response.error))
        else:
            future.set_result(response.result)

    def _fail_too_large(self, message: TooLarge) -> None:
        future = self._calls.pop(message.id, None)
        if future is not None and not future.done():
            words = (
                f"the answer to {message.method} has {message.size} bytes, limit {message.limit}"
            )
            future.set_exception(RpcError(TOO_LARGE, words))

    def _warn_if_large(self, method: str, frame: bytes) -> None:
        if self.machine.is_large(len(frame) - 1, outgoing=True):
            limit = self.machine.peer_limit
            self._handler.on_large(Large(method, len(frame) - 1, limit, outgoing=True))

    def _send(
        self,
        frame: bytes,
        *,
        call_id: int = 0,
        written: asyncio.Future[None] | None = None,
        urgent: bool = False,
    ) -> None:
        if self._writer.ended:
            return
        if self._trace is not None:
            self._trace("out", frame[:-1], len(frame) - 1)
        self._writer.send(frame, call_id=call_id, written=written, urgent=urgent)

    def _wire_broke(self, why: str) -> None:
        # The peer's last words say more than a broken pipe does.
        self.drain()
        self.close(why)
