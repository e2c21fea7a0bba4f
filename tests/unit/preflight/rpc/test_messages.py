"""What one line says, whatever it says; reading never raises."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.rpc.messages import (
    INTERNAL_ERROR,
    Invalid,
    Notification,
    Request,
    Response,
    decode,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    look_in_head,
    parse,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)
members = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]), values
)


class Line(msgspec.Struct):
    line: str


@given(st.binary(max_size=60))
def test_no_bytes_make_it_raise(line: bytes) -> None:
    parse(line)
    look_in_head(line)


@given(members)
def test_no_object_makes_it_raise(said: dict[str, object]) -> None:
    message = parse(json.dumps(said).encode())
    id = said.get("id")
    usable = isinstance(id, int | str) and not isinstance(id, bool)
    if isinstance(message, Request):
        assert usable
        assert "method" in said
    elif isinstance(message, Response):
        assert usable
        assert "method" not in said
    elif isinstance(message, Notification):
        assert "id" not in said


@given(st.integers() | st.text(max_size=20), values)
def test_an_id_comes_back_as_it_came(id: int | str, params: object) -> None:
    said = {"jsonrpc": "2.0", "id": id, "method": "m", "params": params}
    message = parse(json.dumps(said).encode())
    if isinstance(id, str):
        id = id.encode("utf-8", "replace").decode()
    assert isinstance(message, Request)
    assert message.id == id
    assert type(message.id) is type(id)
    for answer in (encode_result(message.id, b"{}"), encode_error(message.id, 1, "no")):
        assert json.loads(answer)["id"] == id


@pytest.mark.parametrize(
    ("line", "reason", "refuse"),
    [
        (b'{"jsonrpc":"2.0"}', "neither a method nor an id", False),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', "the method is not a string", True),
        (b'{"jsonrpc":"2.0","id":1,"method":null}', "the method is not a string", True),
        (b'{"id":1,"method":"m"}', "no jsonrpc 2.0 member", True),
        (b'{"jsonrpc":"1.0","id":1,"method":"m"}', "no jsonrpc 2.0 member", True),
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', "an id must be", True),
        (b'{"jsonrpc":"2.0","id":null,"result":{}}', "without a usable id", False),
        (b'{"jsonrpc":"2.0","id":%b,"result":{}}' % (b"7" * 300), "without a usable id", False),
        (b'{"jsonrpc":"2.0","id":1,"method":"%b"}' % (b"m" * 300), "too long", True),
        (b"[]", "not a JSON object", True),
        (b"7", "not a JSON object", False),
    ],
)
def test_what_breaks_the_protocol(line: bytes, reason: str, refuse: bool) -> None:
    message = parse(line)
    assert isinstance(message, Invalid)
    assert reason in message.reason
    assert message.refuse is refuse


@pytest.mark.parametrize("line", [b"hello", b"", b"\xff", b"Loading: 5", b"nul"])
def test_what_is_no_json_was_printed(line: bytes) -> None:
    message = parse(line)
    assert isinstance(message, Invalid)
    assert not message.json
    assert message.answers is None


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        (b'{"id":2,', 2),
        (b'{"id":2,"result":{}} x', 2),
        (b'{"id":2,"result":' + b"[" * 5000 + b"]" * 5000 + b"}", 2),
        (b'{"result":{"id":9},"id":2,', 2),
        (b'{"method":"output","id":2,', None),
        (b'{"result":{"id":9', None),
        (b'{"id":true,', None),
        (b'{"id":abc,', None),
    ],
    ids=range(8),
)
def test_what_a_broken_line_seems_to_answer(line: bytes, answers: int | None) -> None:
    message = parse(line)
    assert isinstance(message, Invalid)
    assert message.json
    assert message.answers == answers


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (b'{"code":-1,"message":"no"}', (-1, "no")),
        (b'{"message":"no"}', (INTERNAL_ERROR, "no")),
        (b"{}", (INTERNAL_ERROR, "")),
        (b'"no"', (INTERNAL_ERROR, "an error that can't be read")),
        (b'{"code":"x"}', (INTERNAL_ERROR, "an error that can't be read")),
        (b'{"code":-1,"message":"no","data":' + b"[" * 900 + b"]" * 900 + b"}", (-1, "no")),
        (b"null", None),
    ],
)
def test_an_error_answer_is_read_leniently(error: bytes, expected: tuple[int, str] | None) -> None:
    message = parse(b'{"jsonrpc":"2.0","id":1,"result":null,"error":' + error + b"}")
    assert isinstance(message, Response)
    assert message.error == expected


@pytest.mark.parametrize("result", [b"", b',"result":null', b',"result":{}'])
def test_a_result_that_is_missing_or_null_is_an_empty_one(result: bytes) -> None:
    message = parse(b'{"jsonrpc":"2.0","id":1%b}' % result)
    assert isinstance(message, Response)
    assert bytes(message.result) == b"{}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"line":"a\\ud800b"}', "a?b"),
        (b'{"line":"a\xffb"}', "a\ufffdb"),
        (b'{"line":"a\x01b"}', "a\x01b"),
        (b'{"line":"x","other":NaN,"more":[1.5,{"a":Infinity}]}', "x"),
    ],
)
def test_text_of_other_people_is_mended(text: bytes, expected: str) -> None:
    assert decode(msgspec.Raw(text), Line).line == expected
    message = parse(b'{"jsonrpc":"2.0","method":"output","params":%b}' % text)
    assert isinstance(message, Notification)
    assert decode(message.params, Line).line == expected


@pytest.mark.parametrize(
    "text",
    [b"{}", b'{"line":7}', b"[]", b"{", b'{"line":"\\ud800","x":', b"[" * 5000, b""],
    ids=range(7),
)
def test_what_can_not_be_read_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the words are the library's
        decode(text, Line)


def test_deep_nesting_is_a_value_error() -> None:
    deep = b'{"line":"x","y":' + b"[" * 5000 + b"]" * 5000 + b"}"
    with pytest.raises(ValueError):  # noqa: PT011  # the words are the library's
        decode(deep, Line)


@given(st.dictionaries(st.text(max_size=5), values, max_size=4), st.integers(0, 80))
def test_only_the_lines_own_members_are_found_in_its_head(
    inner: dict[str, object], at: int
) -> None:
    said = {"a": inner, "b": [inner], "method": "put_file", "id": 17, "params": inner}
    whole = json.dumps(said).encode()
    assert look_in_head(whole) == ("put_file", 17)
    method, id = look_in_head(whole[: len(whole) - at])
    assert method in ("put_file", "")
    assert id in (17, None)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b'{"id":"a\\"b","method":"x/y-2"', ("x/y-2", 'a"b')),
        (b'{ "id" : 7 , "method" : "m" ,', ("m", 7)),
        (b'{"id":7,"id":8,"method":"m","method":"n",', ("m", 7)),
        (b'{"method":{"id":1},"id":2,', ("", 2)),
        (b'{"id":{"method":"m"},"x":1', ("", None)),
        (b"]]]}}}", ("", None)),
        (b'{"method":"' + b"m" * 30, ("", None)),
        (b'{"id":1', ("", None)),
        (b'{"id":12,', ("", 12)),
        (b'{"id":1}', ("", 1)),
    ],
)
def test_heads(head: bytes, expected: tuple[str, object]) -> None:
    assert look_in_head(head) == expected


def test_what_is_sent_is_one_line_of_strict_json() -> None:
    def refuse(name: str) -> float:
        raise AssertionError(name)

    for frame in (
        encode_request(1, "check", b'{"args":{}}'),
        encode_notification("cancel", b'{"id":1}'),
        encode_result("a\nb", b"null"),
        encode_error(None, -32700, "a\nb"),
    ):
        assert b"\n" not in frame
        assert json.loads(frame, parse_constant=refuse)["jsonrpc"] == "2.0"


def test_a_float_that_is_out_of_range_is_quoted_by_nobody_as_a_number() -> None:
    with pytest.raises(ValueError, match="out of range"):
        decode(b'{"line":1e400}', dict[str, object])
    assert decode(b'{"line":"\xff","x":NaN}', dict[str, object])["x"] is None
