"""The cancellation signal that a handler is given, with what the handshake agreed on."""

from __future__ import annotations

from _queue import Empty, SimpleQueue
from _thread import allocate_lock

from preflight_sdk.errors import Cancelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Wakeup = SimpleQueue[None]


class Context:
    """One call's cancel: test it, wait on it, or let it raise. Safe from any thread."""

    def __init__(self, version: int = 2, capabilities: Iterable[str] = ()) -> None:
        self._mutex = allocate_lock()
        self._set = False
        self._noticed = False
        self._wakeups: list[Wakeup] = []
        self.version = version
        self.capabilities = frozenset(capabilities)

    @property
    def cancelled(self) -> bool:
        """True from the moment the host gave this call up."""
        if self._set:
            self._noticed = True
        return self._set

    @property
    def is_set(self) -> bool:
        """The same, for the SDK: looking does not count as the handler's having noticed."""
        return self._set

    def wait(self, seconds: float | None = None) -> bool:
        """Sleep, but wake up on cancel; True when cancelled. None waits for the cancel alone."""
        wakeup: Wakeup = SimpleQueue()
        self.add_wakeup(wakeup)
        wait_on(wakeup, seconds)
        self.remove_wakeup(wakeup)
        return self.cancelled

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled once the host gave this call up."""
        if self.cancelled:
            raise Cancelled("the host gave this call up")

    def raise_if_unnoticed(self) -> None:
        """Raise Cancelled if the handler can't know yet: so lines of its clean-up still pass."""
        if self._set and not self._noticed:
            self.raise_if_cancelled()

    def has_capability(self, name: str) -> bool:
        """True when both sides listed it."""
        return name in self.capabilities

    def cancel(self) -> None:
        """Set the signal and wake every waiter; again is the same as once."""
        with self._mutex:
            self._set = True
            wakeups, self._wakeups = self._wakeups, []
        for wakeup in wakeups:
            wakeup.put(None)

    def add_wakeup(self, wakeup: Wakeup) -> None:
        """Put None into the queue on cancel; at once if that was before."""
        with self._mutex:
            if not self._set:
                self._wakeups.append(wakeup)
                return
        wakeup.put(None)

    def remove_wakeup(self, wakeup: Wakeup) -> None:
        """Forget a queue of :meth:`add_wakeup`."""
        with self._mutex:
            if wakeup in self._wakeups:
                self._wakeups.remove(wakeup)


def wait_on(wakeup: Wakeup, seconds: float | None) -> bool:
    """True when something was put into the queue in time. Units: seconds, None for ever."""
    try:
        if seconds is None:
            wakeup.get()
        else:
            wakeup.get(timeout=max(0.0, seconds))
    except Empty:
        return False
    return True
