"""What every screen and state looks like; the pictures for people are never stale."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from textual.pilot import Pilot

from preflight_tui.demos.shots import SHOTS, console, picture, pose

SCREENSHOTS = Path(__file__).parents[2] / "screenshots"
PINNED = {"textual": "8.2.8", "rich": "15.0.0"}
OTHER = {name: version(name) for name, wanted in PINNED.items() if version(name) != wanted}

pytestmark = [
    pytest.mark.skipif(bool(OTHER), reason=f"pictures are exact for {PINNED}, here: {OTHER}"),
    pytest.mark.timeout(120),
]


@pytest.mark.parametrize("name", sorted(SHOTS))
def test_a_screen_looks_as_it_did(name: str, snap_compare: Callable[..., bool]) -> None:
    shot = SHOTS[name]

    async def before(pilot: Pilot[int]) -> None:
        await pose(pilot, shot)

    assert snap_compare(console(shot), terminal_size=shot.size, run_before=before)


@pytest.mark.parametrize("name", sorted(name for name, shot in SHOTS.items() if shot.shown))
async def test_a_picture_for_people_is_not_stale(name: str) -> None:
    path = SCREENSHOTS / f"{name}.svg"
    command = "python -m preflight_tui.demos.shots"
    assert path.exists(), f"make it with: {command}"
    made = await picture(SHOTS[name])
    assert made == path.read_text(encoding="utf-8"), f"make it anew with: {command}"


def test_there_is_no_picture_that_nothing_makes() -> None:
    made = {f"{name}.svg" for name, shot in SHOTS.items() if shot.shown}
    assert {path.name for path in SCREENSHOTS.glob("*.svg")} == made
