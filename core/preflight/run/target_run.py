"""All tasks of one target, in order."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from preflight.control import CancelRequest, RunControl, Stopped
from preflight.errors import PreflightError, Reason
from preflight.events import (
    Counts,
    Diagnostic,
    Event,
    PlannedTask,
    PlanRefused,
    Status,
    TargetFinished,
    TargetReady,
    TargetStarted,
    TargetUnreachableEvent,
    Violation,
)
from preflight.model.inventory import Host
from preflight.model.playbook import TaskSpec
from preflight.model.template import Scope as Names
from preflight.model.template import render
from preflight.plan.planner import TargetPlan
from preflight.ports.target import Target
from preflight.run.task_run import Modules, Surroundings, TaskRun


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """What the composition root gives: how to reach targets and modules, and where events go."""

    make_target: Callable[[Host], Target]
    open_modules: Callable[[str, Names], AbstractAsyncContextManager[Modules]]
    control: RunControl
    emit: Callable[[Event], None]
    hide: Callable[[str], None]
    playbook: Path
    dry_run: bool = False
    noticed: set[str] = field(default_factory=set[str])


class TargetRun:
    """Runs one target's plan; :attr:`counts` says how its tasks ended."""

    def __init__(self, plan: TargetPlan, wiring: Wiring) -> None:
        self._plan = plan
        self._wiring = wiring
        self._name = plan.host.name
        self._start = time.monotonic()
        self._statuses: dict[str, Status] = {}
        self._broken = ""  # the name of the task after whose failure nothing more is run

    @property
    def counts(self) -> Counts:
        """How many tasks ended in which status."""
        counted: Counter[str] = Counter(self._statuses.values())
        return Counts(**{status: counted[status] for status in Counts.__struct_fields__})

    async def run(self) -> str:
        """Run it and give the target's status: ok, failed, unreachable, refused or cancelled.

        Cancel: only through the control; what is left is reported as cancelled.
        """
        plan, wiring = self._plan, self._wiring
        wiring.emit(
            TargetStarted(
                target=self._name,
                transport=plan.host.transport,
                address=plan.host.address,
                tasks=[
                    PlannedTask(key=task.key, name=_shown(task, plan), module=task.module)
                    for task in plan.tasks
                ],
            )
        )
        try:
            target = wiring.make_target(plan.host)
        except PreflightError as exc:
            return self._unreachable(exc)
        try:
            async with wiring.control.scope(self._name):
                await target.__aenter__()
                names = await self._names(target)
        except Stopped as stop:
            await target.__aexit__(None, None, None)
            return self._never(stop.request)
        except PreflightError as exc:
            await target.__aexit__(None, None, None)
            return self._unreachable(exc)
        try:
            wiring.emit(TargetReady(target=self._name, info=target.info))
            self._notice(target)
            async with wiring.open_modules(self._name, names) as modules:
                around = self._surroundings(target, modules, names)
                violations = around.gate.violations(plan)
                if not violations:
                    await self._tasks(around)
        finally:
            self._notice(target)
            await target.__aexit__(None, None, None)
        return self._refused(violations) if violations else self._finished(self._status())

    def _notice(self, target: Target) -> None:
        """Tell what a person should know of how the target is reached, each thing once a run."""
        for words in target.notices:
            if words not in self._wiring.noticed:
                self._wiring.noticed.add(words)
                level = "warning" if "insecure" in words else "info"
                self._wiring.emit(Diagnostic(target=self._name, level=level, summary=words))

    def not_started(self, message: str) -> str:
        """Report a target whose turn never came."""
        self._wiring.emit(
            TargetFinished(
                target=self._name, status="not_started", counts=Counts(), message=message
            )
        )
        return "not_started"

    def crashed(self, detail: str) -> str:
        """Report a target whose work was ended by a bug of ours."""
        return self._finished("failed", message=f"a bug of preflight: {detail}")

    async def _names(self, target: Target) -> Names:
        """Gather what templates may refer to; facts only where a template asks for them."""
        host = self._plan.host
        facts = await target.facts() if self._plan.needs_facts else {}
        return Names(
            vars=self._plan.vars,
            facts=facts,
            env=cast("dict[str, object]", facts.get("env", {})),
            target={
                "name": host.name,
                "hostname": host.name,
                "address": host.address,
                "transport": host.transport,
                "port": host.port,
            },
        )

    def _surroundings(self, target: Target, modules: Modules, names: Names) -> Surroundings:
        return Surroundings(
            target=target,
            modules=modules,
            names=names,
            control=self._wiring.control,
            emit=self._wiring.emit,
            hide=self._wiring.hide,
            playbook=self._wiring.playbook,
            dry_run=self._wiring.dry_run,
        )

    async def _tasks(self, around: Surroundings) -> None:
        for index, spec in enumerate(self._plan.tasks):
            attempt = TaskRun(around, spec, index)
            self._statuses[spec.key] = await self._one(attempt, spec)
            if self._statuses[spec.key] == "failed" and not self._broken:
                self._broken = spec.name

    async def _one(self, attempt: TaskRun, spec: TaskSpec) -> Status:
        path = f"{self._name}/{spec.key}"
        request = self._wiring.control.request_for(path)
        if spec.key in self._plan.skipped_by_tag:
            return attempt.skip(Reason.TAG_FILTERED)
        if request is not None:
            return attempt.stopped(Stopped(request, "nothing_running"))
        missing = [key for key in spec.depends_on if self._blocks(key)]
        if missing:
            return attempt.skip(Reason.DEPENDENCY_FAILED, f"needs {', '.join(missing)}")
        if self._broken:
            return attempt.skip(Reason.DEPENDENCY_FAILED, f"{self._broken} failed before it")
        return await attempt.run()

    def _blocks(self, key: str) -> bool:
        """Tell whether a task that needs ``key`` must not run.

        One that was filtered by tag or whose condition was false does not block.
        """
        status = self._statuses.get(key)
        if status == "skipped":
            spec = next(task for task in self._plan.tasks if task.key == key)
            return any(self._blocks(other) for other in spec.depends_on)
        return status in ("failed", "cancelled")

    def _status(self) -> str:
        statuses = set(self._statuses.values())
        if "failed" in statuses:
            return "failed"
        return "cancelled" if "cancelled" in statuses else "ok"

    def _never(self, request: CancelRequest) -> str:
        message = f"cancelled by {request.by} before its first task"
        return self._finished("cancelled", reason=Reason.CANCELLED, message=message)

    def _refused(self, violations: list[Violation]) -> str:
        self._wiring.emit(PlanRefused(target=self._name, violations=violations))
        count = len(violations)
        words = f"{count} task{'s' * (count != 1)} can't run here; nothing was changed"
        return self._finished("refused", reason=violations[0].reason, message=words)

    def _unreachable(self, exc: PreflightError) -> str:
        self._wiring.emit(TargetUnreachableEvent(target=self._name, reason=exc.message))
        return self._finished("unreachable", reason=exc.reason, message=exc.message)

    def _finished(self, status: str, *, reason: str = "", message: str = "") -> str:
        self._wiring.emit(
            TargetFinished(
                target=self._name,
                status=status,
                counts=self.counts,
                reason=reason,
                message=message,
                elapsed_ms=round((time.monotonic() - self._start) * 1000, 1),
            )
        )
        return status


def _shown(task: TaskSpec, plan: TargetPlan) -> str:
    """Give a task's name as far as it is known before the target was contacted."""
    try:
        return str(render(task.name, Names(vars=plan.vars, target={"name": plan.host.name})))
    except PreflightError:
        return task.name
