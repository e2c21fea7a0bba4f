"""Requests of our own: one in flight, each answered, abandoned or timed out exactly once."""

from __future__ import annotations

from _queue import SimpleQueue
from _thread import allocate_lock
from time import monotonic

from preflight_sdk.codec import Envelope, encode
from preflight_sdk.context import wait_on
from preflight_sdk.errors import OP_FAILED, Cancelled, HandleError, MessageTooLarge, OpTimeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeGuard

    from preflight_sdk.context import Context, Wakeup

    Send = Callable[[str, bytes], None]

GRACE_S = 2.0
"""How long an op that timed out may unwind before the next one starts: the window of the
specification, but never longer than the op's own timeout."""

_MOST_ABANDONED = 4096


class _Pending:
    __slots__ = ("answer", "failure", "id", "wakeup")

    def __init__(self, op_id: int, wakeup: Wakeup) -> None:
        self.id = op_id
        self.wakeup = wakeup
        self.answer: Envelope | None = None
        self.failure: HandleError | None = None


class Turn:
    """One caller's place in the queue, and what it waits with.

    ``tag`` is added to the params of every op of it.
    """

    __slots__ = ("_ops", "_tag", "ctx", "deadline", "grace_s", "wakeup")

    def __init__(
        self, ops: Ops, ctx: Context, timeout: float | None, tag: dict[str, object]
    ) -> None:
        self._ops = ops
        self._tag = tag
        self.ctx = ctx
        self.wakeup: Wakeup = SimpleQueue()
        self.deadline = None if timeout is None else monotonic() + timeout
        self.grace_s = min(GRACE_S, timeout or 0.0)

    def wait(self) -> bool:
        """True when something happened, False at the deadline."""
        left = None if self.deadline is None else self.deadline - monotonic()
        return wait_on(self.wakeup, left)

    def request(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """One op, as :meth:`Ops.request`; the timeout is that of the whole turn."""
        self.ctx.raise_if_cancelled()
        if self.deadline is not None and self.deadline <= monotonic():
            raise OpTimeout(f"{method} timed out; its next part was not started")
        return self._ops.exchange(method, {**params, **self._tag}, self)

    def end(self) -> None:
        """Let the next caller's op begin."""
        self._ops.pass_on(self)
        self.ctx.remove_wakeup(self.wakeup)


class Ops:
    """Our side's id space: positive integers from 1. Safe from any thread."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._mutex = allocate_lock()
        self._queue: list[Turn] = []
        self._pending: dict[int, _Pending] = {}
        self._abandoned: set[int] = set()
        self._last_id = 0

    def request(
        self, method: str, params: dict[str, object], ctx: Context, timeout: float | None
    ) -> dict[str, object]:
        """The answer's result object; {} when the peer sent none.

        Units: ``timeout`` in seconds, waiting for earlier ops included.
        Raises: HandleError, OpTimeout, MessageTooLarge.
        Cancel: raises Cancelled at once; the host was told, and a late answer is dropped.
        """
        turn = self.turn(ctx, timeout, {})
        try:
            return self.exchange(method, params, turn)
        finally:
            turn.end()

    def turn(self, ctx: Context, timeout: float | None, tag: dict[str, object]) -> Turn:
        """Wait until no other op is in flight, and keep it so until the turn ends.

        Raises: OpTimeout. Cancel: raises Cancelled at once.
        """
        ctx.raise_if_cancelled()
        turn = Turn(self, ctx, timeout, tag)
        ctx.add_wakeup(turn.wakeup)
        try:
            self._take(turn)
        except BaseException:
            turn.end()
            raise
        return turn

    def exchange(self, method: str, params: dict[str, object], turn: Turn) -> dict[str, object]:
        """One op of a turn that was taken: the answer's result object."""
        return _result_of(self._exchange(method, params, turn))

    def resolve(self, op_id: object, envelope: Envelope) -> bool:
        """Hand a response to its op; False when nobody ever waited for it."""
        with self._mutex:
            pending = self._pending.pop(op_id, None) if _is_int(op_id) else None
            if pending is None:
                return self._was_abandoned(op_id)
            pending.answer = envelope
        pending.wakeup.put(None)
        return True

    def fail(self, op_id: object, failure: HandleError) -> bool:
        """Fail the op of this id, or the oldest one for None; False when there is none."""
        with self._mutex:
            if op_id is None and self._pending:
                op_id = min(self._pending)
            pending = self._pending.pop(op_id, None) if _is_int(op_id) else None
            if pending is None:
                return self._was_abandoned(op_id)
            pending.failure = failure
        pending.wakeup.put(None)
        return True

    def _was_abandoned(self, op_id: object) -> bool:
        if _is_int(op_id) and op_id in self._abandoned:
            self._abandoned.discard(op_id)
            return True
        return False

    def _take(self, turn: Turn) -> None:
        with self._mutex:
            self._queue.append(turn)
        while self._queue[0] is not turn:
            if not turn.wait():
                raise OpTimeout("timed out behind an earlier op; it was not started")
            turn.ctx.raise_if_cancelled()

    def pass_on(self, turn: Turn) -> None:
        """Take a turn off the queue, wherever it is in it."""
        with self._mutex:
            if turn in self._queue:
                self._queue.remove(turn)
            following = self._queue[0] if self._queue else None
        if following is not None:
            following.wakeup.put(None)

    def _exchange(self, method: str, params: dict[str, object], turn: Turn) -> _Pending:
        pending = self._register(turn.wakeup)
        frame = {"jsonrpc": "2.0", "id": pending.id, "method": method, "params": params}
        try:
            self._send(method, encode(frame))
        except BaseException:
            with self._mutex:
                self._pending.pop(pending.id, None)
            raise
        while pending.answer is None and pending.failure is None:
            if turn.ctx.cancelled:
                if self._abandon(pending):
                    raise Cancelled(f"{method} was given up")
            elif not turn.wait():
                self._time_out(method, pending, turn)
        return pending

    def _register(self, wakeup: Wakeup) -> _Pending:
        with self._mutex:
            self._last_id += 1
            pending = _Pending(self._last_id, wakeup)
            self._pending[pending.id] = pending
        return pending

    def _abandon(self, pending: _Pending) -> bool:
        """Drop the op and tell the host; False when its answer came first."""
        with self._mutex:
            if self._pending.pop(pending.id, None) is None:
                return False
            self._remember(pending)
        self._send_cancel(pending)
        return True

    def _remember(self, pending: _Pending) -> None:
        """Its answer may still come, late, and is then no violation. The mutex is held."""
        if len(self._abandoned) >= _MOST_ABANDONED:
            self._abandoned.clear()
        self._abandoned.add(pending.id)

    def _time_out(self, method: str, pending: _Pending, turn: Turn) -> None:
        self._send_cancel(pending)
        turn.deadline = monotonic() + turn.grace_s
        while pending.answer is None and pending.failure is None and not turn.ctx.cancelled:
            if not turn.wait():
                break
        with self._mutex:
            if self._pending.pop(pending.id, None) is not None:
                self._remember(pending)
        turn.ctx.raise_if_cancelled()
        raise OpTimeout(f"{method} timed out and was cancelled")

    def _send_cancel(self, pending: _Pending) -> None:
        params = {"id": pending.id}
        self._send("cancel", encode({"jsonrpc": "2.0", "method": "cancel", "params": params}))


def _is_int(op_id: object) -> TypeGuard[int]:
    return type(op_id) is int  # a bool or a float equals an integer, and is still no id of ours


def _result_of(pending: _Pending) -> dict[str, object]:
    if pending.failure is not None:
        raise pending.failure
    answer = pending.answer
    assert answer is not None
    try:
        error, result = answer.value("error"), answer.value("result")
    except ValueError as exc:
        raise HandleError(f"the host's answer can't be read: {exc}") from exc
    if error is not None:
        raise _failure(error)
    if result is None:
        return {}
    if not isinstance(result, dict):
        raise HandleError("the host's answer is not an object")
    return result  # pyright: ignore[reportUnknownVariableType]


def _failure(error: object) -> HandleError:
    members: dict[str, object] = error if isinstance(error, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    code, message = members.get("code"), members.get("message")
    text = message if isinstance(message, str) and message else f"the host said {error!r}"[:500]
    number = code if isinstance(code, int) else OP_FAILED
    if number == -32020:
        return MessageTooLarge(text)
    return HandleError(text, number)
