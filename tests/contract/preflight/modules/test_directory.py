from __future__ import annotations

from pathlib import Path

import pytest

from preflight.errors import ModuleError
from tests.support.modules import Workbench


async def test_a_directory_is_made_with_its_parents_and_rights(bench: Workbench) -> None:
    place = bench.folder / "a" / "b c'd"
    await bench.converge("directory", path=str(place), mode="0700")
    assert place.stat().st_mode & 0o7777 == 0o700
    bench.target.exec_count = 0
    changed = await bench.check("directory", path=str(place), mode=750)
    assert bench.target.exec_count == 1
    assert [(one.before, one.after) for one in changed.changes] == [("0700", "0750")]


async def test_a_directory_is_removed_with_what_is_in_it(bench: Workbench) -> None:
    place = bench.folder / "a"
    (place / "b").mkdir(parents=True)
    (place / "b" / "f").touch()
    await bench.converge("directory", path=f"{place}/", ensure="absent")
    assert not place.exists()


async def test_removing_a_link_leaves_the_directory_behind_it(bench: Workbench) -> None:
    kept = bench.folder / "kept"
    kept.mkdir()
    (kept / "f").touch()
    link = bench.folder / "link"
    link.symlink_to("kept")
    await bench.converge("directory", path=f"{link}/", ensure="absent")
    assert (kept / "f").exists()
    assert not link.is_symlink()


async def test_a_file_in_the_place_is_an_error_and_stays(bench: Workbench) -> None:
    place = bench.folder / "f"
    place.touch()
    for ensure in ("present", "absent"):
        with pytest.raises(ModuleError, match="no directory"):
            await bench.check("directory", path=str(place), ensure=ensure)
    assert place.is_file()


@pytest.mark.parametrize(
    "path",
    ["/", "//", "/./", "/usr", "/etc/", "/tmp/../etc", "/usr/bin", "/home/x", "rel", ".", "~/x"],
)
async def test_what_must_stay_is_never_removed(bench: Workbench, path: str) -> None:
    bench.target.forbidden = True  # a broken guard must not reach a shell
    for phase in (bench.check, bench.apply):
        with pytest.raises(ModuleError, match=r"never removed|not absolute|write it out"):
            await phase("directory", path=path, ensure="absent")
    assert bench.target.exec_count == 0


async def test_a_link_in_the_parents_does_not_deceive(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is guarded is made here, so that even a broken guard could remove nothing but this.
    home = bench.folder / "home"
    (home / "deep").mkdir(parents=True)
    (bench.folder / "way").symlink_to(bench.folder)
    monkeypatch.setenv("HOME", str(home / "deep"))
    for phase in (bench.check, bench.apply):
        with pytest.raises(ModuleError, match="never removed"):
            await phase("directory", path=str(bench.folder / "way" / "home"), ensure="absent")
    assert (home / "deep").is_dir()


async def test_a_parent_that_is_a_file_is_an_error(bench: Workbench) -> None:
    (bench.folder / "f").touch()
    with pytest.raises(ModuleError, match="can't make"):
        await bench.apply("directory", path=str(bench.folder / "f" / "d"))


async def test_what_is_not_there_needs_no_removal(bench: Workbench, tmp_path: Path) -> None:
    result = await bench.check("directory", path=str(tmp_path / "no" / "no"), ensure="absent")
    assert not result.needs_change
    await bench.apply("directory", path=str(tmp_path / "no" / "no"), ensure="absent")
