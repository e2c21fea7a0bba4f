"""Cancel, as the operator sees it: asked, shown step by step, never assumed."""

from __future__ import annotations

import pytest

from preflight.events import CancelRequested
from preflight_tui.demos.scenes import SCENES
from preflight_tui.screens.dialogs import Ask, Cancelling
from tests.tui.harness import Opener, scene_lines


async def test_the_first_answer_keeps_everything_running(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        await one.press("c")
        await one.sees("Cancel 05 sync content on web-002?", "signage_sync (pid 4131)", "2.0 s")
        await one.press("enter")
        assert one.feed.asked == []
        assert not isinstance(one.app.screen, Ask)


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        (["c", "c"], "web-002/t05"),
        (["c", "t"], "web-002"),
        (["c", "C"], ""),
        (["c", "down", "enter"], "web-002/t05"),
        (["C", "C"], ""),
        (["ctrl+c", "ctrl+c"], ""),
    ],
)
async def test_a_confirmed_cancel_reaches_the_engine(
    console: Opener, keys: list[str], path: str
) -> None:
    async with console(scene_lines("running")) as one:
        await one.press(*keys)
        await one.until(lambda: one.feed.asked)
        assert one.feed.asked == [(path, False)]


async def test_escape_leaves_the_question_and_cancels_nothing(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        for key in ("c", "C", "ctrl+c"):
            await one.press(key, "escape")
            assert not isinstance(one.app.screen, Ask)
        assert one.feed.asked == []


async def test_nothing_is_said_to_be_cancelled_before_the_engine_says_so(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        await one.press("C", "C")
        await one.sees("cancel asked", "waiting for the engine")
        assert "CANCELLING" not in one.text
        scene = SCENES["running"]()
        before = len(scene.lines)
        scene.emit(CancelRequested(path="", by="operator"))
        await one.push(scene.lines[before:])
        await one.sees("CANCELLING", "asked")
        assert one.app.pending == {}


async def test_an_engine_that_does_not_take_a_cancel_is_reported(console: Opener) -> None:
    now = [100.0]
    async with console(scene_lines("running")) as one:
        one.app.monotonic = lambda: now[0]
        await one.press("C", "C")
        now[0] += 1.2
        one.app.paint(None)
        await one.sees("engine is not answering (1.2 s)")


async def test_the_steps_of_a_cancel_are_shown_with_the_grace_counting_down(
    console: Opener,
) -> None:
    async with console(scene_lines("unwinding"), keys=("K",)) as one:
        assert isinstance(one.app.screen, Cancelling)
        await one.sees("2 answered (median 215 ms)", "2 unwinding, 1.3 s left", "0 killed")
        await one.sees("cancel sent to signage_sync (id 31)", "plugin stops its put_file")
        await one.sees("target process 9011: SIGTERM in 140 ms", "cancelled in 414 ms")


async def test_a_plugin_that_did_not_answer_is_shown_as_killed(console: Opener) -> None:
    async with console(scene_lines("killed"), keys=("K",)) as one:
        await one.sees("killed after 2.0 s, state unknown", "plugin process 4133 killed")
        await one.sees("web-004: clean-up did not finish, the state there is unknown")
        await one.press("escape")
        await one.sees("CANCELLED", "⊗1")


async def test_a_task_that_ended_first_keeps_its_result(console: Opener) -> None:
    async with console(scene_lines("finished-first"), keys=("K",)) as one:
        await one.sees("finished before the cancel (changed)", "finished first after 4 ms")


async def test_a_plugin_that_ended_by_itself_is_shown_as_lost(console: Opener) -> None:
    async with console(scene_lines("lost"), keys=("K",)) as one:
        await one.sees("plugin ended by itself, exit 1")


async def test_kill_works_only_where_the_cancels_are_shown(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        await one.press("K")
        await one.sees("Nothing is being cancelled")
        assert one.feed.asked == []
    async with console(scene_lines("unwinding")) as one:
        await one.press("K")
        assert one.feed.asked == []
        await one.press("K")
        await one.until(lambda: one.feed.asked)
        assert one.feed.asked == [("", True)]


async def test_ctrl_c_asks_then_cancels_then_kills_then_leaves(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        await one.press("ctrl+c")
        await one.sees("Cancel the whole run?")
        await one.press("ctrl+c")
        await one.until(lambda: one.feed.asked == [("", False)])
        await one.press("ctrl+c")
        await one.until(lambda: one.feed.asked == [("", False), ("", True)])
        await one.press("ctrl+c")
        await one.until(lambda: not one.app.is_running)
        assert one.app.return_value == 130


async def test_a_task_that_is_over_offers_the_run_instead(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        await one.press("up", "c")
        await one.sees("Cancel the whole run?")


async def test_a_run_that_is_over_can_not_be_cancelled(console: Opener) -> None:
    async with console(scene_lines("green"), live=False) as one:
        await one.press("c")
        await one.sees("Nothing runs: the run is over.")
        assert not isinstance(one.app.screen, Ask)
