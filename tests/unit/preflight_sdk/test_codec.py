"""JSON on the wire: the same values as the standard library, and lazy where it is large."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight_sdk import codec
from preflight_sdk.codec import LAZY_CHARS, Raw, decode, encode, peek, split
from preflight_sdk.errors import InvalidMessage

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_what_is_encoded_means_the_same_to_the_standard_library(value: object) -> None:
    line = encode(value)
    assert b"\n" not in line
    line.decode("utf-8")
    assert json.loads(line) == value
    assert decode(line.decode()) == value


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_an_envelope_has_the_members_of_the_object(members: dict[str, object]) -> None:
    for text in (json.dumps(members), json.dumps(members, indent=1, ensure_ascii=False)):
        envelope = split(text.encode("utf-8", "backslashreplace").replace(b"\n", b" "))
        assert envelope.members == members


@given(st.dictionaries(st.sampled_from(["a", "id", "params"]), JSON, max_size=3))
def test_a_large_envelope_is_split_at_the_same_places(members: dict[str, object]) -> None:
    wrapped = {name: {"]}": [value, '"\\']} for name, value in members.items()}
    padding = " " * LAZY_CHARS
    envelope = split((json.dumps(wrapped)[:-1] + padding + "}").encode())
    assert {name: envelope.value(name) for name in members} == wrapped
    assert all(envelope.members[name] is None for name in members), "nothing was decoded"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        '{"a"',
        '{"a":',
        '{"a":1',
        '{"a":1,',
        "{]",
        '{"a" 1}',
        "{1:2}",
        '{"a":1 "b":2}',
        '{"a":"',
        "{}x",
        "nul",
        "[1",
        "-",
        "NaN",
    ],
)
def test_what_is_not_json_is_a_parse_error(text: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        split(text.encode())
    assert caught.value.code == -32700


def test_every_cut_of_a_frame_is_a_parse_error_without_the_json_module() -> None:
    # CPython 3.11's scanner raises SystemError there: only a process of its own can show it
    script = """
import sys
from preflight_sdk.codec import split, peek
from preflight_sdk.errors import InvalidMessage
assert "json" not in sys.modules
line = b'{"jsonrpc":"2.0","id":2,"params":{"a":["x",1.5,null,{"b":"\\\\u00e9"}]}}'
for end in range(1, len(line)):
    peek(line[:end])
    try:
        split(line[:end])
    except InvalidMessage as exc:
        assert exc.code == -32700
    else:
        raise SystemExit(f"accepted {line[:end]!r}")
"""
    plugins = Path(codec.__file__).parents[1]
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": str(plugins)})


def test_a_broken_container_in_a_large_frame_is_found_when_it_is_asked_for() -> None:
    envelope = split(b'{"id":7,"params":{"a":,}' + b" " * LAZY_CHARS + b"}")
    assert envelope.members["id"] == 7
    with pytest.raises(ValueError, match=r"."):
        envelope.value("params")


def test_an_id_is_kept_as_it_was_written() -> None:
    assert split(b'{"id" :  "\\u0041" }').id_text == '"\\u0041"'


def test_peek_finds_the_id_in_front_of_what_is_cut_off() -> None:
    seen = peek(b'{"jsonrpc":"2.0","id":12,"result":{"data":"AAAA')
    assert seen.members == {"jsonrpc": "2.0", "id": 12}
    assert peek(b"\xff").members == {}


@pytest.mark.parametrize("value", [math.nan, math.inf, object(), {1, 2}, b"x"])
def test_what_json_has_no_form_for_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        encode({"a": [value]})


def test_a_lone_surrogate_is_escaped_and_raw_bytes_pass() -> None:
    assert encode(["\ud800é", Raw(b'"AA=="')]) == b'["\\ud800\\u00e9","AA=="]'
    assert encode("é") == '"é"'.encode()


def test_the_collector_is_back_on_after_a_large_decode() -> None:
    import gc

    decode("[" + "1," * 600_000 + "1]")
    assert gc.isenabled()
    with pytest.raises(ValueError, match=r"."):
        decode("[" + "1," * 600_000)
    assert gc.isenabled()
