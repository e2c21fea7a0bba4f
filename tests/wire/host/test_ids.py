"""Ids and order, seen from a plugin that sends requests of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from preflight.events import Diagnostic, PluginSpawned
from preflight.ports.target import Become
from preflight.targets.local import LocalTarget
from tests.support.fake_plugin import (
    R2,
    R3,
    frame,
    lay,
    numbered,
    output,
    read,
    repeat,
    request,
    shaken,
    write,
)
from tests.support.loop import in_loop
from tests.support.stage import Stage
from tests.wire.host.test_backpressure import rss_kib


def raw(id: bytes, script: str = "echo hi") -> bytes:
    """A run_command whose id is exactly this text."""
    return request(0, "run_command", script=script).replace(b'"id": 0', b'"id": ' + id)


def error_code(line: dict[str, object]) -> int:
    """The code of an error answer."""
    return json.loads(json.dumps(line))["error"]["code"]


@in_loop
async def test_the_same_id_in_both_directions_is_no_match(tmp_path: Path) -> None:
    # P79
    asks = request(2, "run_command", script="echo hi")
    plugin = lay(tmp_path, *shaken(read(), write(asks), read(), write(R2), read()))
    stage = Stage()
    async with stage.open():
        assert not (await stage.check(plugin)).needs_change
    assert plugin.lines[2] == {
        "jsonrpc": "2.0",
        "id": 2,
        "result": {"stdout": "hi\n", "stderr": "", "exit_code": 0},
    }


@pytest.mark.parametrize(
    "id",
    [
        *(b"0", b'""', b'"abc"', b"-1", b"9007199254740993", b"18446744073709551616"),
        *(b"-99999999999999999999", b'"\\u00e9"'),
    ],
)
def test_an_integer_or_a_string_id_is_echoed(tmp_path: Path, id: bytes) -> None:
    # P80
    @in_loop
    async def test() -> None:
        plugin = lay(tmp_path, *shaken(read(), write(raw(id)), read(), write(R2), read()))
        stage = Stage()
        async with stage.open():
            await stage.check(plugin)
        echoed = json.loads(id)
        assert plugin.lines[2]["id"] == echoed
        assert type(plugin.lines[2]["id"]) is type(echoed)
        assert "result" in plugin.lines[2]
        if id.isdigit():
            assert b'"id":' + id + b"," in plugin.received

    test()


@pytest.mark.parametrize(
    "id",
    [
        b"1.0",
        b"1.5",
        b"1e3",
        b"true",
        b"null",
        b"{}",
        b"[1]",
        b"9" * 5000,
        b'"' + b"x" * 5000 + b'"',
    ],
)
def test_any_other_id_is_refused_with_a_null_id(tmp_path: Path, id: bytes) -> None:
    # P80: nor one that is longer than any counter
    @in_loop
    async def test() -> None:
        plugin = lay(tmp_path, *shaken(read(), write(raw(id)), read(), write(R2), read()))
        stage = Stage()
        async with stage.open():
            await stage.check(plugin)
        assert plugin.lines[2]["id"] is None
        assert error_code(plugin.lines[2]) == -32600

    test()


@in_loop
async def test_a_duplicate_id_in_flight_is_refused_and_may_be_used_afterwards(
    tmp_path: Path,
) -> None:
    # P81
    slow = raw(b"7", "sleep 0.3; echo one")
    plugin = lay(
        tmp_path,
        *shaken(
            read(), write(slow + raw(b"7")), read(2), write(raw(b"7")), read(), write(R2), read()
        ),
    )
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    first, second, third = plugin.lines[2:]
    assert error_code(first) == -32600
    assert "one" in str(second["result"])
    assert "hi" in str(third["result"])


@in_loop
async def test_a_hundred_thousand_stray_responses_cost_a_number(tmp_path: Path) -> None:
    # P83: five are shown, then the count when the session ends
    stray = numbered(b'{"jsonrpc":"2.0","result":{},"id":1', b"}\n", 100_000)
    plugin = lay(tmp_path, *shaken(read(), stray, write(R2), read()))
    stage = Stage()
    async with stage.open():
        rss_kib()
        before = rss_kib()
        await stage.check(plugin)
        assert rss_kib() - before < 32 * 1024
    shown = stage.warnings("protocol_violation")
    assert len(shown) == 6
    assert "100000 times" in shown[-1]


@in_loop
async def test_output_keeps_its_order_and_comes_before_the_result(tmp_path: Path) -> None:
    # P84
    lines = numbered(b'{"jsonrpc":"2.0","method":"output","params":{"line":"', b'"}}\n', 1000)
    plugin = lay(tmp_path, *shaken(read(), lines, write(R2), read()))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
        assert stage.lines == [str(number) for number in range(1000)]


@in_loop
async def test_output_outside_a_call_is_credited_to_none(tmp_path: Path) -> None:
    # P85
    plugin = lay(
        tmp_path,
        *shaken(read(), write(R2), read(), write(output("mine") + R3 + output("late")), read()),
    )
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
        assert stage.lines == []
        await stage.check(plugin, "two")
    assert stage.lines == ["mine"]
    assert "late" in stage.warnings("protocol_violation")[0]


@in_loop
async def test_an_unknown_method_is_refused_and_an_unknown_notification_ignored(
    tmp_path: Path,
) -> None:
    # P88
    odd = frame({"method": "rm_rf"}) + request(7, "rm_rf") + request(8, "x" * 100_000)
    plugin = lay(tmp_path, *shaken(read(), write(odd), read(2), write(R2), read()))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert [error_code(line) for line in plugin.lines[2:]] == [-32601, -32600]
    assert len(plugin.received) < 3000


@in_loop
async def test_a_second_operation_waits_its_turn(tmp_path: Path) -> None:
    # P89
    log = tmp_path / "log"
    script = f"echo in >> {log}; sleep 0.1; echo out >> {log}"
    asks = b"".join(request(id, "run_command", script=script) for id in (7, "eight", 9))
    plugin = lay(tmp_path, *shaken(read(), write(asks), read(3), write(R2), read()))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert [line["id"] for line in plugin.lines[2:]] == [7, "eight", 9]
    assert log.read_text(encoding="ascii").split() == ["in", "out"] * 3


@in_loop
async def test_an_operation_outside_a_call_starts_nothing(tmp_path: Path) -> None:
    # P63: also one in the same read as the answer, before its task was woken up
    asks = request(7, "run_command", script=f"touch {tmp_path}/started")
    plugin = lay(tmp_path, *shaken(read(), write(R2 + asks), read(2), write(R3), read()))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
        await stage.check(plugin, "two")
    (refusal,) = [line for line in plugin.lines if "error" in line]
    assert (refusal["id"], error_code(refusal)) == (7, -32000)
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("ask", "code", "words"),
    [
        (request(7, "run_command", script="a\0b"), -32000, "null byte"),
        (request(7, "run_command"), -32602, "script"),
        (request(7, "run_command", script=7), -32602, "script"),
        (request(7, "put_file", path="/tmp/x", data="@@@"), -32602, "base64"),
        (request(7, "put_file", path="a\0b", data=""), -32000, "null byte"),
        (request(7, "put_file", path="/dev/null", data=""), -32000, "regular file"),
        (request(7, "put_file", path="/proc/x/y", data=""), -32000, "can't write"),
        (request(7, "get_file", path="a\0b"), -32000, "null byte"),
        (request(7, "get_file", path="/nowhere"), -32000, "No such file"),
        (request(7, "get_file", path="/tmp"), -32000, "directory"),
        (frame({"id": 7, "method": "get_file", "params": [1]}), -32602, "get_file"),
        (frame({"id": 7, "method": "get_file", "params": None}), -32602, "get_file"),
    ],
)
def test_an_operation_that_fails_is_an_answer(
    tmp_path: Path, ask: bytes, code: int, words: str
) -> None:
    @in_loop
    async def test() -> None:
        plugin = lay(tmp_path, *shaken(read(), write(ask), read(), write(R2), read()))
        stage = Stage()
        async with stage.open():
            await stage.check(plugin)
        assert error_code(plugin.lines[2]) == code
        assert words in str(plugin.lines[2]["error"])

    test()


class Buggy(LocalTarget):
    """A target with a bug of ours in it."""

    async def get_file(
        self, path: str, *, limit_bytes: int | None = None, become: Become | None = None
    ) -> bytes:
        raise LookupError("this is ours")


@in_loop
async def test_a_bug_in_an_operation_ends_neither_the_call_nor_the_target(tmp_path: Path) -> None:
    ask = request(7, "get_file", path="/x")
    plugin = lay(
        tmp_path, *shaken(read(), write(ask), read(), write(R2), read(), write(R3), read())
    )
    stage = Stage(target=Buggy("box"))
    async with stage.open():
        await stage.check(plugin)
        await stage.check(plugin, "two")
    assert error_code(plugin.lines[2]) == -32603
    (bug,) = stage.of(Diagnostic)
    assert "this is ours" in bug.summary
    assert "get_file" in bug.detail
    assert len(stage.of(PluginSpawned)) == 1


@in_loop
async def test_a_bug_in_what_takes_the_output_loses_no_answer(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(output("a") + output("b") + R2), read()))
    stage = Stage()

    def broken(line: str) -> None:
        if line == "a":
            raise LookupError("this is ours")

    stage.on_line = broken
    async with stage.open():
        await stage.check(plugin)
    assert stage.lines == ["a", "b"]
    assert "this is ours" in stage.of(Diagnostic)[0].summary


@in_loop
async def test_files_cross_the_wire_as_they_are(tmp_path: Path) -> None:
    place = tmp_path / "new" / "file"
    put = request(7, "put_file", path=str(place), data="AP+ACg==")
    empty = request(8, "put_file", path=f"{place}2", data="")
    plugin = lay(
        tmp_path,
        *shaken(
            *(read(), write(put + empty), read(2)),
            *(write(request(9, "get_file", path=str(place))), read()),
            *(write(request(10, "get_file", path=f"{place}2")), read(), write(R2), read()),
        ),
    )
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert place.read_bytes() == b"\0\xff\x80\n"
    assert [line["result"] for line in plugin.lines[2:]] == [
        {},
        {},
        {"data": "AP+ACg=="},
        {"data": ""},
    ]


@in_loop
async def test_output_that_is_not_utf8_is_replaced_and_exit_codes_are_results(
    tmp_path: Path,
) -> None:
    ask = request(7, "run_command", script="printf '\\377'; echo no >&2; exit 3")
    killed = request(8, "run_command", script="kill -9 $$")
    plugin = lay(tmp_path, *shaken(read(), write(ask + killed), read(2), write(R2), read()))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    first, second = (line["result"] for line in plugin.lines[2:])
    assert first == {"stdout": "\ufffd", "stderr": "no\n", "exit_code": 3}
    assert second == {"stdout": "", "stderr": "", "exit_code": 137}


@in_loop
async def test_ten_thousand_round_trips_leave_nothing_behind(tmp_path: Path) -> None:
    ask = request(7, "rm_rf")
    plugin = lay(tmp_path, *shaken(read(), repeat(10_000, write(ask), read()), write(R2), read()))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
        session = stage.pool._sessions["demo"]  # pyright: ignore[reportPrivateUsage]  # its tables
        machine = session._wire.peer.machine  # pyright: ignore[reportPrivateUsage]
        assert machine.pending == ()
        assert machine.serving == ()
