"""A batch is the sum of its items, whatever the items do and wherever it ends."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from preflight.control import Stopped
from preflight.errors import Reason
from preflight.events import PluginSpawned
from preflight.plugins.protocol import RunData
from preflight.ports.module import ItemAnswer
from tests.support.fake_plugin import R1, Action, answer, eof, frame, kill, lay, read, shaken, write
from tests.support.loop import in_loop
from tests.support.stage import PATIENCE_S, Stage
from tests.wire.together.stand import lay_sdk, notes, with_run, words, work, work_into

BATCH = frame(
    {
        "id": 1,
        "result": {
            "protocol_version": 2,
            "min_protocol_version": 2,
            "name": "demo",
            "version": "0.1.0",
            "capabilities": ["preflight-tui/batch"],
        },
    }
)

ANY = """
def check(self, ctx, args, handle):
    handle.output(f"line {args['n']}")
    match args["kind"]:
        case "raise": raise OSError("disk")
        case "fail": return CheckResult(False, error=f"no {args['n']}")
        case "ok": return CheckResult(False, args["common"])
        case "op": return CheckResult(handle.run_command("exit 3").exit_code == 3, "op")
        case "bad op": handle.get_file("/no/such")
        case "exit": sys.exit(7)
    args["nested"].append(1)
    return CheckResult(True, str(args["nested"]))

def apply(self, ctx, args, handle):
    result = self.check(ctx, args, handle)
    return ApplyResult(result.message, error=result.error)
"""
KINDS = ("ok", "need", "raise", "fail", "op", "bad op", "exit")


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=12),
    concurrency=st.sampled_from([1, 3]),
    method=st.sampled_from(["check", "apply"]),
)
def test_a_batch_gives_the_same_outcomes_as_its_items_one_by_one(
    tmp_path: Path, kinds: list[str], concurrency: int, method: str
) -> None:
    plugin = lay_sdk(tmp_path, ANY)
    args: list[dict[str, object]] = [
        {"kind": kind, "n": n, "common": "c", "nested": [0]} for n, kind in enumerate(kinds)
    ]
    shared = frozenset({"common", "nested"})

    async def both() -> None:
        seen: list[object] = []
        for batches in (True, False):
            stage = Stage()
            async with stage.open() as pool:
                async with stage.control.scope("box/zero") as scope:
                    session = await pool.session(plugin, stage.context(scope))
                assert session.takes_batches
                session.takes_batches = batches
                found = await work(
                    stage, plugin, method, args, concurrency=concurrency, shared=shared
                )
            seen.append((words(found), sorted(stage.lines)))
        assert seen[0] == seen[1]

    asyncio.run(both())


DUE = """
def check(self, ctx, args, handle):
    return CheckResult(True)

def apply(self, ctx, args, handle):
    note(str(args["n"]))
    if args["n"] == 2:
        {there}
    return ApplyResult("done")
"""


@in_loop
async def test_a_crash_in_the_middle_keeps_every_finished_item(tmp_path: Path) -> None:
    plugin = lay_sdk(tmp_path, DUE.format(there="os.kill(os.getpid(), signal.SIGKILL)"))
    stage = Stage()
    async with stage.open():
        found = await work(stage, plugin, "apply", [{"n": n} for n in range(5)])
        assert [one.index for one in found if one.failure is None] == [0, 1]
        failed = [one.failure for one in found if one.failure is not None]
        assert [one.reason for one in failed] == [Reason.PLUGIN_CRASHED] * 3
        again = await work(stage, plugin, "check", [{"n": 0}])
        assert again[0].failure is None
    assert notes(plugin) == ["0", "1", "2"]
    assert len(stage.of(PluginSpawned)) == 2


@pytest.mark.parametrize("there", ["ctx.wait(20); ctx.raise_if_cancelled()", "time.sleep(60)"])
@in_loop
async def test_a_cancel_in_the_middle_keeps_every_finished_item(tmp_path: Path, there: str) -> None:
    plugin = lay_sdk(tmp_path, DUE.format(there=f"handle.output('at it'); {there}"))
    stage = Stage()
    stage.on_line = lambda line: line == "at it" and stage.control.cancel("box/one", by="operator")
    answers: list[ItemAnswer] = []
    async with stage.open():
        with pytest.raises(Stopped):
            await work_into(answers, stage, plugin, "apply", [{"n": n} for n in range(5)])
    assert [one.index for one in answers if one.failure is None] == [0, 1]
    assert notes(plugin) == ["0", "1", "2"]


@in_loop
async def test_missing_extra_and_double_indexes_are_those_items_own(tmp_path: Path) -> None:
    said = [
        {"index": 0, "needs_change": True},
        {"index": 0, "error": "twice"},
        {"index": 7, "needs_change": True},
        {"index": 2},
    ]
    progress = frame({"method": "progress", "params": {"id": 2, "results": said[:2]}})
    plugin = lay(
        tmp_path,
        *shaken(read(), write(progress + answer(2, results=said)), eof(), handshake=BATCH),
    )
    stage = Stage()
    async with stage.open():
        found = await work(stage, plugin, "check", [{}, {}, {}])
    assert [(one.index, one.needs_change) for one in found] == [(0, True), (2, False), (1, False)]
    assert [one.failure and one.failure.reason for one in found] == [
        None,
        None,
        Reason.PLUGIN_PROTOCOL,
    ]
    assert len(stage.warnings("protocol_violation")) == 1


@in_loop
async def test_a_batch_that_fails_as_a_whole_fails_what_was_not_reported(tmp_path: Path) -> None:
    done = answer(2, results=[{"index": 1}], error="the list is gone")
    plugin = lay(tmp_path, *shaken(read(), write(done), eof(), handshake=BATCH))
    stage = Stage()
    async with stage.open():
        found = await work(stage, plugin, "check", [{}, {}, {}])
    told = {one.index: one.failure and one.failure.message for one in found}
    assert told == {0: "the list is gone", 1: None, 2: "the list is gone"}


@in_loop
async def test_a_plugin_without_the_method_after_all_is_asked_only_once(tmp_path: Path) -> None:
    unknown = frame({"id": 2, "error": {"code": -32601, "message": "no such method"}})
    singles: list[Action] = []
    for number in range(3, 7):
        singles += [read(), write(answer(number, needs_change=False))]
    plugin = lay(tmp_path, *shaken(read(), write(unknown), *singles, eof(), handshake=BATCH))
    stage = Stage()
    async with stage.open():
        for _ in range(2):
            found = await work(stage, plugin, "check", [{"n": 0}, {"n": 1}])
            assert all(one.failure is None for one in found)
    methods = [line["method"] for line in plugin.lines]
    assert methods == ["initialize", "check_batch", "check", "check", "check", "check"]


@in_loop
async def test_a_plugin_of_the_base_protocol_is_asked_item_by_item(tmp_path: Path) -> None:
    singles = [read(), write(answer(2, needs_change=True)), read(), write(answer(3))]
    plugin = lay(tmp_path, *shaken(*singles, eof(), handshake=R1))
    stage = Stage()
    async with stage.open():
        found = await work(stage, plugin, "apply", [{"n": 0}, {"n": 1}])
    assert [one.failure for one in found] == [None, None]
    assert [line["method"] for line in plugin.lines[1:]] == ["apply", "apply"]


CALLS = """
def configure(self, ctx, config):
    note(f"configure {ctx.run.id} {config}")

def check(self, ctx, args, handle):
    if args["n"] == 49:
        os.kill(os.getpid(), signal.SIGKILL)
    assert (ctx.run.id, ctx.config, "url" in args) == ("r1", {"url": "u"}, False)
    return CheckResult(False)

def apply(self, ctx, args, handle):
    return ApplyResult()
"""


@in_loop
async def test_run_data_is_sent_once_to_each_process(tmp_path: Path) -> None:
    plugin = lay_sdk(tmp_path, CALLS)
    stage = with_run(Stage(), RunData(id="r1"), {"url": "u"})
    async with stage.open():
        failed = 0
        for number in range(100):
            found = await work(stage, plugin, "check", [{"n": number}])
            failed += found[0].failure is not None
    assert failed == 1
    assert notes(plugin) == ["configure r1 {'url': 'u'}"] * 2


@in_loop
async def test_many_large_items_go_in_several_batches(tmp_path: Path) -> None:
    body = """
    def check(self, ctx, args, handle):
        return CheckResult(False, str(len(args["text"])))

    def apply(self, ctx, args, handle):
        return ApplyResult()

    def check_batch(self, ctx, items, handle, report):
        note(str(len(items)))
        for item in items:
            report(item, self.check(ctx, item.args, handle))
    """
    plugin = lay_sdk(tmp_path, body, options="max_message_bytes=65536")
    stage = Stage()
    async with asyncio.timeout(PATIENCE_S), stage.open():
        large: dict[str, object] = {"text": "x" * 9000}
        found = await work(stage, plugin, "check", [large] * 20)
    assert [one.message for one in found] == ["9000"] * 20
    counts = [int(count) for count in notes(plugin)]
    assert sum(counts) == 20
    assert max(counts) <= 5


@in_loop
async def test_a_killed_plugin_leaves_the_next_batch_whole(tmp_path: Path) -> None:
    first = shaken(read(), kill(signal.SIGKILL), handshake=BATCH)
    plugin = lay(tmp_path, *first)
    stage = Stage()
    async with stage.open():
        found = await work(stage, plugin, "check", [{}, {}])
    assert [one.failure and one.failure.reason for one in found] == [Reason.PLUGIN_CRASHED] * 2
