"""The one table of keys feeds the bindings, the bar, the help and the palette; users change it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.command import CommandPalette

from preflight_tui.console import user_keys
from preflight_tui.keys import TABLE
from preflight_tui.screens.dialogs import Ask, Listing
from preflight_tui.screens.plugins import PluginsScreen
from tests.tui.harness import Opener, scene_lines


def test_every_id_is_given_once_and_no_key_twice_in_a_place() -> None:
    ids = [key.id for key in TABLE]
    assert len(set(ids)) == len(ids)
    for place in ("app", "matrix", "list", "log", "cancelling"):
        bound = [
            name
            for key in TABLE
            if place in key.where.replace("output", "app").split()
            for name in key.keys.split(",")
        ]
        assert len(set(bound)) == len(bound), place


async def test_every_key_for_everywhere_has_an_action(console: Opener) -> None:
    async with console(scene_lines("running")) as one:
        for key in TABLE:
            action = f"action_{key.action.split('(')[0]}"
            if "app" in key.where.split():
                assert hasattr(one.app, action) or hasattr(one.app.screen, action), key.id


async def test_the_help_lists_every_key(console: Opener) -> None:
    async with console(scene_lines("running"), size=(120, 100), keys=("question_mark",)) as one:
        assert isinstance(one.app.screen, Listing)
        await one.sees(*(key.text for key in TABLE))


async def test_the_palette_runs_an_action_by_its_name(console: Opener) -> None:
    async with console(scene_lines("running"), keys=("colon",)) as one:
        assert isinstance(one.app.screen, CommandPalette)
        await one.press(*"the plugins")
        await one.sees("the plugins")
        await one.press("enter")
        await one.until(lambda: isinstance(one.app.screen, PluginsScreen))


def test_the_operators_keys_come_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert user_keys() == {}
    path = tmp_path / "preflight-tui" / "keys.toml"
    path.parent.mkdir()
    path.write_text('help = "x"\n[run]\ncancel = "u"\nnumber = 3\n', encoding="utf-8")
    assert user_keys() == {"help": "x", "run.cancel": "u"}
    path.write_text("not = [toml", encoding="utf-8")
    assert user_keys() == {}
    assert "keys.toml is not used" in capsys.readouterr().err


async def test_an_operators_key_replaces_the_one_of_the_table(console: Opener) -> None:
    async with console(scene_lines("running"), own={"run.cancel": "u"}) as one:
        await one.sees("u cancel")
        await one.press("c")
        assert not isinstance(one.app.screen, Ask)
        await one.press("u")
        assert isinstance(one.app.screen, Ask)
