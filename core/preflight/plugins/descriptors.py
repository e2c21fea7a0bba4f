"""What plugins said of themselves the last time they ran, so that nothing need be started to know.

A descriptor holds for one very file: path, inode, time, size and SHA-256 must be what they were.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import IO

import msgspec

from preflight.events import Capabilities
from preflight.plugins.discovery import Found
from preflight.plugins.protocol import Handshake

_CHUNK_BYTES = 1024 * 1024


class FileIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Which file it was; ``digest`` is the SHA-256 of its bytes, in hex."""

    path: str
    inode: int
    mtime_ns: int
    size: int
    digest: str


class Descriptor(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin said in its handshake, and the file that said it."""

    file: FileIdentity
    version: str
    protocol_version: int
    capabilities: Capabilities
    params_schema: dict[str, object] | None = None
    config_schema: dict[str, object] | None = None


class DescriptorCache:
    """One small file for each plugin, in a folder of the user's cache."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _default_folder()

    def get(self, found: Found) -> Descriptor | None:
        """Give what is known of a plugin's file as it is now; None when nothing is."""
        try:
            raw = self._place(found).read_bytes()
            known = msgspec.json.decode(raw, type=Descriptor)
            return known if known.file == _identity(found.path, known.file) else None
        except (OSError, msgspec.DecodeError):
            return None

    def put(self, found: Found, handshake: Handshake) -> None:
        """Remember a handshake; a cache that can't be written is no error."""
        with contextlib.suppress(OSError):
            known = Descriptor(
                file=_identity(found.path),
                version=handshake.version,
                protocol_version=handshake.protocol_version,
                capabilities=handshake.capabilities,
                params_schema=handshake.params_schema,
                config_schema=handshake.config_schema,
            )
            if self.get(found) != known:
                _write(self._place(found), msgspec.json.encode(known))

    def _place(self, found: Found) -> Path:
        name = hashlib.sha256(os.fsencode(found.path.resolve())).hexdigest()[:32]
        return self._folder / f"{found.name}-{name}.json"


def digest(path: Path) -> str:
    """Give the SHA-256 of a file's bytes, in hex. Raises ``OSError``."""
    with path.open("rb") as file:
        return digest_of(file)


def digest_of(file: IO[bytes]) -> str:
    """Give the SHA-256 of what an open file holds from here on, in hex. Raises ``OSError``."""
    total = hashlib.sha256()
    while chunk := file.read(_CHUNK_BYTES):
        total.update(chunk)
    return total.hexdigest()


def _identity(path: Path, known: FileIdentity | None = None) -> FileIdentity:
    """Look at a file; its bytes are read only when all else is as it was, or nothing is known."""
    status = path.stat()
    same = known is None or (known.inode, known.mtime_ns, known.size) == (
        status.st_ino,
        status.st_mtime_ns,
        status.st_size,
    )
    return FileIdentity(
        path=str(path.resolve()),
        inode=status.st_ino,
        mtime_ns=status.st_mtime_ns,
        size=status.st_size,
        digest=digest(path) if same else "",
    )


def _write(place: Path, data: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=place.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(temporary, place)


def _default_folder() -> Path:
    """Give the folder by the XDG base directories."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "preflight-tui" / "plugins"
