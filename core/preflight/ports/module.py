"""What every module promises: check looks and changes nothing, apply is safe to repeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from preflight.control import Scope
from preflight.events import Change, Event, Stream, TargetOpCancelled
from preflight.ports.target import DEFAULT_KEEP_BYTES, ExecResult, KillReport, Target

Args = Mapping[str, object]
Emit = Callable[[Event], None]


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """Whether apply is needed, and why; ``changes`` says what would be different."""

    needs_change: bool
    message: str = ""
    changes: list[Change] = []


class ApplyResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, in words."""

    message: str = ""


class TaskContext:
    """All that a module may use while it works on one task of one target."""

    def __init__(
        self,
        *,
        target: Target,
        task: str,
        scope: Scope,
        emit: Emit,
        output: Callable[[Stream, str], None],
        folder: Path,
        dry_run: bool = False,
        render: Callable[[str], str] | None = None,
    ) -> None:
        self.target = target
        self.task = task
        self.scope = scope
        self.emit = emit
        self.output = output
        self.folder = folder  # the playbook's: relative controller paths start here
        self.dry_run = dry_run
        self.render = render  # a file's text with the task's names; never crosses a wire

    async def exec(
        self,
        script: str,
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        stream: bool = False,
        keep_bytes: int = DEFAULT_KEEP_BYTES,
    ) -> ExecResult:
        """Run a script on the target; with ``stream`` its lines are the task's output."""
        return await self.target.exec(
            script,
            stdin=stdin,
            env=env,
            on_line=self.output if stream else None,
            on_kill=self.report_kill,
            keep_bytes=keep_bytes,
        )

    def report_kill(self, report: KillReport) -> None:
        """Make the end of a process on the target visible."""
        self.emit(
            TargetOpCancelled(
                target=self.target.name,
                task=self.task,
                op=report.op,
                pid=report.pid,
                how=report.how,
                elapsed_ms=report.elapsed_ms,
                survivors=report.survivors,
            )
        )


class Module(Protocol):
    """A kind of desired state. A plugin is one too: the runner can't tell the difference.

    Raises :class:`preflight.errors.PreflightError` with the reason of a failure; ``args`` that
    make no sense raise it with ``Reason.INVALID_PARAMS``.
    """

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        """Look whether the target is in the desired state; change nothing."""
        ...

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        """Bring the target into the desired state; safe to repeat."""
        ...
