"""The plugins of one target in one run: started at first use, reused, ended together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping
from types import TracebackType

import msgspec

from preflight.control import finish
from preflight.errors import PluginError, Reason
from preflight.events import Event, PluginFailed, PluginWarning
from preflight.model.settings import Settings
from preflight.plugins.descriptors import DescriptorCache
from preflight.plugins.discovery import Found
from preflight.plugins.protocol import Handshake, RunData
from preflight.plugins.schema import BadSchema, Schema
from preflight.plugins.session import Session
from preflight.plugins.trace import WireTrace
from preflight.ports.module import Args, TaskContext

_MOST_CRASHES = 3  # of one plugin on one target; then the run does not start it again
_CLOSE_BOUND_S = 10.0  # 2 s for the end of stdin, 1 s TERM, 2 s KILL, with room


class PluginPool:
    """All plugin processes for one target; an async context manager."""

    def __init__(
        self,
        *,
        target: str,
        emit: Callable[[Event], None],
        settings: Settings,
        run: RunData | None = None,
        config_of: Callable[[str], Mapping[str, object]] = lambda plugin: {},
        descriptors: DescriptorCache | None = None,
        trace: WireTrace | None = None,
    ) -> None:
        self._target = target
        self._emit = emit
        self._settings = settings
        self._run = run
        self._config_of = config_of
        self._descriptors = descriptors
        self._trace = trace
        self._schemas: dict[tuple[str, str], Schema | None] = {}
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
        """Call a plugin for one task, starting it where that is needed.

        Raises :class:`PluginError`: ``plugin_invalid_params`` before anything is sent. A crash
        ends that call only: the next one gets a new process, until there were three crashes.
        """
        session = await self.session(found, ctx)
        self.validate(session, args)
        with self.counting_crashes(found):
            return await session.call(method, args, ctx)

    @contextlib.contextmanager
    def counting_crashes(self, found: Found) -> Generator[None]:
        """Keep count of the crashes of a plugin in what is done inside."""
        try:
            yield
        except PluginError as exc:
            if exc.reason is Reason.PLUGIN_CRASHED:
                self._crashes[found.name] = self._crashes.get(found.name, 0) + 1
            raise

    def validate(self, session: Session, args: Args) -> None:
        """Hold args against the plugin's schema; nothing was sent when this raises."""
        handshake = session.handshake
        if handshake is None or handshake.params_schema is None:
            return
        found = self._violations(handshake.name, "params_schema", handshake.params_schema, args)
        if found:
            words = f"{handshake.name}: " + "; ".join(found)
            raise PluginError(Reason.PLUGIN_INVALID_PARAMS, words)

    def _violations(
        self, plugin: str, kind: str, raw: Mapping[str, object], args: Args
    ) -> list[str]:
        """Check args; a schema that is none is a warning, once, and then not used any more."""
        key = (plugin, kind)
        try:
            if key not in self._schemas:
                self._schemas[key] = Schema(raw)
            schema = self._schemas[key]
            return schema.violations(args) if schema is not None else []
        except BadSchema as exc:
            self._schemas[key] = None
            self._emit(
                PluginWarning(
                    target=self._target,
                    plugin=plugin,
                    kind="bad_schema",
                    detail=f"its {kind} is not used: {exc}",
                )
            )
            return []

    def odd(self, found: Found, words: str) -> None:
        """Show something odd about a plugin that ends nothing."""
        self._emit(
            PluginWarning(
                target=self._target, plugin=found.name, kind="protocol_violation", detail=words
            )
        )

    def _check_config(self, found: Found, handshake: Handshake) -> None:
        """Hold the playbook's config for a plugin against the plugin's schema."""
        config = self._config_of(found.name)
        if handshake.config_schema is None:
            return
        wrong = self._violations(found.name, "config_schema", handshake.config_schema, config)
        if wrong:
            words = f"plugins.{found.name}.config: " + "; ".join(wrong)
            raise PluginError(Reason.PLUGIN_CONFIGURE, words)

    async def session(self, found: Found, ctx: TaskContext) -> Session:
        """Give the session of a plugin, starting it where that is needed.

        Raises :class:`PluginError`.
        """
        try:
            return await self._session(found, ctx)
        except asyncio.CancelledError:
            ctx.scope.outcome = "nothing_running"  # no call had begun
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
                run=self._run,
                config=self._config_of(found.name),
                on_handshake=lambda handshake: self._check_config(found, handshake),
                trace=self._trace,
            )
            handshake = await session.initialize(ctx.target.info)
            if self._descriptors is not None:
                self._descriptors.put(found, handshake)
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
