"""Which very files may run as plugins: ``plugins.lock``, and the proof that it is this one.

JSON, since a program writes it and people only compare it: one form for one content, and a digest
is never taken for a number.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from preflight.errors import ConfigError, PluginError, Reason
from preflight.plugins.descriptors import digest_of
from preflight.plugins.discovery import Discovery, Found
from preflight.plugins.report import spawn_failure

LOCK_NAME = "plugins.lock"

_MOST_BYTES = 1024 * 1024
_BY_FD = "/proc/self/fd"


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin: the SHA-256 of its file in hex, and the version that it reported."""

    name: str
    version: str
    sha256: str


class _Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: int = 1
    plugins: list[Pin]


def read_pins(folder: Path) -> dict[str, Pin]:
    """Give the pins of the project in ``folder`` by name; none without a lock file.

    Raises :class:`ConfigError`: a lock that can't be read pins nothing, and must not pass for that.
    """
    path = folder / LOCK_NAME
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
        lock = msgspec.json.decode(raw, type=_Lock)
    except FileNotFoundError:
        return {}
    except OSError as exc:
        raise ConfigError(f"{path}: can't be read: {exc.strerror}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path}: {exc}; write it anew with: plugin lock") from exc
    pins = {pin.name: pin for pin in lock.plugins}
    if lock.format != 1 or len(raw) > _MOST_BYTES:
        raise ConfigError(f"{path}: not a lock file of format 1")
    if len(pins) < len(lock.plugins):
        raise ConfigError(f"{path}: a name is pinned twice; write it anew with: plugin lock")
    return pins


def write_pins(folder: Path, pins: Iterable[Pin]) -> Path:
    """Write the lock of a project, sorted by name, as a whole or not at all; gives its path.

    Raises :class:`ConfigError`.
    """
    path = folder / LOCK_NAME
    lock = _Lock(plugins=sorted(pins, key=lambda pin: pin.name))
    temporary = folder / f".{LOCK_NAME}.new"
    try:
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(lock)) + b"\n")
        os.replace(temporary, path)
    except OSError as exc:
        raise ConfigError(f"{path}: can't be written: {exc.strerror}") from exc
    return path


def pin(discovery: Discovery, pins: Mapping[str, Pin]) -> Discovery:
    """Give every plugin that was found the digest that its file must have."""
    pinned = [
        msgspec.structs.replace(found, pin=pins[found.name].sha256) if found.name in pins else found
        for found in discovery.plugins
    ]
    return msgspec.structs.replace(discovery, plugins=pinned)


class Executable:
    """The file that is executed: a pinned one is opened, hashed and run as what was opened.

    On Linux it is executed through the open file: whatever the path is made to name meanwhile is
    never started. Elsewhere the path is executed, and :meth:`confirm` finds a swap before the
    plugin is sent anything that matters. A file that is written to in place is found by
    :meth:`confirm` on both. Raises :class:`PluginError` with both digests.
    """

    def __init__(self, found: Found, *, by_fd: bool | None = None) -> None:
        self._found = found
        self._fd = -1
        self.argv = [str(found.path)]
        self.pass_fds: tuple[int, ...] = ()
        if not found.pin:
            return
        try:
            self._fd = os.open(found.path, os.O_RDONLY | os.O_CLOEXEC)
            self._status = os.fstat(self._fd)
            self._compare()
        except OSError as exc:
            self.close()
            raise spawn_failure(exc, found.path) from exc
        except PluginError:
            self.close()
            raise
        if os.path.isdir(_BY_FD) if by_fd is None else by_fd:
            self.argv = [f"{_BY_FD}/{self._fd}"]
            self.pass_fds = (self._fd,)

    def confirm(self) -> None:
        """Make sure that what was started is what was hashed, now that it has begun to run."""
        if self._fd < 0:
            return
        try:
            now = os.fstat(self._fd)
            if _identity(now) != _identity(self._status):
                self._compare()
            if not self.pass_fds and _identity(os.stat(self._found.path)) != _identity(now):
                with Path(self._found.path).open("rb") as file:
                    self._refuse(digest_of(file))
        except OSError as exc:
            raise spawn_failure(exc, self._found.path) from exc
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the file. Safe to repeat."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _compare(self) -> None:
        with os.fdopen(os.dup(self._fd), "rb") as file:
            file.seek(0)
            self._refuse(digest_of(file))

    def _refuse(self, actual: str) -> None:
        found = self._found
        if actual != found.pin:
            raise PluginError(
                Reason.PLUGIN_START,
                f"{found.path} is not the file that {LOCK_NAME} pins: its SHA-256 is {actual}, "
                f"pinned is {found.pin}; find out what changed, then: plugin lock {found.name}",
            )


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns
