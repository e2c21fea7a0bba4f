"""From a host of the inventory to the machines to log in to, with proof and host keys."""

from __future__ import annotations

import getpass

from preflight.errors import TargetUnreachable
from preflight.model.inventory import Host, Jump
from preflight.targets.ssh_auth import find_proof
from preflight.targets.ssh_config import Settings, read_settings
from preflight.targets.ssh_connect import Endpoint
from preflight.targets.ssh_hostkeys import known_hosts

_JUMP_TIMEOUT_S = 30.0
_SSH_PORT = 22
_MOST_HOPS = 8  # a ProxyJump may name a machine that names the first again


def route_to(host: Host) -> list[Endpoint]:
    """Give the machines in the order in which they are reached, the target last.

    Nothing is contacted. Raises :class:`TargetUnreachable` for a key or a file that can't be used.
    """
    found = _settings(host.address, host.username, host.ssh_config)
    hops: list[Endpoint] = []
    if host.jump is not None:
        hops = [_jump(host.jump, host.ssh_config)]
    else:
        for text in found.jumps:
            hops += _proxy_jump(text, depth=1)
    return [*hops, _endpoint(host, found, host.timeout, host.host_key_algorithms)]


def _jump(jump: Jump, ssh_config: bool) -> Endpoint:
    found = _settings(jump.address, jump.username, ssh_config)
    return _endpoint(jump, found, _JUMP_TIMEOUT_S, [])


def _endpoint(
    host: Host | Jump, found: Settings, timeout: float, algorithms: list[str]
) -> Endpoint:
    return Endpoint(
        address=found.address or host.address,
        port=host.port if host.port not in (0, _SSH_PORT) else found.port or _SSH_PORT,
        username=host.username or found.username or getpass.getuser(),
        proof=find_proof(
            private_key=host.private_key,
            passphrase=host.private_key_passphrase,
            password=host.password,
            identity_files=found.identity_files,
            agent=found.agent,
        ),
        hosts=known_hosts(host.known_hosts_file or found.known_hosts_file),
        policy=host.host_key_policy,
        host_key_algorithms=algorithms,
        timeout=timeout,
        known_as=found.known_as,
    )


def _proxy_jump(text: str, *, depth: int) -> list[Endpoint]:
    """Read ``[user@]address[:port]`` of ssh_config, whose hops may have hops of their own."""
    if depth > _MOST_HOPS:
        raise TargetUnreachable(
            f"ProxyJump in ssh_config goes in a circle, or over {_MOST_HOPS} hops"
        )
    username, _, place = text.strip().rpartition("@")
    address, _, port = (
        place.rpartition(":") if place.rpartition(":")[2].isdigit() else (place, "", "")
    )
    address = address.strip("[]")
    found = read_settings(address, username=username)
    hops: list[Endpoint] = []
    for one in found.jumps:
        hops += _proxy_jump(one, depth=depth + 1)
    host = Jump(address=address, port=int(port or found.port or _SSH_PORT), username=username)
    return [*hops, _endpoint(host, found, _JUMP_TIMEOUT_S, [])]


def _settings(address: str, username: str, wanted: bool) -> Settings:
    return read_settings(address, username=username) if wanted else Settings()
