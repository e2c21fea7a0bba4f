"""Which files are plugins, and that looking at them all starts each once, and in parallel."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from pathlib import Path

import pytest

from preflight.events import PluginSpawned, PluginStopped
from preflight.model.settings import Settings
from preflight.plugins.discovery import Discovery, Found, Place, discover
from preflight.plugins.inspect import inspect
from tests.support.fake_plugin import (
    R1,
    FakePlugin,
    children,
    eof,
    is_alive,
    lay,
    leave,
    read,
    shaken,
    sleep,
    stderr,
)
from tests.support.loop import in_loop
from tests.support.stage import Stage


def found_in(*folders: Path, builtins: tuple[str, ...] = ("shell",)) -> Discovery:
    places = [Place(folder=folder, source=folder.name) for folder in folders]
    return discover(places, builtins=builtins)


def executable(folder: Path, name: str) -> Path:
    """An executable file of that name."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(b"#!/bin/sh\n")
    path.chmod(0o755)
    return path


def greeting(name: str) -> bytes:
    return R1.replace(b"demo", name.encode())


def test_a_name_in_two_places_refuses_both_and_names_both(tmp_path: Path) -> None:
    # P111
    one = executable(tmp_path / "a", "preflight-plugin-x")
    two = executable(tmp_path / "b", "preflight-plugin-x")
    plugins = found_in(tmp_path / "a", tmp_path / "b").plugins
    assert [found.source for found in plugins] == ["a", "b"]
    for found in plugins:
        assert str(one) in found.problem
        assert str(two) in found.problem


def test_a_built_in_name_is_refused(tmp_path: Path) -> None:
    # P111
    path = executable(tmp_path, "preflight-plugin-shell")
    (found,) = found_in(tmp_path).plugins
    assert str(path) in found.problem
    assert "built-in" in found.problem


def test_names_that_differ_in_case_are_two(tmp_path: Path) -> None:
    # P111
    executable(tmp_path, "preflight-plugin-Mark")
    executable(tmp_path, "preflight-plugin-mark")
    plugins = found_in(tmp_path).plugins
    assert [(found.name, found.problem) for found in plugins] == [("Mark", ""), ("mark", "")]


def test_the_same_file_twice_counts_once(tmp_path: Path) -> None:
    # P111
    one = executable(tmp_path / "a", "preflight-plugin-x")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / one.name).symlink_to(one)
    (tmp_path / "c").symlink_to(tmp_path / "a")
    plugins = found_in(*(tmp_path / name for name in "aabc")).plugins
    assert [(found.path, found.problem) for found in plugins] == [(one, "")]


def test_one_file_under_two_names_is_two_plugins(tmp_path: Path) -> None:
    # P111: as a program that looks at its own name; what each says is asked at its start
    one = executable(tmp_path, "preflight-plugin-x")
    (tmp_path / "preflight-plugin-a").symlink_to(one)
    assert [found.name for found in found_in(tmp_path).plugins] == ["a", "x"]


def test_what_is_no_executable_file_is_passed_over_and_said(tmp_path: Path) -> None:
    # P112
    executable(tmp_path, "other")
    (tmp_path / "preflight-plugin-noexec").write_bytes(b"#!/bin/sh\n")
    (tmp_path / "preflight-plugin-folder").mkdir()
    executable(tmp_path, "preflight-plugin-notes.md")
    executable(tmp_path, "preflight-plugin-x.bak")
    executable(tmp_path, "preflight-plugin-")
    (tmp_path / "preflight-plugin-gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "preflight-plugin-loop").symlink_to(tmp_path / "preflight-plugin-loop")
    os.mkfifo(tmp_path / "preflight-plugin-fifo", 0o777)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "preflight-plugin-sock"))
        discovery = found_in(tmp_path, tmp_path / "nowhere")
    assert discovery.plugins == []
    why = {
        skipped.path.name.removeprefix("preflight-plugin-"): skipped.why
        for skipped in discovery.skipped
    }
    assert sorted(why) == [
        *("", "fifo", "folder", "gone", "loop", "noexec", "notes.md", "sock", "x.bak")
    ]
    assert "chmod +x" in why["noexec"]
    assert "link to nothing" in why["gone"]
    for name in ("fifo", "folder", "sock"):
        assert why[name] == "not a regular file"


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "writable"),
    [
        (0o755, 0o755, False),
        (0o757, 0o755, True),
        (0o755, 0o777, True),
        (0o755, 0o1777, False),
    ],
)
def test_what_anybody_may_change_is_marked(
    tmp_path: Path, file_mode: int, folder_mode: int, writable: bool
) -> None:
    # P113
    folder = tmp_path / "a"
    executable(folder, "preflight-plugin-x").chmod(file_mode)
    folder.chmod(folder_mode)
    assert [found.world_writable for found in found_in(folder).plugins] == [writable]
    links = tmp_path / "links"
    links.mkdir()
    (links / "preflight-plugin-x").symlink_to(folder / "preflight-plugin-x")
    assert [found.world_writable for found in found_in(links).plugins] == [writable]


@in_loop
async def test_what_anybody_may_change_is_warned_of_and_used(tmp_path: Path) -> None:
    # P113
    plugin = lay(tmp_path, leave(0))
    stage = Stage()
    found = Found(name="demo", path=plugin.path, source="test", world_writable=True)
    async with stage.open():
        await stage.failure(found)
    assert "written by anybody" in stage.warnings("world_writable")[0]


@in_loop
async def test_a_plugin_that_was_refused_is_never_started(tmp_path: Path) -> None:
    plugin = lay(tmp_path, leave(0))
    stage = Stage()
    async with stage.open():
        failure = await stage.failure(
            Found(name="demo", path=plugin.path, source="test", problem="name conflict: both")
        )
    assert "name conflict" in failure.message
    assert not stage.of(PluginSpawned)


def fifty(folder: Path) -> list[FakePlugin]:
    names = [f"p{number:02}" for number in range(50)]
    return [lay(folder, *shaken(eof(), handshake=greeting(name)), name=name) for name in names]


@in_loop
async def test_finding_fifty_plugins_starts_none_and_looking_at_them_starts_each_once(
    tmp_path: Path,
) -> None:
    # P115
    plugins = fifty(tmp_path)
    before = children()
    discovery = found_in(tmp_path)
    assert len(discovery.plugins) == 50
    assert children() == before
    assert not any(plugin.starts for plugin in plugins)
    stage = Stage()
    looked = await inspect(discovery.plugins, emit=stage.bus.emit, settings=Settings())
    assert [one.found.name for one in looked] == [f"p{number:02}" for number in range(50)]
    assert all(one.handshake is not None and not one.error for one in looked)
    assert [plugin.starts for plugin in plugins] == [1] * 50


@in_loop
async def test_one_that_hangs_delays_no_other(tmp_path: Path) -> None:
    # P115
    hangs = lay(tmp_path, stderr(b"hm\n"), read(), sleep(60), name="hangs")
    broken = lay(tmp_path, leave(3), name="broken")
    good = [lay(tmp_path, *shaken(eof(), handshake=greeting(n)), name=n) for n in ("a", "z")]
    stage = Stage()
    start = time.monotonic()
    looked = await inspect(
        found_in(tmp_path).plugins, emit=stage.bus.emit, settings=Settings(init_timeout=1.5)
    )
    assert 1.5 <= time.monotonic() - start < 4
    by_name = {one.found.name: one for one in looked}
    assert by_name["hangs"].reason == "plugin_init_timeout"
    assert by_name["hangs"].stderr_tail == ["hm"]
    assert by_name["broken"].reason == "plugin_start"
    assert by_name["a"].handshake is not None
    assert by_name["z"].handshake is not None
    ends = [event.plugin for event in stage.of(PluginStopped)]
    assert ends[-1] == "hangs"
    assert [plugin.starts for plugin in (hangs, broken, *good)] == [1] * 4


@in_loop
async def test_an_inspection_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    hangs = lay(tmp_path, read(), sleep(60), name="hangs")
    slow = lay(tmp_path, *shaken(eof(), sleep(0.4), handshake=greeting("slow")), name="slow")
    del hangs, slow
    stage = Stage()
    looking = asyncio.ensure_future(
        inspect(found_in(tmp_path).plugins, emit=stage.bus.emit, settings=Settings())
    )
    await stage.wait_for(PluginSpawned, count=2)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    assert not any(is_alive(event.pid) for event in stage.of(PluginSpawned))
    assert len(stage.of(PluginStopped)) == 2
