"""Where the socket of a run lies, and what is said over it.

The wire is NDJSON both ways. The client sends ``{"do":"follow","first_seq":n}`` once and then
gets the record's lines from there on, byte for byte; and at any time
``{"do":"cancel","path":"…","kill":false}``, which is acknowledged by events.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Literal

import msgspec

SOCKET_NAME = "engine.sock"

# sockaddr_un holds 108 bytes on Linux, 104 on macOS, the final zero included.
_LONGEST_BYTES = 100


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a client wants."""

    do: Literal["follow", "cancel"]
    first_seq: int = 1
    path: str = ""
    kill: bool = False


def place_socket(folder: Path) -> Path:
    """Give the path to bind for a run's folder.

    Where the folder's path is too long for a socket's address, the socket lies in a short
    private folder and the run folder holds a link to it.
    """
    place = folder / SOCKET_NAME
    if len(os.fsencode(place)) <= _LONGEST_BYTES:
        return place
    short = Path(tempfile.mkdtemp(prefix="preflight-")) / SOCKET_NAME
    place.symlink_to(short)
    return short


def find_socket(folder: Path) -> Path:
    """Give the path to connect to for a run's folder."""
    place = folder / SOCKET_NAME
    return place.readlink() if place.is_symlink() else place


def remove_socket(folder: Path) -> None:
    """Take away what :func:`place_socket` left."""
    place = folder / SOCKET_NAME
    if place.is_symlink():
        real = place.readlink()
        real.unlink(missing_ok=True)
        if real.parent.name.startswith("preflight-"):
            real.parent.rmdir()
    place.unlink(missing_ok=True)
