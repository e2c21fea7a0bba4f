"""A forked child has no host: it must neither speak on the wire nor wake its parent."""

from __future__ import annotations

import os
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    import _signal as signal  # the public one imports enum: 4 ms of a 10 ms start


def guard(leave_wire: Callable[[], None]) -> None:
    """Have every later fork run ``leave_wire`` in the child and give it SIGTERM's default.

    SIGTERM is held back over the fork: one that came before the child is ready would be
    written into the wake-up pipe that it shares with its parent, and cancel the parent's call.
    """
    masks: dict[int, set[int]] = {}

    def hold() -> None:
        masks[get_ident()] = set(signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]))

    def release() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.pop(get_ident()))

    def leave() -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        leave_wire()
        release()

    os.register_at_fork(before=hold, after_in_parent=release, after_in_child=leave)
