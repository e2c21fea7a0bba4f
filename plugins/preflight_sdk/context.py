"""The cancellation signal that a handler is given, with what the handshake agreed on."""

from __future__ import annotations

from _queue import Empty, SimpleQueue
from _thread import allocate_lock

from preflight_sdk.errors import Cancelled
from preflight_sdk.results import RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Iterable

    Wakeup = SimpleQueue[None]


_NO_RUN = RunInfo()


class Context:
    """One call's cancel: test it, wait on it, or let it raise. Safe from any thread.

    ``run`` and ``config`` are what the host said once for the whole run.
    """

    def __init__(
        self,
        version: int = 2,
        capabilities: Iterable[str] = (),
        *,
        run: RunInfo = _NO_RUN,
        config: dict[str, object] | None = None,
        parent: Context | None = None,
    ) -> None:
        self._mutex: LockType = allocate_lock() if parent is None else parent._mutex
        self._set = False
        self._noticed = False
        self._wakeups: list[Wakeup] = []
        self._children: set[Context] = set()
        self._parent = parent
        self.version = version
        self.capabilities = frozenset(capabilities)
        self.run = run
        self.config: dict[str, object] = {} if config is None else config

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
            children, self._children = self._children, set()
        for wakeup in wakeups:
            wakeup.put(None)
        for child in children:
            child.cancel()

    def child(self) -> Context:
        """A context for a part of this call: it is cancelled with it, and may end before it."""
        child = Context(
            self.version, self.capabilities, run=self.run, config=self.config, parent=self
        )
        with self._mutex:
            if not self._set:
                self._children.add(child)
                return child
        child.cancel()
        return child

    def end(self) -> None:
        """The part is done: what a handler left behind in it is cancelled."""
        with self._mutex:
            self._set = True
            is_waited_on = self._wakeups or self._children
            if self._parent is not None:
                self._parent._children.discard(self)
        if is_waited_on:
            self.cancel()

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
