"""The process of a plugin: its threads, its signals, and how it ends."""

from __future__ import annotations

import os
import select
import sys
from _queue import SimpleQueue
from _thread import start_new_thread
from time import sleep

from preflight_sdk.errors import Cancelled
from preflight_sdk.forks import guard
from preflight_sdk.handlers import show_traceback
from preflight_sdk.handshake import DEFAULT_LIMIT
from preflight_sdk.served import Served
from preflight_sdk.session import Session
from preflight_sdk.violations import say
from preflight_sdk.wire import Writer, claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable

    from preflight_sdk.served import Module

    Jobs = SimpleQueue[Callable[[], None] | None]
else:
    import _signal as signal  # the public one imports enum: 4 ms of a 10 ms start

EXIT_S = 2.0
"""How long after end of file a handler may still unwind, before the process ends itself."""

_CHUNK_BYTES = 64 * 1024


def serve(
    module: Module | type[Module],
    *,
    capabilities: Iterable[str] = (),
    max_message_bytes: int = DEFAULT_LIMIT,
) -> None:
    """Speak for one plugin until the host closes stdin; call it last, on the main thread.

    ``capabilities`` are the plugin's own feature names; ``max_message_bytes`` bounds one
    line in either direction.
    """
    served = Served(module, capabilities=capabilities, limit=max_message_bytes)
    if os.isatty(0):
        _explain(served)
        raise SystemExit(2)
    wire_in, wire_out = claim()
    jobs: Jobs = SimpleQueue()
    writer = Writer(wire_out, lambda: _host_gone(session, jobs))
    writer.limit = served.limit
    served.writer = writer
    session = Session(served, writer, jobs.put)
    wake = _wake_on_sigterm()
    guard(lambda: _leave_wire(writer, wire_in))
    start_new_thread(_read, (session, jobs, wire_in, wake))
    _run_jobs(jobs)
    writer.drain(EXIT_S)


def _run_jobs(jobs: Jobs) -> None:
    while (job := jobs.get()) is not None:
        try:
            job()
        except Cancelled:
            continue  # the host is gone: nobody is left to answer


def _read(session: Session, jobs: Jobs, wire_in: int, wake: int) -> None:
    """The reader thread: ends with end of file, and sees to it that the process does too."""
    try:
        while chunk := _next_chunk(session, wire_in, wake):
            session.feed(chunk)
        session.end()
    except BaseException:  # a bug here would leave a plugin that is alive and deaf
        show_traceback()
        os._exit(70)
    jobs.put(None)
    _end_process()


def _next_chunk(session: Session, wire_in: int, wake: int) -> bytes:
    """What the host wrote, b"" at end of file; SIGTERM meanwhile cancels what is in flight."""
    poller = select.poll()
    poller.register(wire_in, select.POLLIN)
    poller.register(wake, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poller.poll()]
        if wake in ready and signal.SIGTERM in os.read(wake, 512):
            session.interrupt()
        if wire_in in ready:
            return os.read(wire_in, _CHUNK_BYTES)


def _wake_on_sigterm() -> int:
    """The descriptor that gets a byte for each signal, whatever the main thread is doing."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    return read_end


def _leave_wire(writer: Writer, wire_in: int) -> None:
    writer.close_in_child()
    os.close(wire_in)


def _host_gone(session: Session, jobs: Jobs) -> None:
    session.interrupt()
    jobs.put(None)
    start_new_thread(_end_process, ())


def _end_process() -> None:
    """End the process if it has not ended by itself in time, and its group if it leads one."""
    sleep(EXIT_S)
    say(f"the handler went on for {EXIT_S:g} s after the host had gone: ending the process")
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGTERM)  # our own group: its handler here does nothing
    os._exit(1)


def _explain(served: Served) -> None:
    sys.stderr.write(
        f"{served.name} {served.version} is a plugin for Preflight.\n"
        "It is started by preflight, which speaks JSON-RPC with it over stdin and stdout;\n"
        f'use it in a playbook as "module: {served.name}".\n'
    )
