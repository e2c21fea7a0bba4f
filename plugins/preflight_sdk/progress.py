"""What has ended of a batch, on its way to the host."""

from __future__ import annotations

from _queue import SimpleQueue
from _thread import allocate_lock, start_new_thread
from time import sleep

from preflight_sdk.codec import Raw, encode
from preflight_sdk.errors import Cancelled, HandleError, too_large

TYPE_CHECKING = False
if TYPE_CHECKING:
    from preflight_sdk.wire import Writer

GATHER_S = 0.05
"""How long the result of a check may wait for others; an eye needs no more."""

_MOST_BYTES = 1 << 20  # in one notification; the host warns from 80 % of its limit on
_ENVELOPE_BYTES = 1024


class Progress:
    """Sends the entries of one batch, at once or, with ``gather``, some at a time.

    Safe from any thread.
    """

    def __init__(self, id_text: str, writer: Writer, *, gather: bool) -> None:
        self._id = Raw(id_text.encode())
        self._writer = writer
        self._most_bytes = min(writer.limit // 2, _MOST_BYTES)
        self._mutex = allocate_lock()
        self._waiting: list[Raw] = []
        self._waiting_bytes = 0
        self._wakeup: SimpleQueue[bool] | None = None
        if gather:
            self._wakeup = SimpleQueue()
            start_new_thread(self._gather, (self._wakeup,))

    def add(self, entry: dict[str, object]) -> None:
        """One item has ended. Raises: Cancelled when the host is gone."""
        data = self._fitting(entry)
        with self._mutex:
            if self._waiting_bytes + len(data) > self._most_bytes:
                self._send_waiting()
            self._waiting.append(Raw(data))
            self._waiting_bytes += len(data) + 1
            if self._wakeup is None:
                self._send_waiting()
            elif len(self._waiting) == 1:
                self._wakeup.put(True)

    def rest(self) -> list[Raw]:
        """The entries that were not sent; nothing may be added after this."""
        with self._mutex:
            rest, self._waiting = self._waiting, []
        if self._wakeup is not None:
            self._wakeup.put(False)
        return rest

    def send(self, entries: list[Raw]) -> None:
        """Send one notification. Raises: Cancelled when the host is gone."""
        params = {"id": self._id, "results": entries}
        frame = encode({"jsonrpc": "2.0", "method": "progress", "params": params})
        self._writer.send("progress", frame)

    def _gather(self, wakeup: SimpleQueue[bool]) -> None:
        while wakeup.get():
            sleep(GATHER_S)
            try:
                with self._mutex:
                    self._send_waiting()
            except (Cancelled, HandleError):  # the items' own threads are told as well
                return

    def _send_waiting(self) -> None:
        """Under the mutex, so that entries leave in the order in which they came."""
        if self._waiting:
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            self.send(waiting)

    def _fitting(self, entry: dict[str, object]) -> bytes:
        """The entry, without its changes if it is too large, or as an error if it still is."""
        room = self._writer.limit - _ENVELOPE_BYTES
        data = encode(entry)
        if len(data) > room and "changes" in entry:
            data = encode({name: entry[name] for name in entry if name != "changes"})
        if len(data) > room:
            error = too_large("the item's result", len(data), self._writer.limit)
            data = encode({"index": entry["index"], "error": error})
        return data
