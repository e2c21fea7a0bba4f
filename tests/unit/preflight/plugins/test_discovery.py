"""Places and names; what the files themselves decide is in tests/wire/host/test_discovery.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.plugins.discovery import Place, default_places, discover


def test_the_places_are_searched_in_the_seeds_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "preflight").touch()
    (tmp_path / "preflight").symlink_to(real / "preflight")
    monkeypatch.setattr("sys.argv", [str(tmp_path / "preflight")])
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    places = default_places([tmp_path / "extra"], working=tmp_path / "work")
    assert [place.folder for place in places] == [
        tmp_path / "extra",
        real,
        tmp_path / "home" / ".preflight" / "plugins",
        tmp_path / "work" / "plugins",
    ]
    only = default_places([tmp_path / "extra"], only_extra=True)
    assert [place.folder for place in only] == [tmp_path / "extra"]
    monkeypatch.chdir(tmp_path)
    assert default_places()[-1].folder == tmp_path / "plugins"


def test_on_windows_an_executable_ends_in_exe(tmp_path: Path) -> None:
    for name in ("a.exe", "b.EXE", "c", "d.cmd", ".exe"):
        (tmp_path / f"preflight-plugin-{name}").touch()
    place = Place(folder=tmp_path, source="test")
    discovery = discover([place], builtins=(), windows=True)
    assert [found.name for found in discovery.plugins] == ["a", "b"]
    assert {skipped.why for skipped in discovery.skipped} == {
        "does not end in .exe",
        "no name after the prefix",
    }


def test_a_plugin_is_got_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "preflight-plugin-x"
    path.touch(0o755)
    discovery = discover([Place(folder=tmp_path, source="test")], builtins=())
    found = discovery.get("x")
    assert found is not None
    assert found.path == path
    assert discovery.get("y") is None


def test_a_file_that_vanishes_while_it_is_looked_at_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / "preflight-plugin-x").symlink_to(tmp_path / "nowhere")
    discovery = discover([Place(folder=folder, source="test")], builtins=())
    assert [skipped.why for skipped in discovery.skipped] == ["a link to nothing"]
