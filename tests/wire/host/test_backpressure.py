"""Floods and standstills: a plugin that writes without end, or that reads nothing."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from preflight.control import Stopped
from preflight.errors import Reason
from preflight.events import CancelSent, PluginReady, PluginStderr, PluginStopped
from preflight.model.settings import Settings
from preflight.ports.target import Become, ExecResult, OnKill, OnLine
from preflight.targets.local import LocalTarget
from tests.support.fake_plugin import (
    Q7,
    R2,
    close,
    daemon,
    frame,
    ignore,
    is_alive,
    lay,
    leave,
    note,
    numbered,
    output,
    read,
    request,
    shaken,
    sleep,
    stderr,
    until,
    write,
)
from tests.support.loop import in_loop
from tests.support.stage import Stage
from tests.wire.host.test_framing import rss_kib

MIB = 1024 * 1024


@in_loop
async def test_a_flood_on_stderr_delays_no_answer(tmp_path: Path) -> None:
    # P54
    line = b"x" * 1023 + b"\n"
    plugin = lay(
        tmp_path, *shaken(read(), stderr(line * 64, times=160), write(R2), read(), leave(4))
    )
    stage = Stage()
    async with stage.open():
        start = time.monotonic()
        await stage.check(plugin)
        assert time.monotonic() - start < 10
        failure = await stage.failure(plugin, "two")
        assert failure.message.count("x" * 1023) == 20
    lines = [line for event in stage.of(PluginStderr) for line in event.lines]
    assert len(lines) == 10 * 1024


@in_loop
async def test_odd_stderr_is_split_replaced_and_counted_as_lines(tmp_path: Path) -> None:
    # P55
    plugin = lay(
        tmp_path,
        *shaken(
            read(),
            stderr(b"\xff\xfe\n\n\nlast" + b"y" * 200_000 + b"\nafter\n"),
            stderr(b"z" * MIB),
            close(2),
            write(R2),
            read(),
        ),
    )
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    lines = [line for event in stage.of(PluginStderr) for line in event.lines]
    assert lines[:3] == ["\ufffd\ufffd", "", ""]
    assert max(len(line) for line in lines) <= 64 * 1024
    assert "".join(lines).count("y") == 200_000
    assert "after" in lines
    assert "".join(lines).count("z") == MIB


@in_loop
async def test_stderr_may_be_closed_early(tmp_path: Path) -> None:
    # P56
    plugin = lay(tmp_path, close(2), *shaken(read(), write(R2), read()))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert stage.of(PluginStopped)[0].how == "closed"


@in_loop
async def test_a_stdout_that_is_closed_is_the_plugins_end(tmp_path: Path) -> None:
    # P56
    plugin = lay(tmp_path, *shaken(read(), close(1), sleep(60)))
    stage = Stage()
    async with stage.open():
        start = time.monotonic()
        failure = await stage.failure(plugin)
        assert time.monotonic() - start < 3
        assert failure.reason is Reason.PLUGIN_CRASHED
        assert "its wire is gone (end of file)" in failure.message
        assert not is_alive(stage.of(PluginReady)[0].pid)


@in_loop
async def test_a_stdin_that_is_closed_is_the_plugins_end(tmp_path: Path) -> None:
    # P56: it shows at the next write
    plugin = lay(
        tmp_path,
        *shaken(read(), write(R2), close(0), stderr(b"closed\n"), sleep(60)),
    )
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
        await stage.wait_for(PluginStderr)
        failure = await stage.failure(plugin, "two")
        assert "write error" in failure.message
        assert not is_alive(stage.of(PluginReady)[0].pid)


@in_loop
async def test_a_plugin_that_stops_reading_is_told_by_a_signal(tmp_path: Path) -> None:
    # P58: the clock of the grace runs from when the cancel was due
    plugin = lay(tmp_path, *shaken(sleep(60)))
    stage = Stage()
    async with stage.open():
        calling = asyncio.ensure_future(stage.check(plugin, x="x" * MIB))
        await stage.wait_for(PluginReady)
        start = time.monotonic()
        stage.control.cancel("box/one", "timeout")
        with pytest.raises(Stopped) as caught:
            await calling
        assert 0.25 <= time.monotonic() - start < 1
        assert caught.value.outcome == "lost"
        (sent,) = stage.of(CancelSent)
        assert sent.out_of_band
        (stopped,) = stage.of(PluginStopped)
        assert stopped.signal == "SIGTERM"


@in_loop
async def test_a_plugin_that_neither_reads_nor_heeds_is_killed_in_time(tmp_path: Path) -> None:
    # P58
    plugin = lay(tmp_path, ignore(signal.SIGTERM), *shaken(sleep(60)))
    stage = Stage(Settings(cancel_grace=0.6))
    async with stage.open():
        calling = asyncio.ensure_future(stage.check(plugin, x="x" * MIB))
        await stage.wait_for(PluginReady)
        start = time.monotonic()
        stage.control.cancel("box/one", "timeout")
        with pytest.raises(Stopped) as caught:
            await calling
        assert 0.6 <= time.monotonic() - start < 1
        assert caught.value.outcome == "killed"
        assert stage.of(CancelSent)[0].out_of_band
        assert stage.of(PluginStopped)[0].signal == "SIGKILL"


@in_loop
async def test_a_plugin_that_asks_and_asks_and_reads_nothing_is_given_up(tmp_path: Path) -> None:
    # P58: what it does not read is not kept for ever
    asks = numbered(b'{"jsonrpc":"2.0","method":"rm_rf","id":', b"}\n", 200_000)
    plugin = lay(tmp_path, *shaken(read(), asks, sleep(60)))
    stage = Stage()
    async with stage.open():
        failure = await stage.failure(plugin)
        assert "does not read its answers" in failure.message


@in_loop
async def test_operations_that_wait_are_bounded(tmp_path: Path) -> None:
    many = b"".join(request(n, "run_command", script="true") for n in range(100, 1300))
    plugin = lay(
        tmp_path, *shaken(read(), write(Q7 + many), until(b"waiting already"), write(R2), read())
    )
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert all("waiting already" in str(line) for line in plugin.lines[2:203])


@in_loop
async def test_a_flood_of_output_delays_no_other_plugin(tmp_path: Path) -> None:
    # P60: each line costs its consumer 0.1 ms
    flood = write(output("x") * 100, times=100)
    loud = lay(tmp_path, *shaken(read(), flood, write(R2), read()), name="demo")
    hello = b'{"jsonrpc":"2.0","id":1,"result":{"protocol_version":2,"name":"calm"}}\n'
    answers = [
        step
        for id in range(2, 22)
        for step in (read(), write(b'{"id":%d,"result":{"needs_change":false}}\n' % id))
    ]
    calm = lay(tmp_path, *shaken(*answers, read(), handshake=hello), name="calm")
    stage = Stage()
    stage.line_cost_s = 0.0001
    slowest = 0.0
    async with stage.open():
        await stage.check(calm, "calm")
        flooding = asyncio.ensure_future(stage.check(loud, "loud"))
        await stage.wait_line("x")
        for _ in range(19):
            start = time.monotonic()
            await stage.check(calm, "calm")
            slowest = max(slowest, time.monotonic() - start)
        await flooding
    assert stage.lines.count("x") == 10_000
    assert slowest < 2


class Nested(LocalTarget):
    """A target whose commands let another plugin check before they run."""

    def __init__(self) -> None:
        super().__init__("box")
        self.stage: Stage | None = None
        self.other: object = None

    async def exec(
        self,
        script: str,
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        on_line: OnLine | None = None,
        on_kill: OnKill | None = None,
        keep_bytes: int = 1024,
        become: Become | None = None,
    ) -> ExecResult:
        assert self.stage is not None
        await self.stage.check(self.other, "inner")  # pyright: ignore[reportArgumentType]  # set by the test
        return await super().exec(script, on_line=on_line, on_kill=on_kill)


@in_loop
async def test_an_operation_may_lead_to_another_plugins_check(tmp_path: Path) -> None:
    # P62
    hello = b'{"jsonrpc":"2.0","id":1,"result":{"protocol_version":2,"name":"inner"}}\n'
    target = Nested()
    target.other = lay(tmp_path, *shaken(read(), write(R2), read(), handshake=hello), name="inner")
    asks = request(7, "run_command", script="echo done")
    plugin = lay(tmp_path, *shaken(read(), write(asks), read(), write(R2), read()))
    stage = Stage(target=target)
    target.stage = stage
    async with stage.open():
        await stage.check(plugin)
    (result,) = [line["result"] for line in plugin.lines if line.get("id") == 7]
    assert result == {"stdout": "done\n", "stderr": "", "exit_code": 0}


@in_loop
async def test_a_flood_of_notifications_costs_no_memory(tmp_path: Path) -> None:
    nothing = frame({"method": "x/unknown"}) * 1000
    plugin = lay(tmp_path, *shaken(read(), write(nothing, times=200), write(R2), read()))
    stage = Stage()
    async with stage.open():
        rss_kib()
        before = rss_kib()
        await stage.check(plugin)
        assert rss_kib() - before < 32 * 1024
    assert stage.warnings("protocol_violation") == []


@in_loop
async def test_a_daemon_that_floods_both_pipes_delays_no_end(tmp_path: Path) -> None:
    # P96: it has left the group and is out of reach, but what it writes is not waited for
    flood = daemon(note("daemon"), stderr((b"e" * 200 + b"\n") * 300, times=100_000))
    loud = daemon(note("loud"), write((b" " * 200 + b"\n") * 300, times=100_000))
    plugin = lay(tmp_path, *shaken(flood, loud, read(), write(R2), leave(0)))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
        start = time.monotonic()
    assert time.monotonic() - start < 3
