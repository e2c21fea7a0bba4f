"""A whole run: all targets, so many at a time, to one exit code."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import Counter
from collections.abc import Sequence

import msgspec

from preflight.events import Counts, Diagnostic, Event, RunFinished, RunStarted, TargetCounts
from preflight.plan.planner import TargetPlan
from preflight.run.target_run import TargetRun, Wiring

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_REFUSED = 3
EXIT_PENDING = 4
EXIT_BUG = 70
EXIT_CANCELLED = 130


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is done; ``timeout`` in seconds, ``concurrency`` in targets."""

    playbook: str
    version: str
    concurrency: int = 10
    timeout: float | None = None
    fail_fast: bool = False
    exit_code_for_changes: bool = False
    cancel_grace: float = 2.0


class Runner:
    """Runs the plans of all targets; one target's trouble is never another's."""

    def __init__(self, plans: Sequence[TargetPlan], wiring: Wiring, options: RunOptions) -> None:
        self._runs = [TargetRun(plan, wiring) for plan in plans]
        self._names = [plan.host.name for plan in plans]
        self._wiring = wiring
        self._options = options
        self._places = asyncio.Semaphore(max(1, options.concurrency))
        self._statuses: list[str] = []
        self._crashed = False

    async def run(self) -> int:
        """Run everything to its end and give the exit code, which is the recap's too."""
        start = time.monotonic()
        self._emit_started()
        limit: asyncio.TimerHandle | None = None
        if self._options.timeout is not None:
            loop = asyncio.get_running_loop()
            cancel = self._wiring.control.cancel
            limit = loop.call_later(self._options.timeout, cancel, "", "timeout")
        try:
            async with asyncio.TaskGroup() as group:
                for name, run in zip(self._names, self._runs, strict=True):
                    group.create_task(self._target(name, run), name=name)
        finally:
            if limit is not None:
                limit.cancel()
        code = self._exit_code()
        self._emit_finished(code, time.monotonic() - start)
        return code

    async def _target(self, name: str, run: TargetRun) -> None:
        async with self._places:
            request = self._wiring.control.request_for(name)
            if request is not None:
                self._statuses.append(run.not_started(f"the run was cancelled ({request.by})"))
                return
            try:
                status = await run.run()
            except (
                Exception
            ) as exc:  # the top of a target's work: a bug of ours ends no other target
                self._crashed = True
                status = run.crashed(f"{type(exc).__name__}: {exc}")
                self._wiring.emit(
                    Diagnostic(
                        target=name,
                        level="error",
                        summary=f"a bug ended the work on {name}",
                        detail=traceback.format_exc(),
                    )
                )
            self._statuses.append(status)
            if self._options.fail_fast and status in ("failed", "unreachable", "refused"):
                self._wiring.control.cancel("", "fail_fast")

    def _exit_code(self) -> int:
        counts = self._counts()
        request = self._wiring.control.request_for("")
        if self._crashed:
            return EXIT_BUG
        if request is not None and request.by in ("operator", "signal"):
            return EXIT_CANCELLED
        if set(self._statuses) & {"failed", "unreachable"} or counts.failed:
            return EXIT_FAILED
        refused = "refused" in self._statuses
        if request is not None and not (refused and request.by == "fail_fast"):
            return EXIT_FAILED
        if refused:
            return EXIT_REFUSED
        if counts.cancelled or "cancelled" in self._statuses or "not_started" in self._statuses:
            return EXIT_CANCELLED
        if self._options.exit_code_for_changes and counts.changed:
            return EXIT_PENDING
        return EXIT_OK

    def _counts(self) -> Counts:
        fields = Counts.__struct_fields__
        each = [run.counts for run in self._runs]
        return Counts(**{name: sum(getattr(one, name) for one in each) for name in fields})

    def _emit_started(self) -> None:
        options, wiring = self._options, self._wiring
        event: Event = RunStarted(
            mode="check" if wiring.dry_run else "apply",
            playbook=options.playbook,
            path=str(wiring.playbook),
            targets=self._names,
            version=options.version,
            concurrency=options.concurrency,
            cancel_grace_ms=round(options.cancel_grace * 1000),
        )
        wiring.emit(event)

    def _emit_finished(self, code: int, elapsed_s: float) -> None:
        words = {
            EXIT_OK: "ok",
            EXIT_PENDING: "ok",
            EXIT_REFUSED: "refused",
            EXIT_CANCELLED: "cancelled",
        }
        counted = Counter(self._statuses)
        self._wiring.emit(
            RunFinished(
                status="crashed" if code == EXIT_BUG else words.get(code, "failed"),
                tasks=self._counts(),
                targets=TargetCounts(
                    **{name: counted[name] for name in TargetCounts.__struct_fields__}
                ),
                exit_code=code,
                elapsed_ms=round(elapsed_s * 1000, 1),
            )
        )
