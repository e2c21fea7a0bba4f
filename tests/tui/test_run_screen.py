"""The home screen: what it shows of a run, and how one moves in it."""

from __future__ import annotations

import pytest

from preflight_tui.demos.scenes import SCENES
from preflight_tui.panes.lineview import LineView
from preflight_tui.panes.matrix import Matrix
from preflight_tui.screens.base import ConsoleScreen
from tests.tui.harness import Opener, scene_lines


async def test_the_header_tells_which_run_this_is_and_how_far_it_is(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        await one.sees("site.yml", "APPLY", "run 7f3a", "6 targets × 8 tasks", "00:09")
        await one.sees("56%", "27/48", "✓17", "~8", "✗1", "◕3 now")


async def test_the_matrix_shows_every_target_with_what_it_does(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        await one.sees("web-001", "done", "sync content 15/31", "✗ 07 restart unit")
        await one.sees("kiosk-17", "waiting")


async def test_the_cursor_follows_what_runs_until_the_operator_moves_it(console: Opener) -> None:
    scene = SCENES["running"]()
    async with console(scene.lines) as one:
        await one.sees("Tasks of web-002", "web-002 · 05 sync content")
        before = len(scene.lines)
        scene.end("web-002", 4, "changed")
        scene.begin("web-002", 5)
        await one.push(scene.lines[before:])
        await one.sees("web-002 · 06 check tls")
        await one.press("left")
        await one.sees("web-002 · 05 sync content")
        before = len(scene.lines)
        scene.end("web-002", 5, "ok")
        scene.begin("web-002", 6)
        await one.push(scene.lines[before:])
        await one.sees("web-002 · 05 sync content")


async def test_n_goes_from_failure_to_failure_around_the_end(console: Opener) -> None:
    async with console(scene_lines("failures"), live=False) as one:
        seen: list[tuple[int, int]] = []
        for _ in range(5):
            await one.press("n")
            seen.append(one.app.cursor)
        assert seen[:4] == [(2, 6), (3, 6), (4, 0), (5, 4)]
        assert seen[4] == (2, 6)
        await one.press("N")
        assert one.app.cursor == (5, 4)
        await one.sees("refused", "plugin_become")


async def test_the_output_of_the_cell_under_the_cursor_is_shown(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        await one.sees("copied img/hall-a/0003.png")
        await one.press("down")
        await one.press("home", "down", "down", "left")
        await one.press("right", "right", "right", "right", "right", "right", "right")
        await one.press("left")
        await one.sees("Job for signage.service failed", "failed (module_error) after 2.5 s")


async def test_a_target_itself_can_be_chosen_left_of_its_first_task(console: Opener) -> None:
    async with console(scene_lines("failures"), live=False) as one:
        await one.press("end", *["left"] * 9)
        assert one.app.cursor == (5, -1)
        await one.sees("signage_sync needs become")


@pytest.mark.parametrize(
    ("size", "shown", "hidden"),
    [
        ((80, 24), ["Targets × tasks", "web-002 · 05"], ["Plugins", "1 Run"]),
        ((120, 36), ["Targets × tasks", "Tasks of web-002", "Plugins", "Output"], []),
        ((200, 50), ["Targets × tasks", "Tasks of web-002", "Plugins", "Output"], []),
        ((59, 24), ["27/48", "widen the terminal"], ["Targets"]),
        ((120, 12), ["27/48", "widen the terminal"], ["Targets"]),
    ],
)
async def test_the_layout_fits_the_terminal(
    console: Opener, size: tuple[int, int], shown: list[str], hidden: list[str]
) -> None:
    async with console(scene_lines("running"), size=size) as one:
        await one.sees(*shown)
        for text in hidden:
            assert text not in one.text


async def test_a_resize_lays_everything_out_anew(console: Opener) -> None:
    async with console(scene_lines("running"), size=(80, 24)) as one:
        await one.pilot.resize_terminal(120, 36)
        await one.sees("Tasks of web-002", "Plugins")
        await one.pilot.resize_terminal(80, 24)
        await one.until(lambda: "Tasks of" not in one.text)


async def test_two_hundred_targets_scroll_and_keep_the_cursor_in_sight(console: Opener) -> None:
    async with console(scene_lines("fleet")) as one:
        await one.press("end")
        await one.sees("▸web-200")
        await one.press("home")
        await one.sees("▸web-001")
        await one.press("pagedown", "pagedown")
        row = one.app.cursor[0]
        await one.sees(f"▸web-{row + 1:03}")


async def test_escape_goes_home_and_never_quits(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        await one.press("2")
        assert isinstance(one.app.screen, ConsoleScreen)
        assert one.app.screen.TAB == "output"
        await one.press("escape", "escape", "escape")
        await one.sees("Targets × tasks")
        assert one.app.is_running


async def test_enter_goes_to_the_output_and_tab_walks_through_the_panes(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        assert isinstance(one.app.focused, Matrix)
        await one.press("enter")
        assert isinstance(one.app.focused, LineView)
        await one.press("escape")
        assert isinstance(one.app.focused, Matrix)


async def test_a_run_of_the_past_is_shown_as_a_live_one(console: Opener) -> None:
    async with console(scene_lines("failures"), live=False) as one:
        await one.sees("FINISHED WITH FAILURES", "100%")


async def test_a_record_cut_off_in_mid_line_opens(console: Opener) -> None:
    lines = scene_lines("running")
    async with console([*lines[:-1], lines[-1][:40]], live=False) as one:
        await one.sees("INCOMPLETE", "web-002")
        assert one.app.store.unknown == 1


async def test_an_engine_that_is_gone_is_reported_and_its_clock_stands_still(
    console: Opener,
) -> None:
    async with console(scene_lines("running")) as one:
        one.feed.end()
        await one.sees("engine is gone, last event 12:03:39", "INCOMPLETE")
        await one.press("q")
        await one.until(lambda: not one.app.is_running)
        assert one.app.return_value == 70


async def test_ascii_alone_is_painted_where_that_is_asked(console: Opener) -> None:
    from preflight_tui.viewer import Options

    async with console(scene_lines("unwinding"), options=Options(ascii=True)) as one:
        await one.sees("web-002")
        assert one.text.isascii()
        await one.press("K")
        await one.sees("1.3 s left")
        assert one.text.isascii()
        await one.press("escape", "c")
        await one.sees("Keep running")
        assert one.text.isascii()
