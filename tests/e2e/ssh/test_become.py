"""sudo: asked once, with a password that goes nowhere else, in any language."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from preflight.errors import Reason, TargetError
from preflight.ports.target import Become
from tests.support.ssh_places import Servers, ssh_over, ssh_target
from tests.support.sshd import PASSWORD, why_no_sudo
from tests.support.tcp_proxy import proxy

pytestmark = pytest.mark.skipif(bool(why_no_sudo()), reason=why_no_sudo() or "-")

WAYS = {
    "nobody asks": ("free", Become()),
    "nobody asks, a password is there": ("free", Become(password=PASSWORD)),
    "a password": ("asks", Become(password=PASSWORD)),
    "already root": ("root", Become()),
    "already root, a password is there": ("root", Become(password=PASSWORD)),
    "root becomes another": ("root", Become(user="plain", password=PASSWORD)),
    "another": ("asks", Become(user="plain", password=PASSWORD)),
}


@pytest.mark.parametrize("name", WAYS)
async def test_a_command_runs_as_somebody_else_and_reads_only_its_own_stdin(
    servers: Servers, name: str
) -> None:
    """F50"""
    account, become = WAYS[name]
    async with asyncio.timeout(10), ssh_target(servers.isolated(), account) as target:
        for stdin in (b"", b"data\n", b"x" * 70_000):
            result = await target.exec("id -un; cat", stdin=stdin, become=become)
            assert result.stdout == become.user.encode() + b"\n" + stdin
            assert result.stderr == b""
        assert (await target.exec("id -un")).text == f"{account}\n"


async def test_files_are_written_and_read_as_somebody_else(servers: Servers, folder: Path) -> None:
    become = Become(password=PASSWORD)
    async with asyncio.timeout(10), ssh_target(servers.isolated(), "asks") as target:
        for size in (10, 200_000):
            path = folder / "f"
            await target.put_file(str(path), b"z" * size, mode=0o600, become=become)
            assert path.read_bytes() == b"z" * size
            assert path.stat().st_uid == 0
            with pytest.raises(TargetError, match="Permission denied"):
                await target.get_file(str(path))
            assert await target.get_file(str(path), become=become) == b"z" * size


async def test_a_second_command_costs_one_round_trip(servers: Servers) -> None:
    server = servers.isolated()
    async with proxy(server.port) as line, ssh_over(line, server, "free") as target:
        await target.exec("true", become=Become())
        before = line.turns
        assert (await target.exec("id -u", become=Become())).text == "0\n"
        assert line.turns - before == 1


async def test_no_password_where_one_is_wanted_is_said(servers: Servers) -> None:
    async with asyncio.timeout(10), ssh_target(servers.isolated(), "asks") as target:
        with pytest.raises(TargetError) as caught:
            await target.exec("true", become=Become())
        assert caught.value.reason is Reason.SUDO_PASSWORD_REQUIRED
        assert (await target.exec("echo on")).text == "on\n"


@pytest.mark.parametrize("language", ["C", "fr_FR.UTF-8", "ja_JP.UTF-8"])
async def test_a_wrong_password_is_tried_once_and_said(servers: Servers, language: str) -> None:
    server = servers.isolated("AcceptEnv NOTHING", f"SetEnv LC_ALL={language} LANG={language}")
    log = server.folder / "sshd.log"
    async with asyncio.timeout(15), ssh_target(server, "asks") as target:
        begin = time.monotonic()
        with pytest.raises(TargetError) as caught:
            await target.exec("true", become=Become(password="wr'ong $x"))
        assert caught.value.reason is Reason.SUDO_AUTH_FAILED
        assert time.monotonic() - begin < 5
        assert "wr'ong" not in caught.value.message
        assert (await target.exec("id -u", become=Become(password=PASSWORD))).text == "0\n"
    assert "wr'ong" not in log.read_text(errors="replace")


async def test_who_may_not_is_told_sudos_own_words(servers: Servers) -> None:
    async with asyncio.timeout(10), ssh_target(servers.isolated(), "plain") as target:
        with pytest.raises(TargetError, match="plain is not in the sudoers file"):
            await target.exec("true", become=Become(password=PASSWORD))


async def test_a_target_without_sudo_is_told_so(servers: Servers) -> None:
    server = servers.isolated("SetEnv PATH=/nowhere")
    (Path(server.folder) / "bin").mkdir(exist_ok=True)
    for tool in ("sh", "cat", "grep", "sleep", "id", "uname", "setsid", "env", "hostname"):
        link = server.folder / "bin" / tool
        if not link.exists():
            link.symlink_to(f"/usr/bin/{tool}")
    server = servers.isolated(f"SetEnv PATH={server.folder}/bin")
    async with asyncio.timeout(10), ssh_target(server, "free") as target:
        with pytest.raises(TargetError) as caught:
            await target.exec("true", become=Become())
        assert caught.value.reason is Reason.SUDO_MISSING


async def test_the_password_is_in_no_argument_and_no_environment(servers: Servers) -> None:
    """F49, its part on the target"""
    server = servers.isolated()
    canary = PASSWORD.encode()
    secret = "s3cret-canary"
    become = Become(password=PASSWORD)
    async with asyncio.timeout(10), ssh_target(server, "asks") as target:
        seen = await target.exec(
            "cat >/dev/null; cat /proc/[0-9]*/cmdline; cat /proc/[0-9]*/environ",
            stdin=secret.encode(),
            become=become,
            keep_bytes=10_000_000,
        )
        assert canary not in seen.stdout
        assert secret.encode() not in seen.stdout
        shown = await target.exec(
            "cat /proc/[0-9]*/cmdline", env={"S": secret}, keep_bytes=10_000_000
        )
        assert secret.encode() not in shown.stdout
        shown = await target.exec(f": {secret}; cat /proc/[0-9]*/cmdline", keep_bytes=10_000_000)
        assert secret.encode() not in shown.stdout
