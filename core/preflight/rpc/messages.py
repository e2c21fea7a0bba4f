"""What one line says: a request, a notification, a response, or why it is none of them.

The envelope alone is decoded; params and results stay raw bytes until their consumer wants them,
since 32 MiB of small objects would stall everything for seconds. Source: docs/protocol.md.
"""

from __future__ import annotations

import json
import math
import re
from typing import TypeAlias, TypeVar, cast

import msgspec

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
OP_FAILED = -32000
NO_TARGET = -32001
NO_COMMON_VERSION = -32010
OUT_OF_ORDER = -32011
TOO_LARGE = -32020
CANCELLED = -32800

Id: TypeAlias = int | str
T = TypeVar("T")

_EMPTY = msgspec.Raw(b"{}")
_NULL = b"null"
# An id or a method that is longer is nobody's: they are kept, counted and quoted.
_LONGEST_NAME_BYTES = 256
_HEAD_BYTES = 4096  # how much of a broken line is searched for an id
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,"]|[^\s"{}\[\]:,]+', re.DOTALL)


class RpcError(Exception):
    """An error answer: JSON-RPC's ``code`` and ``message``."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Request(msgspec.Struct, frozen=True):
    """The peer wants an answer to ``id``."""

    id: Id
    method: str
    params: msgspec.Raw


class Notification(msgspec.Struct, frozen=True):
    """The peer tells something and wants no answer."""

    method: str
    params: msgspec.Raw


class Response(msgspec.Struct, frozen=True):
    """The answer to a request of ours: ``error``, or else ``result``."""

    id: Id
    result: msgspec.Raw
    error: tuple[int, str] | None = None


class Invalid(msgspec.Struct, frozen=True):
    """A line that breaks the protocol; ``answer_id`` where it is a request that must be refused.

    ``json`` is False when it is not JSON at all: most likely something printed by mistake.
    ``answers`` is the id of the request that the line seems to be the answer to.
    """

    reason: str
    json: bool = True
    refuse: bool = False
    answers: Id | None = None


Message: TypeAlias = Request | Notification | Response | Invalid


class _Envelope(msgspec.Struct):
    jsonrpc: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Error(msgspec.Struct):
    code: int = INTERNAL_ERROR
    message: str = ""


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_text = msgspec.json.Decoder(str).decode


def parse(line: bytes) -> Message:
    """Read one line; never raises."""
    try:
        envelope = _decode_envelope(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            envelope = _decode_envelope(_mended(line))
        except (ValueError, RecursionError):
            return _unreadable(line)
    if envelope.method is not msgspec.UNSET:
        return _call(envelope)
    if envelope.id is not msgspec.UNSET:
        return _answer(envelope)
    return Invalid("neither a method nor an id")


def decode(raw: msgspec.Raw | bytes, kind: type[T]) -> T:
    """Decode params or a result leniently; raises ``ValueError`` with what is wrong.

    Lone surrogates and bytes that are not UTF-8 are replaced: they are somebody's output, and no
    reason to lose an answer.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as exc:
        raise ValueError(str(exc)) from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            return msgspec.json.decode(_mended(bytes(raw)), type=kind)
        except (ValueError, RecursionError) as exc:
            raise ValueError(str(exc)) from exc


def look_in_head(head: bytes) -> tuple[str, Id | None]:
    """Find the method and the id of a line of which only the beginning is there, or is whole.

    Only the line's own members count, not those of its params or result. Gives ``""`` and
    ``None`` for what is not there.
    """
    method, id = "", None
    depth, before, key = 0, b"", b""
    for found in _TOKEN.finditer(head):
        token = found.group()
        if token == b'"' or (found.end() == len(head) and token[:1].isalnum()):
            break  # cut in the middle
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
        elif depth == 1:
            if token in b":,":
                key = before if token == b":" else b""
            elif key == b'"id"' and id is None:
                id = _read_id(token)
            elif key == b'"method"' and not method and token[:1] == b'"':
                method = token[1:-1].decode("utf-8", "replace")[:_LONGEST_NAME_BYTES]
        before = token
    return method, id


def encode_request(id: int, method: str, params: bytes) -> bytes:
    """Write a request; ``params`` is JSON."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (id, method.encode(), params)


def encode_notification(method: str, params: bytes) -> bytes:
    """Write a notification; ``params`` is JSON."""
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), params)


def encode_result(id: Id, result: bytes) -> bytes:
    """Write an answer; ``result`` is JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_encode_id(id), result)


def encode_error(id: Id | None, code: int, message: str) -> bytes:
    """Write an error answer."""
    error = msgspec.json.encode({"code": code, "message": message})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encode_id(id), error)


def _call(envelope: _Envelope) -> Message:
    raw = bytes(cast("msgspec.Raw", envelope.method))
    if len(raw) > _LONGEST_NAME_BYTES:
        return Invalid("a method's name is too long", refuse=True)
    try:
        method = _decode_text(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Invalid("the method is not a string", refuse=True)
    params = _EMPTY if envelope.params is msgspec.UNSET else envelope.params
    if envelope.id is msgspec.UNSET:
        return Notification(method, params)
    if envelope.jsonrpc is msgspec.UNSET or bytes(envelope.jsonrpc) != b'"2.0"':
        return Invalid("no jsonrpc 2.0 member", refuse=True)
    id = _read_id(bytes(envelope.id))
    if id is None:
        return Invalid("an id must be a string or an integer", refuse=True)
    return Request(id, method, params)


def _answer(envelope: _Envelope) -> Message:
    id = None if envelope.id is msgspec.UNSET else _read_id(bytes(envelope.id))
    if id is None:
        return Invalid("a response without a usable id")
    if envelope.error is not msgspec.UNSET and bytes(envelope.error) != _NULL:
        try:
            error = decode(envelope.error, _Error)
        except ValueError:
            error = _Error(message="an error that can't be read")
        return Response(id, _EMPTY, (error.code, error.message))
    # The Go SDK leaves an empty result out.
    result = _EMPTY if envelope.result is msgspec.UNSET else envelope.result
    return Response(id, _EMPTY if _is_null(result) else result)


def _is_null(raw: msgspec.Raw) -> bool:
    view = memoryview(raw)  # a result may be large, and is not copied to be looked at
    return len(view) == len(_NULL) and bytes(view) == _NULL


def _encode_id(id: Id | None) -> bytes:
    # msgspec writes no integer of more than 64 bits, and ids go back as they came.
    return b"%d" % id if isinstance(id, int) else msgspec.json.encode(id)


def _read_id(raw: bytes) -> Id | None:
    if len(raw) > _LONGEST_NAME_BYTES:
        return None
    if raw.isdigit():
        return int(raw)
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _unreadable(line: bytes) -> Invalid:
    first = line.lstrip()[:1]
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        method, id = look_in_head(line[:_HEAD_BYTES])
        return Invalid("not JSON", json=first in (b"{", b"["), answers=None if method else id)
    # An array may be a JSON-RPC batch, which somebody waits for; a number was just printed.
    return Invalid("not a JSON object", json=first == b"[", refuse=first == b"[")


def _mended(text: bytes) -> bytes:
    """Give JSON that is strict for what is JSON but for its text; raises ``ValueError``.

    Mends what sloppy writers make of other people's bytes: lone surrogates, bytes that are not
    UTF-8, raw control characters, NaN.
    """
    plain = json.loads(text.decode("utf-8", "replace"), strict=False)
    return json.dumps(_clean(plain), ensure_ascii=False).encode()


def _clean(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_clean(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return {str(_clean(key)): _clean(item) for key, item in pairs}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
