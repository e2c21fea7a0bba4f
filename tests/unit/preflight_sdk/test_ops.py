"""Our own requests: one in flight, in order, each ended once."""

from __future__ import annotations

import json
import threading
from queue import SimpleQueue

import pytest

from preflight_sdk.codec import split
from preflight_sdk.context import Context
from preflight_sdk.errors import Cancelled, HandleError, MessageTooLarge, OpTimeout
from preflight_sdk.ops import Ops

Frame = dict[str, object]


class Wire:
    """Keeps what was sent, and answers on demand."""

    def __init__(self) -> None:
        self.sent: SimpleQueue[Frame] = SimpleQueue()
        self.ops = Ops(self.send)
        self.refuse = False

    def send(self, method: str, frame: bytes) -> None:
        if self.refuse:
            raise MessageTooLarge(method)
        self.sent.put(json.loads(frame))

    def next(self) -> Frame:
        return self.sent.get(timeout=5)

    def answer(self, frame: Frame, result: object) -> bool:
        line = json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}).encode()
        return self.ops.resolve(frame["id"], split(line))


class Asking(threading.Thread):
    """One op on a thread of its own."""

    def __init__(self, wire: Wire, script: str, ctx: Context, timeout: float | None = None) -> None:
        super().__init__(daemon=True)
        self._args_ = (wire, script, ctx, timeout)
        self.outcome: object = None
        self.start()

    def run(self) -> None:
        wire, script, ctx, timeout = self._args_
        try:
            self.outcome = wire.ops.request("run_command", {"script": script}, ctx, timeout)
        except BaseException as exc:
            self.outcome = exc

    def ended(self) -> object:
        self.join(5)
        assert not self.is_alive()
        return self.outcome


def wait_queued(wire: Wire, count: int) -> None:
    tick = threading.Event()
    for _ in range(5000):
        if len(wire.ops._queue) == count:  # pyright: ignore[reportPrivateUsage]
            return
        tick.wait(0.001)
    raise AssertionError("nothing was queued")


def test_ops_go_out_one_at_a_time_in_the_order_they_came() -> None:  # P89
    wire, ctx = Wire(), Context()
    asking: list[Asking] = []
    for n in range(4):
        asking.append(Asking(wire, f"s{n}", ctx))
        wait_queued(wire, n + 1)
    for n in range(4):
        frame = wire.next()
        assert frame["params"] == {"script": f"s{n}"}
        assert frame["id"] == n + 1
        assert wire.sent.empty()
        assert wire.answer(frame, {"n": n})
        assert asking[n].ended() == {"n": n}


def test_a_queued_op_that_is_cancelled_sends_nothing_and_frees_its_place() -> None:  # P77 P89
    wire, ctx, other = Wire(), Context(), Context()
    first = Asking(wire, "first", ctx)
    frame = wire.next()
    second = Asking(wire, "second", other)
    wait_queued(wire, 2)
    third = Asking(wire, "third", ctx)
    wait_queued(wire, 3)
    other.cancel()
    assert isinstance(second.ended(), Cancelled)
    assert wire.sent.empty()
    wire.answer(frame, {})
    assert first.ended() == {}
    wire.answer(wire.next(), {"third": 1})
    assert third.ended() == {"third": 1}


def test_a_queued_op_that_times_out_sends_nothing() -> None:  # P77
    wire, ctx = Wire(), Context()
    Asking(wire, "first", ctx)
    wire.next()
    second = Asking(wire, "second", ctx, 0.01)
    assert isinstance(second.ended(), OpTimeout)
    assert wire.sent.empty()


def test_an_answer_before_the_cancel_wins() -> None:
    wire, ctx = Wire(), Context()
    first = Asking(wire, "first", ctx)
    wire.answer(wire.next(), {"a": 1})
    ctx.cancel()
    assert first.ended() == {"a": 1}
    assert wire.sent.empty()


def test_a_cancelled_op_is_cancelled_at_the_host_and_its_late_answer_is_known() -> None:
    wire, ctx = Wire(), Context()
    first = Asking(wire, "first", ctx)
    frame = wire.next()
    ctx.cancel()
    assert isinstance(first.ended(), Cancelled)
    assert wire.next() == {"jsonrpc": "2.0", "method": "cancel", "params": {"id": frame["id"]}}
    assert wire.answer(frame, {}), "late, but asked for"
    assert not wire.answer(frame, {}), "nobody asked twice"


def test_an_op_that_times_out_waits_for_the_host_to_unwind_before_the_next() -> None:  # P72
    wire, ctx = Wire(), Context()
    first = Asking(wire, "first", ctx, 0.3)
    frame = wire.next()
    second = Asking(wire, "second", ctx)
    assert wire.next()["method"] == "cancel"
    assert wire.sent.empty()
    assert wire.answer(frame, {})
    assert isinstance(first.ended(), OpTimeout)
    assert wire.next()["params"] == {"script": "second"}
    ctx.cancel()
    second.ended()


def test_an_op_that_could_not_be_sent_frees_its_place() -> None:
    wire, ctx = Wire(), Context()
    wire.refuse = True
    with pytest.raises(MessageTooLarge):
        wire.ops.request("put_file", {}, ctx, None)
    wire.refuse = False
    following = Asking(wire, "next", ctx)
    wire.answer(wire.next(), {})
    assert following.ended() == {}


def test_failing_without_an_id_fails_the_oldest() -> None:  # P46
    wire, ctx = Wire(), Context()
    first = Asking(wire, "first", ctx)
    wire.next()
    assert wire.ops.fail(None, HandleError("too large"))
    assert str(first.ended()) == "too large"
    assert not wire.ops.fail(None, HandleError("nobody is left"))


@pytest.mark.parametrize("key", [True, 1.0, "1", None, [1]])
def test_only_our_own_integers_resolve_an_op(key: object) -> None:  # P80
    wire, ctx = Wire(), Context()
    first = Asking(wire, "first", ctx)
    frame = wire.next()
    assert not wire.ops.resolve(key, split(b'{"id":1,"result":{}}'))
    wire.answer(frame, {"right": 1})
    assert first.ended() == {"right": 1}


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        ({"code": -32000, "message": "no route"}, -32000, "no route"),
        ({"code": -32020, "message": "too large"}, -32020, "too large"),
        ({"code": "x"}, -32000, "the host said"),
        ("boom", -32000, "the host said 'boom'"),
    ],
)
def test_an_error_of_any_shape_is_a_handle_error(error: object, code: int, text: str) -> None:
    wire, ctx = Wire(), Context()
    first = Asking(wire, "first", ctx)
    frame = wire.next()
    line = json.dumps({"jsonrpc": "2.0", "id": frame["id"], "error": error}).encode()
    wire.ops.resolve(frame["id"], split(line))
    failure = first.ended()
    assert isinstance(failure, HandleError)
    assert isinstance(failure, MessageTooLarge) is (code == -32020)
    assert failure.code == code
    assert text in str(failure)
