"""A pinned plugin runs only as the very file that was pinned."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from preflight.errors import ConfigError, PluginError, Reason
from preflight.plugins.discovery import Found
from preflight.plugins.pins import LOCK_NAME, Executable, Pin, read_pins, write_pins
from tests.support.fake_plugin import R2, lay, read, shaken, write
from tests.support.stage import Stage, found_at


def pinned(path: Path) -> Found:
    digest = sha256(path.read_bytes()).hexdigest()
    return msgspec.structs.replace(found_at(path), pin=digest)


async def test_a_pinned_plugin_whose_file_is_the_same_works(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(R2)))
    stage = Stage()
    async with stage.open():
        assert not (await stage.check(pinned(plugin.path))).needs_change
    assert plugin.starts == 1


async def test_another_file_is_refused_before_it_is_started_and_both_digests_are_named(
    tmp_path: Path,
) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(R2)))
    found = pinned(plugin.path)
    plugin.path.write_text(plugin.path.read_text() + "# changed\n")
    stage = Stage()
    async with stage.open():
        failure = await stage.failure(found)
    assert failure.reason is Reason.PLUGIN_START
    assert found.pin in failure.message
    assert sha256(plugin.path.read_bytes()).hexdigest() in failure.message
    assert plugin.starts == 0


async def test_a_plugin_without_a_pin_may_change(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(R2)))
    plugin.path.write_text(plugin.path.read_text() + "# changed\n")
    stage = Stage()
    async with stage.open():
        assert not (await stage.check(plugin)).needs_change


def swap(path: Path) -> None:
    """Put another file in its place, as an update does."""
    other = path.with_suffix(".new")
    other.write_text("#!/bin/sh\necho swapped\n", encoding="ascii")
    other.chmod(0o755)
    os.replace(other, path)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux's /proc/self/fd")
def test_what_is_swapped_in_after_the_check_is_not_what_is_executed(tmp_path: Path) -> None:
    plugin = lay(tmp_path)
    was = plugin.path.read_bytes()
    executable = Executable(pinned(plugin.path))
    try:
        swap(plugin.path)
        assert Path(executable.argv[0]).read_bytes() == was
        assert executable.pass_fds
    finally:
        executable.close()


def test_where_the_path_is_executed_a_swap_is_found_before_anything_is_sent(tmp_path: Path) -> None:
    plugin = lay(tmp_path)
    found = pinned(plugin.path)
    executable = Executable(found, by_fd=False)
    assert executable.argv == [str(plugin.path)]
    swap(plugin.path)
    with pytest.raises(PluginError, match=found.pin):
        executable.confirm()


@pytest.mark.parametrize("by_fd", [True, False])
def test_a_write_in_place_after_the_check_is_found(by_fd: bool, tmp_path: Path) -> None:
    plugin = lay(tmp_path)
    executable = Executable(pinned(plugin.path), by_fd=by_fd)
    with plugin.path.open("a") as file:
        file.write("# more\n")
    with pytest.raises(PluginError, match="is not the file"):
        executable.confirm()


def test_a_file_that_was_only_touched_is_still_the_same(tmp_path: Path) -> None:
    plugin = lay(tmp_path)
    executable = Executable(pinned(plugin.path), by_fd=False)
    plugin.path.chmod(0o700)
    executable.confirm()


def test_what_is_written_is_read_again_sorted_by_name(tmp_path: Path) -> None:
    pins = [Pin(name=name, version="1", sha256="a" * 64) for name in ("b", "a")]
    assert write_pins(tmp_path, pins) == tmp_path / LOCK_NAME
    assert list(read_pins(tmp_path)) == ["a", "b"]
    assert os.listdir(tmp_path) == [LOCK_NAME]


def test_without_a_lock_nothing_is_pinned(tmp_path: Path) -> None:
    assert read_pins(tmp_path) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"plugins": [{"name": "a"}]}',
        '{"format": 2, "plugins": []}',
        '{"plugins": [], "more": 1}',
        '{"plugins": [{"name": "a", "version": "", "sha256": "x"}, '
        '{"name": "a", "version": "", "sha256": "y"}]}',
    ],
)
def test_a_lock_that_makes_no_sense_is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text(text)
    with pytest.raises(ConfigError, match=LOCK_NAME):
        read_pins(tmp_path)
