"""Reaching a machine, and saying which step failed where it can't be reached."""

from __future__ import annotations

import asyncio
import select
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import asyncssh
import msgspec
import pytest

from preflight.errors import TargetUnreachable
from preflight.model.inventory import Host, Jump
from preflight.targets import make_target, ssh_tcp
from preflight.targets.ssh import SshTarget
from tests.support.ssh_places import Servers, host_of, ssh_target
from tests.support.sshd import PASSWORD, Sshd, new_key, sshd, why_no_accounts, why_no_sshd

pytestmark = pytest.mark.skipif(bool(why_no_sshd()), reason=why_no_sshd() or "-")
needs_accounts = pytest.mark.skipif(bool(why_no_accounts()), reason=why_no_accounts() or "-")


async def why_not(target: SshTarget) -> str:
    """Enter a target that can't be entered, and give what is said about it."""
    with pytest.raises(TargetUnreachable) as caught:
        await target.__aenter__()
    return caught.value.message


def nobody(folder: Path, port: int, **fields: object) -> SshTarget:
    """A target behind a port where no server of ours is."""
    known: dict[str, object] = {"name": "x", "address": "127.0.0.1", "port": port, "timeout": 0.5}
    known |= {
        "username": "u",
        "password": "p",
        "ssh_config": False,
        "known_hosts_file": str(folder / "known_hosts"),
    }
    return SshTarget(Host(**{**known, **fields}))  # pyright: ignore[reportArgumentType]  # real fields


@contextmanager
def black_hole() -> Generator[int]:
    """A port whose queue is full: the kernel answers no further SYN."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        waiting: list[socket.socket] = []
        try:
            for _ in range(16):
                one = socket.socket()
                waiting.append(one)
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
                if not select.select([], [one], [], 0.05)[1]:
                    break  # this one got no answer, and neither will the next
            yield port
        finally:
            for one in waiting:
                one.close()


@asynccontextmanager
async def fake_server(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], object],
) -> AsyncGenerator[int]:
    """A server that says what ``talk`` makes it say."""
    writers: list[asyncio.StreamWriter] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        talk(reader, writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await server.wait_closed()


async def test_a_refused_port_is_told_at_once(folder: Path) -> None:
    """F6"""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    begin = time.monotonic()
    assert await why_not(nobody(folder, port)) == f"tcp refused by 127.0.0.1:{port}"
    assert time.monotonic() - begin < 1


async def test_a_black_hole_is_given_up_at_the_connect_deadline(folder: Path) -> None:
    """F2, its own part"""
    with black_hole() as port:
        said = await why_not(nobody(folder, port))
    assert said == f"tcp to 127.0.0.1:{port}: connect deadline of 0.5 s passed"
    assert ssh_tcp.CONNECT_S == 10


async def test_a_server_without_a_banner_is_named_so(folder: Path) -> None:
    """F3"""
    async with fake_server(lambda _reader, _writer: None) as port:
        said = await why_not(nobody(folder, port))
    assert said == f"no SSH banner from 127.0.0.1:{port} within 0.5 s"


async def test_a_server_that_stops_in_key_exchange_is_named_so(folder: Path) -> None:
    """F4"""

    def banner_only(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")

    async with fake_server(banner_only) as port:
        said = await why_not(nobody(folder, port))
    assert said == f"key exchange with 127.0.0.1:{port} not done within 0.5 s"


async def test_a_server_of_another_protocol_is_no_ssh_server(folder: Path) -> None:
    def http(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with fake_server(http) as port:
        assert f"127.0.0.1:{port}" in await why_not(nobody(folder, port, timeout=8.0))


async def test_a_name_that_does_not_exist_is_said(folder: Path) -> None:
    target = nobody(folder, 22, address="no-such-name.invalid", timeout=5.0)
    assert "no-such-name.invalid can't be resolved" in await why_not(target)


async def test_machines_that_do_not_answer_delay_no_others(servers: Servers, folder: Path) -> None:
    """F2: more of them than there are handshakes at a time, all asked first."""
    server = servers.get()
    with black_hole() as port:
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            holes = [
                group.create_task(why_not(nobody(folder, port, timeout=3.0)))
                for _ in range(2 * ssh_tcp.HANDSHAKES)
            ]
            await asyncio.sleep(0)
            begin = time.monotonic()
            async with ssh_target(server) as target:
                await target.exec("true")
            took = time.monotonic() - begin
            assert not [hole for hole in holes if hole.done()]
        assert took < 2.5


async def test_no_more_handshakes_than_allowed_go_on_at_once(folder: Path) -> None:
    connected: list[asyncio.StreamWriter] = []
    full = asyncio.Event()

    def count(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.append(writer)
        if len(connected) == ssh_tcp.HANDSHAKES:
            full.set()

    async with fake_server(count) as port, asyncio.timeout(10), asyncio.TaskGroup() as group:
        for _ in range(3 * ssh_tcp.HANDSHAKES):
            group.create_task(why_not(nobody(folder, port, timeout=1.5)))
        await full.wait()
        for _ in range(20):
            await asyncio.sleep(0.005)
            assert len(connected) == ssh_tcp.HANDSHAKES  # the others wait until 0.5 s have passed


@needs_accounts
async def test_a_server_that_drops_connections_at_random_is_asked_again(servers: Servers) -> None:
    """F10, for one target: of two unauthenticated connections every other is dropped."""
    server = servers.isolated("MaxStartups 2:60:40")
    async with asyncio.timeout(40), asyncio.TaskGroup() as group:

        async def one() -> str:
            async with ssh_target(server) as target:
                return (await target.exec("echo in")).text

        tasks = [group.create_task(one()) for _ in range(12)]
    assert [task.result() for task in tasks] == ["in\n"] * 12


async def test_an_unknown_host_is_refused_under_strict_before_any_attempt_to_log_in(
    servers: Servers, folder: Path
) -> None:
    """F47"""
    server = servers.get()
    log = server.folder / "sshd.log"
    before = len(log.read_bytes())
    empty = folder / "known_hosts"
    said = await why_not(ssh_target(server, known_hosts_file=str(empty)))
    assert f"the host key of [127.0.0.1]:{server.port} is unknown" in said
    assert server.host_key.get_fingerprint() in said
    assert not empty.exists()
    assert b"user" not in log.read_bytes()[before:].lower()


async def test_a_changed_key_is_refused_even_when_new_ones_are_not(
    servers: Servers, folder: Path
) -> None:
    """F48"""
    server = servers.get()
    known = folder / "known_hosts"
    other = new_key(folder / "other").export_public_key().decode().split()
    lines = ["# mine", f"other.example {' '.join(other[:2])}"]
    lines.append(f"[127.0.0.1]:{server.port} {' '.join(other[:2])}")
    known.write_text("\n".join(lines) + "\n", encoding="ascii")
    for policy in ("accept-new", "strict"):
        target = ssh_target(server, known_hosts_file=str(known), host_key_policy=policy)
        said = await why_not(target)
        assert f"the host key of [127.0.0.1]:{server.port} has changed" in said
        assert f"{known}:3" in said
        assert server.host_key.get_fingerprint() in said
    async with ssh_target(
        server, known_hosts_file=str(known), host_key_policy="insecure"
    ) as target:
        assert [one for one in target.notices if "insecure" in one]


async def test_a_new_key_is_noted_once_and_held_to(servers: Servers, folder: Path) -> None:
    server = servers.get()
    known = folder / "new" / "known_hosts"
    for notices in (1, 0):
        target = ssh_target(server, known_hosts_file=str(known), host_key_policy="accept-new")
        async with target:
            assert len(target.notices) == notices
    assert known.read_text(encoding="ascii").startswith(f"[127.0.0.1]:{server.port} ssh-ed25519 ")
    assert len(known.read_text(encoding="ascii").splitlines()) == 1
    assert known.stat().st_mode & 0o777 == 0o600
    assert known.parent.stat().st_mode & 0o777 == 0o700


async def test_a_key_that_others_can_read_is_refused_before_any_connection(folder: Path) -> None:
    """F52"""
    key = folder / "id"
    new_key(key)
    key.chmod(0o644)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        server.setblocking(False)
        target = nobody(folder, server.getsockname()[1], private_key=str(key))
        said = await why_not(target)
        assert said == f"private key {key} is readable by others (mode 0644): chmod 600 {key}"
        with pytest.raises(BlockingIOError):
            server.accept()


async def test_an_encrypted_key_without_a_passphrase_or_an_agent_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F52"""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = asyncssh.generate_private_key("ssh-rsa", key_size=2048)  # pyright: ignore[reportUnknownMemberType]  # asyncssh
    path = folder / "id"
    path.write_bytes(key.export_private_key("pkcs8-pem", passphrase="right"))
    path.chmod(0o600)
    said = await why_not(nobody(folder, 1, private_key=str(path)))
    assert said.startswith(f"private key {path} is encrypted: set private_key_passphrase")
    wrong = nobody(folder, 1, private_key=str(path), private_key_passphrase="wrong")
    assert str(path) in await why_not(wrong)
    right = nobody(folder, 1, private_key=str(path), private_key_passphrase="right")
    assert "tcp refused" in await why_not(right)


async def test_a_key_in_the_inventory_itself_is_taken(servers: Servers) -> None:
    server = servers.get()
    text = server.key_file.read_text(encoding="ascii")
    async with ssh_target(server, private_key=text) as target:
        assert (await target.exec("echo in")).text == "in\n"


@needs_accounts
async def test_a_password_is_enough_and_a_wrong_one_is_said(servers: Servers) -> None:
    server = servers.isolated()
    async with ssh_target(server, "plain", private_key="", password=PASSWORD) as target:
        assert (await target.exec("id -un")).text == "plain\n"
    said = await why_not(ssh_target(server, "plain", private_key="", password="wrong"))
    assert said == (
        f"authentication as plain refused by 127.0.0.1:{server.port}; offered: the password"
    )


async def test_a_refused_key_is_said(servers: Servers, folder: Path) -> None:
    new_key(folder / "id")
    said = await why_not(ssh_target(servers.get(), private_key=str(folder / "id")))
    assert said.endswith("offered: 1 key")


@pytest.fixture
def ipv6() -> Generator[Sshd]:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 on loopback here")
    with sshd("ListenAddress ::1") as server:
        yield server


async def test_ipv6_addresses_are_addresses(ipv6: Sshd) -> None:
    ipv6.address = "::1"
    async with ssh_target(ipv6) as target:
        assert (await target.exec("echo $SSH_CONNECTION")).text.startswith("::1 ")


def logins(server: Sshd) -> int:
    return (server.folder / "sshd.log").read_bytes().count(b"Accepted publickey for")


async def test_a_target_behind_a_jump_host_is_reached_through_it(
    servers: Servers, folder: Path
) -> None:
    bastion, inner = servers.get("ClientAliveInterval 99"), servers.get()
    known = folder / "known_hosts"
    known.write_text(
        bastion.known_hosts().read_text() + inner.known_hosts().read_text(), encoding="ascii"
    )
    jump = Jump(
        address=bastion.address,
        port=bastion.port,
        username=bastion.me,
        private_key=str(bastion.key_file),
        known_hosts_file=str(known),
        host_key_policy="strict",
    )
    before = {server.port: logins(server) for server in (bastion, inner)}
    async with ssh_target(inner, known_hosts_file=str(known), jump=jump) as target:
        assert (await target.exec("echo through")).text == "through\n"
    assert [logins(server) - before[server.port] for server in (bastion, inner)] == [1, 1]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = await why_not(ssh_target(inner, port=port, known_hosts_file=str(known), jump=jump))
    assert said.startswith(f"tcp to 127.0.0.1:{port} through the jump host")


async def test_ssh_config_says_what_the_inventory_leaves_out(
    servers: Servers, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, bastion = servers.get(), servers.get("ClientAliveInterval 99")
    (folder / ".ssh").mkdir()
    (folder / ".ssh" / "config").write_text(
        f"""
Host inner.example
  HostName 127.0.0.1
  Port {inner.port}
  User {inner.me}
  IdentityFile {inner.key_file}
  UserKnownHostsFile {inner.known_hosts()}
  ProxyJump gate
Host gate
  HostName 127.0.0.1
  Port {bastion.port}
  User {bastion.me}
  IdentityFile {bastion.key_file}
  UserKnownHostsFile {bastion.known_hosts()}
""",
        encoding="utf-8",
    )
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    host = Host(name="inner", address="inner.example", port=22, host_key_policy="strict")
    async with SshTarget(host) as target:
        assert (await target.exec("id -un")).text.strip() == inner.me
    alone = msgspec.structs.replace(host, ssh_config=False)
    said = await why_not(SshTarget(alone))
    assert "inner.example can't be resolved" in said


async def test_the_table_of_transports_makes_it(servers: Servers) -> None:
    target = make_target(host_of(servers.get()))
    assert isinstance(target, SshTarget)
    async with target:
        assert target.info.runtime_kind == "posix-shell"


async def test_a_login_shell_that_prints_is_no_harm(servers: Servers) -> None:
    """F43, its second half"""
    server = servers.isolated("ClientAliveInterval 98")
    noise = "echo hello; echo hello >&2; printf 'uid=1\\nname=evil\\n'\n"
    (server.home("free") / ".bashrc").write_text(noise, encoding="ascii")
    try:
        async with ssh_target(server, "free") as target:
            assert target.info.name not in ("", "evil")
            result = await target.exec("echo out; echo err >&2")
            assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
            await target.put_file(str(server.home("free") / "big"), b"x" * 300_000)
            assert await target.get_file(str(server.home("free") / "big")) == b"x" * 300_000
    finally:
        (server.home("free") / ".bashrc").unlink()


async def test_an_account_that_may_not_have_a_shell_is_told_apart(servers: Servers) -> None:
    server = servers.get("ForceCommand echo go away")
    with pytest.raises(Exception, match=r"starts no /bin/sh: go away") as caught:
        await ssh_target(server).__aenter__()
    assert caught.typename == "TargetError"


def test_nothing_of_ssh_is_imported_for_the_table_alone() -> None:
    code = "import sys, preflight.targets; sys.exit('asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
