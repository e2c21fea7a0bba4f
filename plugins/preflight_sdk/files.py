"""Files over the wire: in one message where they fit, else in pieces.

Source: docs/protocol.md, chunks.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from io import BytesIO

from preflight_sdk.codec import Raw
from preflight_sdk.errors import HandleError, MessageTooLarge, too_large

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from preflight_sdk.context import Context
    from preflight_sdk.handle import Port
    from preflight_sdk.ops import Turn

    class Reader(Protocol):
        """What a file is put from: opened for bytes."""

        def read(self, size: int, /) -> bytes:
            """At most so many bytes; none at the end."""
            ...

    class Sink(Protocol):
        """What a file is got into: opened for bytes."""

        def write(self, data: bytes, /) -> object:
            """Take all of them."""
            ...


_MOST_PIECE_BYTES = 3 << 20  # 4 MiB of base64: large enough, and little memory on either side
_ENVELOPE_BYTES = 1024
_READ_BYTES = 1 << 20


def put(port: Port, path: str, data: bytes | Reader, ctx: Context, timeout: float | None) -> None:
    """Write a file on the target. Raises: HandleError, MessageTooLarge."""
    if isinstance(data, bytes | bytearray | memoryview):
        if not port.has_chunks or len(data) <= _room(port, path):
            port.request("put_file", {"path": path, "data": _quoted(data)}, ctx, timeout)
            return
        data = BytesIO(data)
    most = _piece_bytes(port, path) if port.has_chunks else _room(port, path)
    head = _read(data, most + 1)
    if len(head) <= most:
        port.request("put_file", {"path": path, "data": _quoted(head)}, ctx, timeout)
    elif port.has_chunks:
        _put_pieces(port, path, _Rest(head, data), port.turn(ctx, timeout))
    else:
        size = len(head) + _count(data)
        raise MessageTooLarge(too_large("put_file", (size + 2) // 3 * 4, port.limit))


def get(port: Port, path: str, ctx: Context, timeout: float | None, into: Sink | None) -> bytes:
    """A file of the target, or nothing when it went ``into`` a file. Raises: HandleError."""
    parts: list[bytes] = []
    take = parts.append if into is None else into.write
    if port.has_chunks:
        _get_pieces(port, path, take, port.turn(ctx, timeout))
    else:
        take(_data_of(port.request("get_file", {"path": path}, ctx, timeout)))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _put_pieces(port: Port, path: str, data: Reader, turn: Turn) -> None:
    size = _piece_bytes(port, path)
    offset = 0
    try:
        piece = _read(data, size)
        while piece:
            following = _read(data, size)
            members = {"offset": offset, "final": not following}
            turn.request("put_file", {"path": path, "data": _quoted(piece), **members})
            offset += len(piece)
            piece = following
    finally:
        turn.end()


def _get_pieces(port: Port, path: str, take: Callable[[bytes], object], turn: Turn) -> None:
    size = _piece_bytes(port, path)
    offset, ended = 0, False
    try:
        while not ended:
            members: dict[str, object] = {"path": path, "offset": offset, "max_bytes": size}
            wire = turn.request("get_file", members)
            data = _data_of(wire)
            offset += len(data)
            ended = wire.get("eof") is True
            if not (data or ended):
                raise HandleError(f"get_file: the host's piece at {offset} is empty")
            take(data)
    finally:
        turn.end()


class _Rest:
    """What was read already, and then the rest of a file."""

    def __init__(self, head: bytes, rest: Reader) -> None:
        self._head = BytesIO(head)
        self._rest = rest

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""
        return self._head.read(size) or self._rest.read(size)


def _read(data: Reader, size: int) -> bytes:
    """So many bytes, or all that are left.

    A little at a time: a file makes room for all that it is asked for, and a pipe gives less.
    """
    parts: list[bytes] = []
    while size and (part := data.read(min(size, _READ_BYTES))):
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _count(data: Reader) -> int:
    total = 0
    while part := data.read(_READ_BYTES):
        total += len(part)
    return total


def _room(port: Port, path: str) -> int:
    """How many bytes of a file fit one message, for certain."""
    return max(0, port.limit - _ENVELOPE_BYTES - 6 * len(path)) // 4 * 3


def _piece_bytes(port: Port, path: str) -> int:
    """Units: bytes. Half of what fits: the host warns from 80 % of its limit on."""
    return max(1, min(_MOST_PIECE_BYTES, _room(port, path) // 6 * 3))


def _quoted(data: bytes | bytearray | memoryview) -> Raw:
    return Raw(b'"' + b2a_base64(data, newline=False) + b'"')


def _data_of(wire: dict[str, object]) -> bytes:
    text = wire.get("data", "")
    try:
        if text is None or isinstance(text, str):
            return a2b_base64(text or "")
    except (Base64Error, ValueError) as exc:
        raise HandleError("get_file: the host's data is not base64") from exc
    raise HandleError("data in the host's answer is no string")
