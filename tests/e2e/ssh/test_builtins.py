"""The built-ins over a real link: the same code as on this machine, and a reboot that cuts it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from preflight.bus import Bus
from preflight.control import RunControl
from preflight.modules import BUILTINS
from preflight.modules.reboot import RebootModule
from preflight.ports.module import Module, TaskContext
from preflight.ports.target import Become, Target
from tests.support.fake_systemd import FakeSystemd
from tests.support.headless import wait_until
from tests.support.ssh_places import Servers, ssh_over, ssh_target
from tests.support.sshd import PASSWORD, sshd, why_no_accounts, why_no_sudo
from tests.support.tcp_proxy import proxy

PATIENCE_S = 30


@asynccontextmanager
async def context(target: Target, become: Become | None = None) -> AsyncGenerator[TaskContext]:
    bus = Bus("test")
    async with asyncio.timeout(PATIENCE_S), RunControl(bus).scope("there/task") as scope:
        yield TaskContext(
            target=target,
            task="task",
            scope=scope,
            emit=bus.emit,
            output=lambda stream, text: None,
            folder=Path("/"),
            become=become,
        )


async def converge(module: Module, ctx: TaskContext, **args: object) -> None:
    assert (await module.check(args, ctx)).needs_change
    await module.apply(args, ctx)
    again = await module.check(args, ctx)
    assert not again.needs_change, again


@pytest.mark.skipif(bool(why_no_sudo()), reason=why_no_sudo() or "-")
async def test_an_account_is_made_changed_and_removed_with_become(servers: Servers) -> None:
    server, user = servers.isolated(), BUILTINS["user"].module
    become = Become(password=PASSWORD)
    async with ssh_target(server, "asks") as target, context(target, become) as ctx:
        await converge(user, ctx, name="pfmade", password=PASSWORD, shell="/bin/sh")
        await converge(user, ctx, name="pfmade", password="another", home="/home/elsewhere")
        await converge(user, ctx, name="pfmade", ensure="absent", remove_home=True)


@pytest.mark.skipif(bool(why_no_accounts()), reason=why_no_accounts() or "-")
async def test_a_service_is_brought_there(tmp_path: Path) -> None:
    systemd, service = FakeSystemd(tmp_path), BUILTINS["service"].module
    systemd.unit("web.service")
    with sshd(f"SetEnv PATH={systemd.bin}:/usr/bin:/bin") as server:
        async with ssh_target(server, "root") as target, context(target) as ctx:
            await converge(service, ctx, name="web", state="running", startup_type="automatic")
    assert systemd.state("web.service") == ("active", "enabled")


@pytest.mark.skipif(bool(why_no_accounts()), reason=why_no_accounts() or "-")
async def test_a_reboot_that_cuts_the_link_is_waited_out_and_proved(tmp_path: Path) -> None:
    systemd = FakeSystemd(tmp_path)
    systemd.boot("old", following="old")
    reboot = RebootModule(boot_id=str(systemd.boot_id), flags=(), poll_s=0.05)
    with sshd(f"SetEnv PATH={systemd.bin}:/usr/bin:/bin") as server:
        async with (
            proxy(server.port) as line,
            ssh_over(line, server, "root") as target,
            context(target) as ctx,
        ):
            async with asyncio.TaskGroup() as group:
                running = group.create_task(reboot.apply({"condition": "always"}, ctx))
                await asyncio.to_thread(wait_until, lambda: systemd.asked("reboot") != [])
                line.cut()
                systemd.boot("new", following="new")
            assert running.result().message.startswith("rebooted in")
            assert line.connections > 1
    assert systemd.asked("reboot") == ["reboot"]
