"""for_each: every item has an outcome of its own, taken one by one or many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.bus import Bus
from preflight.control import RunControl
from preflight.errors import ModuleError, PreflightError, Reason
from preflight.events import ItemFinished, TaskFinished, TaskOutput, TaskProgress
from preflight.model.inventory import Host
from preflight.model.playbook import TaskSpec
from preflight.model.template import Scope
from preflight.plan.planner import TargetPlan
from preflight.ports.module import (
    ApplyResult,
    Args,
    CheckResult,
    Item,
    ItemAnswer,
    ItemsModule,
    Module,
    Report,
    Requirements,
    TaskContext,
)
from preflight.run.runner import Runner, RunOptions
from preflight.run.target_run import Wiring
from preflight.targets.local import LocalTarget
from tests.support.events import PATIENCE_S, Recorder


class Single:
    """Takes one item at a time; its args say what becomes of it."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.at_once = 0
        self.most_at_once = 0

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        self.log.append(f"check {args['n']}")
        ctx.output("out", f"looking at {args['n']}")
        if args["kind"] == "check fails":
            raise ModuleError(f"no {args['n']}")
        return CheckResult(needs_change=args["kind"] != "ok", message=f"{args['n']} seen")

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        self.log.append(f"apply {args['n']}")
        if args["kind"] == "hangs":
            await ctx.exec("sleep 300")
        if args["kind"] == "apply fails":
            raise ModuleError(f"not {args['n']}")
        return ApplyResult(message=f"{args['n']} done")


class Batched(Single):
    """Takes them all at once; the other way to the same outcomes."""

    def __init__(self, dies_after: int | None = None) -> None:
        super().__init__()
        self.batches: list[tuple[str, list[int]]] = []
        self.shared: frozenset[str] = frozenset()
        self._dies_after = dies_after

    async def check_items(
        self,
        items: Sequence[Item],
        ctx: TaskContext,
        report: Report,
        *,
        shared: frozenset[str],
        concurrency: int,
    ) -> None:
        self.shared = shared
        self.batches.append(("check", [item.index for item in items]))
        for item in items:
            try:
                found = await self.check(item.args, ctx)
                answer = ItemAnswer(
                    index=item.index, needs_change=found.needs_change, message=found.message
                )
            except PreflightError as exc:
                answer = ItemAnswer(index=item.index, failure=exc)
            report(answer)

    async def apply_items(
        self,
        items: Sequence[Item],
        ctx: TaskContext,
        report: Report,
        *,
        shared: frozenset[str],
        concurrency: int,
    ) -> None:
        self.batches.append(("apply", [item.index for item in items]))
        for done, item in enumerate(items):
            if done == self._dies_after:
                raise PreflightError(Reason.PLUGIN_CRASHED, "it died")
            try:
                message = (await self.apply(item.args, ctx)).message
                report(ItemAnswer(index=item.index, message=message))
            except PreflightError as exc:
                report(ItemAnswer(index=item.index, failure=exc))


class Modules:
    def __init__(self, module: Module) -> None:
        self._module = module

    def get(self, name: str) -> Module:
        return self._module

    def requires(self, name: str) -> Requirements:
        return Requirements()

    def is_plugin(self, name: str) -> bool:
        return False


def spec(items: object, **fields: object) -> TaskSpec:
    known = {
        "key": "t",
        "name": "t",
        "module": "m",
        "params": {"n": "{{ item.n }}", "kind": "{{ item.kind }}", "same": "{{ vars.same }}"},
        "for_each": items,
        **fields,
    }
    return TaskSpec(**known)  # pyright: ignore[reportArgumentType]


class Outcome:
    def __init__(self, code: int, seen: Recorder) -> None:
        self.code = code
        self.seen = seen
        self.items = {
            event.index: (event.status, event.reason, event.message, event.error)
            for event in seen.of(ItemFinished)
        }
        assert len(self.items) == len(seen.of(ItemFinished)), "an item ended twice"
        (self.task,) = seen.of(TaskFinished)


async def run_async(
    module: Module, task: TaskSpec, *, dry_run: bool = False, cancel_after: int | None = None
) -> Outcome:
    bus = Bus("run")
    seen = Recorder(bus)
    control = RunControl(bus)

    @asynccontextmanager
    async def open_modules(target: str, names: Scope) -> AsyncGenerator[Modules]:
        yield Modules(module)

    wiring = Wiring(
        make_target=lambda host: LocalTarget(host.name),
        open_modules=open_modules,
        control=control,
        emit=bus.emit,
        hide=bus.hide,
        playbook=Path("site.yml"),
        dry_run=dry_run,
    )
    plan = TargetPlan(
        host=Host(name="one", transport="local"),
        vars={"same": "s"},
        tasks=[task],
        needs_facts=False,
    )
    runner = Runner([plan], wiring, RunOptions(playbook="site", version="0"))
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        ending = group.create_task(runner.run())
        if cancel_after is not None:
            await seen.wait_for(ItemFinished, index=cancel_after)
            control.cancel("one/t", "operator")
        code = await ending
    return Outcome(code, seen)


def run(module: Module, task: TaskSpec, *, dry_run: bool = False) -> Outcome:
    return asyncio.run(run_async(module, task, dry_run=dry_run))


def entries(*kinds: str) -> list[object]:
    return [{"n": number, "kind": kind} for number, kind in enumerate(kinds)]


def test_every_item_has_an_outcome_and_the_task_has_their_sum() -> None:
    outcome = run(Single(), spec(entries("ok", "change", "apply fails", "check fails", "ok")))
    assert outcome.code == 1
    assert [outcome.items[n][0] for n in range(5)] == ["ok", "changed", "failed", "failed", "ok"]
    assert outcome.task.status == "failed"
    assert "item 3: no 3" in outcome.task.error
    (last,) = outcome.seen.of(TaskProgress)[-1:]
    assert (last.done, last.total) == (5, 5)


def test_all_items_are_checked_before_the_first_is_applied() -> None:
    module = Single()
    run(module, spec(entries("change", "change")))
    assert module.log == ["check 0", "check 1", "apply 0", "apply 1"]


def test_a_dry_run_reports_what_would_change_and_applies_nothing() -> None:
    module = Single()
    outcome = run(module, spec(entries("change", "ok")), dry_run=True)
    assert module.log == ["check 0", "check 1"]
    assert outcome.items[0][0] == "changed"
    assert outcome.task.status == "changed"


def test_conditions_are_the_items_own() -> None:
    outcome = run(Single(), spec(entries("ok", "ok", "ok"), when="item.n != 1"))
    assert outcome.items[1][:2] == ("skipped", "when-condition-false")
    assert outcome.task.status == "ok"
    everything = run(Single(), spec(entries("ok"), when="index > 5"))
    assert everything.task.status == "skipped"


def test_the_loop_variable_may_have_a_name_of_its_own() -> None:
    task = spec(["x"], loop_var="kiosk", params={"n": "{{ kiosk }}", "kind": "ok"})
    outcome = run(Single(), task)
    assert outcome.items[0][2] == "x seen"
    assert outcome.seen.of(ItemFinished)[0].label == "x"


def test_a_template_may_yield_the_list_and_anything_else_is_refused() -> None:
    assert run(Single(), spec("{{ [{'n': 1, 'kind': 'ok'}] }}")).code == 0
    outcome = run(Single(), spec("{{ vars.same }}"))
    assert outcome.task.reason == "invalid_params"
    assert "must be a list" in outcome.task.error


def test_an_empty_list_is_nothing_to_do() -> None:
    outcome = run(Single(), spec([]))
    assert (outcome.code, outcome.task.status) == (0, "ok")


def test_ignored_failures_leave_the_task_and_the_run_whole() -> None:
    outcome = run(Single(), spec(entries("check fails", "ok"), ignore_errors=True))
    assert outcome.code == 0
    assert outcome.items[0][0] == "ignored"


def test_no_more_items_run_at_once_than_the_concurrency() -> None:
    module = Single()
    run(module, spec(entries(*["ok"] * 9), concurrency=3))
    assert module.most_at_once == 3


def test_lines_are_credited_to_their_item_and_come_before_its_end() -> None:
    outcome = run(Single(), spec(entries("ok", "ok")))
    said = [(event.item, event.lines[0].text) for event in outcome.seen.of(TaskOutput)]
    assert said == [("0", "looking at 0"), ("1", "looking at 1")]
    order = [
        (type(event).__name__, getattr(event, "item", "") or str(getattr(event, "index", "")))
        for event in outcome.seen.events
        if isinstance(event, TaskOutput | ItemFinished)
    ]
    assert order.index(("TaskOutput", "1")) < order.index(("ItemFinished", "1"))


def test_a_module_that_takes_many_gets_all_at_once_and_only_what_needs_it() -> None:
    module = Batched()
    assert isinstance(module, ItemsModule)
    run(module, spec(entries("ok", "change", "ok", "change")))
    assert module.batches == [("check", [0, 1, 2, 3]), ("apply", [1, 3])]
    assert module.shared == {"same"}


def test_a_batch_that_dies_keeps_every_item_that_was_reported() -> None:
    outcome = run(Batched(dies_after=1), spec(entries("change", "change", "change")))
    assert [outcome.items[n][0] for n in range(3)] == ["changed", "failed", "failed"]
    assert outcome.items[2][1] == "plugin_crashed"


@pytest.mark.parametrize("module", [Single(), Batched()])
async def test_a_cancel_keeps_finished_items_and_reports_the_rest(module: Module) -> None:
    task = spec(entries("change", "hangs", "change"))
    outcome = await run_async(module, task, cancel_after=0)
    assert [outcome.items[n][0] for n in range(3)] == ["changed", "cancelled", "cancelled"]
    assert outcome.task.status == "cancelled"
    assert outcome.code == 130


KINDS = st.sampled_from(["ok", "change", "check fails", "apply fails"])


@settings(max_examples=40, deadline=None)
@given(kinds=st.lists(KINDS, max_size=12), dry_run=st.booleans(), ignore=st.booleans())
def test_batches_and_single_items_give_the_same_outcomes(
    kinds: list[str], dry_run: bool, ignore: bool
) -> None:
    one_by_one = run(Single(), spec(entries(*kinds), ignore_errors=ignore), dry_run=dry_run)
    at_once = run(Batched(), spec(entries(*kinds), ignore_errors=ignore), dry_run=dry_run)
    assert one_by_one.items == at_once.items
    assert one_by_one.code == at_once.code
    assert (one_by_one.task.status, one_by_one.task.error) == (
        at_once.task.status,
        at_once.task.error,
    )
