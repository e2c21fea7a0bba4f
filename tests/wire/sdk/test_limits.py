"""`max_message_bytes`, both ways, and large messages that fit."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_host import C2, Frame
from tests.wire.sdk.test_handshake import error_of, initialize

if TYPE_CHECKING:
    from tests.support.fake_host import FakeHost
    from tests.wire.sdk.conftest import Spawn

MIB = 1 << 20
SMALL = "max_message_bytes=1024 * 1024"
SIZE = "return CheckResult(False, str(len(args['text'])))"


def check_of_size(size: int) -> bytes:
    """A check whose line is exactly so long, without its newline."""
    head, tail = b'{"jsonrpc":"2.0","id":2,"method":"check","params":{"args":{"text":"', b'"}}}'
    return head + b"x" * (size - len(head) - len(tail)) + tail + b"\n"


@pytest.mark.parametrize("piece", [2 * MIB, 64 * 1024, 1000])
def test_the_limit_is_the_same_however_the_bytes_come(spawn: Spawn, piece: int) -> None:  # P44
    host = spawn(SIZE, options=SMALL)
    for size, fits in ((MIB - 1, True), (MIB, True), (MIB + 1, False)):
        line = check_of_size(size)
        for start in range(0, len(line), piece):
            host.send(line[start : start + piece])
        frame = host.frame()
        assert frame["id"] == 2
        assert ("result" in frame) is fits
        if not fits:
            code, message = error_of(frame)
            assert code == -32020
            assert f"check: a message of {size} bytes is over the limit of {MIB} bytes" in message
            assert "max_message_bytes" in message


def test_an_oversize_line_is_dropped_as_it_streams(spawn: Spawn) -> None:  # P46 P48
    host = spawn(options=SMALL)
    host.send(C2)
    host.frame()
    before = host.rss_kib()
    host.send(C2.replace(b'"id":2', b'"id":3') + check_of_size(48 * MIB)[:-1])
    assert host.frame()["id"] == 3
    assert host.rss_kib() - before < 3 * 1024
    host.send(b"\n" + C2.replace(b'"id":2', b'"id":4'))
    frames = {f["id"]: f for f in (host.frame(), host.frame())}
    assert error_of(frames[2])[0] == -32020
    assert "result" in frames[4]


def test_an_oversize_request_whose_id_is_out_of_sight_is_answered_without_one(
    spawn: Spawn,
) -> None:
    host = spawn(options=SMALL)
    host.send(b'{"method":"check","params":{"args":{"x":"' + b"x" * MIB + b'"}},"id":2}\n')
    (frame,) = host.fence()
    assert (frame["id"], error_of(frame)[0]) == (None, -32020)


@pytest.mark.parametrize(
    "head", [b'{"jsonrpc":"2.0","id":%d,"result":{"data":"', b'{"result":{"data":"']
)
def test_an_oversize_answer_fails_its_op_and_the_session_goes_on(spawn: Spawn, head: bytes) -> None:
    # P46
    host = spawn("handle.get_file('/big')", options=SMALL)
    host.check()
    op = host.frame()
    start = head % op["id"] if b"%d" in head else head
    host.send(start + b"A" * (2 * MIB) + b'"},"id":%d}\n' % int(str(op["id"])))
    error = str(host.frame()["result"])
    assert "over the limit of 1048576 bytes (about 0.7 MiB of file)" in error
    host.check(3)
    host.answer(host.frame(), {"data": ""})
    assert host.frame()["result"] == {"needs_change": False}


def test_an_oversize_result_is_replaced_by_an_error(spawn: Spawn) -> None:  # P50
    host = spawn("return CheckResult(True, 'x' * args['n'])")
    host.check(n=65 * MIB)
    code, message = error_of(host.frame())
    assert code == -32020
    assert message.startswith("check result: a message of 681")
    assert "67108864 bytes (about 47.9 MiB of file)" in message
    host.check(3, n=1)
    assert "result" in host.frame()


def limited(spawn: Spawn, check: str, **params: object) -> FakeHost:
    host = spawn(check, initialize=False)
    host.initialize(initialize(protocol_version=2, min_protocol_version=2, **params))
    return host


def test_the_peers_stated_limit_is_kept_to_the_byte(spawn: Spawn) -> None:  # P44
    host = limited(spawn, "return CheckResult(True, 'x' * args['n'])", max_message_bytes=8192)
    host.check(n=0)
    empty = len(host.out.line()) + len(b',"message":""')
    for n, fits in ((8191 - empty, True), (8192 - empty, True), (8193 - empty, False)):
        host.check(n=n)
        frame = host.frame()
        assert ("result" in frame) is fits, frame
    assert error_of(frame)[1].startswith("check result: a message of 8193 bytes")


def test_an_oversize_op_is_refused_before_a_byte_is_written(spawn: Spawn) -> None:  # P49
    body = """
    try:
        handle.put_file("/x", b"1" * 9000)
    except MessageTooLarge as exc:
        handle.output(f"{exc.code} {exc}")
    handle.put_file("/x", b"2")
    """
    host = limited(spawn, body, max_message_bytes=8192)
    host.check()
    line = str(host.frame()["params"])
    assert "-32020 put_file: a message of" in line
    op = host.frame()
    assert op["params"] == {"path": "/x", "data": base64.b64encode(b"2").decode()}


@pytest.mark.parametrize("stated", [None, "8192", -1, 0, 3.5, True])
def test_a_limit_that_is_none_means_64_mib(spawn: Spawn, stated: object) -> None:
    host = limited(spawn, "return CheckResult(True, 'x' * 100_000)", max_message_bytes=stated)
    host.check()
    assert "result" in host.frame()


def test_a_tiny_stated_limit_leaves_room_for_an_error(spawn: Spawn) -> None:
    host = limited(spawn, "return CheckResult(True, 'x' * 5000)", max_message_bytes=1)
    host.check()
    assert error_of(host.frame())[0] == -32020


def test_32_mib_both_ways_at_once(spawn: Spawn) -> None:  # P51
    text = "x" * MIB
    host = spawn(
        f"for n in range(32): handle.output('o' * {MIB})\nreturn CheckResult(False, str(len(args)))"
    )
    args = {f"k{n}": text for n in range(32)}
    host.check(2)
    host.send(
        json.dumps(
            {"jsonrpc": "2.0", "id": 3, "method": "check", "params": {"args": args}}
        ).encode()
        + b"\n"
    )
    frames: list[Frame] = host.until_answer(2)
    assert len(frames) == 33
    last = host.until_answer(3)[-1]
    assert last["result"] == {"needs_change": False, "message": "32"}


def test_a_large_frame_of_small_objects_does_not_keep_its_cancel_waiting(spawn: Spawn) -> None:
    # P73: the reader looks at the envelope alone, so a call cancelled in the queue is never decoded
    host = spawn("time.sleep(0) if ctx.wait(20) else None")
    items = b",".join([b'{"a":[1,"]}"],"b":{"c":null}}'] * 200_000)
    host.check(2)
    host.send(
        b'{"jsonrpc":"2.0","id":3,"method":"check","params":{"args":{"items":[' + items + b"]}}}\n"
    )
    host.cancel(3)
    frame = host.frame()
    assert frame["id"] == 3
    assert error_of(frame)[0] == -32800
    host.cancel(2)
    assert host.frame()["id"] == 2
    host.send(
        b'{"jsonrpc":"2.0","id":4,"method":"apply","params":{"args":{"items":[' + items + b"]}}}\n"
    )
    assert host.frame()["result"] == {"message": "applied"}
