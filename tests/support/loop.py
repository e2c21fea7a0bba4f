"""Tests that run in an event loop, and leave nothing behind: no child, no fd, no complaint."""

from __future__ import annotations

import asyncio
import functools
import gc
from collections.abc import Callable, Coroutine
from typing import ParamSpec

from tests.support.fake_plugin import children, open_fds

P = ParamSpec("P")


def in_loop(test: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    """Run an async test to its end, and see that nothing of it is left."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        complaints: list[str] = []

        async def watched() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: complaints.append(repr(context)))
            await test(*args, **kwargs)
            gc.collect()  # an exception that nobody took is told by its future's end

        before_fds, before_children = open_fds(), children()
        asyncio.run(watched())
        left = {fd: what for fd, what in open_fds().items() if fd not in before_fds}
        assert not left, f"left open: {left}"
        assert children() <= before_children, "a child is left, or a zombie"
        assert not complaints, "\n".join(complaints)

    return run
