"""What a cancel reaches on the far side, and what does the same when nobody is there to ask."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from preflight.errors import Reason, TargetError
from preflight.ports.target import Become, ExecResult, KillReport, OnKill, Target
from preflight.targets.ssh import SshTarget
from tests.support.running import Watch, cancelled, gone, odd_seconds, sleepers, there
from tests.support.ssh_places import Servers, ssh_over, ssh_target
from tests.support.sshd import PASSWORD, why_no_accounts, why_no_sudo
from tests.support.tcp_proxy import proxy

pytestmark = pytest.mark.skipif(bool(why_no_accounts()), reason=why_no_accounts() or "-")

ACCOUNTS = ["free", "root"]
ESCAPES = {
    "setsid": "setsid sleep {} & echo ready; wait",
    "env -i in the group": "env -i sleep {} & echo ready; wait",
    "setsid and env -i": "setsid env -i sleep {} & echo ready; wait",
    "daemon": "(setsid sh -c 'sleep {} & sleep {}' &) ; echo ready; sleep {}",
    "leader without a mark": "echo ready; exec env -i sleep {}",
    "ignores TERM, escaped": "trap '' TERM INT HUP; setsid env -i sleep {} & echo ready; wait",
    "tree of 6": "sh -c 'sleep {} & sleep {}' & sh -c 'sleep {} & wait' & echo ready; wait",
    "50 children": "for i in $(seq 50); do sleep {} & done; echo ready; wait",
}

# A controller of its own, to be killed with SIGKILL.
CONTROLLER = """
import asyncio, sys
from preflight.model.inventory import Host
from preflight.targets.ssh import SshTarget

async def main(port, account, key, script):
    host = Host(name="there", address="127.0.0.1", port=port, username=account, private_key=key,
                host_key_policy="insecure", ssh_config=False)
    async with SshTarget(host) as target:
        await target.exec(script, on_line=lambda _, text: print(text, flush=True))

asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))
"""


async def started(
    group: asyncio.TaskGroup, target: Target, script: str, on_kill: OnKill | None = None
) -> asyncio.Task[ExecResult | TargetError]:
    """Start a script, and come back when it has said ``ready``; its error is its task's result."""

    async def run() -> ExecResult | TargetError:
        try:
            return await target.exec(script, on_line=watch, on_kill=on_kill)
        except TargetError as exc:
            return exc

    watch = Watch()
    task = group.create_task(run())
    await watch.wait(lambda seen: "ready" in seen.of("out"))
    return task


async def unlinked(target: SshTarget) -> None:
    """Wait until the end of the link has been noticed here."""
    while target.linked:  # noqa: ASYNC110  # it is noticed in a callback of asyncssh
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("account", ACCOUNTS)
@pytest.mark.parametrize("name", ESCAPES)
async def test_a_cancel_reaches_all_of_it(servers: Servers, account: str, name: str) -> None:
    """F23 to F25, F27, F28"""
    seconds = odd_seconds()
    async with asyncio.timeout(10), ssh_target(servers.isolated(), account) as target:
        reports = await cancelled(target, ESCAPES[name].replace("{}", seconds))
        assert sleepers(seconds) == []
        assert [one.survivors for one in reports] == [[]]
        # What is forked while the signals go out gets no second's grace.
        assert reports[0].how in (("SIGKILL",) if "ignores" in name else ("SIGTERM", "SIGKILL"))
        assert (await target.exec("echo on")).text == "on\n"


@pytest.mark.parametrize("account", ACCOUNTS)
@pytest.mark.parametrize("name", ESCAPES)
async def test_a_cut_link_ends_all_of_it(servers: Servers, account: str, name: str) -> None:
    """The dead-man's switch by a closed socket; what the operation did stays unknown."""
    seconds = odd_seconds()
    server = servers.isolated()
    async with asyncio.timeout(10), AsyncExitStack() as stack:
        line = await stack.enter_async_context(proxy(server.port))
        target = await stack.enter_async_context(ssh_over(line, server, account))
        group = await stack.enter_async_context(asyncio.TaskGroup())
        running = await started(group, target, ESCAPES[name].replace("{}", seconds))
        await there(seconds)
        line.cut()
        lost = await running
        assert isinstance(lost, TargetError)
        assert lost.reason is Reason.UNKNOWN_OUTCOME
        await gone(seconds, within_s=3)


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_the_controllers_death_ends_it_all(servers: Servers, account: str) -> None:
    """F30"""
    seconds = odd_seconds()
    server = servers.isolated()
    script = f"trap '' TERM; setsid sleep {seconds} & echo ready; sleep {seconds}"
    arguments = [str(server.port), account, str(server.key_file), script]
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, *arguments], stdout=subprocess.PIPE
    )
    with controller:
        try:
            assert controller.stdout is not None
            assert controller.stdout.readline() == b"ready\n"
            await there(seconds)
        finally:
            controller.kill()
    assert await gone(seconds) < 2


async def test_a_silent_line_ends_it_all_after_four_beats(servers: Servers) -> None:
    """The dead-man's switch by missing heartbeats: no socket is closed, nothing gets through."""
    seconds = odd_seconds()
    server = servers.isolated()
    async with asyncio.timeout(20), proxy(server.port) as line, asyncio.TaskGroup() as group:
        target = await ssh_over(line, server, beat_s=0.25).__aenter__()
        running = await started(group, target, f"setsid env -i sleep {seconds} & echo ready; wait")
        await there(seconds)
        for _ in range(6):
            assert sleepers(seconds)  # while beats come nothing happens
            await asyncio.sleep(0.25)
        line.freeze()
        took = await gone(seconds)
        assert 0.5 < took < 4
        line.cut()
        assert isinstance(await running, TargetError)
        await target.__aexit__(None, None, None)


async def test_leaving_in_peace_ends_no_daemon(servers: Servers, folder: Path) -> None:
    """What a finished operation started on purpose is neither a leftover nor the switch's."""
    seconds = odd_seconds()
    server = servers.isolated()
    up = folder / "up"
    # What is still in the group when the script ends is a leftover: it has left before.
    daemon = (
        f"rm -f {up}; setsid sh -c 'touch {up}; exec sleep {seconds}' >/dev/null 2>&1 </dev/null & "
        f"until [ -e {up} ]; do sleep 0.01; done"
    )
    try:
        async with asyncio.timeout(10), ssh_target(server) as target:
            await target.exec(daemon)
        async with (
            asyncio.timeout(10),
            proxy(server.port) as line,
            ssh_over(line, server) as target,
        ):
            await target.exec(daemon)
            line.cut()
            await unlinked(target)
            assert (await target.exec("echo on")).text == "on\n"
            await cancelled(target, "echo ready; sleep 100")
        assert len(sleepers(seconds)) == 2
    finally:
        for pid in sleepers(seconds):
            os.kill(pid, signal.SIGKILL)


async def test_a_cancel_in_the_first_round_trip_leaves_nothing(servers: Servers) -> None:
    """The pid is not known yet here when the cancel comes."""
    seconds = odd_seconds()
    server = servers.isolated()
    async with (
        asyncio.timeout(20),
        proxy(server.port, delay_s=0.05) as line,
        ssh_over(line, server) as target,
    ):
        for after_s in (0.0, 0.02, 0.06, 0.11):
            reports: list[KillReport] = []
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(after_s):
                    await target.exec(f"sleep {seconds}", on_kill=reports.append)
            assert sleepers(seconds) == []
            assert [(one.survivors, one.how) for one in reports] == [([], "SIGTERM")]
        assert (await target.exec("echo on")).text == "on\n"


async def test_what_waits_for_its_turn_is_cancelled_before_it_starts(servers: Servers) -> None:
    seconds = odd_seconds()
    reports: list[KillReport] = []
    async with asyncio.timeout(10), ssh_target(servers.isolated()) as target:
        async with asyncio.TaskGroup() as group:
            first = await started(group, target, f"echo ready; sleep {seconds}")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await target.exec("touch /tmp/never", on_kill=reports.append)
            assert reports == []
            first.cancel()
        assert (await target.exec("ls /tmp/never")).exit_code != 0


async def test_twenty_targets_are_cancelled_at_once(servers: Servers) -> None:
    """F23: all gone within a second, all told within two."""
    seconds = odd_seconds()
    server = servers.isolated()
    targets = [ssh_target(server) for _ in range(20)]
    reports: list[KillReport] = []
    async with asyncio.timeout(30):
        for target in targets:
            await target.__aenter__()
        tasks: list[asyncio.Task[object]] = []
        async with asyncio.TaskGroup() as group:
            for target in targets:
                watch = Watch()
                running = target.exec(
                    f"echo ready; sleep {seconds}", on_line=watch, on_kill=reports.append
                )
                tasks.append(group.create_task(running))
                await watch.wait(lambda seen: "ready" in seen.of("out"))
            begin = time.monotonic()
            for task in tasks:
                task.cancel()
            await gone(seconds)
            took = time.monotonic() - begin
        assert took < 2
        assert [one.how for one in reports] == ["SIGTERM"] * 20
        for target in targets:
            await target.__aexit__(None, None, None)


async def test_a_control_shell_that_is_dead_is_replaced_by_a_second_connection(
    servers: Servers,
) -> None:
    seconds = odd_seconds()
    server = servers.isolated("ClientAliveInterval 100")  # a server of this test's own
    reports: list[KillReport] = []
    script = f"echo ready; setsid sleep {seconds} & sleep {seconds}"
    async with asyncio.timeout(20), ssh_target(server) as target:
        async with asyncio.TaskGroup() as group:
            running = await started(group, target, script, reports.append)
            for one in server.processes():
                with contextlib.suppress(ProcessLookupError):
                    if not one.marked:
                        os.kill(one.pid, signal.SIGSTOP)  # the control shell answers nobody
            running.cancel()
        assert sleepers(seconds) == []
        assert [(one.how, one.survivors) for one in reports] == [("SIGTERM", [])]
        assert (await target.exec("echo on")).text == "on\n"  # in a new work shell
    for one in server.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)


async def test_what_nobody_answers_for_is_unconfirmed(servers: Servers) -> None:
    server = servers.isolated()
    reports: list[KillReport] = []
    seconds = odd_seconds()
    async with asyncio.timeout(25), proxy(server.port) as line, asyncio.TaskGroup() as group:
        target = await ssh_over(line, server, beat_s=0.5).__aenter__()
        running = await started(group, target, f"echo ready; sleep {seconds}", reports.append)
        line.freeze()
        running.cancel()
        await asyncio.wait([running])
        assert [(one.how, one.survivors) for one in reports] == [("unconfirmed", [])]
        await gone(seconds)  # by the missing heartbeats
        await target.__aexit__(None, None, None)


@pytest.mark.skipif(bool(why_no_sudo()), reason=why_no_sudo() or "-")
@pytest.mark.parametrize(("account", "password"), [("free", ""), ("asks", PASSWORD)])
@pytest.mark.parametrize("name", ["setsid and env -i", "ignores TERM, escaped"])
async def test_a_cancel_reaches_what_runs_under_sudo(
    servers: Servers, account: str, password: str, name: str
) -> None:
    seconds = odd_seconds()
    reports: list[KillReport] = []
    watch = Watch()
    script = ESCAPES[name].replace("{}", seconds)
    async with asyncio.timeout(15), ssh_target(servers.isolated(), account) as target:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(
                target.exec(
                    f"[ $(id -u) = 0 ] && {script}",
                    on_line=watch,
                    on_kill=reports.append,
                    become=Become(password=password),
                )
            )
            await watch.wait(lambda seen: "ready" in seen.of("out"))
            running.cancel()
        assert sleepers(seconds) == []
        assert [one.survivors for one in reports] == [[]]


@pytest.mark.skipif(bool(why_no_sudo()), reason=why_no_sudo() or "-")
async def test_what_may_not_be_signalled_is_a_survivor_by_pid(servers: Servers) -> None:
    """F40, its second half: the script itself called sudo, and we are not root."""
    seconds = odd_seconds()
    script = f"sudo -n setsid sh -c 'trap \"\" TERM; echo ready; exec sleep {seconds}'"
    try:
        async with asyncio.timeout(20), ssh_target(servers.isolated(), "free") as target:
            reports = await cancelled(target, script)
            assert reports[0].how == "SIGKILL"
            assert len(reports[0].survivors) >= 1
            assert sleepers(seconds)
            assert (await target.exec("echo on")).text == "on\n"
    finally:
        for pid in sleepers(seconds):
            os.kill(pid, signal.SIGKILL)


async def test_a_target_whose_clock_differs_has_the_same_start_times(servers: Servers) -> None:
    """F64: durations are the controller's; starts are compared with each other alone."""
    seconds = odd_seconds()
    server = servers.isolated()
    inner = f"sleep {seconds} & echo ready; wait"
    async with asyncio.timeout(10), ssh_target(server, "root") as target:
        reports = await cancelled(target, f"unshare --time --boottime 3600 --fork sh -c '{inner}'")
        assert sleepers(seconds) == []
        assert reports[0].elapsed_ms < 2500
