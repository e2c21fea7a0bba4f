"""The runner over real local targets and small modules of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from preflight.bus import Bus
from preflight.control import RunControl
from preflight.errors import ModuleError, PreflightError, Reason, TargetUnreachable
from preflight.events import (
    CancelFinished,
    PlanRefused,
    RunFinished,
    TargetFinished,
    TargetUnreachableEvent,
    TaskFinished,
    TaskOutput,
    TaskStarted,
)
from preflight.model.inventory import Host
from preflight.model.playbook import TaskSpec
from preflight.model.template import Scope
from preflight.plan.planner import TargetPlan
from preflight.ports.module import (
    ApplyResult,
    Args,
    CheckResult,
    Module,
    Requirements,
    TaskContext,
)
from preflight.ports.target import Account, Target
from preflight.run.runner import Runner, RunOptions
from preflight.run.target_run import Wiring
from preflight.targets.local import LocalTarget
from tests.support.events import PATIENCE_S, Recorder


class Fake:
    """A module that needs the change that its args say it needs."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        self._log.append(f"{ctx.target.name} check {args.get('n', '')}".strip())
        if "fail" in args:
            raise ModuleError(str(args["fail"]))
        if "bug" in args:
            raise RuntimeError("a bug")
        return CheckResult(needs_change=bool(args.get("change", False)), message="checked")

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        self._log.append(f"{ctx.target.name} apply")
        if "script" in args:
            result = await ctx.exec(str(args["script"]), stream=True)
            if result.exit_code:
                raise ModuleError(f"exit {result.exit_code}")
        return ApplyResult(message="applied")


class Modules:
    def __init__(self, log: list[str]) -> None:
        self._module = Fake(log)

    def get(self, name: str) -> Module:
        if name not in ("fake", "plugin", "rooted"):
            raise PreflightError(Reason.UNKNOWN_MODULE, name)
        return self._module

    def requires(self, name: str) -> Requirements:
        return Requirements(root=name == "rooted")

    def is_plugin(self, name: str) -> bool:
        return name == "plugin"


class Dead(LocalTarget):
    async def __aenter__(self) -> LocalTarget:
        raise TargetUnreachable("connection refused by 127.0.0.1:22")


class Humble(LocalTarget):
    """Where the account that logs in is an ordinary one."""

    @property
    def account(self) -> Account:
        return Account(uid=1000, sudo=True)


def make_target(host: Host) -> Target:
    if host.name.startswith("humble"):
        return Humble(host.name)
    if host.name == "none":
        raise TargetUnreachable("transport carrier-pigeon is not there yet")
    return Dead(host.name) if host.name.startswith("dead") else LocalTarget(host.name)


def task(key: str, **params: object) -> TaskSpec:
    return TaskSpec(key=key, name=key, module="fake", params=params)


class World:
    """A runner with its bus, and what its modules did."""

    def __init__(
        self,
        tasks: list[TaskSpec],
        *,
        targets: tuple[str, ...] = ("one",),
        skipped: frozenset[str] = frozenset(),
        dry_run: bool = False,
        options: RunOptions | None = None,
    ) -> None:
        self.log: list[str] = []
        bus = Bus("run")
        self.seen = Recorder(bus)
        self.control = RunControl(bus)

        @asynccontextmanager
        async def open_modules(target: str, names: Scope) -> AsyncGenerator[Modules]:
            yield Modules(self.log)

        wiring = Wiring(
            make_target=make_target,
            open_modules=open_modules,
            control=self.control,
            emit=bus.emit,
            hide=bus.hide,
            playbook=Path("site.yml"),
            dry_run=dry_run,
        )
        plans = [
            TargetPlan(
                host=Host(name=name, transport="local"),
                vars={"who": "Bo"},
                tasks=tasks,
                skipped_by_tag=skipped,
                needs_facts=False,
            )
            for name in targets
        ]
        self.runner = Runner(plans, wiring, options or RunOptions(playbook="site", version="0"))

    def statuses(self, target: str = "one") -> dict[str, str]:
        done = self.seen.of(TaskFinished, target=target)
        assert len({event.task for event in done}) == len(done), "a task was finished twice"
        return {event.task: event.status for event in done}

    def reason(self, key: str) -> str:
        return self.seen.of(TaskFinished, task=key)[0].reason


def run(world: World, *, meanwhile: Callable[[World], Awaitable[None]] | None = None) -> int:
    async def both() -> int:
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            ending = group.create_task(world.runner.run())
            if meanwhile is not None:
                await meanwhile(world)
            code = await ending
        finished = world.seen.of(RunFinished)
        assert [event.exit_code for event in finished] == [code]
        return code

    return asyncio.run(both())


def test_apply_is_called_only_where_check_finds_a_change() -> None:
    world = World([task("a", change=True), task("b")])
    assert run(world) == 0
    assert world.log == ["one check", "one apply", "one check"]
    assert world.statuses() == {"a": "changed", "b": "ok"}
    phases = [(event.task, event.phase) for event in world.seen.of(TaskStarted)]
    assert phases == [("a", "check"), ("a", "apply"), ("b", "check")]


def test_a_dry_run_never_applies() -> None:
    world = World([task("a", change=True)], dry_run=True)
    assert run(world) == 0
    assert world.log == ["one check"]
    assert world.statuses() == {"a": "changed"}


def test_pending_changes_have_an_exit_code_of_their_own_when_asked_for() -> None:
    options = RunOptions(playbook="site", version="0", exit_code_for_changes=True)
    assert run(World([task("a", change=True)], dry_run=True, options=options)) == 4
    assert run(World([task("a")], dry_run=True, options=options)) == 0


def test_a_failure_skips_the_rest_of_its_target_and_no_other_target() -> None:
    tasks = [task("a"), task("b", fail="no"), task("c")]
    world = World(tasks, targets=("one", "two"))
    assert run(world) == 1
    for target in ("one", "two"):
        assert world.statuses(target) == {"a": "ok", "b": "failed", "c": "skipped"}
    assert world.reason("c") == "dependency-failed"
    assert {event.status for event in world.seen.of(TargetFinished)} == {"failed"}


def test_an_ignored_failure_is_seen_as_such_and_stops_nothing() -> None:
    ignored = TaskSpec(key="a", name="a", module="fake", params={"fail": "no"}, ignore_errors=True)
    world = World([ignored, task("b")])
    assert run(world) == 0
    assert world.statuses() == {"a": "ignored", "b": "ok"}
    assert world.seen.of(TaskFinished, task="a")[0].error == "no"


def test_a_filtered_task_blocks_nothing_that_needs_it() -> None:
    needy = TaskSpec(key="b", name="b", module="fake", params={}, depends_on=["a"])
    world = World([task("a"), needy], skipped=frozenset({"a"}))
    assert run(world) == 0
    assert world.statuses() == {"a": "skipped", "b": "ok"}
    assert world.reason("a") == "tag-filtered"


def test_a_false_condition_skips_before_the_params_are_rendered() -> None:
    spec = TaskSpec(
        key="a", name="a", module="fake", params={"n": "{{ vars.no }}"}, when="vars.who == 'Al'"
    )
    world = World([spec])
    assert run(world) == 0
    assert world.reason("a") == "when-condition-false"


def test_a_template_that_can_t_be_rendered_fails_its_task_with_file_and_line() -> None:
    spec = TaskSpec(key="a", name="a", module="fake", params={"n": "{{ vars.no }}"}, line=7)
    world = World([spec])
    assert run(world) == 1
    (done,) = world.seen.of(TaskFinished)
    assert done.reason == "template_error"
    assert "site.yml:7" in done.error
    assert "vars.no" in done.error
    assert world.log == []


def test_a_plugin_with_become_is_refused_before_it_starts() -> None:
    spec = TaskSpec(key="a", name="a", module="plugin", params={}, become={"user": "root"})
    world = World([spec])
    assert run(world) == 1
    assert world.reason("a") == "plugin_become"
    assert world.log == []


def test_an_unreachable_target_is_told_apart_from_a_failed_one() -> None:
    world = World([task("a")], targets=("dead", "one"))
    assert run(world) == 1
    assert world.statuses("one") == {"a": "ok"}
    (event,) = world.seen.of(TargetUnreachableEvent)
    assert "127.0.0.1:22" in event.reason
    (done,) = world.seen.of(RunFinished)
    assert (done.targets.unreachable, done.targets.failed, done.targets.ok) == (1, 0, 1)


def test_fail_fast_reports_what_was_never_started() -> None:
    options = RunOptions(playbook="site", version="0", concurrency=1, fail_fast=True)
    world = World([task("a", fail="no")], targets=("one", "two", "three"), options=options)
    assert run(world) == 1
    ends = {event.target: event.status for event in world.seen.of(TargetFinished)}
    assert ends == {"one": "failed", "two": "not_started", "three": "not_started"}


def test_no_more_targets_run_at_once_than_the_concurrency() -> None:
    options = RunOptions(playbook="site", version="0", concurrency=1)
    world = World([task("a")], targets=("one", "two"), options=options)
    assert run(world) == 0
    order = [event.target for event in world.seen.of(TargetFinished)]
    assert order == ["one", "two"]
    assert world.log == ["one check", "two check"]


def test_a_bug_in_one_target_s_work_ends_no_other_and_exits_70() -> None:
    world = World([task("a", bug=True)], targets=("one", "two"))
    assert run(world) == 70
    assert len(world.seen.of(TargetFinished)) == 2


def test_every_line_comes_before_the_task_is_reported_finished() -> None:
    world = World([task("a", change=True, script="seq 2000; echo end >&2")])
    assert run(world) == 0
    lines = [line for event in world.seen.of(TaskOutput) for line in event.lines]
    assert [line.text for line in lines if line.stream == "out"] == [str(n) for n in range(1, 2001)]
    kinds = [type(event) for event in world.seen.events]
    last_output = len(kinds) - 1 - kinds[::-1].index(TaskOutput)
    assert last_output < kinds.index(TaskFinished)


def test_a_cancelled_task_ends_alone_and_the_next_one_runs() -> None:
    world = World([task("a", change=True, script="echo up; sleep 300"), task("b")])

    async def cancel(world: World) -> None:
        await world.seen.wait_for(TaskOutput)
        world.control.cancel("one/a", "operator")

    assert run(world, meanwhile=cancel) == 130
    assert world.statuses() == {"a": "cancelled", "b": "ok"}
    (done,) = world.seen.of(CancelFinished)
    assert done.path == "one/a"
    assert done.elapsed_ms < 1000


def test_a_cancelled_run_reports_every_task_that_is_left() -> None:
    world = World(
        [task("a", change=True, script="echo up; sleep 300"), task("b"), task("c")],
        targets=("one", "two"),
        options=RunOptions(playbook="site", version="0", concurrency=1),
    )

    async def cancel(world: World) -> None:
        await world.seen.wait_for(TaskOutput)
        world.control.cancel("", "signal")

    assert run(world, meanwhile=cancel) == 130
    assert world.statuses() == {"a": "cancelled", "b": "cancelled", "c": "cancelled"}
    ends = {event.target: event.status for event in world.seen.of(TargetFinished)}
    assert ends == {"one": "cancelled", "two": "not_started"}


def test_a_target_is_cancelled_without_touching_the_others() -> None:
    tasks = [task("a", change=True, script="echo up; sleep 0.3")]
    world = World(tasks, targets=("one", "two"))

    async def cancel(world: World) -> None:
        await world.seen.wait_for(TaskOutput, target="one")
        world.control.cancel("one", "operator")

    assert run(world, meanwhile=cancel) == 130
    assert world.statuses("one") == {"a": "cancelled"}
    assert world.statuses("two") == {"a": "changed"}


def test_a_task_that_takes_too_long_fails_with_timeout_and_obeys_ignore_errors() -> None:
    spec = TaskSpec(
        key="a",
        name="a",
        module="fake",
        params={"change": True, "script": "sleep 300"},
        timeout=0.2,
        ignore_errors=True,
    )
    world = World([spec, task("b")])
    assert run(world) == 0
    assert world.statuses() == {"a": "ignored", "b": "ok"}
    assert world.reason("a") == "timeout"


def test_the_run_s_deadline_cancels_what_is_left_and_exits_1() -> None:
    options = RunOptions(playbook="site", version="0", timeout=0.2)
    tasks = [task("a", change=True, script="sleep 300"), task("b")]
    world = World(tasks, options=options)
    assert run(world) == 1
    assert world.statuses() == {"a": "cancelled", "b": "cancelled"}
    assert world.reason("a") == "timeout"


def test_a_cancel_of_what_does_not_run_is_acknowledged_and_keeps_it_from_starting() -> None:
    world = World([task("a", change=True, script="echo up; sleep 0.2"), task("b"), task("c")])

    async def cancel(world: World) -> None:
        await world.seen.wait_for(TaskOutput)
        world.control.cancel("one/c", "operator")

    assert run(world, meanwhile=cancel) == 130
    assert world.statuses() == {"a": "changed", "b": "ok", "c": "cancelled"}
    (done,) = world.seen.of(CancelFinished)
    assert done.outcome == "nothing_running"


def test_a_transport_that_is_not_there_is_an_unreachable_target_and_no_bug() -> None:
    world = World([task("a")], targets=("none", "one"))
    assert run(world) == 1
    ends = {event.target: event.status for event in world.seen.of(TargetFinished)}
    assert ends == {"none": "unreachable", "one": "ok"}


def rooted(key: str, **fields: object) -> TaskSpec:
    known: dict[str, object] = {"key": key, "name": key, "module": "rooted", "params": {}}
    return TaskSpec(**{**known, **fields})  # pyright: ignore[reportArgumentType]  # tests name real fields


def test_a_target_that_can_t_run_the_plan_is_refused_whole_and_exits_3() -> None:
    world = World([task("a", change=True), rooted("b"), rooted("c")], targets=("humble",))
    assert run(world) == 3
    assert world.log == []
    (event,) = world.seen.of(PlanRefused)
    assert [(one.task, one.reason) for one in event.violations] == [
        ("b", "requires-root-violation"),
        ("c", "requires-root-violation"),
    ]
    (done,) = world.seen.of(TargetFinished)
    assert (done.status, done.reason) == ("refused", "requires-root-violation")
    assert world.seen.of(RunFinished)[0].status == "refused"


def test_a_refusal_beside_a_target_that_is_fine_still_exits_3() -> None:
    world = World([task("a"), rooted("b", become={})], targets=("humble", "one"))
    assert run(world) == 0
    world = World([task("a"), rooted("b", when="target.name == 'humble'")], targets=("humble", "x"))
    assert run(world) == 3
    assert world.statuses("x") == {"a": "ok", "b": "skipped"}


def test_a_refusal_beside_a_failure_exits_1() -> None:
    failing = TaskSpec(
        key="a", name="a", module="fake", params={"fail": "no"}, when="target.name == 'one'"
    )
    world = World([failing, rooted("b", when="target.name != 'one'")], targets=("humble", "one"))
    assert run(world) == 1
    assert run(World([rooted("b")], targets=("humble", "dead"))) == 1


def test_fail_fast_after_a_refusal_starts_nothing_more_and_exits_3() -> None:
    options = RunOptions(playbook="site", version="0", concurrency=1, fail_fast=True)
    world = World([rooted("a")], targets=("humble", "one"), options=options)
    assert run(world) == 3
    ends = {event.target: event.status for event in world.seen.of(TargetFinished)}
    assert ends == {"humble": "refused", "one": "not_started"}


def test_an_ignored_violation_lets_the_rest_run_and_never_reaches_its_module() -> None:
    world = World([rooted("a", ignore_errors=True), task("b")], targets=("humble",))
    assert run(world) == 0
    assert world.statuses("humble") == {"a": "ignored", "b": "ok"}
    assert world.log == ["humble check"]
