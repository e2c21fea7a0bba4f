"""Leaving the console: the run is never ended, or left alone, without asking."""

from __future__ import annotations

import pytest

from preflight_tui.app import ConsoleApp
from preflight_tui.demos.scenes import SCENES
from preflight_tui.screens.dialogs import Ask
from tests.tui.harness import Opener, scene_lines


async def test_quit_asks_while_the_run_goes_on(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        await one.press("q")
        await one.sees("The run is going on.", "preflight-tui attach 7f3a", "Stay", "Detach")
        await one.press("enter")
        assert one.app.is_running
        assert not isinstance(one.app.screen, Ask)


async def test_detach_leaves_with_0_and_asks_nothing_of_the_engine(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        await one.press("q", "d")
        await one.until(lambda: not one.app.is_running)
        assert one.app.return_value == 0
        assert one.feed.asked == []


async def test_cancel_and_quit_waits_for_the_end_of_the_run(console: Opener) -> None:
    scene = SCENES["running"]()
    async with console(scene.lines) as one:
        await one.press("q", "C")
        await one.until(lambda: one.feed.asked == [("", False)])
        assert one.app.is_running
        before = len(scene.lines)
        scene.finish("cancelled", 130, cancelled=6)
        one.feed.push(scene.lines[before:])
        await one.until(lambda: not one.app.is_running)
        assert one.app.return_value == 130


@pytest.mark.parametrize("key", ["q", "ctrl+q", "ctrl+c"])
async def test_a_finished_run_is_left_at_once_with_its_exit_code(console: Opener, key: str) -> None:
    async with console(scene_lines("failures"), live=False) as one:
        await one.press(key)
        await one.until(lambda: not one.app.is_running)
        assert one.app.return_value == 1


async def test_a_bug_of_the_console_writes_a_report_and_no_locals_to_the_terminal(
    console: Opener, tmp_path: object
) -> None:
    from pathlib import Path

    from preflight_tui.viewer import Options

    report = Path(str(tmp_path)) / "report.txt"
    failed: list[ConsoleApp] = []
    with pytest.raises(ZeroDivisionError):  # noqa: PT012  # the app raises where it is left
        async with console(scene_lines("running"), options=Options(report=report)) as one:
            failed.append(one.app)

            def broken() -> None:
                password = "hunter2"
                raise ZeroDivisionError(len(password))

            one.app.call_later(broken)
            await one.until(lambda: not one.app.is_running)
    assert failed[0].return_value is None
    assert "ZeroDivisionError" in report.read_text(encoding="utf-8")
    assert "hunter2'" not in report.read_text(encoding="utf-8")
