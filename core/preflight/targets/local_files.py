"""Files of the engine's own machine: replaced as a whole, and read."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
import threading
from pathlib import Path

from preflight.errors import TargetError


def write_atomically(path: str, data: bytes, mode: int | None, given_up: threading.Event) -> None:
    """Write beside the place, then rename over it; ``given_up`` keeps it from being renamed.

    Raises ``OSError``; the temporary file is gone then.
    """
    place = Path(os.path.realpath(path))  # a link stays a link: its target is replaced
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory")
    place.parent.mkdir(parents=True, exist_ok=True)
    old = place.stat() if place.exists() else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file")  # /dev/null must stay what it is
    handle, temporary = tempfile.mkstemp(prefix=".preflight-", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode if mode is not None else _mode(old))
        if old is not None:
            with contextlib.suppress(PermissionError):
                os.chown(temporary, old.st_uid, old.st_gid)
        if given_up.is_set():
            raise InterruptedError(errno.EINTR, "cancelled")
        os.replace(temporary, place)
    except BaseException:
        os.unlink(temporary)
        raise


def _mode(old: os.stat_result | None) -> int:
    return stat.S_IMODE(old.st_mode) if old is not None else 0o644


def read_file(path: str, limit_bytes: int | None) -> bytes:
    """Read a regular file; raises ``OSError``, and :class:`TargetError` over the limit."""
    # Not blocking, since nobody may ever write into a FIFO.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode):
        os.close(number)
        what = "is a directory" if stat.S_ISDIR(status.st_mode) else "is not a regular file"
        raise OSError(errno.EINVAL, what)
    with open(number, "rb") as file:
        data = file.read() if limit_bytes is None else file.read(limit_bytes + 1)
    if limit_bytes is not None and len(data) > limit_bytes:
        size = max(status.st_size, len(data))
        raise TargetError(f"{path} has {size} bytes, more than the {limit_bytes} that may be read")
    return data
