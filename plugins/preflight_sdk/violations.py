"""Lines of the host that break the protocol: counted, and said on stderr without blocking."""

from __future__ import annotations

import os
import select

_MOST_SHOWN = 20
_SHOWN_BYTES = 200


class Violations:
    """The first twenty are shown: a host that floods must not fill the log."""

    def __init__(self) -> None:
        self.total = 0

    def count(self, reason: str, line: bytes) -> None:
        """One more; called on the reader thread."""
        self.total += 1
        if self.total <= _MOST_SHOWN:
            shown = ascii(line[:_SHOWN_BYTES])[1:]
            last = "; no more of these are shown" if self.total == _MOST_SHOWN else ""
            say(f"protocol violation by the host: {reason}: {shown}{last}")


def say(text: str) -> None:
    """One line on stderr, or nothing if that would block."""
    data = f"preflight_sdk: {text}\n".encode(errors="backslashreplace")[:2000]
    poller = select.poll()
    try:
        poller.register(2, select.POLLOUT)
        if poller.poll(0):
            os.write(2, data)
    except OSError:
        return
