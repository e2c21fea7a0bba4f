from __future__ import annotations

import asyncio
import io

import pytest

from preflight.events import Counts, RunFinished, RunStarted, TargetCounts
from preflight_tui import headless
from preflight_tui.headless import json_sink, text_sink, wants_colour

STARTED = RunStarted(seq=1, mode="apply", playbook="p", path="p.yml", targets=["a"], version="1")
FINISHED = RunFinished(seq=2, status="ok", tasks=Counts(), targets=TargetCounts(ok=1), exit_code=0)


class Paper(io.StringIO):
    """Remembers what was written, and wakes who waits for a line that holds a word."""

    def __init__(self) -> None:
        super().__init__()
        self.word = ""
        self.seen = asyncio.Event()

    def write(self, s: str, /) -> int:
        if self.word and self.word in s:
            self.seen.set()
        return super().write(s)


async def test_a_silent_run_says_that_it_is_alive_until_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(headless, "_SILENCE_S", 0.01)
    paper = Paper()
    paper.word = "still running after"
    sink = text_sink(paper, colour=False, verbose=False)
    sink(STARTED)
    async with asyncio.timeout(5):
        await paper.seen.wait()
        paper.seen.clear()
        await paper.seen.wait()
    sink(FINISHED)
    count = paper.getvalue().count("still running")
    await asyncio.sleep(0.03)  # three silences long: nothing may come any more
    assert paper.getvalue().count("still running") == count


def test_json_is_one_event_a_line() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="utf-8")
    sink = json_sink(out)
    sink(STARTED)
    sink(FINISHED)
    lines = raw.getvalue().splitlines()
    assert [line[:24] for line in lines] == [
        b'{"type":"run_started","s',
        b'{"type":"run_finished","',
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "choice", "env", "wanted"),
    [
        (Terminal(), "auto", {}, True),
        (io.StringIO(), "auto", {}, False),
        (Terminal(), "auto", {"NO_COLOR": ""}, False),
        (Terminal(), "auto", {"TERM": "dumb"}, False),
        (Terminal(), "never", {}, False),
        (io.StringIO(), "always", {"NO_COLOR": "1"}, True),
    ],
)
def test_colour_follows_the_terminal_unless_it_is_chosen(
    out: io.StringIO,
    choice: str,
    env: dict[str, str],
    wanted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert wants_colour(out, choice) is wanted
