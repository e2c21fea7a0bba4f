"""The gate: what keeps a plan from running on a target, all of it, found before the first task.

The same judgement is asked for once more by each task, for those that the gate lets through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import msgspec

from preflight.errors import PreflightError, Reason
from preflight.events import Violation
from preflight.model.playbook import TaskSpec
from preflight.model.template import Scope as Names
from preflight.model.template import holds, render
from preflight.plan.planner import TargetPlan
from preflight.ports.module import Requirements
from preflight.ports.target import Target

_ROOT = ("root", "0")


class Gate:
    """Judges tasks by what their modules need and what the target has."""

    def __init__(
        self,
        target: Target,
        names: Names,
        *,
        requires: Callable[[str], Requirements],
        is_plugin: Callable[[str], bool],
    ) -> None:
        self._target = target
        self._names = names
        self._requires = requires
        self._is_plugin = is_plugin

    def violations(self, plan: TargetPlan) -> list[Violation]:
        """List every task of ``plan`` that can't run here.

        Left out are those that do not run, and those whose failure is ignored. A condition that
        can't be judged counts as one that holds.
        """
        found: list[Violation] = []
        for spec in plan.tasks:
            if spec.ignore_errors or spec.key in plan.skipped_by_tag:
                continue
            refusal = self.refusal(spec)
            if refusal is not None and self._will_run(spec):
                found.append(
                    Violation(
                        task=spec.key,
                        module=spec.module,
                        reason=refusal.reason,
                        message=refusal.message,
                    )
                )
        return found

    def refusal(self, spec: TaskSpec) -> PreflightError | None:
        """Say why the task can't run on this target; ``None`` when nothing is known against it."""
        needs, module = self._requires(spec.module), spec.module
        runtime = self._target.info.runtime_kind
        if runtime and runtime not in needs.runtimes:
            only = ", ".join(sorted(needs.runtimes))
            words = f"{module} does not work on {runtime}, only on {only}"
            return PreflightError(Reason.UNSUPPORTED_ON_RUNTIME, words)
        if needs.remote and self._names.target.get("transport") == "local":
            words = f"{module} would end the engine itself: it works only on another machine"
            return PreflightError(Reason.UNSUPPORTED_ON_RUNTIME, words)
        if self._is_plugin(module):
            return None
        return self._rights(spec, needs)

    def _rights(self, spec: TaskSpec, needs: Requirements) -> PreflightError | None:
        account = self._target.account
        if account.uid < 0:
            return None
        if spec.become is None:
            if not needs.root or account.uid == 0:
                return None
            words = f"{spec.module} needs root: log in as root, or set become"
            return PreflightError(Reason.REQUIRES_ROOT, words)
        user = self._become_user(spec)
        if needs.root and user is not None and user not in _ROOT:
            words = f"{spec.module} needs root, and become.user is {user}: make it root"
            return PreflightError(Reason.REQUIRES_ROOT, words)
        if account.sudo or (account.uid == 0 and user in _ROOT):
            return None
        words = "become needs sudo, which the target does not have: install it, or log in as root"
        return PreflightError(Reason.SUDO_MISSING, words)

    def _become_user(self, spec: TaskSpec) -> str | None:
        """Give the account that the task becomes; ``None`` where the task itself fails on it."""
        try:
            return str(render((spec.become or {}).get("user"), self._names) or "root")
        except PreflightError:
            return None

    def _will_run(self, spec: TaskSpec) -> bool:
        try:
            if spec.for_each is None:
                return holds(spec.when, self._names)
            items = render(spec.for_each, self._names)
        except PreflightError:
            return True
        if not isinstance(items, list):
            return True
        listed = cast("list[object]", items)
        return any(self._item_runs(spec, index, item) for index, item in enumerate(listed))

    def _item_runs(self, spec: TaskSpec, index: int, item: object) -> bool:
        own = {spec.loop_var: item, "index": index}
        try:
            return holds(spec.when, msgspec.structs.replace(self._names, item=own))
        except PreflightError:
            return True
