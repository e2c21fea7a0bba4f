"""The plugins of one target in one run: started at first use, reused, ended together.

A plugin is a :class:`preflight.ports.module.Module` through this: the runner can't tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

import msgspec

from preflight.control import finish
from preflight.errors import ModuleError, PluginError, Reason
from preflight.events import Event, PluginFailed
from preflight.model.settings import Settings
from preflight.plugins.discovery import Found
from preflight.plugins.protocol import ApplyAnswer, CheckAnswer
from preflight.plugins.session import Session
from preflight.ports.module import ApplyResult, Args, CheckResult, TaskContext
from preflight.rpc.messages import decode

T = TypeVar("T")

_MOST_CRASHES = 3  # of one plugin on one target; then the run does not start it again
_CLOSE_BOUND_S = 10.0  # 2 s for the end of stdin, 1 s TERM, 2 s KILL, with room


class PluginPool:
    """All plugin processes for one target; an async context manager."""

    def __init__(self, *, target: str, emit: Callable[[Event], None], settings: Settings) -> None:
        self._target = target
        self._emit = emit
        self._settings = settings
        self._sessions: dict[str, Session] = {}
        self._crashes: dict[str, int] = {}
        self._failed: dict[str, PluginError] = {}
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> PluginPool:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        try:
            await finish(self.close(), within_s=_CLOSE_BOUND_S)
        except BaseException as failed:  # what hangs on a process that won't end is given up
            await self._group.__aexit__(type(failed), failed, None)
            raise
        # The body's exception is not the group's: it goes on as it is, in no ExceptionGroup.
        await self._group.__aexit__(None, None, None)

    async def close(self) -> None:
        """End all processes, in parallel."""
        sessions, self._sessions = self._sessions, {}
        async with asyncio.TaskGroup() as group:
            for session in sessions.values():
                group.create_task(session.close())

    async def call(self, found: Found, method: str, args: Args, ctx: TaskContext) -> msgspec.Raw:
        """Call a plugin, starting it where that is needed.

        Raises :class:`PluginError`. A crash ends that call only: the next one gets a new process,
        until the plugin has crashed three times.
        """
        try:
            session = await self._session(found, ctx)
        except asyncio.CancelledError:
            ctx.scope.outcome = "nothing_running"  # no call had begun
            raise
        try:
            return await session.call(method, args, ctx)
        except PluginError as exc:
            if exc.reason is Reason.PLUGIN_CRASHED:
                self._crashes[found.name] = self._crashes.get(found.name, 0) + 1
            raise

    async def _session(self, found: Found, ctx: TaskContext) -> Session:
        known = self._sessions.get(found.name)
        if known is not None and known.usable:
            return known
        if known is not None:
            del self._sessions[found.name]
            await finish(known.close(), within_s=_CLOSE_BOUND_S)
        if found.name in self._failed:
            failed = self._failed[found.name]  # it could not start before, and would not now
            raise PluginError(failed.reason, failed.message)
        if self._crashes.get(found.name, 0) >= _MOST_CRASHES:
            words = f"plugin {found.name} crashed {_MOST_CRASHES} times and is not started again"
            raise PluginError(Reason.PLUGIN_CRASHED, words)
        return await self._start(found, ctx)

    async def _start(self, found: Found, ctx: TaskContext) -> Session:
        session = None
        try:
            if found.problem:
                raise PluginError(Reason.PLUGIN_START, found.problem)
            session = Session(
                found,
                target=self._target,
                emit=self._emit,
                settings=self._settings,
                group=self._group,
            )
            await session.initialize(ctx.target.info)
        except PluginError as exc:
            self._failed[found.name] = exc
            self._emit(
                PluginFailed(
                    target=self._target,
                    plugin=found.name,
                    path=str(found.path),
                    reason=exc.reason,
                    error=exc.message,
                    stderr_tail=session.stderr_tail if session is not None else [],
                )
            )
            raise
        self._sessions[found.name] = session
        return session


class PluginModule:
    """One plugin, for one target, as a module."""

    def __init__(self, found: Found, pool: PluginPool) -> None:
        self._found = found
        self._pool = pool

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        """Ask the plugin whether change is needed."""
        raw = await self._pool.call(self._found, "check", args, ctx)
        answer = self._read(raw, CheckAnswer, "check")
        if answer.error:
            raise ModuleError(answer.error)
        return CheckResult(needs_change=answer.needs_change, message=answer.message)

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        """Let the plugin make the change."""
        raw = await self._pool.call(self._found, "apply", args, ctx)
        answer = self._read(raw, ApplyAnswer, "apply")
        if answer.error:
            raise ModuleError(answer.error)
        return ApplyResult(message=answer.message)

    def _read(self, raw: msgspec.Raw, kind: type[T], method: str) -> T:
        try:
            return decode(raw, kind)
        except ValueError as exc:
            quoted = bytes(raw)[:100].decode("utf-8", "replace")
            words = f"plugin {self._found.name} answered {method} with {quoted}: {exc}"
            raise PluginError(Reason.PLUGIN_PROTOCOL, words) from exc
