"""What every module promises: check looks and changes nothing, apply is safe to repeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from preflight.control import Scope
from preflight.errors import PreflightError
from preflight.events import Change, Event, Stream, TargetOpCancelled
from preflight.ports.target import DEFAULT_KEEP_BYTES, Become, ExecResult, KillReport, Target

Args = Mapping[str, object]
Emit = Callable[[Event], None]
Output = Callable[[Stream, str], None]


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
        output: Output,
        folder: Path,
        dry_run: bool = False,
        render: Callable[[str], str] | None = None,
        item_output: Callable[[int], Output] | None = None,
        become: Become | None = None,
    ) -> None:
        self.target = target
        self.task = task
        self.scope = scope
        self.emit = emit
        self.output = output
        self.folder = folder  # the playbook's: relative controller paths start here
        self.dry_run = dry_run
        self.become = become
        self._item_output = item_output
        self.render = render  # a file's text with the task's names; never crosses a wire

    def for_item(self, index: int, *, render: Callable[[str], str] | None = None) -> TaskContext:
        """Give the context for one item: its output is credited to it."""
        return TaskContext(
            target=self.target,
            task=self.task,
            scope=self.scope,
            emit=self.emit,
            output=self._item_output(index) if self._item_output else self.output,
            folder=self.folder,
            dry_run=self.dry_run,
            render=render or self.render,
            become=self.become,
        )

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
            become=self.become,
        )

    async def put_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Write a file on the target, with the task's rights."""
        await self.target.put_file(path, data, mode=mode, become=self.become)

    async def get_file(self, path: str, *, limit_bytes: int | None = None) -> bytes:
        """Read a file of the target, with the task's rights."""
        return await self.target.get_file(path, limit_bytes=limit_bytes, become=self.become)

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


class Requirements(msgspec.Struct, frozen=True, kw_only=True):
    """What a module needs of every target that it is to work on.

    ``root``: it does nothing useful with other rights. ``remote``: it must not be used on the
    engine's own machine.
    """

    runtimes: frozenset[str] = frozenset({"posix-shell"})
    root: bool = False
    remote: bool = False


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


class Item(msgspec.Struct, frozen=True):
    """One item of a task with ``for_each``: its place, from 0, and its rendered args."""

    index: int
    args: dict[str, object]


class ItemAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one item in one phase; ``failure`` is why it has no result.

    ``needs_change`` is what ``check`` found; after ``apply`` it says nothing.
    """

    index: int
    needs_change: bool = False
    message: str = ""
    failure: PreflightError | None = None
    changes: list[Change] = []


Report = Callable[[ItemAnswer], None]


@runtime_checkable
class ItemsModule(Protocol):
    """A module that takes many items at once, and reports each one as it ends.

    An item's failure is its own. What raises fails every item that was not reported yet.
    ``shared`` names the args that are the same for all items of the task.
    """

    async def check_items(
        self,
        items: Sequence[Item],
        ctx: TaskContext,
        report: Report,
        *,
        shared: frozenset[str],
        concurrency: int,
    ) -> None:
        """Check each item."""
        ...

    async def apply_items(
        self,
        items: Sequence[Item],
        ctx: TaskContext,
        report: Report,
        *,
        shared: frozenset[str],
        concurrency: int,
    ) -> None:
        """Apply each item; only those come here that need it."""
        ...
