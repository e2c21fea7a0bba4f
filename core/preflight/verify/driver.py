"""A plugin's process driven with raw bytes; it shares no code with the engine's own wire.

One thread, no loop: it writes what is queued and reads what comes whenever it is asked to wait.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_CHUNK_BYTES = 64 * 1024
_LONGEST_BYTES = 256 * 1024 * 1024  # of one line: a plugin that never ends one is given up
_TAIL_BYTES = 4096  # of stderr, to be quoted
_KILL_S = 5.0


class Ended(Exception):
    """The plugin's stdout has ended; the text says how its process ended."""


class Driver:
    """One process in a session of its own; a context manager that leaves nothing behind.

    Raises ``OSError`` when it can't be started.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._popen = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(environment),
            start_new_session=True,
        )
        self.pid = self._popen.pid
        self._out: deque[memoryview] = deque()
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._tail = bytearray()
        self._open = {
            name: pipe
            for name, pipe in (
                ("stdin", self._popen.stdin),
                ("stdout", self._popen.stdout),
                ("stderr", self._popen.stderr),
            )
            if pipe is not None
        }
        for pipe in self._open.values():
            os.set_blocking(pipe.fileno(), False)

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def stderr(self) -> str:
        """The end of what it wrote to its stderr."""
        return self._tail.decode("utf-8", "replace").strip()

    def write(self, data: bytes) -> None:
        """Queue bytes and write what goes at once; the rest goes while lines are waited for."""
        if "stdin" in self._open:
            self._out.append(memoryview(data))
            self._turn(0.0)

    def close_stdin(self) -> None:
        """End its input, once all that is queued is written."""
        deadline = time.monotonic() + _KILL_S
        while self._out and "stdin" in self._open and time.monotonic() < deadline:
            self._turn(deadline - time.monotonic())
        self._close("stdin")

    def read_line(self, timeout: float) -> bytes | None:
        """Give the next line without its newline; None when none has come in ``timeout`` seconds.

        Raises :class:`Ended`.
        """
        deadline = time.monotonic() + timeout
        while not self._lines:
            left = deadline - time.monotonic()
            if "stdout" not in self._open:
                raise Ended(self.how_it_ended())
            if left <= 0:
                return None
            self._turn(left)
        return self._lines.popleft()

    def wait(self, timeout: float) -> bool:
        """Wait for its exit, reading on meanwhile; True when it has exited."""
        deadline = time.monotonic() + timeout
        while self._popen.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._turn(min(left, 0.05))  # nothing tells of an exit while a child holds the pipes
        return True

    def how_it_ended(self) -> str:
        """Say how the process ended, or that it only closed its stdout."""
        if not self.wait(1.0):
            return "it closed its stdout"
        code = self._popen.returncode
        words = f"it exited with status {code}" if code >= 0 else f"it died of signal {-code}"
        return f"{words}; stderr: {self.stderr[-500:]}" if self.stderr else words

    def leftovers(self) -> list[int]:
        """List the live processes of its group; empty where there is no ``/proc``."""
        return [pid for pid in _pids() if _group_of(pid) == self.pid]

    def kill(self) -> None:
        """Kill its whole group and reap it. Safe to repeat."""
        if self._popen.returncode is None or self.leftovers():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait(_KILL_S)
        for name in tuple(self._open):
            self._close(name)

    def _turn(self, timeout: float) -> None:
        """Wait until something can be read or written, and do it."""
        poller = select.poll()
        names: dict[int, str] = {}
        for name, pipe in self._open.items():
            if name != "stdin" or self._out:
                poller.register(pipe, select.POLLOUT if name == "stdin" else select.POLLIN)
                names[pipe.fileno()] = name
        if not names:
            time.sleep(min(timeout, 0.01))  # all its pipes are closed: only its exit is left
            return
        for fd, _ in poller.poll(max(0.0, timeout) * 1000):
            if names[fd] == "stdin":
                self._write_some(self._open["stdin"])
            else:
                self._read_some(names[fd], self._open[names[fd]])

    def _write_some(self, pipe: IO[bytes]) -> None:
        try:
            while self._out:
                self._out[0] = self._out[0][os.write(pipe.fileno(), self._out[0]) :]
                if not self._out[0]:
                    self._out.popleft()
        except BlockingIOError:
            return
        except OSError:  # it reads no more: what it says, or how it ends, tells why
            self._close("stdin")

    def _read_some(self, name: str, pipe: IO[bytes]) -> None:
        try:
            chunk = os.read(pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if name == "stderr":
            self._tail = (self._tail + chunk)[-_TAIL_BYTES:]
        else:
            self._cut(chunk)
        if not chunk:
            self._close(name)

    def _cut(self, chunk: bytes) -> None:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            self._lines.append(bytes(self._rest + line))
            self._rest.clear()
        self._rest += rest
        if (not chunk and self._rest) or len(self._rest) > _LONGEST_BYTES:
            self._lines.append(bytes(self._rest))
            self._rest.clear()
            self._close("stdout")

    def _close(self, name: str) -> None:
        pipe = self._open.pop(name, None)
        if name == "stdin":
            self._out.clear()
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _pids() -> list[int]:
    try:
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    except OSError:
        return []


def _group_of(pid: int) -> int:
    """Give the group of a process that lives; 0 for a zombie or one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[2])
