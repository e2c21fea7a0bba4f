"""stdin, stdout and stderr, fit for use whatever they were when the command was started."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import TextIO


def with_streams(command: Callable[[], int]) -> int:
    """Run ``command`` with streams that can be written to; gives its exit code.

    A character that the terminal's encoding lacks is written as an escape. A reader that went away
    is no error; a result that could not be written is one, and the exit code is then not 0.
    """
    _fill_gaps()
    code = 0
    try:
        code = command()
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
        code = code or 1
    except OSError as exc:
        silence(sys.stdout)
        code = code or 1
        with contextlib.suppress(OSError):
            print(f"can't write the result: {exc.strerror or exc}", file=sys.stderr)  # noqa: T201
    try:
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)
    return code


def _fill_gaps() -> None:
    """Open the null device where a stream is closed: the next file must not become stdout."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
        elif number and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence(stream: TextIO) -> None:
    """Let what is still buffered, and all that comes, go nowhere."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
