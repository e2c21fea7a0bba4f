"""One plugin process as the runner uses it: shaken hands with, called, closed.

The process is never tied to one call's lifetime: a cancelled call gets its grace, and only a
plugin that ignores it is killed. Source: docs/protocol.md, Handshake and Process lifetime.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

import msgspec

from preflight.control import finish
from preflight.errors import PluginError, Reason
from preflight.events import Event, PluginReady, TargetInfo
from preflight.model.settings import Settings
from preflight.plugins.discovery import Found
from preflight.plugins.protocol import (
    BATCH,
    RUN_DATA,
    BatchResult,
    ConfigureAnswer,
    Handshake,
    RunData,
    initialize_params,
    read_handshake,
)
from preflight.plugins.report import crash, refusal, start_failure
from preflight.plugins.trace import WireTrace
from preflight.plugins.unwind import unwind
from preflight.plugins.wire import Wire
from preflight.ports.module import TaskContext
from preflight.procs import exit_words
from preflight.rpc.machine import MessageTooLarge
from preflight.rpc.messages import METHOD_NOT_FOUND, RpcError, decode
from preflight.rpc.peer import Closed

_NOTICE_S = 5.0  # an operator is told that a start takes long (plugin-scenarios row 12)
_LAST_WORDS_S = 1.0  # a process whose wire is gone may take this long to exit by itself
_CLOSE_S = 2.0  # from the end of its stdin to SIGTERM (protocol.md 5)
_END_S = 10.0  # the bound of every clean-up: TERM 1 s and KILL 2 s, here and on the target


class NoBatch(Exception):
    """The plugin does not know batches after all; the session goes on item by item."""


class Session:
    """One process of one plugin for one target; :attr:`usable` tells whether it may be called.

    Raises :class:`PluginError` when it can't be started.
    """

    def __init__(
        self,
        found: Found,
        *,
        target: str,
        emit: Callable[[Event], None],
        settings: Settings,
        group: asyncio.TaskGroup,
        run: RunData | None = None,
        config: Mapping[str, object] | None = None,
        on_handshake: Callable[[Handshake], None] = lambda handshake: None,
        trace: WireTrace | None = None,
    ) -> None:
        self._wire = Wire(
            found, target=target, emit=emit, settings=settings, group=group, trace=trace
        )
        self._settings = settings
        self._run = run
        self._on_handshake = on_handshake  # may refuse what was agreed, before anything is sent
        self.config = dict(config or {})
        self.handshake: Handshake | None = None
        self.takes_batches = False

    @property
    def usable(self) -> bool:
        """Whether the process is there and the wire is whole."""
        return self._wire.usable

    @property
    def peer_limit(self) -> int:
        """How many bytes of one message the plugin takes."""
        return self._wire.peer.machine.peer_limit

    def has(self, capability: str) -> bool:
        """Tell whether both sides list a capability."""
        return self.handshake is not None and self.handshake.has(capability)

    @property
    def stderr_tail(self) -> list[str]:
        """The last lines of stderr, 64 KiB at most."""
        return self._wire.tail.lines

    async def initialize(self, info: TargetInfo) -> Handshake:
        """Shake hands. On any failure the process is ended before this raises.

        Raises :class:`PluginError` with the reason and the stderr's end.
        Cancel: the process is ended; ``initialize`` itself is never cancelled on the wire.
        """
        start = time.monotonic()
        try:
            handshake = await self._shake_hands(info)
            self._on_handshake(handshake)
            if self._run is not None and handshake.has(RUN_DATA):
                await self._configure(self._run)
        except asyncio.CancelledError:
            await finish(self._wire.end("killed", term_s=0), within_s=_END_S)
            raise
        except (PluginError, TimeoutError, RpcError, Closed) as exc:
            elapsed_s = time.monotonic() - start
            died = await finish(self._end_after_failure(), within_s=_END_S)
            raise start_failure(
                exc,
                self._wire.found.path,
                elapsed_s=elapsed_s,
                pid=self._wire.process.pid,
                returncode=self._wire.process.returncode if died else None,
                stderr=self._wire.tail.quote,
            ) from exc
        self._became_ready(handshake, time.monotonic() - start)
        return handshake

    async def call(self, method: str, args: Mapping[str, object], ctx: TaskContext) -> msgspec.Raw:
        """Call ``check`` or ``apply`` for one task; see :meth:`request`."""
        if self.config and not self.has(RUN_DATA):
            args = {**self.config, **args}  # it can't be told once, so it is told each time
        return await self.request(method, msgspec.json.encode({"args": args}), ctx)

    async def request(
        self,
        method: str,
        params: bytes,
        ctx: TaskContext,
        on_results: Callable[[list[BatchResult]], None] | None = None,
    ) -> msgspec.Raw:
        """Send a request that works for a task and give its raw result. One at a time.

        ``on_results`` takes the items of a batch as they end. Raises :class:`PluginError`.
        Cancel: the plugin is told at once and has ``cancel_grace`` to answer; then it and what it
        runs on the target are killed. When this raises ``CancelledError`` nothing of it runs.
        """
        start = time.monotonic()
        self._wire.bind(ctx, on_results)
        try:
            return await self._answer(method, params, ctx)
        except RpcError as exc:
            if exc.code == METHOD_NOT_FOUND and method.endswith("_batch"):
                self.takes_batches = False
                raise NoBatch from exc
            raise refusal(self._wire.found.name, method, exc) from exc
        except MessageTooLarge as exc:
            words = f"{exc}: give the task less, or raise max_message_bytes on both sides"
            raise PluginError(Reason.PLUGIN_MESSAGE_TOO_LARGE, words) from exc
        except Closed as exc:
            raise await self._crashed(method, time.monotonic() - start, str(exc)) from exc
        finally:
            self._wire.bind(None)
            if self._wire.ops.running:
                await finish(self._wire.ops.cancel_all(), within_s=_END_S)

    async def close(self) -> None:
        """End the process in the ordinary way: close its stdin, 2 s, SIGTERM, 1 s, SIGKILL.

        Cancel: call through ``finish``; bounded by five seconds.
        """
        crashed = not self.usable
        self._wire.end_input()
        gone = await self._wire.process.wait_exit(_CLOSE_S)
        await self._wire.end("crashed" if crashed else "closed" if gone else "killed")

    async def _answer(self, method: str, params: bytes, ctx: TaskContext) -> msgspec.Raw:
        call = self._wire.peer.start(method, params)
        self._wire.expect(call.id)
        try:
            return await asyncio.shield(call.answer)
        except asyncio.CancelledError:
            bound = self._settings.cancel_grace + _END_S
            await finish(unwind(self._wire, call, ctx), within_s=bound)
            raise

    async def _shake_hands(self, info: TargetInfo) -> Handshake:
        wire = self._wire
        loop = asyncio.get_running_loop()
        notice = loop.call_later(_NOTICE_S, wire.warnings.slow_start, _NOTICE_S)
        try:
            params = initialize_params(info, max_message_bytes=self._settings.max_message_bytes)
            call = wire.peer.start("initialize", params)
            # An answer that is there counts, however late the host itself comes to look.
            await asyncio.wait([call.answer], timeout=self._settings.init_timeout)
        finally:
            notice.cancel()
        if not call.answer.done():
            raise TimeoutError
        wire.executable.confirm()
        handshake = read_handshake(call.answer.result(), path=str(wire.found.path))
        wire.peer.machine.peer_limit = handshake.max_message_bytes
        wire.negotiated = frozenset(handshake.capabilities.negotiated)
        if handshake.name != wire.found.name:
            raise PluginError(
                Reason.PLUGIN_NAME_MISMATCH,
                f"{wire.found.path} says its name is {handshake.name!r}, the file says "
                f"{wire.found.name!r}: make them the same",
            )
        return handshake

    async def _configure(self, run: RunData) -> None:
        """Tell the plugin what does not change in this run, once."""
        params = msgspec.json.encode({"run": run, "config": self.config})
        try:
            raw = await self._wire.peer.call("configure", params)
            error = decode(raw, ConfigureAnswer).error
        except (RpcError, ValueError) as exc:
            error = str(exc)
        if error:
            name = self._wire.found.name
            words = f"plugin {name} refused its config: {error}; see plugins.{name}.config"
            raise PluginError(Reason.PLUGIN_CONFIGURE, words)

    def _became_ready(self, handshake: Handshake, elapsed_s: float) -> None:
        wire = self._wire
        self.handshake = handshake
        self.takes_batches = handshake.has(BATCH)
        wire.emit(
            PluginReady(
                target=wire.target,
                plugin=wire.found.name,
                version=handshake.version,
                protocol_version=handshake.protocol_version,
                capabilities=handshake.capabilities,
                max_message_bytes=handshake.max_message_bytes,
                pid=wire.process.pid,
                elapsed_ms=round(elapsed_s * 1000, 1),
            )
        )

    async def _end_after_failure(self) -> bool:
        """End a process that never became ready; True for one that was dying by itself."""
        wire = self._wire
        died = bool(wire.peer.closed) and await wire.process.wait_exit(_LAST_WORDS_S)
        await wire.end("crashed" if died else "killed", term_s=0.2)
        return died

    async def _crashed(self, method: str, elapsed_s: float, why: str) -> PluginError:
        wire = self._wire
        exited = await wire.process.wait_exit(_LAST_WORDS_S)
        await finish(wire.end("crashed" if exited else "killed"), within_s=_END_S)
        return crash(
            wire.found.name,
            how=exit_words(wire.process.returncode) if exited else f"its wire is gone ({why})",
            method=method,
            elapsed_s=elapsed_s,
            noise_count=wire.warnings.noise_count,
            stderr=wire.tail.quote,
        )
