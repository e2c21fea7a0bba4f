"""A plugin's process with all that hangs on it: the peer, the handle, stderr, warnings.

Knows how it is started and ended and what it tells without being asked; the calls and their
cancellation are the session's.
"""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable, Mapping
from typing import Literal

from preflight.events import (
    Diagnostic,
    Event,
    PluginCancelReceived,
    PluginSpawned,
    PluginStderr,
    PluginStopped,
)
from preflight.model.settings import Settings
from preflight.plugins.discovery import Found
from preflight.plugins.ops import Ops
from preflight.plugins.pins import Executable
from preflight.plugins.protocol import (
    BYTES,
    BatchResult,
    CancelParams,
    OutputParams,
    ProgressParams,
)
from preflight.plugins.report import spawn_failure
from preflight.plugins.tail import StderrTail
from preflight.plugins.trace import WireTrace
from preflight.plugins.warnings import Warnings
from preflight.ports.module import TaskContext
from preflight.procs import Process, signal_name
from preflight.rpc.machine import Large, Machine, Violation
from preflight.rpc.messages import Notification, Request, decode
from preflight.rpc.peer import Peer

How = Literal["closed", "killed", "crashed"]
OnResults = Callable[[list[BatchResult]], None]

# What a plugin gets of the controller's environment: enough to run, no secrets.
_ENVIRONMENT = {
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA"),
}


class Wire:
    """One process of one plugin for one target; also what its peer tells (``peer.Handler``)."""

    def __init__(
        self,
        found: Found,
        *,
        target: str,
        emit: Callable[[Event], None],
        settings: Settings,
        group: asyncio.TaskGroup,
        trace: WireTrace | None = None,
    ) -> None:
        """Start the process; raises :class:`PluginError` when it can't be executed."""
        self.found = found
        self.target = target
        self.emit = emit
        self.settings = settings
        self.ctx: TaskContext | None = None
        self.negotiated: frozenset[str] = frozenset()
        self._on_results: OnResults | None = None
        self._call_id = 0
        self.warnings = Warnings(found.name, target, emit)
        self.stopped: How | None = None
        self.executable = Executable(found)
        try:
            self.process = Process(
                self.executable.argv,
                env=plugin_environment(os.environ),
                pass_fds=self.executable.pass_fds,
            )
        except OSError as exc:
            self.executable.close()
            raise spawn_failure(exc, found.path) from exc
        emit(
            PluginSpawned(
                target=target, plugin=found.name, pid=self.process.pid, path=str(found.path)
            )
        )
        if found.world_writable:
            self.warnings.world_writable(str(found.path))
        self.tail = StderrTail(self.process.stderr_fd, self._on_stderr)
        machine = Machine(limit=settings.max_message_bytes)
        self.peer = Peer(self.process.stdout_fd, self.process.stdin_fd, machine, self)
        if trace is not None:
            self.peer.trace(
                trace.tap(plugin=found.name, target=target, pid=self.process.pid, task=self._task)
            )
        self.ops = Ops(
            group,
            answer=self.peer.answer,
            refuse=self.peer.refuse,
            peer_limit=lambda: machine.peer_limit,
            on_bug=self.on_bug,
            wants_bytes=lambda: BYTES in self.negotiated,
        )
        self._watcher = group.create_task(self._watch_exit())

    @property
    def usable(self) -> bool:
        """Whether the process is there and the wire is whole."""
        return not self.peer.closed and not self.process.has_exited()

    @property
    def _is_over(self) -> bool:
        """Whether the call that is bound was answered: its task was not woken up yet."""
        return not self.peer.waits_for(self._call_id)

    def bind(self, ctx: TaskContext | None, on_results: OnResults | None = None) -> None:
        """Credit output, items and handle operations to this call from now on."""
        self.ctx = ctx
        self._on_results = on_results
        self.expect(0)
        self.ops.bind(ctx)

    def expect(self, call_id: int) -> None:
        """Know the id of the call that is bound: what names another one is not its own."""
        self._call_id = call_id
        self.ops.call_id = call_id

    def end_input(self) -> None:
        """Ask the process to end, in the ordinary way: it reads the end of its stdin."""
        self.peer.end_writing()
        self.process.close_stdin()

    async def end(self, how: How, *, term_s: float = 1.0) -> None:
        """End the process's group and say so, once; ``term_s`` 0 is a kill.

        Cancel: call through ``finish``; bounded by ``term_s`` and two seconds.
        """
        if self.stopped is not None:
            return
        self.stopped = how
        self._watcher.cancel()
        self.executable.close()
        self.peer.close("the session has ended")
        if term_s > 0:
            await self.process.stop(term_s=term_s)
        else:
            await self.process.kill()
        self.tail.close()
        self.process.reap()
        self.warnings.close()
        code = self.process.returncode
        self.emit(
            PluginStopped(
                target=self.target,
                plugin=self.found.name,
                pid=self.process.pid,
                how=how,
                exit_code=code if code is not None and code >= 0 else None,
                signal=signal_name(-code) if code is not None and code < 0 else "",
                stderr_tail=self.tail.quote if how != "closed" else [],
            )
        )

    def on_request(self, request: Request) -> None:
        """Serve a handle operation."""
        if self.target:
            if self._is_over:
                self.ops.bind(None)
            self.ops.start(request)
        else:
            self.ops.refuse_unbound(request)

    def on_notification(self, notification: Notification) -> None:
        """Take an output line or a cancel; anything else is ignored."""
        try:
            if notification.method == "output":
                self._on_output(decode(notification.params, OutputParams))
            elif notification.method == "progress":
                self._on_progress(decode(notification.params, ProgressParams))
            elif notification.method == "cancel":
                self._on_cancel(notification)
        except ValueError as exc:
            raw = bytes(notification.params)[:200]
            self.on_violation(Violation(notification.method, raw, detail=str(exc)))

    def on_violation(self, violation: Violation) -> None:
        """Count and show it."""
        self.warnings.violation(violation)

    def on_large(self, large: Large) -> None:
        """Warn that the limit is near."""
        self.warnings.large(large)

    def on_bug(self, exc: Exception) -> None:
        """Show a bug of ours; the plugin and its target go on."""
        self.emit(
            Diagnostic(
                level="error",
                target=self.target,
                task=self._task(),
                summary=f"a bug of preflight, met while it served plugin {self.found.name}: {exc}",
                detail="".join(traceback.format_exception(exc)),
            )
        )

    def on_close(self, why: str) -> None:
        """Do nothing: a pending call has failed, and its caller makes the report."""

    async def _watch_exit(self) -> None:
        """Close the wire when the process is gone: a child of it may hold its stdout open."""
        await self.process.exited.wait()
        self.peer.drain()
        self.peer.close("its process has exited")

    def _on_output(self, said: OutputParams) -> None:
        parent = self._call_id if said.parent is None else said.parent
        if self.ctx is None or self._is_over or parent != self._call_id:
            self.warnings.stray_output(said.line)
            return
        ctx = self.ctx if said.index is None else self.ctx.for_item(said.index)
        for line in said.line.split("\n"):
            ctx.output("plugin", line.removesuffix("\r"))

    def _on_progress(self, said: ProgressParams) -> None:
        if self._on_results is not None and said.id == self._call_id:
            self._on_results(said.results)
        # else it is late, of a call that was cancelled: its outcome was given

    def _on_cancel(self, notification: Notification) -> None:
        try:
            id = decode(notification.params, CancelParams).id
        except ValueError:
            return  # a cancel that names nothing is ignored, as one for a finished request is
        op = self.ops.cancel(id)
        if op:
            self.emit(
                PluginCancelReceived(
                    target=self.target,
                    task=self._task(),
                    plugin=self.found.name,
                    op_id=id,
                    op=op,
                )
            )

    def _on_stderr(self, lines: list[str]) -> None:
        said = PluginStderr(
            target=self.target, task=self._task(), plugin=self.found.name, lines=lines
        )
        self.emit(said)

    def _task(self) -> str:
        return self.ctx.task if self.ctx else ""


def plugin_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Pick what a plugin may see of the controller's environment: never its secrets."""
    return {
        name: value
        for name, value in environment.items()
        if name.upper() in _ENVIRONMENT or name.startswith("LC_")
    }
