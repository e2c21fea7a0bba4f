"""A run without a console: in this process, printed as it goes, stopped by signals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from preflight.bus import Sink
from preflight.control import RunControl
from preflight.engine import Engine, Prepared
from preflight.events import Event, encode
from preflight_tui.signals import counted_signals, leave
from preflight_tui.streams import silence
from preflight_tui.text import TextView

_SILENCE_S = 30.0  # after this long without a line, a headless run says that it is alive


def run_headless(
    prepared: Prepared,
    *,
    dry_run: bool,
    pending_is_4: bool = False,
    sink: Sink,
    ready_fd: int = -1,
) -> int:
    """Run to the end and give the exit code; ``ready_fd`` is told when a console can join."""
    return asyncio.run(_run(prepared, dry_run, pending_is_4, sink, ready_fd))


async def _run(
    prepared: Prepared, dry_run: bool, pending_is_4: bool, sink: Sink, ready_fd: int
) -> int:
    async with Engine(prepared, dry_run=dry_run, pending_is_4=pending_is_4) as engine:
        engine.add_sink(_outliving(sink))
        if ready_fd >= 0:
            os.write(ready_fd, os.fsencode(engine.folder) + b"\n")
            os.close(ready_fd)
        with counted_signals(_stopping(engine.control)):
            return await engine.run()


def _stopping(control: RunControl) -> Callable[[int], None]:
    """First signal: cancel in the ordinary way. Second: no more grace. Third: leave at once."""

    def caught(count: int) -> None:
        if count >= 3:
            leave()
        control.cancel("", "signal", kill=count == 2)

    return caught


def _outliving(sink: Sink) -> Sink:
    """Let the run outlive its reader: after the first failure to write nothing more is printed."""
    broken = False

    def show(event: Event) -> None:
        nonlocal broken
        if broken:
            return
        try:
            sink(event)
        except OSError as exc:
            broken = True
            silence(sys.stdout)
            if not isinstance(exc, BrokenPipeError):
                words = f"can't write to stdout: {exc.strerror or exc}; the run goes on"
                print(words, file=sys.stderr)  # noqa: T201 what the user must know

    return show


def json_sink(out: TextIO) -> Sink:
    """Write every event as one line of JSON."""

    def write(event: Event) -> None:
        out.buffer.write(encode(event))
        out.buffer.flush()

    return write


def text_sink(out: TextIO, *, colour: bool, verbose: bool) -> Sink:
    """Write events as text, and a line now and then when nothing happens for long."""
    heartbeat = _Heartbeat(out)

    def write(line: str) -> None:
        out.write(line + "\n")

    view = TextView(write, colour=colour, verbose=verbose)

    def show(event: Event) -> None:
        view(event)
        out.flush()
        heartbeat.beat(event)

    return show


class _Heartbeat:
    """Says that the run goes on, once in each thirty silent seconds."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._start = time.monotonic()
        self._timer: asyncio.TimerHandle | None = None

    def beat(self, event: Event) -> None:
        """Count the silence anew; the run's last event ends it."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if type(event).__struct_config__.tag != "run_finished":
            self._arm()

    def _arm(self) -> None:
        with contextlib.suppress(RuntimeError):  # a replay has no loop, and no silence
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_SILENCE_S, self._say)

    def _say(self) -> None:
        with contextlib.suppress(OSError):
            self._out.write(f"still running after {time.monotonic() - self._start:.0f} s\n")
            self._out.flush()
        self._arm()


def wants_colour(out: TextIO, choice: str) -> bool:
    """Decide about colour: ``never``, ``always``, or by terminal and ``NO_COLOR``."""
    if choice != "auto":
        return choice == "always"
    return out.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
