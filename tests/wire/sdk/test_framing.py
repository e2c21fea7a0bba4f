"""Lines, encodings and everything that is not a frame."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_host import C2, I1
from tests.wire.sdk.test_handshake import MARKER, error_of

if TYPE_CHECKING:
    from tests.wire.sdk.conftest import Spawn

R2 = {"jsonrpc": "2.0", "id": 2, "result": {"needs_change": False}}
ECHO = "return CheckResult(False, args['text'])"


def test_two_frames_in_one_write_and_one_frame_in_three(spawn: Spawn) -> None:  # P27
    host = spawn()
    host.send(C2 + C2.replace(b'"id":2', b'"id":3'))
    assert [host.frame()["id"], host.frame()["id"]] == [2, 3]
    for piece in (C2[:10], C2[10:50], C2[50:]):
        host.send(piece)
    assert host.frame() == R2


def test_a_frame_byte_by_byte(spawn: Spawn) -> None:  # P2
    host = spawn(initialize=False)
    for byte in I1 + b"":
        host.send(bytes([byte]))
    assert host.frame()["id"] == 1


def test_crlf_blank_lines_and_a_byte_order_mark(spawn: Spawn) -> None:  # P28 P29
    host = spawn(initialize=False)
    host.send(b"\xef\xbb\xbf" + I1)
    assert "result" in host.frame()
    host.send(b"\n   \n\t\r\n\r\n" + C2.replace(b"\n", b"\r\n"))
    assert host.frame() == R2
    assert host.fence() == []


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":2,',
        b"Loading model...",
        b'{"jsonrpc":"2.0","id":2,"method":"check"} {}',
        b'{"jsonrpc":"2.0","id":2,"method":"check","params":{"args":{"x":NaN}}}',
        b'{"jsonrpc":"2.0","id":2,"method":"check","params":{"args":{"x":"\xff\xfe"}}}',
        b'{"jsonrpc":"2.0" "id":2}',
        b"[1,",
        b"\x00",
    ],
)
def test_what_is_not_json_is_answered_without_an_id_and_the_next_frame_is_fine(
    spawn: Spawn, line: bytes
) -> None:  # P30 P33 P37
    host = spawn()
    host.send(line + b"\n" + C2)
    first, second = sorted((host.frame(), host.frame()), key=lambda f: "result" in f)
    assert first["id"] is None
    assert error_of(first)[0] == -32700
    assert second == R2
    host.err.wait_for(b"protocol violation by the host")


@pytest.mark.parametrize(
    "line", [b"[]", b"42", b"null", b'"x"', b"[" + C2.strip() + b"," + C2.strip() + b"]", b"{}"]
)
def test_json_that_is_no_request_gets_one_invalid_request(spawn: Spawn, line: bytes) -> None:
    # P34 P35
    host = spawn()
    host.send(line + b"\n")
    frames = host.fence()
    assert [(f["id"], error_of(f)[0]) for f in frames] == [(None, -32600)]


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":2,"method":"check"}',
        b'{"jsonrpc":"1.0","id":2,"method":"check"}',
        b'{"jsonrpc":2.0,"id":2,"method":"check"}',
        b'{"jsonrpc":"2.0","id":2,"method":7}',
    ],
)
def test_a_request_without_its_version_or_method_is_invalid(spawn: Spawn, line: bytes) -> None:
    # P36
    host = spawn()
    host.send(line + b"\n")
    (frame,) = host.fence()
    assert (frame["id"], error_of(frame)[0]) == (2, -32600)


@pytest.mark.parametrize("params", [b"[]", b"7", b'{"args":[]}', b'{"args":"x"}'])
def test_params_and_args_that_are_no_objects_are_invalid(spawn: Spawn, params: bytes) -> None:
    host = spawn()
    host.send(b'{"jsonrpc":"2.0","id":2,"method":"check","params":' + params + b"}\n")
    frame = host.frame()
    assert (frame["id"], error_of(frame)[0]) == (2, -32602)


@pytest.mark.parametrize(
    "params", [b"", b',"params":null', b',"params":{}', b',"params":{"args":null}']
)
def test_missing_and_null_args_are_an_empty_object(spawn: Spawn, params: bytes) -> None:
    host = spawn("return CheckResult(args == {})")
    host.send(b'{"jsonrpc":"2.0","id":2,"method":"check"' + params + b"}\n")
    assert host.frame()["result"] == {"needs_change": True}


def test_a_character_split_between_two_writes_is_whole(spawn: Spawn) -> None:  # P38
    host = spawn(ECHO)
    line = '{"jsonrpc":"2.0","id":2,"method":"check","params":{"args":{"text":"é€😀"}}}\n'.encode()
    for cut in range(line.index("é".encode()), line.index(b'"}}')):
        host.send(line[:cut])

        host.send(line[cut:])
        assert host.frame()["result"] == {"needs_change": False, "message": "é€😀"}


@pytest.mark.parametrize(
    "text", ["\ud800", "a\udfffb", "\u2028", "\x00", "\x1b[2J", "\ufeff", '"\\']
)
def test_odd_characters_come_back_as_they_went(spawn: Spawn, text: str) -> None:  # P39 P40
    host = spawn("handle.output(args['text'] + '.'); " + ECHO)
    host.check(text=text)
    assert host.frame()["params"] == {"line": text + "."}
    last = host.until_answer(2)[-1]
    assert last["result"] == {"needs_change": False, "message": text}


def test_of_a_member_given_twice_the_last_counts(spawn: Spawn) -> None:  # P43
    host = spawn()
    host.send(b'{"jsonrpc":"2.0","id":2,"id":3,"method":"apply","method":"check"}\n')
    assert host.frame() == {**R2, "id": 3}


def test_a_last_line_without_a_newline_is_a_frame(plugin_env: dict[str, str]) -> None:  # P52
    done = subprocess.run(
        [sys.executable, str(MARKER)],
        input=I1.rstrip(),
        capture_output=True,
        env=plugin_env,
        timeout=10,
        check=False,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["result"]["name"] == "marker_file"


@pytest.mark.parametrize("rest", [b"", b',"result":null', b',"result":{}'])
def test_a_missing_or_null_result_is_an_empty_one(spawn: Spawn, rest: bytes) -> None:  # P86
    host = spawn(
        "handle.put_file('/x', b'1'); return CheckResult(True, handle.get_file('/x').hex())"
    )
    host.check()
    for expected in ("put_file", "get_file"):
        op = host.frame()
        assert op["method"] == expected
        host.send(b'{"jsonrpc":"2.0","id":%d' % int(str(op["id"])) + rest + b"}\n")
    assert host.frame()["result"] == {"needs_change": True}


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ([], "not an object"),
        ({"exit_code": "0"}, "exit_code '0' is no integer"),
        ({"stdout": 7}, "stdout in the host's answer is no string"),
    ],
)
def test_a_result_of_the_wrong_shape_fails_the_op_alone(
    spawn: Spawn, result: object, words: str
) -> None:
    host = spawn("handle.run_command('true')")
    host.check()
    host.answer(host.frame(), result)
    assert words in str(host.frame()["result"])


def test_an_answer_that_cannot_be_read_fails_its_op_instead_of_hanging_it(spawn: Spawn) -> None:
    host = spawn("handle.run_command('true')")
    for tail in (b'"result":{"stdout":"\xff"}}', b'"result":{"stdout":}', b'"result":'):
        host.check()
        op = host.frame()
        host.send(b'{"jsonrpc":"2.0","id":%d,' % int(str(op["id"])) + tail + b"\n")
        assert "can't be read" in str(host.frame()["result"])


def test_an_error_answer_becomes_the_tasks_error(spawn: Spawn) -> None:
    host = spawn("handle.run_command('true')")
    host.check()
    op = host.frame()
    error = {"code": -32000, "message": "ssh: connection lost"}
    host.send(json.dumps({"jsonrpc": "2.0", "id": op["id"], "error": error}).encode() + b"\n")
    assert host.frame()["result"] == {"needs_change": False, "error": "ssh: connection lost"}


def test_deep_nesting_is_refused_with_the_requests_own_id(spawn: Spawn) -> None:
    host = spawn()
    deep = b"[" * 30_000 + b"]" * 30_000
    host.send(b'{"jsonrpc":"2.0","method":"check","params":{"args":{"x":' + deep + b'}},"id":2}\n')
    frame = host.frame()
    assert (frame["id"], error_of(frame)[0]) == (2, -32602)


def test_garbage_is_counted_but_only_the_first_of_it_is_shown(spawn: Spawn) -> None:  # P83
    host = spawn()
    host.send(b"x" * 1000 + b"\n")
    host.send(b"y\n" * 100)
    assert len(host.fence()) == 101
    host.close_stdin()
    shown = host.err.wait_end()
    assert shown.count(b"protocol violation") == 20
    assert b"no more of these" in shown
    assert b"x" * 200 in shown
    assert b"x" * 201 not in shown
