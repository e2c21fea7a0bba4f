"""Two id spaces, echoed and kept apart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_host import C2
from tests.wire.sdk.test_handshake import error_of

if TYPE_CHECKING:
    from tests.wire.sdk.conftest import Spawn


@pytest.mark.parametrize(
    "key",
    [
        b"0",
        b'""',
        b'"abc"',
        b"-1",
        b"-0",
        b"9007199254740993",
        b"123456789012345678901234567890",
        '"é"'.encode(),
        b'"\\u00e9\\ud800"',
        b'"a\\/b\\""',
    ],
)
def test_an_integer_or_string_id_comes_back_byte_for_byte(spawn: Spawn, key: bytes) -> None:  # P80
    host = spawn()
    host.send(b'{"jsonrpc":"2.0", "id" : ' + key + b' ,"method":"check"}\n')
    assert host.out.line() == b'{"jsonrpc":"2.0","id":' + key + b',"result":{"needs_change":false}}'
    host.send(b'{"jsonrpc":"2.0","method":"nope","id":' + key + b"}\n")
    assert host.out.line().startswith(b'{"jsonrpc":"2.0","id":' + key + b',"error":{"code":-32601,')


@pytest.mark.parametrize("key", [b"1.0", b"1.5", b"true", b"null", b"{}", b"[1]", b"1e2"])
def test_any_other_id_is_refused_without_one(spawn: Spawn, key: bytes) -> None:  # P80
    host = spawn()
    host.send(b'{"jsonrpc":"2.0","id":' + key + b',"method":"check"}\n')
    (frame,) = host.fence()
    assert (frame["id"], error_of(frame)[0]) == (None, -32600)


def test_a_duplicate_id_in_flight_is_refused_and_the_first_call_goes_on(spawn: Spawn) -> None:
    # P81
    host = spawn("handle.run_command('true')")
    host.send(C2)
    op = host.frame()
    host.send(C2)
    (second,) = host.fence()
    assert (second["id"], error_of(second)) == (2, (-32600, "this id is in flight already"))
    host.ran(op)
    assert "result" in host.frame()
    host.send(C2)
    host.ran(host.frame())
    assert "result" in host.frame()


def test_the_number_2_and_the_text_2_are_two_ids(spawn: Spawn) -> None:  # P80
    host = spawn("handle.output('running'); ctx.wait(20); ctx.raise_if_cancelled()")
    host.check(2)
    host.frame()
    host.check("2")
    host.cancel("2")
    assert host.frame()["id"] == "2"
    host.cancel(2)
    assert host.frame()["id"] == 2


def test_our_ids_are_integers_from_1_and_do_not_mix_with_the_hosts(spawn: Spawn) -> None:  # P79
    host = spawn("for n in range(3): handle.output(handle.run_command(f's{n}').stdout)")
    host.check(2)
    for expected in (1, 2, 3):
        op = host.frame()
        assert (op["id"], op["method"]) == (expected, "run_command")
        host.cancel(99)
        host.send(b'{"jsonrpc":"2.0","id":%d,"method":"nope"}\n' % expected)
        assert error_of(host.frame())[0] == -32601
        host.ran(op, f"o{expected}")
        assert host.frame()["params"] == {"line": f"o{expected}"}
    assert host.frame() == {"jsonrpc": "2.0", "id": 2, "result": {"needs_change": False}}


@pytest.mark.parametrize("key", ["7", 7, None, True, 1.0, "1", [1]])
def test_a_response_to_nothing_resolves_nothing(spawn: Spawn, key: object) -> None:  # P83
    host = spawn("return CheckResult(False, handle.run_command('true').stdout)")
    host.check()
    op = host.frame()
    stray = {"jsonrpc": "2.0", "id": key, "result": {"stdout": "stray", "exit_code": 0}}
    host.send(json.dumps(stray).encode() + b"\n")
    host.ran(op, "right")
    host.ran(op, "twice")
    assert host.frame()["result"] == {"needs_change": False, "message": "right"}
    host.err.wait_for(b"a response to nothing that was asked")


def test_an_unknown_method_is_refused_by_name(spawn: Spawn) -> None:  # P88
    host = spawn()
    host.request("a", "rm_rf")
    host.request("b", "cancel", {"id": 2})
    host.request("c", "x" * 500)
    first, second, third = host.fence()
    assert (first["id"], error_of(first)) == ("a", (-32601, 'method "rm_rf" is not known'))
    assert error_of(second)[0] == -32601
    assert len(error_of(third)[1]) < 150


def test_one_op_is_in_flight_and_the_others_wait(spawn: Spawn) -> None:  # P89
    body = """
    threads = [threading.Thread(target=handle.run_command, args=("s",)) for _ in range(4)]
    for thread in threads: thread.start()
    gate()
    handle.output("all started")
    for thread in threads: thread.join()
    """
    host = spawn(body)
    host.check()
    op = host.frame()
    host.open_gate()
    assert host.frame()["params"] == {"line": "all started"}
    for _ in range(3):
        assert host.fence() == []
        host.ran(op)
        op = host.frame()
        assert op["method"] == "run_command"
    assert host.fence() == []
    host.ran(op)
    assert "result" in host.frame()


def test_an_op_still_queued_is_cancelled_without_a_byte(spawn: Spawn) -> None:  # P89
    body = """
    ended = threading.Event()
    def second():
        gate()
        try:
            handle.run_command("second")
        except Cancelled:
            ended.set()
    threading.Thread(target=second).start()
    try:
        handle.run_command("first")
    finally:
        handle.output(str(ended.wait(5)))
    """
    host = spawn(body)
    host.check()
    op = host.frame()
    host.open_gate()
    assert host.fence() == []
    host.cancel()
    assert host.frame() == {"jsonrpc": "2.0", "method": "cancel", "params": {"id": op["id"]}}
    assert host.frame()["params"] == {"line": "True"}
    assert error_of(host.frame())[0] == -32800


def test_a_handle_is_closed_when_its_call_was_answered(spawn: Spawn) -> None:
    body = """
    if not kept:
        kept.append(handle)
        return CheckResult(False)
    errors = []
    for op in (lambda: kept[0].output("late"), lambda: kept[0].run_command("late")):
        try:
            op()
        except HandleError as exc:
            errors.append(str(exc))
    return CheckResult(False, repr(errors))
    """
    host = spawn(body, top="kept = []")
    host.check()
    assert host.frame()["result"] == {"needs_change": False}
    host.check(3)
    frame = host.frame()
    assert frame["id"] == 3
    assert str(frame["result"]).count("its handle is closed") == 2


def test_an_op_of_a_thread_left_behind_does_not_keep_the_next_call_waiting(spawn: Spawn) -> None:
    # P89
    body = """
    if args.get("leave"):
        threading.Thread(target=lambda: handle.run_command("left"), daemon=True).start()
        gate()
    else:
        handle.run_command("next")
    """
    host = spawn(body)
    host.check(2, leave=True)
    left = host.frame()
    host.open_gate()
    frames = [host.frame(), host.frame()]
    assert sorted(f.get("method", "answer") == "cancel" for f in frames) == [False, True]
    host.check(3)
    op = host.frame()
    assert op["params"] == {"script": "next"}
    host.ran(left)
    host.ran(op)
    assert host.frame() == {"jsonrpc": "2.0", "id": 3, "result": {"needs_change": False}}
