"""What a line costs, and what is true when it is lost."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from preflight.errors import PreflightError, Reason, TargetError, TargetUnreachable
from preflight.ports.target import KillReport
from preflight.targets import ssh_connect
from tests.support.running import Watch, cancelled, gone, odd_seconds, sleepers
from tests.support.ssh_places import Servers, ssh_over, ssh_target
from tests.support.sshd import why_no_sshd
from tests.support.tcp_proxy import proxy

pytestmark = pytest.mark.skipif(bool(why_no_sshd()), reason=why_no_sshd() or "-")


async def test_a_command_costs_one_round_trip_with_all_that_belongs_to_it(
    servers: Servers, folder: Path
) -> None:
    """Counted on the wire: how often this side spoke again after it had listened."""
    path = str(folder / "f")
    async with proxy(servers.get().port) as line, ssh_over(line, servers.get()) as target:
        await target.exec("true")
        before = line.turns
        await target.exec("cat; echo err >&2; exit 3", stdin=b"x" * 50_000, env={"A": "b"})
        assert line.turns - before == 1
        await target.put_file(path, b"y" * 50_000, mode=0o600)
        assert line.turns - before == 2
        assert await target.get_file(path) == b"y" * 50_000
        assert line.turns - before == 3


async def test_entering_costs_no_more_than_the_handshake_and_a_shell(servers: Servers) -> None:
    """Version, key exchange, the account, channels, shells, probe, and the work shell's number."""
    async with proxy(servers.get().port) as line, ssh_over(line, servers.get()) as target:
        assert target.info.hostname
        assert line.turns <= 12


async def test_at_50_ms_a_command_takes_one_of_them(servers: Servers) -> None:
    """F1's line, for one command: 100 ms there and back, and half of that again for the machine."""
    server = servers.get()
    async with proxy(server.port, delay_s=0.05) as line, ssh_over(line, server) as target:
        took: list[float] = []
        for _ in range(5):
            begin = time.monotonic()
            await target.exec("true")
            took.append(time.monotonic() - begin)
        assert 0.1 <= min(took) < 0.15


async def test_what_was_cut_off_may_have_run_and_is_not_run_again(
    servers: Servers, folder: Path
) -> None:
    """F61: the counter on the target says how often."""
    counter = folder / "count"
    watch = Watch()
    server = servers.get()
    script = f"echo x >>{counter}; echo ready; sleep 20"
    async with (
        asyncio.timeout(15),
        proxy(server.port) as line,
        ssh_over(line, server) as target,
        asyncio.TaskGroup() as group,
    ):

        async def run() -> PreflightError | None:
            try:
                await target.exec(script, on_line=watch)
            except PreflightError as exc:
                return exc
            return None

        task = group.create_task(run())
        await watch.wait(lambda seen: "ready" in seen.of("out"))
        line.cut()
        lost = await task
        assert isinstance(lost, TargetError)
        assert lost.reason is Reason.UNKNOWN_OUTCOME
        assert (await target.exec(f"cat {counter}")).text == "x\n"  # on a connection made anew
        assert line.connections == 2


async def test_a_link_that_was_lost_before_is_made_anew_once(servers: Servers) -> None:
    server = servers.get()
    async with (
        asyncio.timeout(15),
        proxy(server.port) as line,
        ssh_over(line, server) as target,
    ):
        for again in (2, 3):
            line.cut()
            while target.linked:  # noqa: ASYNC110  # it is noticed in a callback of asyncssh
                await asyncio.sleep(0.001)
            assert (await target.exec("echo on")).text == "on\n"
            assert line.connections == again


async def test_a_target_that_went_away_is_unreachable_before_anything_was_sent(
    servers: Servers,
) -> None:
    async with asyncio.timeout(15):
        async with proxy(servers.get().port) as line:
            target = await ssh_over(line, servers.get()).__aenter__()
        while target.linked:  # noqa: ASYNC110  # it is noticed in a callback of asyncssh
            await asyncio.sleep(0.001)
        with pytest.raises(TargetUnreachable, match="tcp refused"):
            await target.exec("true")
        await target.__aexit__(None, None, None)


async def test_a_silent_link_is_noticed_within_two_intervals(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_connect, "KEEPALIVE_S", 0.5)
    async with asyncio.timeout(15), proxy(servers.get().port) as line:
        target = await ssh_over(line, servers.get()).__aenter__()
        assert (await target.exec("sleep 1.6; echo on")).text == "on\n"  # silence alone is no end
        line.freeze()
        begin = time.monotonic()
        with pytest.raises(TargetError) as caught:
            await target.exec("true")
        assert caught.value.reason is Reason.UNKNOWN_OUTCOME
        assert time.monotonic() - begin < 1.5
        line.cut()
        await target.__aexit__(None, None, None)


@pytest.mark.parametrize("sessions", [1, 2, 3])
async def test_few_channels_are_enough(servers: Servers, folder: Path, sessions: int) -> None:
    """F11"""
    seconds = odd_seconds()
    server = servers.get(f"MaxSessions {sessions}")
    data = b"z" * 200_000
    async with asyncio.timeout(20), ssh_target(server) as target:
        assert (await target.exec("echo on")).text == "on\n"
        await target.put_file(str(folder / "f"), data)
        assert await target.get_file(str(folder / "f")) == data
        reports = await cancelled(target, f"setsid sleep {seconds} & echo ready; wait")
        assert reports[0].survivors == []
        await gone(seconds)
        said = " ".join(target.notices)
        assert ("second connection" in said) == (sessions == 1)
        assert ("files go through the shell" in said) == (sessions < 3)


async def test_a_daemon_that_keeps_the_streams_ends_in_no_other_commands_output(
    servers: Servers,
) -> None:
    """What writes between two commands spoils the shell: the next gets a new one."""
    async with asyncio.timeout(15), ssh_target(servers.get()) as target:
        script = (
            "setsid sh -c 'echo up; sleep 0.3; echo stray; sleep 0.3; echo stray >&2; sleep 2' & "
            "sleep 0.1; echo done"
        )
        first = await target.exec(script)
        assert "done\n" in first.text
        await asyncio.sleep(0.5)  # the daemon's own time to speak
        for _ in range(3):
            result = await target.exec("echo mine; sleep 0.2")
            assert (result.stdout, result.stderr) == (b"mine\n", b"")


async def test_a_shell_that_is_killed_leaves_the_outcome_unknown(servers: Servers) -> None:
    async with asyncio.timeout(15), ssh_target(servers.get()) as target:
        seconds, reports = odd_seconds(), list[KillReport]()
        script = f"kill -s KILL $PPID; setsid sleep {seconds} & sleep {seconds}"
        with pytest.raises(TargetError) as caught:
            await target.exec(script, on_kill=reports.append)
        assert caught.value.reason is Reason.UNKNOWN_OUTCOME
        assert sleepers(seconds) == []
        assert [one.survivors for one in reports] == [[]]
        assert (await target.exec("echo on")).text == "on\n"


async def test_commands_at_the_same_time_are_run_one_after_the_other(servers: Servers) -> None:
    async with asyncio.timeout(15), ssh_target(servers.get()) as target:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(target.exec(f"echo {n}; sleep 0.01; echo {n} >&2"))
                for n in range(20)
            ]
        assert [task.result().text for task in tasks] == [f"{n}\n" for n in range(20)]
        assert [task.result().error_text for task in tasks] == [f"{n}\n" for n in range(20)]
