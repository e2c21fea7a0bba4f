"""The host's checks and applies: which are in flight, and that each is answered once."""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from preflight_sdk.codec import Envelope
    from preflight_sdk.context import Context


class Call:
    """One request of the host; ``id_text`` is its id as the host wrote it."""

    __slots__ = ("_envelope", "ctx", "id_text", "key", "method", "started")

    def __init__(self, method: str, key: int | str, envelope: Envelope, ctx: Context) -> None:
        self.method = method
        self.key = key
        self.id_text = envelope.id_text
        self._envelope: Envelope | None = envelope
        self.ctx = ctx
        self.started = False

    def take_params(self) -> object:
        """The params, decoded now; the text they were in is let go. Raises: ValueError."""
        envelope, self._envelope = self._envelope, None
        return None if envelope is None else envelope.value("params")


class Calls:
    """The table of what is in flight. Safe from any thread."""

    def __init__(self) -> None:
        self._mutex = allocate_lock()
        self._calls: dict[int | str, Call] = {}

    def add(self, call: Call) -> bool:
        """False when a call of this id is in flight."""
        with self._mutex:
            return self._calls.setdefault(call.key, call) is call

    def start(self, call: Call) -> bool:
        """False when it was cancelled, and answered, while it waited."""
        with self._mutex:
            call.started = self._calls.get(call.key) is call
            return call.started

    def finish(self, call: Call) -> bool:
        """Take it off the table, to be answered now; True when its cancel came first."""
        with self._mutex:
            self._calls.pop(call.key, None)
            return call.ctx.is_set

    def cancel(self, key: object) -> Call | None:
        """Cancel one; it is returned if it never started, and must be answered by the caller."""
        with self._mutex:
            call = self._calls.get(key) if isinstance(key, int | str) else None
            if call is None:
                return None
            call.ctx.cancel()
            if call.started:
                return None
            return self._calls.pop(call.key)

    def cancel_all(self) -> list[Call]:
        """Cancel all; those that never started are for the caller to answer."""
        with self._mutex:
            keys = list(self._calls)
        return [call for key in keys if (call := self.cancel(key)) is not None]
