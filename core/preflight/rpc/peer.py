"""A machine driven over two pipes: reads as bytes come, writes without ever blocking the loop.

Reader and writer are independent, so that two sides that write at once never wait for each
other. A cancel jumps the queue, between frames.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from preflight.rpc.machine import Incoming, Large, Machine, Reply, TooLarge, Violation
from preflight.rpc.messages import (
    TOO_LARGE,
    Id,
    Notification,
    Request,
    Response,
    RpcError,
)

_CHUNK_BYTES = 1024 * 1024
# A turn of the loop reads at most this much from one peer, so that a flood starves nobody.
_TURN_BYTES = 4 * 1024 * 1024

Direction = Literal["out", "in"]
Trace = Callable[[Direction, bytes | Incoming, int], None]


class Closed(Exception):
    """The wire is gone: end of file or a write error; the text says which."""


class Handler(Protocol):
    """What a peer tells its owner. Called in the order of the wire; must not block or raise."""

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


class _Outgoing:
    __slots__ = ("rest", "written")

    def __init__(self, frame: bytes, written: asyncio.Future[None] | None) -> None:
        self.rest = memoryview(frame)
        self.written = written


class Peer:
    """One session over two non-blocking fds, which stay the caller's to close."""

    def __init__(self, read_fd: int, write_fd: int, machine: Machine, handler: Handler) -> None:
        self.machine = machine
        self.closed = ""
        self.trace: Trace | None = None
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._handler = handler
        self._calls: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._queue: deque[_Outgoing] = deque()
        self._writing = False
        self._broken = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(read_fd, self._readable)

    def start(self, method: str, params: bytes) -> Call:
        """Send a request, or queue it behind what the peer has not read yet.

        Raises :class:`Closed`, and ``MessageTooLarge`` before a byte was written.
        """
        if self.closed:
            raise Closed(self.closed)
        id, frame = self.machine.request(method, params)
        future: asyncio.Future[msgspec.Raw] = self._loop.create_future()
        self._calls[id] = future
        self._warn_if_large(method, frame)
        self._send(frame)
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

        Gives a future that is done when the notice was written whole.
        """
        written: asyncio.Future[None] = self._loop.create_future()
        frame = self.machine.notification("cancel", b'{"id":%d}' % call.id)
        self._send(frame, written=written, urgent=True)
        return written

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

    def close(self, why: str = "closed") -> None:
        """Let go of the fds, before they are closed, and fail what is pending. Safe to repeat."""
        if self.closed:
            return
        self.closed = why
        self._loop.remove_reader(self._read_fd)
        if self._writing:
            self._loop.remove_writer(self._write_fd)
        self._queue.clear()
        for future in self._calls.values():
            if not future.done():
                future.set_exception(Closed(why))
                future.exception()  # the caller may be gone: no complaint then
        self._calls.clear()
        self._handler.on_close(why)

    def drain(self) -> None:
        """Read what is there already: the last words of a process that has exited."""
        while not self.closed and self._read_some():
            pass

    def _readable(self) -> None:
        taken = 0
        while not self.closed and taken < _TURN_BYTES:
            size = self._read_some()
            if not size:
                return
            taken += size
            if size < 65536:  # a pipe's capacity: there is hardly more, so spare the failing read
                return

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
        handler = self._handler
        for message in messages:
            if self.trace is not None:
                self.trace("in", message, 0)
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
                case Reply():
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
        self, frame: bytes, *, written: asyncio.Future[None] | None = None, urgent: bool = False
    ) -> None:
        if self.closed or self._broken:
            return
        if self.trace is not None:
            self.trace("out", frame, len(frame) - 1)
        outgoing = _Outgoing(frame, written)
        if urgent and len(self._queue) > 1:
            self._queue.insert(1, outgoing)  # the first may be half written
        else:
            self._queue.append(outgoing)
        if not self._writing:
            self._writable()

    def _writable(self) -> None:
        try:
            while self._queue:
                first = self._queue[0]
                while first.rest:
                    first.rest = first.rest[os.write(self._write_fd, first.rest) :]
                self._queue.popleft()
                if first.written is not None and not first.written.done():
                    first.written.set_result(None)
        except BlockingIOError:
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._write_fd, self._writable)
            return
        except OSError as exc:
            # Its last words may be in the other pipe: they say more than a broken pipe does.
            self._broken = True
            self.drain()
            self.close(f"write error: {exc.strerror}")
            return
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._write_fd)
