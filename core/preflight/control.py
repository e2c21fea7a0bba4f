"""The one way into a running engine: cancel what a path names, and hurry it with a kill.

A path is ``""`` for the run, a target's name, or ``target/task`` with the stable task key.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Literal, TypeVar

import msgspec

from preflight.bus import Bus
from preflight.events import By, CancelFinished, CancelRequested

T = TypeVar("T")
Outcome = Literal["answered", "killed", "nothing_running", "finished_first", "lost"]

# The worst of several wins where one cancel stopped many things.
_RANK: dict[Outcome, int] = {
    "nothing_running": 0,
    "finished_first": 1,
    "answered": 2,
    "lost": 3,
    "killed": 4,
}


class CancelRequest(msgspec.Struct):
    """One cancel in hand; ``at`` is the monotonic time in seconds when it was asked for."""

    path: str
    by: By
    at: float
    kill: bool = False
    outcome: Outcome = "nothing_running"


class Stopped(Exception):
    """What was done in a :class:`Scope` was cancelled through the control, and has unwound."""

    def __init__(self, request: CancelRequest, outcome: Outcome, result: object = None) -> None:
        super().__init__(f"cancelled by {request.by}")
        self.request = request
        self.outcome = outcome
        self.result = result


class Scope:
    """A stretch of one asyncio task that a cancel of ``path`` stops.

    Cancel: the body gets ``CancelledError`` once; a body that unwinds by it leaves the scope with
    :class:`Stopped`. A later kill does not cancel again: it sets :attr:`kill`, which whoever
    waits out a grace must heed.
    """

    def __init__(self, control: RunControl, path: str) -> None:
        self.path = path
        self.kill = asyncio.Event()
        self.request: CancelRequest | None = None
        self.outcome: Outcome = "answered"
        self.result: object = None
        self._control = control
        self._task: asyncio.Task[object] | None = None

    async def __aenter__(self) -> Scope:
        request = self._control.request_for(self.path)
        if request is not None:
            raise Stopped(request, "nothing_running")
        self._task = asyncio.current_task()
        self._control.register(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        request, task = self.request, self._task
        if request is None or task is None:
            self._control.unregister(self)
            return
        if kind is None:
            self.outcome = "finished_first"
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)  # a cancel that came while nothing was awaited ends here
        others = task.uncancel()  # above 0: somebody else cancels this task too
        self._control.unregister(self)
        if kind is None and others:
            raise asyncio.CancelledError
        if kind is not None and issubclass(kind, asyncio.CancelledError) and not others:
            raise Stopped(request, self.outcome, self.result) from exc

    def deliver(self, request: CancelRequest) -> None:
        """Cancel the body, once; a request to kill wakes whoever waits out the grace."""
        if self.request is None and self._task is not None:
            self.request = request
            self._task.cancel()
        if request.kill:
            self.kill.set()


class RunControl:
    """Knows what runs under which path, and what was asked to stop."""

    def __init__(self, bus: Bus, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._bus = bus
        self._clock = clock
        self._scopes: set[Scope] = set()
        self._requests: dict[str, CancelRequest] = {}
        self._open: list[CancelRequest] = []

    def scope(self, path: str) -> Scope:
        """Make the scope in which the work of ``path`` can be cancelled."""
        return Scope(self, path)

    def cancel(self, path: str, by: By, *, kill: bool = False) -> CancelRequest:
        """Stop everything at and below ``path``, and let nothing below it start any more.

        Never waits: what runs gets its grace and unwinds in its own task. Asking again changes
        nothing, except that ``kill`` ends the grace of what is unwinding.
        """
        request = self._requests.get(path)
        first = request is None
        if request is None:
            request = CancelRequest(path=path, by=by, at=self._clock(), kill=kill)
            self._requests[path] = request
        if first or (kill and not request.kill):
            request.kill = request.kill or kill
            if request not in self._open:  # every request is followed by its end
                self._open.append(request)
            target, task = _split(path)
            self._bus.emit(CancelRequested(path=path, by=by, kill=kill, target=target, task=task))
        for scope in [one for one in self._scopes if _covers(path, one.path)]:
            scope.deliver(request)
        self._close_finished()
        return request

    def request_for(self, path: str) -> CancelRequest | None:
        """Give the request that covers ``path``, if there is one; the oldest wins."""
        for known, request in self._requests.items():
            if _covers(known, path):
                return request
        return None

    def register(self, scope: Scope) -> None:
        """Note that ``scope`` runs; called by the scope."""
        self._scopes.add(scope)

    def unregister(self, scope: Scope) -> None:
        """Note that ``scope`` has ended; the worst outcome of what a cancel stopped is kept."""
        self._scopes.discard(scope)
        for request in self._open:
            if _covers(request.path, scope.path) and _RANK[scope.outcome] > _RANK[request.outcome]:
                request.outcome = scope.outcome
        self._close_finished()

    def _close_finished(self) -> None:
        for request in tuple(self._open):
            if any(_covers(request.path, scope.path) for scope in self._scopes):
                continue
            self._open.remove(request)
            target, task = _split(request.path)
            self._bus.emit(
                CancelFinished(
                    path=request.path,
                    outcome=request.outcome,
                    elapsed_ms=round((self._clock() - request.at) * 1000, 1),
                    target=target,
                    task=task,
                )
            )


async def finish(coro: Coroutine[object, object, T], *, within_s: float) -> T:
    """Await bounded clean-up to its end, even if this task is cancelled again; then re-raise.

    Raises ``CancelledError`` when it was cancelled meanwhile, and ``TimeoutError`` when the
    clean-up was cut off after ``within_s`` seconds.
    """
    task = asyncio.ensure_future(coro)  # the one place allowed to: awaited below on every path
    limit = asyncio.get_running_loop().call_later(within_s, task.cancel)
    again = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            again = True
    limit.cancel()
    if again:
        raise asyncio.CancelledError from (None if task.cancelled() else task.exception())
    if task.cancelled():
        raise TimeoutError(f"clean-up was cut off after {within_s:g} s")
    return task.result()


def _covers(path: str, other: str) -> bool:
    return path in ("", other) or other.startswith(path + "/")


def _split(path: str) -> tuple[str, str]:
    target, _, task = path.partition("/")
    return target, task
