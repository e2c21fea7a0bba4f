"""JSON for the wire: envelopes are split without decoding what is large in them.

It stands on ``_json``, the C half of ``json``: importing ``json`` itself costs 7 ms of a
10 ms interpreter start (tests/bench/sdk_start.py).
"""

from __future__ import annotations

import gc

from preflight_sdk.errors import INVALID_REQUEST, PARSE_ERROR, InvalidMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    _Scan = Callable[[str, int], tuple[object, int]]

LAZY_CHARS = 64 * 1024
"""A larger frame's params and result are decoded by who needs them, not by the reader."""

_BLANK = " \t\r\n"
_LARGE = 1 << 20


class _Settings:
    """The attributes the C scanner reads from its decoder."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int

    @staticmethod
    def parse_constant(name: str) -> object:
        """Refuse NaN and Infinity, which are not JSON."""
        raise ValueError(f"{name} is not JSON")


def _make_scan() -> _Scan:
    try:
        import _json

        scan: _Scan = _json.make_scanner(_Settings)  # type: ignore[arg-type] # duck typed in C
        scan("0", 0)
    except (ImportError, AttributeError, TypeError):  # another Python than CPython
        import json

        decoder: object = json.JSONDecoder(parse_constant=_Settings.parse_constant)
        fallback: _Scan = getattr(decoder, "scan_once")  # noqa: B009 - not in the stubs
        return fallback
    return scan


def _make_quotes() -> tuple[Callable[[str], str], Callable[[str], str]]:
    try:
        from _json import encode_basestring, encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring, encode_basestring_ascii
    return encode_basestring, encode_basestring_ascii


_c_scan = _make_scan()
_quote, _quote_ascii = _make_quotes()


def _scan(text: str, i: int) -> tuple[object, int]:
    """One JSON value at ``i``, and the index behind it. Raises: ValueError, StopIteration."""
    try:
        return _c_scan(text, i)
    except SystemError:  # CPython 3.11 finds its JSONDecodeError only where json is loaded
        __import__("json.decoder")
        return _c_scan(text, i)


class Raw:
    """Bytes that are JSON already: an echoed id, or base64 in its quotes."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Envelope:
    """One frame's members; what is large stays text until :meth:`value` is asked for it."""

    __slots__ = ("_spans", "_text", "id_text", "members")

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans: dict[str, tuple[int, int]] = {}
        self.members: dict[str, object] = {}
        self.id_text = ""

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def value(self, name: str) -> object:
        """The member, decoded now if it was left as text; None if it is missing.

        Raises: ValueError when the text is not JSON, or nested too deep.
        """
        span = self._spans.get(name)
        if span is None:
            return self.members.get(name)
        return decode(self._text[span[0] : span[1]])

    def read_members(self) -> int:
        """Scan the object that starts the text; the index behind it.

        Raises: ValueError, IndexError or StopIteration where the text stops being an
        object; the members before that place are kept.
        """
        text, i = self._text, _past_blank(self._text, 0)
        if text[i] != "{":
            raise ValueError("not an object")
        i = _past_blank(text, i + 1)
        if text[i] == "}":
            return i + 1
        while True:
            i = _past_blank(text, self._read_member(i))
            if text[i] == "}":
                return i + 1
            if text[i] != ",":
                raise ValueError("a comma is missing")
            i = _past_blank(text, i + 1)

    def _read_member(self, i: int) -> int:
        text = self._text
        if text[i] != '"':
            raise ValueError("a name is missing")
        name, i = _scan(text, i)
        i = _past_blank(text, i)
        if text[i] != ":":
            raise ValueError("a colon is missing")
        start = _past_blank(text, i + 1)
        value, end = self._read_value(str(name), start)
        self.members[str(name)] = value
        if name == "id":
            self.id_text = text[start:end]
        return end

    def _read_value(self, name: str, start: int) -> tuple[object, int]:
        text = self._text
        self._spans.pop(name, None)
        if len(text) <= LAZY_CHARS or text[start] not in "{[":
            try:
                return _scan(text, start)
            except RecursionError:
                pass
        end = _past_container(text, start)
        self._spans[name] = (start, end)
        return None, end


def split(line: bytes) -> Envelope:
    """The envelope of one line.

    Raises: InvalidMessage, -32700 for what is not JSON in UTF-8, -32600 for other JSON
    than an object.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidMessage(PARSE_ERROR, f"invalid UTF-8 at byte {exc.start}") from exc
    envelope = Envelope(text)
    try:
        if text[_past_blank(text, 0)] != "{":
            decode(text)
            raise InvalidMessage(INVALID_REQUEST, "a message is one JSON object")
        end = envelope.read_members()
    except (ValueError, IndexError, StopIteration) as exc:
        raise InvalidMessage(PARSE_ERROR, "invalid JSON") from exc
    if text[end:].strip(_BLANK):
        raise InvalidMessage(PARSE_ERROR, "more than one value on a line")
    return envelope


def peek(head: bytes) -> Envelope:
    """What can be read from the start of a line that can't be read whole."""
    envelope = Envelope(head.decode("utf-8", "replace"))
    try:  # noqa: SIM105 - contextlib is not imported otherwise, and costs start-up
        envelope.read_members()
    except (ValueError, IndexError, StopIteration):
        pass
    return envelope


def decode(text: str) -> object:
    """Any JSON value.

    Raises: ValueError, also for what is nested deeper than this interpreter can follow.
    The collector rests meanwhile: it makes many small objects three times as slow.
    """
    pause = len(text) > _LARGE and gc.isenabled()
    if pause:
        gc.disable()
    try:
        value, end = _scan(text, _past_blank(text, 0))
    except (StopIteration, IndexError) as exc:
        raise ValueError("not a JSON value") from exc
    except RecursionError as exc:
        raise ValueError("nested too deep") from exc
    finally:
        if pause:
            gc.enable()
    if text[end:].strip(_BLANK):
        raise ValueError("more than one value")
    return value


def encode(value: object) -> bytes:
    """One line without its newline.

    Text goes as UTF-8; with a lone surrogate in it, as ASCII escapes, which every decoder
    takes. Raises: TypeError for what JSON has no form for, NaN included.
    """
    try:
        return b"".join(_chunks(value, _quote))
    except UnicodeEncodeError:
        return b"".join(_chunks(value, _quote_ascii))


def _chunks(value: object, quote: Callable[[str], str]) -> list[bytes]:
    match value:
        case str():
            return [quote(value).encode()]
        case None | bool():
            return [b"null" if value is None else b"true" if value else b"false"]
        case int():
            return [b"%d" % value]
        case Raw():
            return [value.data]
        case float() if value - value == 0:
            return [repr(value).encode()]
        case dict():
            return _object(value, quote)  # pyright: ignore[reportUnknownArgumentType]
        case list() | tuple():
            return _array(value, quote)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            raise TypeError(f"{value!r} has no form in JSON")


def _object(value: dict[str, object], quote: Callable[[str], str]) -> list[bytes]:
    out: list[bytes] = []
    for name, member in value.items():
        out += (b"," if out else b"{", quote(name).encode(), b":")
        out += _chunks(member, quote)
    out.append(b"}" if out else b"{}")
    return out


def _array(value: list[object] | tuple[object, ...], quote: Callable[[str], str]) -> list[bytes]:
    out: list[bytes] = []
    for item in value:
        out.append(b"," if out else b"[")
        out += _chunks(item, quote)
    out.append(b"]" if out else b"[]")
    return out


def _past_blank(text: str, i: int) -> int:
    while text[i : i + 1] and text[i] in _BLANK:
        i += 1
    return i


def _past_container(text: str, start: int) -> int:
    """The index behind the object or array at ``start``, looking at brackets and strings alone."""
    import re  # only for large frames: 5 ms

    step = re.compile(r'[^"{}\[\]]*+(?:"(?:[^"\\]++|\\.)*+"[^"{}\[\]]*+)*+([{}\[\]])', re.S).match
    depth, i = 0, start
    while True:
        found = step(text, i)
        if found is None:
            raise ValueError("a bracket is not closed")
        i = found.end()
        depth += 1 if text[i - 1] in "{[" else -1
        if depth == 0:
            return i
