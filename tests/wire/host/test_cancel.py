"""A cancel that arrives, whatever the plugin does, and every step of it told."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from pathlib import Path

import pytest

from preflight.control import Stopped
from preflight.events import (
    CancelFinished,
    CancelRequested,
    CancelSent,
    Event,
    PluginCancelReceived,
    PluginReady,
    PluginSpawned,
    PluginStopped,
    PluginWarning,
    TargetOpCancelled,
)
from preflight.model.settings import Settings
from preflight.ports.module import ApplyResult
from tests.support.fake_plugin import (
    Q7,
    R1,
    R2,
    R3,
    Action,
    answer,
    eof,
    frame,
    ignore,
    is_alive,
    lay,
    note,
    on_signal,
    output,
    read,
    repeat,
    request,
    session_of,
    shaken,
    sleep,
    until,
    write,
)
from tests.support.loop import in_loop
from tests.support.stage import Stage

STEPS = (CancelRequested, CancelSent, PluginCancelReceived, TargetOpCancelled, CancelFinished)

CANCELLED_2 = frame({"id": 2, "error": {"code": -32800, "message": "cancelled"}})


def cancel_of(id: object) -> bytes:
    """The plugin's notice that it abandons an operation."""
    return frame({"method": "cancel", "params": {"id": id}})


def steps(stage: Stage) -> list[type[Event]]:
    """Which steps of a cancel were told, in order."""
    return [type(event) for event in stage.events if isinstance(event, STEPS)]


def sleeper(folder: Path) -> tuple[bytes, Path]:
    """A run_command that waits with a child of its own, and the file its pids come in."""
    pids = folder / "pids"
    script = f"sleep 300 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"
    return request(7, "run_command", script=script), pids


async def pids_in(place: Path) -> list[int]:
    """The pids, once the script has written them."""
    async with asyncio.timeout(20):
        while not place.exists():  # noqa: ASYNC110  # a file tells nobody that it is there
            await asyncio.sleep(0.005)
    return [int(word) for word in place.read_text(encoding="ascii").split()]


async def stopped(stage: Stage, calling: asyncio.Task[object]) -> Stopped:
    """How the call was stopped."""
    with pytest.raises(Stopped) as caught:
        await calling
    await stage.cancelled()
    return caught.value


@in_loop
async def test_a_cancel_reaches_the_target_and_the_process_serves_on(tmp_path: Path) -> None:
    # P71, issue "What it must show" 4: at most 300 ms from the cancel to both processes gone
    asks, pids = sleeper(tmp_path)
    polite = [
        *(read(), write(asks), until(b'"cancel"'), write(cancel_of(7)), until(b'"id":7')),
        *(note("cleaned up"), write(CANCELLED_2), read(), write(R3), read()),
    ]
    plugin = lay(tmp_path, *shaken(*polite))
    stage = Stage()
    async with stage.open():
        calling = asyncio.ensure_future(stage.check(plugin))
        both = await pids_in(pids)
        assert all(is_alive(pid) for pid in both)
        start = time.monotonic()
        stage.control.cancel("box/one", "operator")
        stop = await stopped(stage, calling)
        elapsed = time.monotonic() - start
        assert not any(is_alive(pid) for pid in both)
        assert elapsed < 0.3
        assert stop.outcome == "answered"
        assert plugin.notes == ["cleaned up"]
        assert steps(stage) == list(STEPS)
        (received,) = stage.of(PluginCancelReceived)
        assert (received.op_id, received.op, received.task) == (7, "run_command", "one")
        (killed,) = stage.of(TargetOpCancelled)
        assert (killed.pid, killed.how, killed.survivors) == (both[0], "SIGTERM", [])
        (finished,) = stage.of(CancelFinished)
        assert (finished.outcome, finished.task) == ("answered", "one")
        assert finished.elapsed_ms < 300
        (sent,) = stage.of(CancelSent)
        assert (sent.request_id, sent.method, sent.out_of_band) == (2, "check", False)
        assert not (await stage.check(plugin, "two")).needs_change
    assert len(stage.of(PluginSpawned)) == 1
    (refusal,) = [line for line in plugin.lines if line.get("id") == 7]
    assert json.loads(json.dumps(refusal))["error"]["code"] == -32800
    assert [line["params"] for line in plugin.lines if line.get("method") == "cancel"] == [
        {"id": 2}
    ]


@in_loop
async def test_a_stubborn_plugin_is_dead_after_its_grace_and_its_target_process_too(
    tmp_path: Path,
) -> None:
    # P68, issue "What it must show" 4: 2.0 to 2.3 s after the cancel
    asks, pids = sleeper(tmp_path)
    plugin = lay(tmp_path, ignore(signal.SIGTERM), *shaken(read(), write(asks), sleep(60)))
    stage = Stage()
    async with stage.open():
        calling = asyncio.ensure_future(stage.check(plugin))
        both = await pids_in(pids)
        spawned = stage.of(PluginSpawned)[0]
        start = time.monotonic()
        stage.control.cancel("box/one", "operator")
        stop = await stopped(stage, calling)
        elapsed = time.monotonic() - start
        assert not any(is_alive(pid) for pid in [*both, spawned.pid])
        assert 2.0 <= elapsed <= 2.3
        assert stop.outcome == "killed"
        assert steps(stage) == [CancelRequested, CancelSent, TargetOpCancelled, CancelFinished]
        (end,) = stage.of(PluginStopped)
        assert (end.how, end.signal, end.pid) == ("killed", "SIGKILL", spawned.pid)
        assert stage.of(CancelFinished)[0].outcome == "killed"


@in_loop
async def test_the_next_task_after_a_kill_gets_a_fresh_process(tmp_path: Path) -> None:
    # P68
    plugin = lay(tmp_path, *shaken(read(), write(output("at it")), sleep(0.4), write(R2), eof()))
    stage = Stage(Settings(cancel_grace=0.1))
    async with stage.open():
        calling = asyncio.ensure_future(stage.check(plugin))
        await stage.wait_line("at it")
        stage.control.cancel("box/one", "operator")
        assert (await stopped(stage, calling)).outcome == "killed"
        assert not (await stage.check(plugin, "two")).needs_change
    assert len(stage.of(PluginSpawned)) == 2
    assert [event.how for event in stage.of(PluginStopped)] == ["killed", "closed"]


@pytest.mark.parametrize(
    ("method", "line", "outcome"),
    [
        ("check", R2, "answered"),
        ("check", CANCELLED_2, "answered"),
        ("apply", answer(2, error="context canceled"), "answered"),  # the Go SDK
        ("apply", answer(2, message="done"), "finished_first"),
        ("apply", frame({"id": 2, "result": 7}), "answered"),
    ],
)
def test_an_answer_inside_the_grace_keeps_the_process(
    tmp_path: Path, method: str, line: bytes, outcome: str
) -> None:
    # P69
    @in_loop
    async def test() -> None:
        late = [until(b'"cancel"'), sleep(0.5), write(line)]
        plugin = lay(
            tmp_path, *shaken(read(), write(output("at it")), *late, read(), write(R3), read())
        )
        stage = Stage()
        async with stage.open():
            work = stage.check if method == "check" else stage.apply
            calling: asyncio.Task[object] = asyncio.ensure_future(work(plugin))
            await stage.wait_line("at it")
            start = time.monotonic()
            stage.control.cancel("box/one", "operator")
            stop = await stopped(stage, calling)
            assert 0.5 <= time.monotonic() - start < 1.2
            assert stop.outcome == outcome
            assert stage.of(CancelFinished)[0].outcome == outcome
            if outcome == "finished_first":
                assert stop.result == ApplyResult(message="done")
            assert not (await stage.check(plugin, "two")).needs_change
        assert len(stage.of(PluginSpawned)) == 1

    test()


@in_loop
async def test_a_kill_ends_the_grace(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(output("at it")), sleep(60)))
    stage = Stage(Settings(cancel_grace=30))
    async with stage.open():
        calling = asyncio.ensure_future(stage.check(plugin))
        await stage.wait_line("at it")
        stage.control.cancel("box/one", "signal")
        await stage.wait_for(CancelSent)
        start = time.monotonic()
        stage.control.cancel("box/one", "signal", kill=True)
        stage.control.cancel("box/one", "signal", kill=True)
        assert (await stopped(stage, calling)).outcome == "killed"
        assert time.monotonic() - start < 1
    assert [event.kill for event in stage.of(CancelRequested)] == [False, True]
    assert len(stage.of(CancelFinished)) == 1


@in_loop
async def test_a_kill_from_the_start_gives_no_grace(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(output("at it")), sleep(60)))
    stage = Stage(Settings(cancel_grace=30))
    async with stage.open():
        calling = asyncio.ensure_future(stage.check(plugin))
        await stage.wait_line("at it")
        start = time.monotonic()
        stage.control.cancel("box/one", "signal", kill=True)
        assert (await stopped(stage, calling)).outcome == "killed"
        assert time.monotonic() - start < 1


@in_loop
async def test_a_second_cancel_of_the_task_itself_does_not_cut_the_unwinding_short(
    tmp_path: Path,
) -> None:
    late = [
        until(b'"cancel"'),
        sleep(0.4),
        note("cleaned up"),
        write(R2),
        read(),
        write(R3),
        read(),
    ]
    plugin = lay(tmp_path, *shaken(read(), write(output("at it")), *late))
    stage = Stage()
    async with stage.open():
        calling = asyncio.ensure_future(stage.check(plugin))
        await stage.wait_line("at it")
        stage.control.cancel("box/one", "operator")
        await stage.wait_for(CancelSent)
        calling.cancel()  # a task group that is torn down, say
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert plugin.notes == ["cleaned up"]
        assert stage.of(CancelFinished)[0].outcome == "answered"
        await stage.check(plugin, "two")


@in_loop
async def test_a_cancel_that_crosses_the_answer_is_ignored(tmp_path: Path) -> None:
    # P65: the call is cancelled in the turn in which its answer is read
    plugin = lay(tmp_path, *shaken(read(), write(output("now") + R2), read(), write(R3), read()))
    stage = Stage()
    stage.on_line = lambda _: stage.control.cancel("box/one", "operator")
    async with stage.open():
        with pytest.raises(Stopped) as caught:
            await stage.check(plugin)
        assert caught.value.outcome == "answered"
        assert not (await stage.check(plugin, "two")).needs_change
    assert len(stage.of(CancelFinished)) == 1


@in_loop
async def test_an_apply_that_was_answered_before_the_cancel_came_through_is_done(
    tmp_path: Path,
) -> None:
    # P65
    line = answer(2, message="done")
    plugin = lay(tmp_path, *shaken(read(), write(line + output("now")), read(), write(R3), read()))
    stage = Stage()

    def cancel(event: Event) -> None:
        if isinstance(event, PluginWarning):  # of the stray line behind the answer
            stage.control.cancel("box/one", "operator")

    stage.bus.add_sink(cancel)
    async with stage.open():
        with pytest.raises(Stopped) as caught:
            await stage.apply(plugin)
        assert caught.value.outcome == "finished_first"
        await stage.check(plugin, "two")
    assert not stage.of(CancelSent)
    assert b"cancel" not in plugin.received


@pytest.mark.parametrize(
    "params", [b'{"id":99}', b'{"id":"7"}', b'{"id":null}', b"{}", b"7", b"[7]"]
)
def test_a_cancel_that_names_nothing_is_ignored(tmp_path: Path, params: bytes) -> None:
    # P66
    @in_loop
    async def test() -> None:
        odd = b'{"jsonrpc":"2.0","method":"cancel","params":' + params + b"}\n"
        asks = request(7, "run_command", script="sleep 0.2; echo done")
        plugin = lay(
            tmp_path, *shaken(read(), write(asks + odd * 2), until(b'"id":7'), write(R2), read())
        )
        stage = Stage()
        async with stage.open():
            await stage.check(plugin)
        assert "done" in str([line for line in plugin.lines if line.get("id") == 7])
        assert not stage.of(PluginCancelReceived)
        assert stage.warnings("protocol_violation") == []

    test()


@in_loop
async def test_a_cancel_in_the_same_write_as_its_operation_is_not_lost(tmp_path: Path) -> None:
    # P66: twice, which is told once and answered once
    plugin = lay(
        tmp_path,
        *shaken(read(), write(Q7 + cancel_of(7) * 2), until(b'"id":7'), write(R2), read()),
    )
    stage = Stage()
    async with stage.open():
        start = time.monotonic()
        await stage.check(plugin)
        assert time.monotonic() - start < 2
    answers = [line for line in plugin.lines if line.get("id") == 7]
    assert len(answers) == 1
    assert json.loads(json.dumps(answers[0]))["error"]["code"] == -32800
    assert len(stage.of(PluginCancelReceived)) == 1


@in_loop
async def test_an_operation_that_is_queued_can_be_cancelled_at_once(tmp_path: Path) -> None:
    # P77: nothing of it is started
    queued = request(8, "run_command", script=f"touch {tmp_path}/started")
    plugin = lay(
        tmp_path,
        *shaken(
            *(read(), write(Q7 + queued), write(cancel_of(8)), until(b'"id":8')),
            *(write(cancel_of(7)), until(b'"id":7'), write(R2), read()),
        ),
    )
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert [line["id"] for line in plugin.lines[2:]] == [8, 7]
    assert not (tmp_path / "started").exists()


@in_loop
async def test_an_operation_of_a_cancelled_call_starts_nothing(tmp_path: Path) -> None:
    # P63
    late = request(7, "run_command", script=f"touch {tmp_path}/started")
    plugin = lay(
        tmp_path,
        *shaken(
            *(read(), write(output("at it")), until(b'"cancel"')),
            *(write(late), until(b'"id":7'), write(CANCELLED_2), read(), write(R3), read()),
        ),
    )
    stage = Stage()
    async with stage.open():
        calling = asyncio.ensure_future(stage.check(plugin))
        await stage.wait_line("at it")
        stage.control.cancel("box/one", "operator")
        assert (await stopped(stage, calling)).outcome == "answered"
        await stage.check(plugin, "two")
    (refusal,) = [line for line in plugin.lines if line.get("id") == 7]
    error = json.loads(json.dumps(refusal))["error"]
    assert error["code"] == -32000
    assert "cancelled" in error["message"]
    assert not (tmp_path / "started").exists()


@in_loop
async def test_operations_that_the_answer_left_behind_are_ended_with_it(tmp_path: Path) -> None:
    # A plugin that answers while its own command runs
    asks, pids = sleeper(tmp_path)
    plugin = lay(
        tmp_path,
        *shaken(
            read(),
            write(asks),
            until(b'"cancel"'),
            write(CANCELLED_2),
            until(b'"id":3'),
            write(R3),
            read(),
        ),
    )
    stage = Stage()
    async with stage.open():
        calling = asyncio.ensure_future(stage.check(plugin))
        both = await pids_in(pids)
        stage.control.cancel("box/one", "operator")
        await stopped(stage, calling)
        assert not any(is_alive(pid) for pid in both)
        await stage.check(plugin, "two")


@in_loop
async def test_a_plugin_that_dies_of_a_cancel_is_lost_and_ended(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(output("at it")), until(b'"cancel"')))
    stage = Stage()
    async with stage.open():
        calling = asyncio.ensure_future(stage.check(plugin))
        await stage.wait_line("at it")
        stage.control.cancel("box/one", "operator")
        assert (await stopped(stage, calling)).outcome == "lost"
        assert [event.how for event in stage.of(PluginStopped)] == ["crashed"]
        assert not is_alive(stage.of(PluginReady)[0].pid)


@in_loop
async def test_a_plugin_that_closes_its_stdout_on_a_cancel_is_ended_too(tmp_path: Path) -> None:
    lost: list[Action] = [until(b'"cancel"'), ["close", 1], sleep(60)]
    plugin = lay(tmp_path, *shaken(read(), write(output("at it")), *lost))
    stage = Stage()
    async with stage.open():
        calling = asyncio.ensure_future(stage.check(plugin))
        await stage.wait_line("at it")
        stage.control.cancel("box/one", "operator")
        assert (await stopped(stage, calling)).outcome == "lost"
        assert not is_alive(stage.of(PluginReady)[0].pid)


@in_loop
async def test_a_cancel_of_the_run_reaches_every_plugin_and_closes_once(tmp_path: Path) -> None:
    one = lay(
        tmp_path, *shaken(read(), write(output("one")), until(b'"cancel"'), write(R2), read())
    )
    hello = R1.replace(b"demo", b"other")
    other = lay(
        tmp_path,
        *shaken(read(), write(output("two")), sleep(60), handshake=hello),
        name="other",
    )
    stage = Stage(Settings(cancel_grace=0.4))
    async with stage.open():
        first = asyncio.ensure_future(stage.check(one, "one"))
        second = asyncio.ensure_future(stage.check(other, "two"))
        await stage.wait_line("one")
        await stage.wait_line("two")
        stage.control.cancel("", "operator")
        outcomes: list[str] = []
        for calling in (first, second):
            with pytest.raises(Stopped) as caught:
                await calling
            outcomes.append(caught.value.outcome)
        assert outcomes == ["answered", "killed"]
        (finished,) = stage.of(CancelFinished)
        assert (finished.path, finished.outcome) == ("", "killed")
        with pytest.raises(Stopped, match="operator"):
            await stage.check(one, "three")


@in_loop
async def test_a_late_answer_of_a_killed_process_reaches_nobody(tmp_path: Path) -> None:
    # P70: there is no keeping a process past its grace; the late answer dies with it
    plugin = lay(
        tmp_path,
        ignore(signal.SIGTERM),
        *shaken(read(), write(output("at it")), sleep(0.5), write(R2), eof()),
    )
    stage = Stage(Settings(cancel_grace=0.2))
    async with stage.open():
        for task in ("one", "two", "three"):
            calling = asyncio.ensure_future(stage.check(plugin, task))
            await stage.wait_for(PluginReady, count=len(stage.of(CancelRequested)) + 1)
            async with asyncio.timeout(10):
                while stage.lines.count("at it") <= len(stage.of(CancelRequested)):
                    await stage.wait_change()
            stage.control.cancel(f"box/{task}", "timeout")
            with pytest.raises(Stopped):
                await calling
    assert stage.warnings("protocol_violation") == []


@in_loop
async def test_a_flood_of_cancels_costs_nothing(tmp_path: Path) -> None:
    # P76
    plugin = lay(
        tmp_path, *shaken(read(), repeat(100, write(cancel_of(7) * 100)), write(R2), read())
    )
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert not stage.of(PluginCancelReceived)


@in_loop
async def test_a_plugin_never_gets_the_terminals_ctrl_c(tmp_path: Path) -> None:
    plugin = lay(
        tmp_path, on_signal(signal.SIGINT, note("interrupted")), *shaken(read(), write(R2), read())
    )
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
        pid = stage.of(PluginReady)[0].pid
        assert session_of(pid) == pid


@in_loop
async def test_a_call_carries_its_args_and_nothing_else(tmp_path: Path) -> None:
    # Issue "What it must show" 5, at the wire: what is sent is the same, byte for byte, whatever
    # the bus, the control and the target hold. That the runner gives no more is the runner's test.
    received: list[bytes] = []
    for place, secret in (("bare", ""), ("full", "x" * 10_240)):
        plugin = lay(tmp_path / place, *shaken(read(), write(R2), read()))
        stage = Stage()
        async with stage.open():
            if secret:
                stage.bus.hide(secret)
                await stage.target.exec(f"true {secret}", env={"SECRET": secret})
            await stage.check(plugin, path="/srv/x")
        received.append(plugin.received)
    assert received[0] == received[1]
    assert received[0].split(b"\n")[1] == (
        b'{"jsonrpc":"2.0","id":2,"method":"check","params":{"args":{"path":"/srv/x"}}}'
    )
