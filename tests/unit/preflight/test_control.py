"""The one way in: what a cancel covers, what it is told of, and clean-up that is let finish."""

from __future__ import annotations

import asyncio

import pytest

from preflight.bus import Bus
from preflight.control import RunControl, Stopped, finish
from preflight.events import CancelFinished, CancelRequested, Event
from tests.support.loop import in_loop


class Desk:
    """A control, and what it told."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now = 0.0
        bus = Bus()
        bus.add_sink(self.events.append)
        self.control = RunControl(bus, clock=lambda: self.now)

    @property
    def finished(self) -> list[tuple[str, str]]:
        return [(one.path, one.outcome) for one in self.events if isinstance(one, CancelFinished)]

    @property
    def requested(self) -> list[tuple[str, bool]]:
        return [(one.path, one.kill) for one in self.events if isinstance(one, CancelRequested)]


async def work(desk: Desk, path: str, log: list[str]) -> None:
    async with desk.control.scope(path):
        log.append(path)
        await asyncio.sleep(60)


async def running(desk: Desk, *paths: str) -> list[asyncio.Task[None]]:
    log: list[str] = []
    tasks = [asyncio.ensure_future(work(desk, path, log)) for path in paths]
    await asyncio.sleep(0)
    assert log == list(paths)
    return tasks


async def outcome(task: asyncio.Task[None]) -> str:
    with pytest.raises(Stopped) as caught:
        await task
    return caught.value.outcome


@in_loop
async def test_a_cancel_covers_its_path_and_what_is_below_it() -> None:
    desk = Desk()
    one, two, other = await running(desk, "box/one", "box/two", "boxer/one")
    desk.control.cancel("box", "operator")
    assert [await outcome(one), await outcome(two)] == ["answered", "answered"]
    assert not other.done()
    assert desk.finished == [("box", "answered")]
    desk.control.cancel("", "signal")
    await outcome(other)
    assert desk.requested == [("box", False), ("", False)]


@in_loop
async def test_nothing_below_a_cancelled_path_starts_any_more() -> None:
    desk = Desk()
    request = desk.control.cancel("box", "timeout")
    assert desk.finished == [("box", "nothing_running")]
    with pytest.raises(Stopped) as caught:
        await work(desk, "box/one", [])
    assert (caught.value.request, caught.value.outcome) == (request, "nothing_running")
    assert desk.control.request_for("other/one") is None


@in_loop
async def test_a_cancel_is_finished_when_the_last_has_unwound_and_the_worst_is_told() -> None:
    desk = Desk()
    release = asyncio.Event()

    async def killed() -> None:
        async with desk.control.scope("box/two") as scope:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                scope.outcome = "killed"
                await release.wait()
                raise

    (one,) = await running(desk, "box/one")
    two = asyncio.ensure_future(killed())
    await asyncio.sleep(0)
    desk.control.cancel("box", "operator")
    assert await outcome(one) == "answered"
    assert desk.finished == []
    desk.now = 1.5
    release.set()
    assert await outcome(two) == "killed"
    assert desk.finished == [("box", "killed")]
    (event,) = [one for one in desk.events if isinstance(one, CancelFinished)]
    assert (event.elapsed_ms, event.target, event.task) == (1500.0, "box", "")


@in_loop
async def test_every_request_that_covers_a_scope_gets_its_outcome() -> None:
    desk = Desk()
    (one,) = await running(desk, "box/one")
    desk.control.cancel("box/one", "timeout")
    desk.control.cancel("", "operator")
    assert await outcome(one) == "answered"
    assert sorted(desk.finished) == [("", "answered"), ("box/one", "answered")]


@in_loop
async def test_asking_again_changes_nothing_and_a_kill_hurries() -> None:
    desk = Desk()
    kills: list[bool] = []

    async def stubborn() -> None:
        async with desk.control.scope("box/one") as scope:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                kills.append(scope.kill.is_set())
                await scope.kill.wait()
                raise

    task = asyncio.ensure_future(stubborn())
    await asyncio.sleep(0)
    for _ in range(3):
        desk.control.cancel("box/one", "operator")
    await asyncio.sleep(0)
    assert kills == [False]
    for _ in range(3):
        desk.control.cancel("box/one", "operator", kill=True)
    await outcome(task)
    assert desk.requested == [("box/one", False), ("box/one", True)]
    assert len(desk.finished) == 1


@in_loop
async def test_a_kill_of_what_has_ended_is_finished_too() -> None:
    desk = Desk()
    desk.control.cancel("box", "operator")
    desk.control.cancel("box", "operator", kill=True)
    assert desk.requested == [("box", False), ("box", True)]
    assert len(desk.finished) == 2


@in_loop
async def test_a_body_that_ends_by_itself_has_finished_first() -> None:
    desk = Desk()

    async def body() -> str:
        async with desk.control.scope("box/one"):
            desk.control.cancel("box/one", "operator")  # with nothing awaited afterwards
        await asyncio.sleep(0)
        return "done"

    assert await asyncio.ensure_future(body()) == "done"
    assert desk.finished == [("box/one", "finished_first")]


@in_loop
async def test_a_body_that_fails_while_it_is_cancelled_fails() -> None:
    desk = Desk()

    async def body() -> None:
        async with desk.control.scope("box/one"):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                raise KeyError("worse") from None

    task = asyncio.ensure_future(body())
    await asyncio.sleep(0)
    desk.control.cancel("box/one", "operator")
    with pytest.raises(KeyError):
        await task
    assert len(desk.finished) == 1


@pytest.mark.parametrize("before", [True, False])
def test_a_cancel_from_elsewhere_is_never_taken_for_ours(before: bool) -> None:
    @in_loop
    async def test() -> None:
        desk = Desk()
        (one,) = await running(desk, "box/one")
        if before:
            one.cancel()
        desk.control.cancel("box/one", "operator")
        if not before:
            one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        assert len(desk.finished) == 1

    test()


@in_loop
async def test_a_cancel_from_elsewhere_alone_passes_through_a_scope() -> None:
    desk = Desk()
    (one,) = await running(desk, "box/one")
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    assert desk.events == []


@in_loop
async def test_a_body_that_swallowed_both_cancels_still_hears_of_the_other() -> None:
    desk = Desk()

    async def body() -> None:
        async with desk.control.scope("box/one"):
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(60)

    task = asyncio.ensure_future(body())
    await asyncio.sleep(0)
    desk.control.cancel("box/one", "operator")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@in_loop
async def test_finish_lets_clean_up_end_however_often_it_is_cancelled() -> None:
    release = asyncio.Event()
    log: list[str] = []

    async def clean_up() -> None:
        await release.wait()
        log.append("clean")

    async def body() -> None:
        await finish(clean_up(), within_s=20)
        log.append("never")

    task = asyncio.ensure_future(body())
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["clean"]


@in_loop
async def test_finish_gives_the_result_or_the_error() -> None:
    async def good() -> int:
        await asyncio.sleep(0)
        return 7

    async def bad() -> None:
        raise KeyError("bad")

    assert await finish(good(), within_s=20) == 7
    with pytest.raises(KeyError):
        await finish(bad(), within_s=20)


@in_loop
async def test_finish_is_bounded_and_says_so_as_a_timeout() -> None:
    with pytest.raises(TimeoutError, match="cut off"):
        await finish(asyncio.sleep(60), within_s=0.01)


@in_loop
async def test_an_error_of_clean_up_that_was_cancelled_meanwhile_is_its_cause() -> None:
    release = asyncio.Event()

    async def bad() -> None:
        await release.wait()
        raise KeyError("bad")

    task = asyncio.ensure_future(finish(bad(), within_s=20))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task


@in_loop
async def test_finish_cancelled_and_cut_off() -> None:
    task = asyncio.ensure_future(finish(asyncio.sleep(60), within_s=0.05))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
