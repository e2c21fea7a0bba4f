"""What an account is proved with: keys from files or from the inventory, the agent, a password.

Files are looked at before anything is contacted, so that a bad one is an error that names it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import asyncssh
import msgspec

from preflight.errors import TargetUnreachable

# OpenSSH's order of the keys it tries where none is named. Source: ssh_config(5), IdentityFile.
DEFAULT_KEYS = ("id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk")

_parsed: dict[tuple[str, int, int, str], asyncssh.SSHKey] = {}


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What is offered, in order: ``keys``, the agent's, the password; ``agent`` is a socket."""

    keys: list[asyncssh.SSHKey] = []
    agent: str = ""
    password: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to offer."""
        return not (self.keys or self.agent or self.password)


def find_proof(
    *,
    private_key: str = "",
    passphrase: str = "",
    password: str = "",
    identity_files: tuple[str, ...] = (),
    agent: str | None = None,
) -> Proof:
    """Collect what can be offered.

    ``private_key`` is a path or the key itself; ``identity_files`` are those of ``ssh_config``.
    ``agent`` is ``None`` for ``SSH_AUTH_SOCK`` and ``""`` for none. Raises
    :class:`TargetUnreachable` for a key that was named and can't be used.
    """
    socket = os.environ.get("SSH_AUTH_SOCK", "") if agent is None else agent
    if socket and not Path(socket).exists():
        socket = ""
    keys: list[asyncssh.SSHKey] = []
    if private_key:
        key = _named_key(private_key, passphrase, can_wait=bool(socket))
        keys = [key] if key is not None else []
        socket = "" if keys else socket  # the named key goes first, and alone: servers count tries
    elif identity_files:
        keys = _usable_keys([Path(path).expanduser() for path in identity_files], passphrase)
    elif not password:
        keys = _usable_keys(
            [Path("~/.ssh", name).expanduser() for name in DEFAULT_KEYS], passphrase
        )
    return Proof(keys=keys, agent=socket, password=password)


def _named_key(text: str, passphrase: str, *, can_wait: bool) -> asyncssh.SSHKey | None:
    if "-----BEGIN" in text:
        return _import(text.strip() + "\n", passphrase, "the private_key in the inventory")
    path = Path(text).expanduser()
    _refuse_readable(path)
    try:
        return _read(path, passphrase)
    except asyncssh.KeyEncryptionError as exc:
        raise TargetUnreachable(f"private key {path}: the passphrase is wrong") from exc
    except asyncssh.KeyImportError as exc:
        if _asks_passphrase(exc) and not passphrase:
            if can_wait:
                return None  # the agent may hold it
            raise TargetUnreachable(
                f"private key {path} is encrypted: set private_key_passphrase, or use an agent"
            ) from exc
        raise TargetUnreachable(f"private key {path} can't be read: {exc}") from exc
    except OSError as exc:
        raise TargetUnreachable(f"private key {path}: {exc.strerror or exc}") from exc


def _refuse_readable(path: Path) -> None:
    try:
        status = path.stat()
    except OSError as exc:
        raise TargetUnreachable(f"private key {path}: {exc.strerror or exc}") from exc
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == os.getuid() and mode & 0o077:
        raise TargetUnreachable(
            f"private key {path} is readable by others (mode {mode:04o}): chmod 600 {path}"
        )


def _usable_keys(paths: list[Path], passphrase: str) -> list[asyncssh.SSHKey]:
    keys: list[asyncssh.SSHKey] = []
    for path in paths:
        try:
            keys.append(_read(path, passphrase))
        except (OSError, asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
            continue  # nobody named it: what can't be used is not offered
    return keys


def _read(path: Path, passphrase: str) -> asyncssh.SSHKey:
    status = path.stat()
    known = (str(path), status.st_mtime_ns, status.st_size, passphrase)
    if known not in _parsed:
        _parsed[known] = asyncssh.read_private_key(path, passphrase or None)
    return _parsed[known]


def _import(text: str, passphrase: str, what: str) -> asyncssh.SSHKey:
    known = (text, 0, 0, passphrase)
    if known in _parsed:
        return _parsed[known]
    try:
        _parsed[known] = asyncssh.import_private_key(text, passphrase or None)
    except asyncssh.KeyEncryptionError as exc:
        raise TargetUnreachable(f"{what}: the passphrase is wrong") from exc
    except asyncssh.KeyImportError as exc:
        if _asks_passphrase(exc):
            raise TargetUnreachable(f"{what} is encrypted: set private_key_passphrase") from exc
        raise TargetUnreachable(f"{what} can't be read: {exc}") from exc
    return _parsed[known]


def _asks_passphrase(exc: asyncssh.KeyImportError) -> bool:
    return "passphrase" in str(exc).lower()
