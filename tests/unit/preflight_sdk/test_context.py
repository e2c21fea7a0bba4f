"""The cancel signal in one process."""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue

import pytest

from preflight_sdk.context import Context
from preflight_sdk.errors import Cancelled


def test_wait_sleeps_when_nothing_happens_and_says_so() -> None:
    ctx = Context()
    assert ctx.wait(0) is False
    assert ctx.wait(-1) is False
    assert ctx.wait(0.001) is False
    ctx.raise_if_cancelled()


def test_cancel_wakes_every_waiter() -> None:
    ctx = Context()
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda: answers.append(ctx.wait(20))) for _ in range(3)]
    threads.append(threading.Thread(target=lambda: answers.append(ctx.wait())))
    for thread in threads:
        thread.start()
    started = time.monotonic()
    ctx.cancel()
    for thread in threads:
        thread.join(5)
    assert answers == [True] * 4
    assert time.monotonic() - started < 5


def test_after_a_cancel_nothing_waits() -> None:
    ctx = Context()
    ctx.cancel()
    ctx.cancel()
    assert ctx.wait(20)
    assert ctx.wait()
    with pytest.raises(Cancelled):
        ctx.raise_if_cancelled()


def test_waits_that_ended_leave_nothing_behind() -> None:
    ctx = Context()
    for _ in range(100):
        ctx.wait(0)
    assert ctx._wakeups == []  # pyright: ignore[reportPrivateUsage]


def test_unnoticed_raises_until_the_handler_could_know() -> None:
    ctx = Context()
    ctx.raise_if_unnoticed()
    ctx.cancel()
    assert ctx.is_set
    with pytest.raises(Cancelled):
        ctx.raise_if_unnoticed()
    ctx.raise_if_unnoticed()


def test_cancelled_is_no_exception() -> None:
    assert not issubclass(Cancelled, Exception)


def test_capabilities_are_a_set() -> None:
    ctx = Context(3, ["a", "b", "a"])
    assert (ctx.version, ctx.capabilities) == (3, {"a", "b"})
    assert ctx.has_capability("a")
    assert not ctx.has_capability("c")


def test_a_part_is_cancelled_with_its_call_and_ends_without_it() -> None:
    call = Context(capabilities=["a"], config={"x": 1})
    first, second = call.child(), call.child()
    assert first.has_capability("a")
    assert first.config == {"x": 1}
    first.end()
    assert first.is_set
    assert not call.is_set
    assert not second.is_set
    call.cancel()
    assert second.is_set
    assert call.child().is_set


def test_whoever_waits_in_a_part_is_woken_by_its_end() -> None:
    part = Context().child()
    woken: SimpleQueue[None] = SimpleQueue()
    part.add_wakeup(woken)
    part.end()
    woken.get(timeout=1)
    part.add_wakeup(woken)
    woken.get(timeout=1)
