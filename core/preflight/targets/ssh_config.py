"""What ``~/.ssh/config`` says of a machine, for what the inventory leaves out."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import cast

import msgspec
from asyncssh.config import ConfigParseError, SSHClientConfig

from preflight.errors import TargetUnreachable

USER_FILE = "~/.ssh/config"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, else empty; ``jumps`` are ``[user@]address[:port]``, in order."""

    address: str = ""
    port: int = 0
    username: str = ""
    identity_files: tuple[str, ...] = ()
    agent: str | None = None
    jumps: tuple[str, ...] = ()
    known_hosts_file: str = ""
    known_as: str = ""
    strict: bool = False


def read_settings(address: str, *, username: str = "", port: int = 0) -> Settings:
    """Look a machine up by the name that the inventory gives it.

    Raises :class:`TargetUnreachable` for a file with errors: what it says may matter.
    """
    path = Path(USER_FILE).expanduser()
    if not path.is_file():
        return Settings()
    arguments = (getpass.getuser(), username or (), address, port or ())
    try:
        found = SSHClientConfig.load(None, [path], False, False, False, *arguments)
    except (ConfigParseError, OSError, ValueError) as exc:
        raise TargetUnreachable(
            f"{path} can't be used: {exc}; mend it, or set ssh_config: false"
        ) from exc
    jumps = _text(found.get("ProxyJump"))
    agent = _text(found.get("IdentityAgent"))
    files = _texts(found.get("UserKnownHostsFile"))
    return Settings(
        address=_text(found.get("Hostname")),
        port=_number(found.get("Port")),
        username=_text(found.get("User")),
        identity_files=tuple(_texts(found.get("IdentityFile"))),
        agent=None if not agent or agent == "SSH_AUTH_SOCK" else "" if agent == "none" else agent,
        jumps=tuple(jumps.split(",")) if jumps and jumps != "none" else (),
        known_hosts_file=files[0] if files else "",
        known_as=_text(found.get("HostKeyAlias")),
        strict=_text(found.get("StrictHostKeyChecking")) == "yes",
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return value.split()
    if not isinstance(value, list):
        return []
    return [one for one in cast("list[object]", value) if isinstance(one, str)]


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
