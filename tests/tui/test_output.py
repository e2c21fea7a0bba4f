"""The output: found, followed, wrapped, copied, written to a file; and harmless everywhere."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from preflight.events import Line, TaskOutput, encode
from preflight_tui.demos.scene import Scene
from preflight_tui.panes.lineview import LineView
from preflight_tui.viewer import Options
from tests.tui.harness import Console, Opener, scene_lines


def long_scene(count: int, batch: int = 100) -> Scene:
    """One task that printed ``count`` numbered lines."""
    scene = Scene()
    scene.start(["web"], [("print", "shell")])
    scene.contact("web")
    scene.begin("web", 0, "apply")
    for start in range(0, count, batch):
        scene.output("web", 0, *(f"line {number}" for number in range(start, start + batch)))
    return scene


def view_of(one: Console) -> LineView:
    return one.app.screen.query_one(LineView)


async def test_the_end_is_followed_until_the_operator_goes_up(console: Opener) -> None:
    scene = long_scene(1000)
    async with console(scene.lines, keys=("2", "tab")) as one:
        await one.sees("line 999", "1 001 lines", "FOLLOW")
        await one.press("up", "up")
        await one.sees("paused, f follows")
        top = one.text.splitlines()[4]
        before = len(scene.lines)
        scene.output("web", 0, *(f"new {number}" for number in range(50)))
        await one.push(scene.lines[before:])
        await one.sees("1 051 lines", "52 below")
        assert one.text.splitlines()[4] == top
        await one.press("f")
        await one.sees("new 49", "FOLLOW")


async def test_pages_and_edges_reach_every_line(console: Opener) -> None:
    async with console(long_scene(1000).lines, keys=("2", "tab")) as one:
        await one.press("g")
        await one.sees("apply  print", "line 0 ")
        await one.press("pagedown")
        await one.sees("line 40")
        await one.press("G")
        await one.sees("line 999", "FOLLOW")


async def test_find_counts_the_matches_and_goes_from_one_to_the_next(console: Opener) -> None:
    async with console(long_scene(1000).lines, keys=("2",)) as one:
        await one.press("slash", *"line 77", "enter")
        await one.sees("/line 77 11 of 11", "line 779")
        await one.press("N")
        await one.sees("/line 77 10 of 11")
        await one.press("n")
        await one.sees("/line 77 11 of 11")
        await one.press("n")
        await one.sees("/line 77 1 of 11", "line 77 ")
        await one.press("escape")
        await one.until(lambda: view_of(one).find is None)


async def test_a_search_that_finds_nothing_says_so(console: Opener) -> None:
    async with console(long_scene(100).lines, keys=("2",)) as one:
        await one.press("slash", *"absent", "enter")
        await one.sees("/absent 0 of 0 ·")


async def test_long_lines_are_broken_or_run_out_of_the_window(console: Opener) -> None:
    async with console(scene_lines("hostile"), size=(80, 24), keys=("2", "tab", "G")) as one:
        await one.sees("… +55 KB")
        await one.press("w")
        await one.until(lambda: "+55 KB" not in one.text)
        await one.press("right")
        await one.until(lambda: view_of(one).find is None)
        await one.press("w")
        await one.sees("… +55 KB")


async def test_time_stamps_go_from_the_clock_to_the_start_to_none(console: Opener) -> None:
    async with console(scene_lines("running"), keys=("2",)) as one:
        await one.sees("12:03:33.254 out")
        await one.press("t")
        await one.sees("3.3 s out")
        await one.press("t")
        await one.until(lambda: "│out    412 files" in one.text)
        await one.press("t")
        await one.sees("12:03:33.254 out")


async def test_a_window_costs_no_memory_for_the_lines_it_does_not_show(console: Opener) -> None:
    async with console(long_scene(20_000).lines, keys=("2", "tab", "g")) as one:
        view = view_of(one)
        for _ in range(40):
            await one.press("pagedown")
        await one.sees("line 1")
        strips = view._strips  # pyright: ignore[reportPrivateUsage]  # what it keeps has no public name
        assert len(strips) <= 512


async def test_output_is_written_to_a_file_of_its_owner_alone(
    console: Opener, tmp_path: Path
) -> None:
    options = Options(record=str(tmp_path / "events.ndjson"))
    async with console(scene_lines("hostile"), options=options, keys=("2", "e")) as one:
        await one.sees("Written to")
    (path,) = (tmp_path / "exports").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    text = path.read_text(encoding="utf-8")
    assert "x" * 60_000 + " the end" in text
    assert not {unicodedata.category(char) for char in text if char != "\n"} & {"Cc", "Cf"}


@pytest.mark.parametrize("key", ["y", "Y"])
async def test_copied_text_says_where_it_went(
    console: Opener, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    async with console(scene_lines("running"), keys=("2", key)) as one:
        await one.sees("Copied 6 lines to the terminal (OSC 52)")
        assert "copied img/hall-a/0003.png" in one.app.clipboard


async def test_too_much_for_a_terminal_is_copied_to_a_file(
    console: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    options = Options(record=str(tmp_path / "events.ndjson"))
    async with console(long_scene(20_000).lines, options=options, keys=("2", "Y")) as one:
        await one.sees("Copied 20001 lines to", "clip.txt")
    assert "line 19999" in (tmp_path / "exports" / "clip.txt").read_text(encoding="utf-8")


PLACES = [(), ("2",), ("3",), ("4",), ("5",), ("6",), ("d",), ("c",), ("2", "slash")]


@pytest.mark.parametrize("keys", PLACES)
@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_nothing_foreign_reaches_the_terminal_raw(
    console: Opener, keys: tuple[str, ...], size: tuple[int, int]
) -> None:
    async with console(scene_lines("hostile"), size=size, keys=keys) as one:
        bad = {char for char in one.text if unicodedata.category(char) in ("Cc", "Cf")} - {"\n"}
        assert bad == set()


async def test_the_last_filter_catches_what_a_pane_would_let_through(console: Opener) -> None:
    from rich.segment import Segment
    from textual.color import Color

    async with console(scene_lines("running")) as one:
        filters = one.app.get_line_filters()
        segments = [Segment("a\x1b]0;x\x07b\x9b2Jc\u202e"), Segment("plain")]
        for each in filters:
            segments = each.apply(segments, Color.parse("black"))
        assert [segment.text for segment in segments] == ["a]0;xb2Jc", "plain"]


async def test_a_million_lines_leave_a_key_answered_and_nothing_lost(console: Opener) -> None:
    scene = Scene()
    scene.start(["web"], [("print", "shell")])
    scene.contact("web")
    scene.begin("web", 0, "apply")
    task = scene.tasks[0].key
    batch = [Line("out", "the quick brown fox jumps over the lazy dog") for _ in range(500)]
    line = encode(TaskOutput(target="web", task=task, lines=batch)).rstrip(b"\n")
    async with console(scene.lines, keys=("2",)) as one:
        one.feed.push([line] * 2000)
        await one.sees("FOLLOW")
        await one.press("1")
        await one.sees("Targets × tasks")
        await one.until(lambda: len(one.app.store.log(("web", task))) == 1_000_001)
        await one.sees("1 000 001 lines")
