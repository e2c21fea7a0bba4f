"""The handshake, seen from a plugin that answers all sorts of things."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from pathlib import Path

import msgspec
import pytest

from preflight.control import Stopped
from preflight.errors import PluginError, Reason
from preflight.events import (
    CancelSent,
    PluginFailed,
    PluginReady,
    PluginSpawned,
    PluginStopped,
    TargetInfo,
)
from preflight.model.settings import Settings
from preflight.plugins.protocol import initialize_params, read_handshake
from preflight.plugins.session import Session
from tests.support.fake_plugin import (
    R1,
    R2,
    Action,
    answer,
    close,
    frame,
    is_alive,
    kill,
    lay,
    leave,
    output,
    pieces,
    quiet,
    read,
    repeat,
    shaken,
    sleep,
    stderr,
    write,
)
from tests.support.loop import in_loop
from tests.support.stage import Stage

SOON = Settings(init_timeout=0.4)


def handshake(**members: object) -> bytes:
    """R1 with other members; one that is None is left out."""
    result = {**json.loads(R1)["result"], **members}
    return answer(1, **{name: value for name, value in result.items() if value is not None})


async def refused(folder: Path, *actions: Action, settings: Settings | None = None) -> PluginError:
    """What a first use says of a plugin that does these; its process is gone afterwards."""
    stage = Stage(settings)
    plugin = lay(folder, *actions)
    async with stage.open():
        start = time.monotonic()
        failure = await stage.failure(plugin)
        elapsed = time.monotonic() - start
        (spawned,) = stage.of(PluginSpawned)
        assert not is_alive(spawned.pid)
        assert elapsed < stage.settings.init_timeout + 1.5
        (failed,) = stage.of(PluginFailed)
        assert (failed.reason, failed.error) == (failure.reason, failure.message)
        assert stage.of(PluginStopped)
        assert not stage.of(CancelSent)
    assert len(stage.of(PluginStopped)) == 1
    return failure


@in_loop
async def test_a_plain_handshake_and_a_check(tmp_path: Path) -> None:
    # P1
    plugin = lay(tmp_path, *shaken(read(), write(R2), read()))
    stage = Stage()
    async with stage.open():
        result = await stage.check(plugin, path="/srv/x")
    assert not result.needs_change
    initialize, check = plugin.lines
    params = json.loads(plugin.received.split(b"\n")[0])["params"]
    assert initialize["id"] == 1
    assert (params["protocol_version"], params["min_protocol_version"]) == (2, 2)
    assert set(params["target"]) == set(TargetInfo.__struct_fields__)
    assert check == {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "check",
        "params": {"args": {"path": "/srv/x"}},
    }
    assert [event.how for event in stage.of(PluginStopped)] == ["closed"]


@in_loop
async def test_nothing_but_initialize_is_written_before_its_answer(tmp_path: Path) -> None:
    # P1
    plugin = lay(tmp_path, read(), quiet(0.2), write(R1), read(), write(R2), read())
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert plugin.notes == ["quiet"]


@in_loop
async def test_a_handshake_byte_by_byte(tmp_path: Path) -> None:
    # P2
    plugin = lay(tmp_path, read(), pieces(R1, 1, every=0.001), read(), pieces(R2, 1), read())
    stage = Stage()
    async with stage.open():
        assert not (await stage.check(plugin)).needs_change


@in_loop
async def test_a_line_glued_to_the_handshake_is_kept(tmp_path: Path) -> None:
    # P3: no call is bound yet, so the line is shown as a warning rather than as a task's output
    plugin = lay(tmp_path, read(), write(R1 + output("hi")), read(), write(R2), read())
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert "hi" in stage.warnings("protocol_violation")[0]


@pytest.mark.parametrize(
    ("members", "words"),
    [
        # P4
        ({"protocol_version": 9, "min_protocol_version": 8}, ("8 to 9", "2 to 2", "upgrade host")),
        ({"protocol_version": 1, "min_protocol_version": 1}, ("1 to 1", "2 to 2", "rebuild")),
        (
            {"protocol_version": None, "min_protocol_version": None},
            ("reported none", "2 to 2"),
        ),  # P5
        ({"protocol_version": 1, "min_protocol_version": 3}, ("malformed", "3 to 1")),  # P6
        ({"protocol_version": "2"}, ("'2'",)),  # P7
        ({"protocol_version": 2.5}, ("2.5",)),
        ({"protocol_version": True}, ("True",)),
        ({"min_protocol_version": "1"}, ("'1'",)),
    ],
)
def test_ranges_that_do_not_fit_are_refused_by_name(
    tmp_path: Path, members: dict[str, object], words: tuple[str, ...]
) -> None:
    @in_loop
    async def test() -> None:
        failure = await refused(tmp_path, *shaken(read(), handshake=handshake(**members)))
        assert failure.reason is Reason.PLUGIN_PROTOCOL
        assert str(tmp_path / "preflight-plugin-demo") in failure.message
        for word in words:
            assert word in failure.message

    test()


@in_loop
async def test_a_version_that_is_no_number_at_all_is_quoted(tmp_path: Path) -> None:
    # P7
    odd = R1.replace(b'"protocol_version":2', b'"protocol_version":1e400', 1)
    failure = await refused(tmp_path, *shaken(read(), handshake=odd))
    assert failure.reason is Reason.PLUGIN_PROTOCOL
    assert "1e400" in failure.message


def test_the_highest_common_version_is_picked() -> None:
    # P8: this build speaks one version, so the wider ranges are given to the functions themselves
    params = json.loads(initialize_params(TargetInfo(), max_message_bytes=9, versions=(2, 4)))
    assert (params["min_protocol_version"], params["protocol_version"]) == (2, 4)
    answered = msgspec.Raw(b'{"protocol_version":3,"min_protocol_version":1,"name":"demo"}')
    assert read_handshake(answered, path="p", versions=(2, 4)).protocol_version == 3


@pytest.mark.parametrize(
    "listed",
    [
        ["zz", "batch"],  # P9
        ["batch", 1, None, "batch", "zz"],  # P10: what is not a string is ignored, a set is made
    ],
)
def test_unknown_capabilities_and_members_are_kept_and_not_negotiated(
    tmp_path: Path, listed: list[object]
) -> None:
    @in_loop
    async def test() -> None:
        first = handshake(capabilities=listed, x={"y": 1})
        plugin = lay(tmp_path, *shaken(read(), write(R2), read(), handshake=first))
        stage = Stage()
        async with stage.open():
            await stage.check(plugin)
        (ready,) = stage.of(PluginReady)
        assert ready.capabilities.plugin == ["batch", "zz"]
        assert ready.capabilities.negotiated == []

    test()


@pytest.mark.parametrize("listed", ["batch", 7, {"a": 1}])
def test_capabilities_that_are_no_list_are_none(tmp_path: Path, listed: object) -> None:
    # P10
    @in_loop
    async def test() -> None:
        first = handshake(capabilities=listed)
        plugin = lay(tmp_path, *shaken(read(), write(R2), read(), handshake=first))
        stage = Stage()
        async with stage.open():
            await stage.check(plugin)
        assert stage.of(PluginReady)[0].capabilities.plugin == []

    test()


@pytest.mark.parametrize("name", ["other", None, 7, "x" * 100_000])
def test_a_wrong_logical_name_is_refused(tmp_path: Path, name: object) -> None:
    # P11
    @in_loop
    async def test() -> None:
        failure = await refused(tmp_path, *shaken(read(), handshake=handshake(name=name)))
        assert failure.reason is Reason.PLUGIN_NAME_MISMATCH
        assert "'demo'" in failure.message
        assert len(failure.message) < 1000
        if name == "other":
            assert "'other'" in failure.message

    test()


@in_loop
async def test_a_plugin_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # P12
    monkeypatch.setattr("preflight.plugins.session._NOTICE_S", 0.1)
    stage = Stage(SOON)
    plugin = lay(tmp_path, stderr(b"still thinking\n"), read(), sleep(60))
    async with stage.open():
        start = time.monotonic()
        failure = await stage.failure(plugin)
        assert 0.4 <= time.monotonic() - start < 1.5
    (spawned,) = stage.of(PluginSpawned)
    assert failure.reason is Reason.PLUGIN_INIT_TIMEOUT
    for part in ("initialize", "0.4 s", str(spawned.pid), "still thinking"):
        assert part in failure.message
    assert not is_alive(spawned.pid)
    assert "no answer to initialize" in stage.warnings("slow_start")[0]
    assert b"cancel" not in plugin.received


@in_loop
async def test_a_cancel_while_initialize_is_awaited(tmp_path: Path) -> None:
    # P12, P67
    stage = Stage()
    plugin = lay(tmp_path, read(), sleep(60))
    async with stage.open():
        waiting = asyncio.ensure_future(stage.check(plugin))
        spawned = await stage.wait_for(PluginSpawned)
        start = time.monotonic()
        stage.control.cancel("box/one", "operator")
        with pytest.raises(Stopped):
            await waiting
        assert time.monotonic() - start < 0.5
        assert not is_alive(spawned.pid)
        assert (await stage.cancelled()).outcome == "nothing_running"
    assert b"cancel" not in plugin.received
    assert [event.how for event in stage.of(PluginStopped)] == ["killed"]
    assert not stage.of(PluginFailed)


@in_loop
async def test_a_plugin_whose_start_was_cancelled_is_started_for_the_next_task(
    tmp_path: Path,
) -> None:
    # P67
    stage = Stage()
    plugin = lay(tmp_path, read(), sleep(0.3), write(R1), read(), write(R2), read())
    async with stage.open():
        waiting = asyncio.ensure_future(stage.check(plugin))
        await stage.wait_for(PluginSpawned)
        stage.control.cancel("box/one", "operator")
        with pytest.raises(Stopped):
            await waiting
        assert not (await stage.check(plugin, "two")).needs_change
    assert len(stage.of(PluginSpawned)) == 2


@in_loop
async def test_an_answer_that_came_while_the_host_stood_still_counts(tmp_path: Path) -> None:
    # P128: the host wakes after the deadline and finds the answer there
    stage = Stage(Settings(init_timeout=0.2))
    plugin = lay(tmp_path, *shaken(read(), write(R2), read()))
    stage.bus.add_sink(lambda event: time.sleep(0.5) if isinstance(event, PluginSpawned) else None)
    async with stage.open():
        assert not (await stage.check(plugin)).needs_change


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ([leave(0)], ("exited (status 0) before initialize",)),  # P13
        ([read(), leave(0)], ("exited (status 0) before initialize",)),
        (
            [stderr(b"ImportError: no module foo\n"), leave(3)],  # P14
            ("status 3", "ImportError: no module foo"),
        ),
        ([kill(signal.SIGKILL)], ("killed by SIGKILL before initialize",)),  # P15
        ([close(1), sleep(60)], ("closed its stdout before initialize",)),
        ([close(0), close(1), sleep(60)], ("closed its stdout before initialize",)),
    ],
)
def test_a_plugin_that_ends_before_it_answered(
    tmp_path: Path, actions: list[Action], words: tuple[str, ...]
) -> None:
    @in_loop
    async def test() -> None:
        failure = await refused(tmp_path, *actions)
        assert failure.reason is Reason.PLUGIN_START
        for word in words:
            assert word in failure.message
        assert "Traceback" not in failure.message

    test()


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        (b"#!/bin/sh\n", 0o644, "chmod +x"),  # P16
        (
            b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\2\0\x99\x99" + b"\0" * 60,
            0o755,
            "built for another",
        ),
        (b"no first line\n", 0o755, "no #! line"),
        (b"#!/nowhere/python3 -I\n", 0o755, "the interpreter /nowhere/python3, which is not there"),
        (b"#!/bin/sh\r\nexit 0\r\n", 0o755, "line ends"),
        (None, 0, "not found any more"),  # P17
    ],
)
def test_a_file_that_can_not_be_started(
    tmp_path: Path, text: bytes | None, mode: int, words: str
) -> None:
    @in_loop
    async def test() -> None:
        plugin = lay(tmp_path, leave(0))
        plugin.path.unlink()
        if text is not None:
            plugin.path.write_bytes(text)
            plugin.path.chmod(mode)
        stage = Stage()
        async with stage.open():
            failure = await stage.failure(plugin)
            again = await stage.failure(plugin, "two")
        assert failure.reason is Reason.PLUGIN_START
        assert words in failure.message
        assert again.message == failure.message
        assert len(stage.of(PluginFailed)) == 1
        assert not stage.of(PluginSpawned)

    test()


@pytest.mark.parametrize(
    ("code", "reason"), [(-32010, Reason.PLUGIN_PROTOCOL), (-32603, Reason.PLUGIN_START)]
)
def test_initialize_answered_with_an_error(tmp_path: Path, code: int, reason: Reason) -> None:
    # P19
    @in_loop
    async def test() -> None:
        refusal = frame({"id": 1, "error": {"code": code, "message": "I speak 7 to 9"}})
        failure = await refused(tmp_path, *shaken(read(), handshake=refusal))
        assert failure.reason is reason
        assert "I speak 7 to 9" in failure.message

    test()


@in_loop
async def test_a_second_answer_to_initialize_is_dropped(tmp_path: Path) -> None:
    # P21
    plugin = lay(tmp_path, read(), write(R1 + R1), repeat(1, read(), write(R2)), read())
    stage = Stage()
    async with stage.open():
        assert not (await stage.check(plugin)).needs_change
    assert "not pending" in stage.warnings("protocol_violation")[0]


@in_loop
async def test_an_operation_during_inspection_has_no_target(tmp_path: Path) -> None:
    # Protocol, error codes: -32001
    ask = frame({"id": 7, "method": "run_command", "params": {"script": "true"}})
    plugin = lay(tmp_path, read(), write(ask), read(), write(R1), read())
    stage = Stage()
    async with stage.open(), asyncio.TaskGroup() as group:
        found = stage.module(plugin)._found  # pyright: ignore[reportPrivateUsage]  # as inspect does
        session = Session(
            found, target="", emit=stage.bus.emit, settings=stage.settings, group=group
        )
        await session.initialize(TargetInfo())
        await session.close()
    (refusal,) = [line for line in plugin.lines if line.get("id") == 7]
    assert json.loads(json.dumps(refusal))["error"]["code"] == -32001
