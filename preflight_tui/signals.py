"""Signals of a command without a console: each is counted, and what they do is the caller's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine, Generator
from typing import NoReturn, TypeVar

from preflight.procs import kill_all

T = TypeVar("T")

CANCELLED = 130


@contextlib.contextmanager
def counted_signals(caught: Callable[[int], None]) -> Generator[None]:
    """Call ``caught`` with 1, 2, … for each SIGINT, SIGTERM or SIGHUP, in the running loop.

    A SIGHUP that ``nohup`` had ignored stays ignored.
    """
    loop = asyncio.get_running_loop()
    count = 0

    def count_one() -> None:
        nonlocal count
        count += 1
        caught(count)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, count_one)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def leave() -> NoReturn:
    """Kill every process that was started here, and end this one without another word."""
    kill_all()
    os._exit(CANCELLED)


def run_until_signal(work: Coroutine[object, object, T]) -> T:
    """Run ``work`` to its end in a loop of its own.

    The first signal cancels it, and :class:`KeyboardInterrupt` comes out once it has unwound; the
    second leaves at once.
    """

    async def stoppable() -> T:
        task = asyncio.current_task()

        def caught(count: int) -> None:
            if count > 1 or task is None:
                leave()
            task.cancel()

        with counted_signals(caught):
            return await work

    try:
        return asyncio.run(stoppable())
    except asyncio.CancelledError:
        kill_all()  # whatever could not unwind
        raise KeyboardInterrupt from None
