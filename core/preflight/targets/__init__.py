"""Transports times shell dialects, and the one table of transports."""

from __future__ import annotations

from collections.abc import Callable

from preflight.errors import TargetUnreachable
from preflight.model.inventory import Host
from preflight.ports.target import Target
from preflight.targets.local import LocalTarget
from preflight.targets.ssh import SshTarget

TRANSPORTS: dict[str, Callable[[Host], Target]] = {
    "local": lambda host: LocalTarget(host.name),
    "ssh": SshTarget,
}


def make_target(host: Host) -> Target:
    """Make the target for a host of the inventory; nothing is contacted.

    Raises :class:`TargetUnreachable` for a transport that this version does not have.
    """
    make = TRANSPORTS.get(host.transport)
    if make is None:
        have = ", ".join(sorted(TRANSPORTS))
        raise TargetUnreachable(f"transport {host.transport} is not there yet, only {have}")
    return make(host)
