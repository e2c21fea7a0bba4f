"""The process's ends of the wire: private descriptors that nothing else can reach."""

from __future__ import annotations

import os
from _queue import SimpleQueue
from _thread import allocate_lock, start_new_thread

from preflight_sdk.context import wait_on
from preflight_sdk.errors import Cancelled, MessageTooLarge, too_large
from preflight_sdk.handshake import DEFAULT_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_POSTED_BYTES = 8 << 20


def claim() -> tuple[int, int]:
    """Move stdin and stdout out of reach; the new descriptors of both.

    From here on 0 is the null device and 1 is stderr, for this process and its children.
    """
    import sys

    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:  # closed by who started us: the next open would take its number
            os.open(os.devnull, os.O_RDWR)
    wire_in, wire_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    if sys.stdout is not None:
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True)
    return wire_in, wire_out


class Writer:
    """Whole frames onto one descriptor. Safe from any thread.

    ``limit`` bounds a frame, its newline not counted; ``on_broken`` is called once, when
    nobody reads any more.
    """

    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        self._fd = fd
        self._on_broken = on_broken
        self._lock = allocate_lock()
        self._broken = False
        self._posting = allocate_lock()
        self._posted: SimpleQueue[bytes | SimpleQueue[None]] | None = None
        self._posted_bytes = 0
        self.limit = DEFAULT_LIMIT

    def send(self, method: str, frame: bytes) -> None:
        """Write one frame; blocks while the host does not read.

        Raises: MessageTooLarge before any byte is written; Cancelled when the host is gone.
        """
        if len(frame) > self.limit:
            raise MessageTooLarge(too_large(method, len(frame), self.limit))
        try:
            with self._lock:
                if self._broken:
                    raise BrokenPipeError
                if len(frame) < 1 << 16:
                    self._write(frame + b"\n")
                else:
                    self._write(frame)
                    self._write(b"\n")
        except OSError as exc:
            first, self._broken = not self._broken, True
            if first:
                self._on_broken()
            raise Cancelled("the host reads no more") from exc

    def post(self, frame: bytes) -> None:
        """Have one frame written by a thread of its own: the reader must never block here.

        Frames of a host that asks and asks but does not read are dropped past 8 MiB.
        """
        with self._posting:
            if self._posted is None:
                self._posted = SimpleQueue()
                start_new_thread(self._write_posted, (self._posted,))
            if self._posted_bytes + len(frame) > _MOST_POSTED_BYTES:
                return
            self._posted_bytes += len(frame)
            self._posted.put(frame)

    def drain(self, seconds: float) -> None:
        """Wait until what was posted is written, at most this long."""
        if self._posted is not None:
            done: SimpleQueue[None] = SimpleQueue()
            self._posted.put(done)
            wait_on(done, seconds)

    def _write_posted(self, posted: SimpleQueue[bytes | SimpleQueue[None]]) -> None:
        while True:
            frame = posted.get()
            if isinstance(frame, SimpleQueue):
                frame.put(None)
                continue
            try:
                self.send("error", frame)
            except (Cancelled, MessageTooLarge):
                continue  # gone, or an id too long to be echoed: there is no smaller answer
            finally:
                with self._posting:
                    self._posted_bytes -= len(frame)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def close_in_child(self) -> None:
        """After a fork: the child must not speak on the wire."""
        self._broken = True
        self._lock = allocate_lock()
        os.close(self._fd)
