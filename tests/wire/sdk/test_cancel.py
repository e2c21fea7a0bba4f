"""A cancel that arrives: whatever the handler is doing, one answer, and no more."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_host import C2, X2
from tests.wire.sdk.test_handshake import error_of

if TYPE_CHECKING:
    from tests.support.fake_host import FakeHost
    from tests.wire.sdk.conftest import Spawn

CANCELLED = -32800


def running(host: FakeHost, key: object = 2, method: str = "check") -> None:
    """Start a call, and wait for the line its handler begins with."""
    host.request(key, method)
    assert host.frame()["params"] == {"line": "running"}


def assert_cancelled(host: FakeHost, key: object = 2, words: str = "was cancelled") -> None:
    frame = host.frame()
    assert (frame["id"], error_of(frame)[0]) == (key, CANCELLED)
    assert words in error_of(frame)[1]


def test_a_cancel_reaches_a_handler_that_waits(spawn: Spawn) -> None:
    host = spawn("handle.output('running'); ctx.wait(20); ctx.raise_if_cancelled()")
    running(host)
    started = time.monotonic()
    host.cancel()
    assert_cancelled(host)
    assert time.monotonic() - started < 1
    assert host.fence() == []


def test_a_cancel_behind_its_request_in_the_same_write_is_never_lost(spawn: Spawn) -> None:
    host = spawn("ctx.wait(20); ctx.raise_if_cancelled()")
    for _ in range(50):
        host.send(C2 + X2)
        assert_cancelled(host)
    assert host.fence() == []


def test_a_cancel_behind_the_answer_is_ignored_and_the_id_is_free_again(spawn: Spawn) -> None:
    # P65
    host = spawn()
    for _ in range(20):
        host.send(C2)
        assert "result" in host.frame()
        host.send(X2)
    assert host.fence() == []


@pytest.mark.parametrize(
    "params",
    [
        b'{"id":99}',
        b'{"id":"2"}',
        b'{"id":null}',
        b"{}",
        b'{"id":true}',
        b'{"id":2.0}',
        b"[2]",
        b"7",
    ],
)
def test_a_cancel_of_nothing_changes_nothing_and_is_not_logged(spawn: Spawn, params: bytes) -> None:
    # P66
    host = spawn("handle.output('running'); handle.run_command('true')")
    running(host)
    op = host.frame()
    cancel = b'{"jsonrpc":"2.0","method":"cancel","params":' + params + b"}\n"
    host.send(cancel + cancel + b'{"jsonrpc":"2.0","method":"cancel"}\n')
    host.ran(op)
    assert "result" in host.frame()
    host.close_stdin()
    assert host.err.wait_end() == b""


def test_the_same_cancel_twice_is_one_cancel(spawn: Spawn) -> None:  # P66
    host = spawn("handle.output('running'); ctx.wait(20); ctx.raise_if_cancelled()")
    running(host)
    host.send(X2 * 2)
    assert_cancelled(host)
    assert host.fence() == []


def test_a_cancel_inside_run_command_sends_our_own_cancel_once(spawn: Spawn) -> None:  # P71
    host = spawn("handle.output('running'); handle.run_command('sleep 30')")
    running(host)
    op = host.frame()
    host.cancel()
    assert host.frame() == {"jsonrpc": "2.0", "method": "cancel", "params": {"id": op["id"]}}
    assert_cancelled(host)
    host.ran(op, "late")  # dropped, without a trace in the next call
    running(host, 3)
    following = host.frame()
    assert following["id"] == 2
    host.ran(following)
    assert host.frame() == {"jsonrpc": "2.0", "id": 3, "result": {"needs_change": False}}
    host.close_stdin()
    assert host.err.wait_end() == b""


def test_an_answer_that_came_before_the_cancel_counts(spawn: Spawn) -> None:
    body = """
    handle.output('running')
    try:
        handle.output(handle.run_command('true').stdout)
    finally:
        gate()
    """
    host = spawn(body)
    running(host)
    host.ran(host.frame(), "came first")
    assert host.frame()["params"] == {"line": "came first"}
    host.cancel()
    host.fence()
    host.open_gate()
    assert_cancelled(host, words="was cancelled, but ran to its end all the same")


def test_an_op_that_times_out_is_cancelled_once_and_its_late_answer_dropped(spawn: Spawn) -> None:
    # P72
    body = """
    try:
        handle.run_command('sleep 30', timeout=0.05)
    except OpTimeout as exc:
        handle.output(str(exc))
    handle.output(handle.run_command('second').stdout)
    """
    host = spawn(body)
    host.check()
    op = host.frame()
    assert host.frame() == {"jsonrpc": "2.0", "method": "cancel", "params": {"id": op["id"]}}
    assert host.frame()["params"] == {"line": "run_command timed out and was cancelled"}
    second = host.frame()
    host.ran(op, "late")
    host.ran(second, "in time")
    assert host.frame()["params"] == {"line": "in time"}
    assert "result" in host.frame()
    host.close_stdin()
    assert host.err.wait_end() == b""


def test_a_handler_that_raises_in_the_moment_of_its_cancel_is_answered_once(spawn: Spawn) -> None:
    # P73
    host = spawn("handle.output('running'); ctx.wait(20); raise RuntimeError('lock not released')")
    running(host)
    host.cancel()
    assert_cancelled(host, words="then failed: RuntimeError: lock not released")
    assert host.fence() == []


def test_many_races_of_answer_and_cancel_give_exactly_one_answer_each(spawn: Spawn) -> None:  # P73
    host = spawn("raise ValueError('at once')")
    keys = range(2, 202)
    for key in keys:
        host.check(key)
        host.cancel(key)
    host.check(1000)
    answers = [frame["id"] for frame in host.until_answer(1000)] + [f["id"] for f in host.fence()]
    assert sorted(key for key in answers if isinstance(key, int)) == [*keys, 1000]


def test_a_busy_handler_sees_the_flag(spawn: Spawn) -> None:  # P74
    host = spawn(
        "handle.output('running')\nwhile not ctx.cancelled: pass\nctx.raise_if_cancelled()"
    )
    running(host)
    host.cancel()
    assert_cancelled(host)


def test_a_stubborn_handler_is_answered_as_cancelled_when_it_ends(spawn: Spawn) -> None:  # P69 P74
    host = spawn(apply="handle.output('running'); time.sleep(0.3)")
    running(host, 2, "apply")
    host.cancel()
    assert_cancelled(host, words="apply was cancelled, but ran to its end all the same")
    host.check(3)
    assert "result" in host.frame()


def test_clean_up_runs_in_the_grace_window_and_its_lines_are_seen(spawn: Spawn) -> None:  # P75
    body = """
    try:
        handle.output('running')
        handle.run_command('sleep 30')
    finally:
        time.sleep(0.2)
        open('marker', 'w').close()
        handle.output('cleaned up')
    """
    host = spawn(body)
    running(host)
    host.frame()
    host.cancel()
    host.frame()
    assert host.frame()["params"] == {"line": "cleaned up"}
    assert_cancelled(host)


def test_an_except_exception_does_not_swallow_the_cancel(spawn: Spawn) -> None:
    body = """
    handle.output('running')
    try:
        handle.run_command('sleep 30')
    except Exception:
        handle.output('swallowed')
    """
    host = spawn(body)
    running(host)
    host.frame()
    host.cancel()
    assert host.frame()["method"] == "cancel"
    assert_cancelled(host)


def test_every_op_after_a_cancel_raises_and_sends_nothing(spawn: Spawn) -> None:  # P63
    body = """
    handle.output('running'); ctx.wait(20)
    for op in (lambda: handle.run_command('x'), lambda: handle.put_file('/x', b''),
               lambda: handle.get_file('/x')):
        try:
            op()
        except Cancelled:
            handle.output('refused')
    """
    host = spawn(body)
    running(host)
    host.cancel()
    assert [host.frame()["params"] for _ in range(3)] == [{"line": "refused"}] * 3
    assert_cancelled(host)


def test_a_clean_up_script_is_sent_though_the_call_was_cancelled(spawn: Spawn) -> None:
    body = """
    handle.output('running'); ctx.wait(20)
    handle.output(str(handle.run_cleanup('rm -f /x')))
    """
    host = spawn(body)
    for key, answered in ((2, True), (3, False)):
        running(host, key)
        host.cancel(key)
        op = host.frame()
        assert op["params"] == {"script": "rm -f /x"}
        host.ran(op, exit_code=0 if answered else 1)
        assert host.frame()["params"] == {"line": str(answered)}
        assert_cancelled(host, key)


def test_ten_thousand_cancels_cost_no_memory(spawn: Spawn) -> None:  # P76
    host = spawn()
    host.send(X2 * 1000)
    host.fence()
    before = host.rss_kib()
    host.send(b"".join(X2.replace(b"2}", b"%d}" % n) for n in range(10_000)))
    assert host.fence() == []
    assert host.rss_kib() - before < 1024


def test_a_call_cancelled_in_the_queue_is_answered_at_once_and_never_starts(spawn: Spawn) -> None:
    # P77
    host = spawn(
        "handle.output('running'); ctx.wait(20); ctx.raise_if_cancelled()",
        "handle.output('applied')",
    )
    running(host)
    host.request(3, "apply")
    host.cancel(3)
    assert_cancelled(host, 3, "apply was cancelled in the queue")
    host.cancel(2)
    assert_cancelled(host, 2)
    assert host.fence() == []


def test_output_raises_in_a_loop_that_never_looks(spawn: Spawn) -> None:  # P59
    host = spawn("handle.output('running')\nwhile True: handle.output('x')")
    running(host)
    host.cancel()
    assert error_of(host.until_answer(2)[-1])[0] == CANCELLED


def test_raising_cancelled_without_a_cancel_is_the_handlers_failure(spawn: Spawn) -> None:
    host = spawn("raise Cancelled('on a whim')")
    host.check()
    error = "gave up, but was not cancelled: on a whim"
    assert host.frame()["result"] == {"needs_change": False, "error": error}
