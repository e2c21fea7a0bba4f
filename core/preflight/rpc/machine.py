"""Which ids are whose, and what each line means for them. No I/O, no tasks, no clock.

The two sides' ids are separate spaces. A request of the peer is registered before it is handed
on, so that a cancel right behind it finds it, and it is answered at most once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from preflight.rpc.frames import Framer, Oversize
from preflight.rpc.messages import (
    INVALID_REQUEST,
    PARSE_ERROR,
    TOO_LARGE,
    Id,
    Invalid,
    Notification,
    Request,
    Response,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    look_in_head,
    parse,
)

DEFAULT_LIMIT = 64 * 1024 * 1024
"""Bytes of one message, either way. Source: seed 2, P0: 64 MiB is a common production default."""

_WARN_SHARE = 0.8  # seed 2, P3: warn from 80 % of the limit
_MOST_ABANDONED = 1000  # ids of cancelled calls whose late answer is still awaited


class Violation(msgspec.Struct, frozen=True):
    """The peer broke the protocol; nothing ends by it. ``line`` is the first 200 bytes.

    ``reason`` is one of a few, to be counted by; ``detail`` has the particulars.
    """

    reason: str
    line: bytes
    noise: bool = False
    detail: str = ""


class Large(msgspec.Struct, frozen=True):
    """A message of 80 % of the limit or more passed."""

    method: str
    size: int
    limit: int
    outgoing: bool


class TooLarge(msgspec.Struct, frozen=True):
    """The answer to our request ``id`` was longer than the limit and was dropped."""

    id: int
    method: str
    size: int
    limit: int


class Reply(msgspec.Struct, frozen=True):
    """A frame that the machine itself wants to be sent."""

    frame: bytes


class MessageTooLarge(Exception):
    """A frame over the peer's limit; not a byte of it was written. Sizes are in bytes."""

    def __init__(self, method: str, size: int, limit: int) -> None:
        super().__init__(f"{method} of {size} bytes is over the limit of {limit} bytes")
        self.method = method
        self.size = size
        self.limit = limit


Incoming: TypeAlias = Request | Notification | Response | Violation | Large | TooLarge | Reply


class Machine:
    """One side of a session.

    ``limit`` bounds what is read; :attr:`peer_limit` what is sent, and is set by the handshake.
    """

    def __init__(self, *, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
        self.peer_limit = DEFAULT_LIMIT
        self.tap: Callable[[bytes, int], None] | None = None  # sees every line with its size
        self._framer = Framer(limit)
        self._last_id = 0
        self._asked = 0  # our last id when the line that is being read began
        self._pending: OrderedDict[int, str] = OrderedDict()
        self._abandoned: OrderedDict[int, None] = OrderedDict()
        self._serving: dict[Id, str] = {}

    @property
    def pending(self) -> tuple[int, ...]:
        """The ids of our requests that have no answer yet, oldest first."""
        return tuple(self._pending)

    @property
    def serving(self) -> tuple[Id, ...]:
        """The ids of the peer's requests that were not answered yet."""
        return tuple(self._serving)

    def request(self, method: str, params: bytes) -> tuple[int, bytes]:
        """Make a request; gives its id and its frame. Raises :class:`MessageTooLarge`."""
        frame = encode_request(self._last_id + 1, method, params)
        self._check(frame, method)
        self._last_id += 1
        self._pending[self._last_id] = method
        return self._last_id, frame + b"\n"

    def notification(self, method: str, params: bytes) -> bytes:
        """Make a notification. Raises :class:`MessageTooLarge`."""
        frame = encode_notification(method, params)
        self._check(frame, method)
        return frame + b"\n"

    def abandon(self, id: int) -> None:
        """Wait for no answer to ``id`` any more: a late one is dropped without a trace."""
        if self._pending.pop(id, None) is not None:
            self._abandoned[id] = None
            if len(self._abandoned) > _MOST_ABANDONED:
                self._abandoned.popitem(last=False)

    def result(self, id: Id, result: bytes) -> bytes | None:
        """Answer a request of the peer; None when it was answered before.

        A result over the peer's limit becomes an error answer that says so.
        """
        method = self._serving.pop(id, None)
        if method is None:
            return None
        frame = encode_result(id, result)
        try:
            self._check(frame, method)
        except MessageTooLarge as exc:
            frame = encode_error(id, TOO_LARGE, too_large_words(exc.method, exc.size, exc.limit))
        return frame + b"\n"

    def error(self, id: Id, code: int, message: str) -> bytes | None:
        """Refuse a request of the peer; None when it was answered before."""
        if self._serving.pop(id, None) is None:
            return None
        return encode_error(id, code, message) + b"\n"

    def receive(self, chunk: bytes) -> list[Incoming]:
        """Take bytes from the peer; give what they mean, in order."""
        found: list[Incoming] = []
        if not self._framer.pending:
            self._asked = self._last_id
        for frame in self._framer.feed(chunk):
            self._read(frame, found)
            self._asked = self._last_id
        return found

    def receive_end(self) -> list[Incoming]:
        """Take the end of the stream: a last line without a newline is still a frame."""
        found: list[Incoming] = []
        for frame in self._framer.close():
            self._read(frame, found)
        return found

    def is_large(self, size: int, *, outgoing: bool) -> bool:
        """Tell whether a frame of ``size`` bytes is 80 % of its limit or more."""
        return size >= _WARN_SHARE * (self.peer_limit if outgoing else self.limit)

    def _read(self, frame: bytes | Oversize, found: list[Incoming]) -> None:
        if self.tap is not None:
            whole = isinstance(frame, bytes)
            self.tap(frame if whole else frame.head, len(frame) if whole else frame.size)
        if isinstance(frame, Oversize):
            self._read_oversize(frame, found)
            return
        message = parse(frame)
        match message:
            case Request():
                self._read_request(message, frame, found)
            case Notification():
                found.append(message)
            case Response():
                self._read_response(message, frame, found)
            case _:
                found.append(Violation(message.reason, frame[:200], noise=not message.json))
                if message.refuse:
                    refusal = encode_error(None, INVALID_REQUEST, message.reason)
                    found.append(Reply(refusal + b"\n"))
                self._fail_unreadable(message, found)
        if self.is_large(len(frame), outgoing=False):
            name = message.method if isinstance(message, Request | Notification) else "answer"
            found.append(Large(name, len(frame), self.limit, outgoing=False))

    def _read_request(self, message: Request, frame: bytes, found: list[Incoming]) -> None:
        if message.id in self._serving:
            found.append(Violation("a second request with an id in flight", frame[:200]))
            refusal = encode_error(message.id, INVALID_REQUEST, "this id is in flight")
            found.append(Reply(refusal + b"\n"))
            return
        self._serving[message.id] = message.method
        found.append(message)

    def _read_response(self, message: Response, frame: bytes, found: list[Incoming]) -> None:
        id = message.id
        if isinstance(id, int) and self._pending.pop(id, None) is not None:
            found.append(message)
        elif isinstance(id, int) and id in self._abandoned:
            del self._abandoned[id]
        else:
            found.append(Violation("a response to an id that is not pending", frame[:200]))

    def _fail_unreadable(self, message: Invalid, found: list[Incoming]) -> None:
        """Let the call fail whose answer can't be read: nothing else will come for it."""
        id = message.answers
        if isinstance(id, int) and self._pending.pop(id, None) is not None:
            words = f"the answer can't be read: {message.reason}"
            found.append(Response(id, msgspec.Raw(b"{}"), (PARSE_ERROR, words)))

    def _read_oversize(self, frame: Oversize, found: list[Incoming]) -> None:
        method, id = look_in_head(frame.head)
        detail = f"{frame.size} bytes, limit {self.limit}"
        found.append(Violation("a message over the limit", frame.head[:200], detail=detail))
        if method:
            if id is not None:
                words = too_large_words(method, frame.size, self.limit)
                found.append(Reply(encode_error(id, TOO_LARGE, words) + b"\n"))
            return
        if id is None:
            # Somebody waits for this answer and would wait for ever: most likely the oldest, and
            # nobody who asked when the line had begun already.
            id = next((one for one in self._pending if one <= self._asked), None)
        if isinstance(id, int):
            self._abandoned.pop(id, None)
            if id in self._pending:
                found.append(TooLarge(id, self._pending.pop(id), frame.size, self.limit))

    def _check(self, frame: bytes, method: str) -> None:
        if len(frame) > self.peer_limit:
            raise MessageTooLarge(method, len(frame), self.peer_limit)


def too_large_words(method: str, size: int, limit: int) -> str:
    """Say that a message is too large, with the file size that would fit: base64 grows by a third.

    Units: bytes.
    """
    return (
        f"{method} of {size} bytes is over the limit of {limit} bytes "
        f"(a file of about {limit // 4 * 3} bytes); raise max_message_bytes"
    )
