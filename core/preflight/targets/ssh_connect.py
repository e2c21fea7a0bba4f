"""From an address to an authenticated connection, hop by hop, with an error that names the step."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncssh
import msgspec

from preflight.errors import TargetUnreachable
from preflight.targets.ssh_auth import Proof
from preflight.targets.ssh_hostkeys import KnownHosts, Verdict, judge
from preflight.targets.ssh_tcp import CONNECT_S, Slot, handshake_slot, open_tcp, place

KEEPALIVE_S = 10.0
"""A server that is silent for two of these intervals is gone."""

_DROPPED_TRIES = 4  # a busy sshd drops connections at random (MaxStartups): tried again, spread out
_DROPPED_WAIT_S = (0.2, 2.0)

_KEX = "^curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256"
_CIPHERS = "^aes128-gcm@openssh.com"
_ALGORITHMS_OF = {"ssh-rsa": "rsa-sha2-512,rsa-sha2-256,ssh-rsa"}


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One machine to log in to; ``timeout`` in seconds bounds all of it."""

    address: str
    port: int
    username: str
    proof: Proof
    hosts: KnownHosts
    policy: str = "accept-new"
    host_key_algorithms: list[str] = []
    timeout: float = 30.0
    known_as: str = ""

    def __str__(self) -> str:
        return place(self.address, self.port)


class Link:
    """A connection through any number of hops; closing it closes them all."""

    def __init__(self, hops: list[asyncssh.SSHClientConnection], learnt: list[str]) -> None:
        self.connection = hops[-1]
        self.learnt = learnt  # names of the machines whose key was new
        self._hops = hops

    @property
    def open(self) -> bool:
        """Whether nobody has noticed an end of it yet."""
        return not any(hop.is_closed() for hop in self._hops)

    @property
    def server(self) -> str:
        """What the server calls itself, such as ``SSH-2.0-OpenSSH_9.2``."""
        said = self.connection.get_extra_info("server_version", "")
        return said.decode("ascii", "replace") if isinstance(said, bytes) else str(said)

    async def close(self, *, within_s: float = 1.0) -> None:
        """Close from the last hop to the first, politely for ``within_s`` seconds."""
        for hop in reversed(self._hops):
            hop.close()
        with contextlib.suppress(TimeoutError, OSError, asyncssh.Error):
            async with asyncio.timeout(within_s):
                for hop in reversed(self._hops):
                    await hop.wait_closed()
                return
        self.abort()

    def abort(self) -> None:
        """Drop it all at once."""
        for hop in reversed(self._hops):
            hop.abort()


async def connect(route: list[Endpoint]) -> Link:
    """Connect to the last machine of the route through those before it.

    Raises :class:`TargetUnreachable` that names the machine, where there are several, and the step:
    tcp, banner, key exchange, host key, or authentication.
    """
    hops: list[asyncssh.SSHClientConnection] = []
    learnt: list[str] = []
    try:
        for endpoint in route:
            client = await _hop(endpoint, hops[-1] if hops else None)
            hops.append(client.made())
            if client.verdict is not None and client.verdict.learnt:
                learnt.append(str(endpoint))
    except BaseException:
        for hop in reversed(hops):
            hop.abort()
        raise
    return Link(hops, learnt)


class _Dropped(Exception):
    """The server closed the connection before it let us try to log in."""


class _Client(asyncssh.SSHClient):
    """Follows the handshake, and judges the host key."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.verdict: Verdict | None = None
        self.reached = False
        self._endpoint = endpoint
        self._connection: asyncssh.SSHClientConnection | None = None

    def made(self) -> asyncssh.SSHClientConnection:
        """Give the connection, once there is one."""
        if self._connection is None:
            raise RuntimeError("no connection was made")
        return self._connection

    @property
    def step(self) -> str:
        """Where it is: ``tcp``, ``banner``, ``key exchange`` or ``authentication``."""
        if not self.reached:
            return "tcp"
        if self._connection is None or not self._connection.get_extra_info("server_version"):
            return "banner"
        return "key exchange" if self.verdict is None else "authentication"

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._connection = conn

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        algorithm, text = key.export_public_key("openssh").decode().split()[:2]
        self.verdict = judge(
            self._endpoint.hosts,
            self._endpoint.policy,
            address=self._endpoint.known_as or self._endpoint.address,
            port=self._endpoint.port,
            algorithm=algorithm,
            key=text,
        )
        return self.verdict.accepted


async def _hop(endpoint: Endpoint, via: asyncssh.SSHClientConnection | None) -> _Client:
    for attempt in range(_DROPPED_TRIES):
        client = _Client(endpoint)
        try:
            async with handshake_slot() as slot, asyncio.timeout(endpoint.timeout):
                await _handshake(endpoint, client, slot, via)
            return client
        except _Dropped as exc:
            if attempt == _DROPPED_TRIES - 1:
                raise TargetUnreachable(f"{endpoint}: {exc}, {_DROPPED_TRIES} times") from exc
        except TimeoutError as exc:
            raise TargetUnreachable(_too_late(endpoint, client, endpoint.timeout)) from exc
        await asyncio.sleep(random.uniform(*_DROPPED_WAIT_S))
    raise AssertionError("unreachable: the loop returns or raises")


async def _handshake(
    endpoint: Endpoint, client: _Client, slot: Slot, via: asyncssh.SSHClientConnection | None
) -> None:
    sock = (
        await open_tcp(endpoint.address, endpoint.port, within_s=endpoint.timeout)
        if via is None
        else None
    )
    slot.progress()
    client.reached = True
    try:
        async with _banner_deadline(endpoint, client):
            await asyncssh.connect(
                endpoint.address,
                endpoint.port,
                sock=sock,
                tunnel=via if via is not None else (),
                client_factory=lambda: client,
                options=_options(endpoint),
            )
    except (asyncssh.Error, OSError, ValueError) as exc:
        raise _told(endpoint, client, exc) from exc
    finally:
        if sock is not None and client.step == "banner":
            sock.close()


def _told(endpoint: Endpoint, client: _Client, exc: Exception) -> TargetUnreachable | _Dropped:
    """Give the error that names the step, for one of asyncssh's or the system's."""
    match exc:
        case asyncssh.HostKeyNotVerifiable():
            problem = client.verdict.problem if client.verdict is not None else ""
            return TargetUnreachable(problem or str(exc))
        case asyncssh.PermissionDenied():
            return TargetUnreachable(_denied(endpoint, client))
        case asyncssh.ChannelOpenError():
            return TargetUnreachable(f"tcp to {endpoint} through the jump host: {exc.reason}")
        case asyncssh.ConnectionLost() | ConnectionError() if client.step == "authentication":
            return TargetUnreachable(f"{endpoint} closed the connection during authentication")
        case asyncssh.ConnectionLost() | ConnectionError():
            return _Dropped(f"the server closed the connection ({client.step})")
        case _:
            return TargetUnreachable(f"{client.step} with {endpoint} failed: {exc}")


@asynccontextmanager
async def _banner_deadline(endpoint: Endpoint, client: _Client) -> AsyncGenerator[None]:
    """Give up after ``CONNECT_S`` where the server has not said anything by then."""
    limit = min(CONNECT_S, endpoint.timeout)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(limit) as deadline:
            timer = loop.call_later(
                limit * 0.9, lambda: None if client.step == "banner" else deadline.reschedule(None)
            )
            try:
                yield
            finally:
                timer.cancel()
    except TimeoutError as exc:
        raise TargetUnreachable(_too_late(endpoint, client, limit)) from exc


def _too_late(endpoint: Endpoint, client: _Client, seconds: float) -> str:
    if client.step == "tcp":
        return f"tcp to {endpoint}: connect deadline of {seconds:g} s passed"
    if client.step == "banner":
        return f"no SSH banner from {endpoint} within {seconds:g} s"
    return f"{client.step} with {endpoint} not done within {seconds:g} s"


def _denied(endpoint: Endpoint, client: _Client) -> str:
    proof = endpoint.proof
    tried = [f"{len(proof.keys)} key{'s'[: len(proof.keys) != 1]}"] if proof.keys else []
    tried += ["the agent"] if proof.agent else []
    tried += ["the password"] if proof.password else []
    offered = ", ".join(tried) or "nothing: no private_key, password, agent or default key"
    return f"authentication as {endpoint.username} refused by {endpoint}; offered: {offered}"


def _options(endpoint: Endpoint) -> asyncssh.SSHClientConnectionOptions:
    proof = endpoint.proof
    return asyncssh.SSHClientConnectionOptions(
        config=None,
        username=endpoint.username,
        password=proof.password or None,
        client_keys=proof.keys or None,
        agent_path=proof.agent or None,
        known_hosts=_authorities(endpoint),
        server_host_key_algs=_host_key_algorithms(endpoint),
        kex_algs=_KEX,
        encryption_algs=_CIPHERS,
        compression_algs=["none"],
        gss_kex=False,
        gss_auth=False,
        connect_timeout=None,
        login_timeout=0,
        keepalive_interval=KEEPALIVE_S,
        keepalive_count_max=1,
        preferred_auth="publickey,password,keyboard-interactive",
    )


def _authorities(
    endpoint: Endpoint,
) -> tuple[list[asyncssh.SSHKey], list[asyncssh.SSHKey], list[asyncssh.SSHKey]]:
    """Trusted keys are judged by ourselves; authorities are left to asyncssh."""
    known = endpoint.hosts.lookup(endpoint.known_as or endpoint.address, endpoint.port)
    keys = [
        asyncssh.import_public_key(f"{one.algorithm} {one.key}")
        for one in known
        if one.marker == "cert-authority"
    ]
    return [], keys, []


def _host_key_algorithms(endpoint: Endpoint) -> str:
    """Prefer what is known of the machine, so that it shows a key that can be compared."""
    if endpoint.host_key_algorithms:
        return ",".join(endpoint.host_key_algorithms)
    known = endpoint.hosts.lookup(endpoint.known_as or endpoint.address, endpoint.port)
    first = [_ALGORITHMS_OF.get(one.algorithm, one.algorithm) for one in known if not one.marker]
    return "^" + ",".join(dict.fromkeys([*first, "ssh-ed25519"]))
