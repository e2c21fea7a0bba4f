"""Files over SSH where something goes wrong, or must not happen."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from preflight.errors import TargetError
from tests.support.ssh_places import Servers, ssh_over, ssh_target
from tests.support.sshd import ACCOUNTS, why_no_accounts, why_no_sshd
from tests.support.tcp_proxy import proxy

pytestmark = pytest.mark.skipif(bool(why_no_sshd()), reason=why_no_sshd() or "-")
MIB = 1024 * 1024


async def test_64_mib_come_back_as_they_were(servers: Servers, folder: Path) -> None:
    """F41, its large half"""
    data = os.urandom(MIB) * 64
    async with asyncio.timeout(30), ssh_target(servers.get()) as target:
        await target.put_file(str(folder / "f"), data)
        assert (folder / "f").read_bytes() == data
        assert await target.get_file(str(folder / "f")) == data


async def test_a_reader_never_sees_half_a_file(servers: Servers, folder: Path) -> None:
    """F41, its atomic half"""
    path = folder / "f"
    sizes = {100_000, 3 * MIB}
    path.write_bytes(b"x" * 100_000)
    path.chmod(0o666)
    seen: set[int] = set()

    async def look(done: asyncio.Event) -> None:
        while not done.is_set():
            seen.add(path.stat().st_size)
            await asyncio.sleep(0)

    async with (
        asyncio.timeout(20),
        ssh_target(servers.get()) as target,
        asyncio.TaskGroup() as group,
    ):
        done = asyncio.Event()
        group.create_task(look(done))
        for turn in range(6):
            await target.put_file(str(path), b"y" * (3 * MIB if turn % 2 == 0 else 100_000))
        done.set()
    assert seen == sizes


@pytest.mark.parametrize("size", [30_000, 60 * MIB])
async def test_a_cancel_in_the_middle_leaves_the_old_file_and_no_other(
    servers: Servers, folder: Path, size: int
) -> None:
    """F35"""
    path = folder / "f"
    path.write_bytes(b"old")
    path.chmod(0o666)
    server = servers.get()
    async with (
        asyncio.timeout(20),
        proxy(server.port, delay_s=0.02) as line,
        ssh_over(line, server) as target,
    ):
        before = line.sent_bytes
        async with asyncio.TaskGroup() as group:
            putting = group.create_task(target.put_file(str(path), b"n" * size))
            while line.sent_bytes - before < min(size, 2 * MIB):  # noqa: ASYNC110  # bytes on a line
                await asyncio.sleep(0.001)
            putting.cancel()
        assert path.read_bytes() in ((b"old",) if size > MIB else (b"old", b"n" * size))
        assert os.listdir(folder) == ["f"]
        assert (await target.exec("echo on")).text == "on\n"


@pytest.mark.skipif(bool(why_no_accounts()), reason=why_no_accounts() or "-")
@pytest.mark.parametrize("size", [60_000, 4 * MIB])
@pytest.mark.parametrize("lines", [(), ("Subsystem nothing /bin/false",)])
async def test_a_full_disk_is_said_and_leaves_the_old_file(
    servers: Servers, size: int, lines: tuple[str, ...]
) -> None:
    """F42, on a small file system that is mounted in the server's namespace alone."""
    async with asyncio.timeout(20), ssh_target(servers.isolated(*lines), "root") as target:
        disk = (await target.exec("mktemp -d")).text.strip()
        await target.exec(f"mount -t tmpfs -o size=512k none {disk}")
        try:
            await target.exec(f"printf old >{disk}/f; head -c 480000 /dev/zero >{disk}/filler")
            with pytest.raises(TargetError, match=r"can't write .*: (No space left|.*[Ff]ailure)"):
                await target.put_file(f"{disk}/f", b"n" * size)
            assert (await target.exec(f"cat {disk}/f; ls -A {disk}")).text == "oldf\nfiller\n"
        finally:
            await target.exec(f"umount {disk}; rmdir {disk}")


async def test_an_unchanged_file_does_not_cross_the_wire(servers: Servers, folder: Path) -> None:
    """F46"""
    path = folder / "f"
    data = os.urandom(MIB)
    server = servers.get()
    async with proxy(server.port) as line, ssh_over(line, server) as target:
        await target.put_file(str(path), data, mode=0o640)
        inode = path.stat().st_ino
        before = line.sent_bytes
        await target.put_file(str(path), data, mode=0o600)
        assert line.sent_bytes - before < 4096
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.stat().st_ino == inode
        await target.put_file(str(path), data[:-1] + bytes([data[-1] ^ 1]))
        assert line.sent_bytes - before > MIB


@pytest.mark.skipif(bool(why_no_accounts()), reason=why_no_accounts() or "-")
@pytest.mark.parametrize("size", [10, 200_000])
async def test_owner_and_special_bits_are_kept(servers: Servers, folder: Path, size: int) -> None:
    path = folder / "f"
    path.write_bytes(b"old")
    os.chown(path, ACCOUNTS["plain"], ACCOUNTS["asks"])
    path.chmod(0o4751)
    async with ssh_target(servers.isolated(), "root") as target:
        await target.put_file(str(path), b"n" * size)
    found = path.stat()
    assert (found.st_uid, found.st_gid) == (ACCOUNTS["plain"], ACCOUNTS["asks"])
    assert stat.S_IMODE(found.st_mode) == 0o4751
    assert path.read_bytes() == b"n" * size


async def test_without_sftp_it_is_said_once(servers: Servers, folder: Path) -> None:
    """F43, its first half; that the bytes are the same is the contract's."""
    async with ssh_target(servers.get("Subsystem nothing /bin/false")) as target:
        for name in ("a", "b"):
            await target.put_file(str(folder / name), b"x" * 300_000)
        assert [one for one in target.notices if "go through the shell" in one] == target.notices
        assert len(target.notices) == 1
