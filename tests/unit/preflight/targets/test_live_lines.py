"""Progress that has no newline is shown when it rests; every other line only whole."""

from __future__ import annotations

import asyncio

import pytest

from preflight.targets import live_lines
from preflight.targets.live_lines import LiveLines


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(live_lines, "IDLE_S", 0.001)
    return []


def reader(lines: list[str], keep_bytes: int = 100) -> LiveLines:
    return LiveLines("out", lambda _stream, text: lines.append(text), keep_bytes)


async def until(lines: list[str], count: int) -> None:
    async with asyncio.timeout(5):
        while len(lines) < count:  # noqa: ASYNC110  # a timer of the reader's own fills it
            await asyncio.sleep(0.001)


async def test_the_last_state_is_shown_once(lines: list[str]) -> None:
    one = reader(lines)
    for state in (b"1%\r", b"2%\r", b"3%\r"):
        one.feed(state)
    await until(lines, 1)
    one.feed(b"4%\r")
    await until(lines, 2)
    one.feed(b"done\n")
    one.close()
    assert lines == ["3%", "4%", "done"]
    assert one.kept == b"1%\r2%\r3%\r4%\rdone\n"


async def test_a_line_without_a_carriage_return_waits_for_its_newline(lines: list[str]) -> None:
    one = reader(lines)
    one.feed(b"half ")
    await asyncio.sleep(0.01)
    assert lines == []
    one.feed(b"whole\nrest")
    assert lines == ["half whole"]
    one.close()
    assert lines == ["half whole", "rest"]


async def test_a_windows_line_end_is_a_line_end(lines: list[str]) -> None:
    one = reader(lines)
    one.feed(b"a\r\nb\r\n")
    await asyncio.sleep(0.01)
    one.close()
    assert lines == ["a", "b"]


async def test_what_is_too_long_for_progress_is_not_taken_for_it(lines: list[str]) -> None:
    one = reader(lines)
    one.feed(b"\r" + b"x" * 5000)
    await asyncio.sleep(0.01)
    assert lines == []
    one.close()
    assert len(lines) == 1


async def test_nobody_who_listens_costs_nothing_and_the_beginning_is_kept() -> None:
    one = LiveLines("err", None, 3)
    one.feed(b"ab\rcd")
    one.close()
    assert (one.kept, one.truncated) == (b"ab\r", True)
