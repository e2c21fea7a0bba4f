"""One task on one target, from its template to its last word."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from preflight.control import RunControl, Scope, Stopped
from preflight.errors import PreflightError, Reason
from preflight.events import Change, Event, Phase, Status, TaskFinished, TaskStarted
from preflight.model.playbook import TaskSpec
from preflight.model.template import Scope as Names
from preflight.model.template import holds, render, render_text
from preflight.ports.module import ApplyResult, CheckResult, Module, Requirements, TaskContext
from preflight.ports.target import Become, Target
from preflight.run.gate import Gate
from preflight.run.items import ItemsRun
from preflight.run.output import TaskOutputBuffer


class Modules(Protocol):
    """The modules that one target's tasks may name."""

    def get(self, name: str) -> Module:
        """Give a module; raises ``PreflightError`` with ``unknown_module``."""
        ...

    def is_plugin(self, name: str) -> bool:
        """Tell whether it is a plugin: those can't work with ``become``."""
        ...

    def requires(self, name: str) -> Requirements:
        """Say what a module needs of a target."""
        ...


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What the tasks of one target have in common; ``names`` is what templates may refer to."""

    target: Target
    modules: Modules
    names: Names
    control: RunControl
    emit: Callable[[Event], None]
    hide: Callable[[str], None]
    playbook: Path
    dry_run: bool

    @property
    def gate(self) -> Gate:
        """What judges whether a task can run here."""
        modules = self.modules
        is_plugin, requires = modules.is_plugin, modules.requires
        return Gate(self.target, self.names, requires=requires, is_plugin=is_plugin)


class TaskRun:
    """One attempt at one task; whatever happens, exactly one ``task_finished`` is emitted."""

    def __init__(self, around: Surroundings, spec: TaskSpec, index: int) -> None:
        self._around = around
        self._spec = spec
        self._index = index
        self._name = spec.name
        self._start = time.monotonic()
        self._output = TaskOutputBuffer(around.target.name, spec.key, around.emit)
        self._changes: list[Change] = []
        self._items: ItemsRun | None = None

    async def run(self) -> Status:
        """Do what the task asks for."""
        around, spec = self._around, self._spec
        limit: asyncio.TimerHandle | None = None
        path = f"{around.target.name}/{spec.key}"
        if spec.timeout is not None:
            loop = asyncio.get_running_loop()
            limit = loop.call_later(spec.timeout, around.control.cancel, path, "timeout")
        try:
            async with around.control.scope(path) as scope:
                if spec.for_each is None and not holds(spec.when, around.names):
                    return self.skip(Reason.WHEN_FALSE)
                return await self._converge(scope)
        except Stopped as stop:
            return self.stopped(stop)
        except PreflightError as exc:
            return self._failed(exc)
        finally:
            if limit is not None:
                limit.cancel()

    def skip(self, reason: Reason, message: str = "") -> Status:
        """Report that the task is not to run."""
        return self._finish("skipped", reason=reason, message=message)

    def stopped(self, stop: Stopped) -> Status:
        """Report that the task was cancelled, or had finished before the cancel reached it."""
        if self._items is not None:
            self._items.cancelled()
        if isinstance(stop.result, ApplyResult):
            message = stop.result.message or "finished before the cancel"
            return self._finish("changed", message=message)
        elapsed_s = time.monotonic() - stop.request.at
        by_timeout = stop.request.by == "timeout"
        own_timeout = by_timeout and stop.request.path.endswith(f"/{self._spec.key}")
        if own_timeout:
            words = f"took longer than its timeout of {self._spec.timeout:g} s"
            return self._failed(PreflightError(Reason.TIMEOUT, words))
        how = {
            "killed": "killed: its state is unknown",
            "lost": "its plugin ended while it unwound: its state is unknown",
            "nothing_running": "not started",
        }.get(stop.outcome, f"cancelled in {elapsed_s * 1000:.0f} ms")
        return self._finish(
            "cancelled",
            reason=Reason.TIMEOUT if by_timeout else Reason.CANCELLED,
            message=f"{how} ({_by_words(stop)})",
        )

    async def _converge(self, scope: Scope) -> Status:
        around, spec = self._around, self._spec
        self._name = str(render(spec.name, around.names))
        if spec.become is not None and around.modules.is_plugin(spec.module):
            words = f"{spec.module} is a plugin, and plugin tasks can't use become"
            raise PreflightError(Reason.PLUGIN_BECOME, words)
        refusal = around.gate.refusal(spec)
        if refusal is not None:
            raise refusal
        module = around.modules.get(spec.module)
        ctx = TaskContext(
            target=around.target,
            task=spec.key,
            scope=scope,
            emit=around.emit,
            output=self._output.add,
            folder=around.playbook.parent,
            dry_run=around.dry_run,
            render=lambda text: render_text(text, around.names),
            item_output=self._output.for_item,
            become=self._become(),
        )
        if spec.for_each is not None:
            return await self._each(module, ctx)
        args = cast("dict[str, object]", render(spec.params, around.names))
        self._started("check")
        check = await module.check(args, ctx)
        self._changes = check.changes
        if not check.needs_change:
            return self._finish("ok", message=check.message)
        if around.dry_run:
            return self._finish("changed", message=check.message or "would change")
        self._output.flush()
        self._started("apply")
        return self._applied(check, await module.apply(args, ctx))

    def _become(self) -> Become | None:
        """Render what the task says about rights; the password is masked from now on."""
        if self._spec.become is None:
            return None
        fields = cast("dict[str, object]", render(self._spec.become, self._around.names))
        method, user = str(fields.get("method") or "sudo"), str(fields.get("user") or "root")
        if method != "sudo":
            words = f"become.method {method!r}: only sudo is possible on this kind of target"
            raise PreflightError(Reason.INVALID_PARAMS, words)
        password = str(fields.get("password") or "")
        self._around.hide(password)
        return Become(user=user, password=password)

    async def _each(self, module: Module, ctx: TaskContext) -> Status:
        """Work through the items; a failed one ends no other."""
        emit, flush = self._around.emit, self._output.flush
        items = ItemsRun(self._spec, self._around.names, ctx, emit=emit, flush=flush)
        self._items = items
        self._started("check")
        await items.check(module)
        if items.due:
            self._output.flush()
            self._started("apply")
            await items.apply(module)
        status = items.status()
        if status == "skipped":
            return self.skip(Reason.WHEN_FALSE, items.summary)
        if items.first_failure is None:
            return self._finish(status, message=items.summary)
        index, exc = items.first_failure
        words = f"{items.summary}; first: item {index}: {self._placed(exc)}"
        return self._finish(status, reason=exc.reason, error=words)

    def _applied(self, check: CheckResult, result: ApplyResult) -> Status:
        return self._finish("changed", message=result.message or check.message)

    def _failed(self, exc: PreflightError) -> Status:
        status: Status = "ignored" if self._spec.ignore_errors else "failed"
        return self._finish(status, reason=exc.reason, error=self._placed(exc))

    def _placed(self, exc: PreflightError) -> str:
        if exc.reason is Reason.TEMPLATE_ERROR and self._spec.line:
            return f"{self._around.playbook.name}:{self._spec.line}: {exc.message}"
        return exc.message

    def _started(self, phase: Phase) -> None:
        self._around.emit(
            TaskStarted(
                target=self._around.target.name,
                task=self._spec.key,
                name=self._name,
                module=self._spec.module,
                index=self._index,
                phase=phase,
            )
        )

    def _finish(
        self, status: Status, *, reason: str = "", message: str = "", error: str = ""
    ) -> Status:
        self._output.flush()  # every line is shown before the task is reported done
        self._around.emit(
            TaskFinished(
                target=self._around.target.name,
                task=self._spec.key,
                status=status,
                name=self._name,
                module=self._spec.module,
                index=self._index,
                reason=reason,
                message=message,
                error=error,
                output_tail=self._output.tail if status in ("failed", "ignored") else [],
                elapsed_ms=round((time.monotonic() - self._start) * 1000, 1),
                changes=self._changes,
            )
        )
        return status


def _by_words(stop: Stopped) -> str:
    what = "run" if stop.request.path == "" else "target" if "/" not in stop.request.path else ""
    by = {
        "operator": "by the operator",
        "signal": "by a signal",
        "fail_fast": "another target failed",
        "timeout": "deadline passed",
    }[stop.request.by]
    return f"{what} {by}".strip()
