"""Where a target can be: this machine, and servers of the tests' own in several configurations."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from preflight.model.inventory import Host
from preflight.ports.target import Target
from preflight.targets.local import LocalTarget
from preflight.targets.ssh import SshTarget
from tests.support.sshd import Sshd, sshd, why_no_accounts, why_no_sshd
from tests.support.tcp_proxy import Proxy

PATIENCE_S = 10.0
"""Seconds after which a test gives up waiting for something that must come."""

CONFIGURATIONS: dict[str, tuple[str, ...]] = {
    "ssh": (),
    "ssh root": (),
    "ssh without sftp": ("Subsystem nothing /bin/false",),
    "ssh with one session": ("MaxSessions 1",),
}


class Servers:
    """Starts a server for each configuration, once for the whole test session of a worker."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._running: dict[tuple[str, ...], Sshd] = {}

    def get(self, *lines: str) -> Sshd:
        """Give the server with these lines in its configuration."""
        if why_no_sshd():
            pytest.skip(why_no_sshd())
        if lines not in self._running:
            self._running[lines] = self._stack.enter_context(sshd(*lines))
        return self._running[lines]

    def isolated(self, *lines: str) -> Sshd:
        """Give a server with accounts of our own."""
        if why_no_accounts():
            pytest.skip(why_no_accounts())
        return self.get(*lines)


@pytest.fixture(scope="session")
def servers() -> Generator[Servers]:
    with ExitStack() as stack:
        yield Servers(stack)


def host_of(server: Sshd, account: str = "", **fields: object) -> Host:
    """Describe the server as an inventory would, logged in to with its key."""
    known: dict[str, object] = {
        "name": "there",
        "address": server.address,
        "port": server.port,
        "username": account or server.me,
        "private_key": str(server.key_file),
        "known_hosts_file": str(server.known_hosts()),
        "host_key_policy": "strict",
        "timeout": 10.0,
        "ssh_config": False,
    }
    return Host(**{**known, **fields})  # pyright: ignore[reportArgumentType]  # tests name real fields


def ssh_target(
    server: Sshd, account: str = "", *, beat_s: float = 10.0, **fields: object
) -> SshTarget:
    """Make a target that reads no ssh_config of whoever runs the tests."""
    return SshTarget(host_of(server, account, **fields), beat_s=beat_s)


def ssh_over(line: Proxy, server: Sshd, account: str = "", *, beat_s: float = 10.0) -> SshTarget:
    """Make a target that is reached over a line of ours, whose port no known_hosts has."""
    fields: dict[str, object] = {"port": line.port, "host_key_policy": "insecure"}
    return ssh_target(server, account, beat_s=beat_s, **fields)


@dataclass(frozen=True)
class Place:
    """A target to be, and a folder that it can write to."""

    target: Target
    folder: Path
    server: Sshd | None


@contextmanager
def open_folder() -> Generator[Path]:
    """A folder that every account can write to."""
    folder = Path(tempfile.mkdtemp(prefix="preflight-place-"))
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def folder() -> Generator[Path]:
    with open_folder() as made:
        yield made


@pytest.fixture(params=["local", "ssh", "ssh root", "ssh with one session"])
def place(request: pytest.FixtureRequest, servers: Servers, folder: Path) -> Place:
    return make_place(request.param, servers, folder)


@pytest.fixture(params=["local", "ssh", "ssh without sftp", "ssh with one session"])
def shelf(request: pytest.FixtureRequest, servers: Servers, folder: Path) -> Place:
    """A place for files."""
    return make_place(request.param, servers, folder)


def make_place(name: str, servers: Servers, folder: Path) -> Place:
    """Make a place by its name; skips with the reason where it can't be."""
    if name == "local":
        return Place(LocalTarget("here"), folder, None)
    server = servers.get(*CONFIGURATIONS[name])
    account = "root" if name == "ssh root" else ""
    if account and os.getuid() != 0:
        pytest.skip("only root can log in as root with a server of its own")
    return Place(ssh_target(server, account), folder, server)
