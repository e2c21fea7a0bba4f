"""Child processes: each in a session and group of its own, watched, and ended as a group.

Only pids that were started here are ever signalled, and never a group below 2. A leader that has
exited stays a zombie until :meth:`Process.reap`, so that neither its pid nor its group's number
can be given to somebody else while signals are still to be sent (docs/adr/0003).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

import msgspec

TERM_S = 1.0
"""Seconds between SIGTERM and SIGKILL. Source: protocol.md 5 and the local target's contract."""
KILL_S = 2.0
"""Seconds to wait for a killed group; only a process in uninterruptible sleep takes longer."""

_POLL_S = 0.01  # a group's last members are looked for at this interval, only while stopping
_PROC = "/proc"

_running: set[Process] = set()


class StopReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a group was ended: the last signal's name, or ``exited`` where none was needed."""

    how: str
    elapsed_ms: float
    survivors: list[int] = []


class Process:
    """A child that leads its own session; its pipes' ends here are raw, non-blocking fds."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: int = subprocess.PIPE,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Start ``argv``; raises ``OSError`` when it can't be executed."""
        self._loop = asyncio.get_running_loop()
        self._popen = subprocess.Popen(
            list(argv),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=None if env is None else dict(env),
            cwd=cwd,
            pass_fds=tuple(pass_fds),
            start_new_session=True,  # a terminal's Ctrl-C never reaches it, /dev/tty is not there
        )
        self.pid = self._popen.pid
        self.exited = asyncio.Event()
        self._pidfd: int | None = None
        try:
            for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
                if pipe is not None:
                    os.set_blocking(pipe.fileno(), False)
            self._watch()
        except BaseException:  # no fds left, say: nobody would ever end it
            self._popen.kill()
            self._popen.wait()
            self.reap()
            raise
        _running.add(self)

    @property
    def stdin_fd(self) -> int:
        """The end to write to; -1 when it is closed or was never piped."""
        return _fd(self._popen.stdin)

    @property
    def stdout_fd(self) -> int:
        """The end to read the child's stdout from; -1 when closed."""
        return _fd(self._popen.stdout)

    @property
    def stderr_fd(self) -> int:
        """The end to read the child's stderr from; -1 when closed."""
        return _fd(self._popen.stderr)

    @property
    def returncode(self) -> int | None:
        """The exit status once reaped; minus the signal's number where one ended it."""
        return self._popen.returncode

    def close_stdin(self) -> None:
        """Send the child an end of file."""
        if self._popen.stdin is not None:
            with contextlib.suppress(OSError):
                self._popen.stdin.close()

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the whole group; does nothing once the leader was reaped."""
        if self._popen.returncode is not None or self.pid < 2:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def has_exited(self) -> bool:
        """Tell whether the leader has exited, also where the loop was not told yet."""
        if self.exited.is_set() or self._popen.returncode is not None:
            return True
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self.pid, how) is not None
        except ChildProcessError:
            return True

    async def wait_exit(self, timeout: float | None = None) -> bool:
        """Wait until the leader has exited, not for its pipes; True when it has."""
        if self.exited.is_set():
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self.exited.wait()
        return self.exited.is_set()

    async def stop(self, *, term_s: float = TERM_S, kill_s: float = KILL_S) -> StopReport:
        """End the group: SIGTERM, ``term_s`` seconds, SIGKILL, ``kill_s`` seconds.

        The leader is left to :meth:`reap`, so that its last words can still be read. A leader
        that is gone still gets its group ended.
        Cancel: call through :func:`preflight.control.finish`; bounded by ``term_s + kill_s``.
        """
        start = time.monotonic()
        how = "exited"
        if not self.exited.is_set() or self._members():
            how = "SIGTERM"
            self.signal_group(signal.SIGTERM)
            if not await self._gone(term_s):
                how = "SIGKILL"
                self.signal_group(signal.SIGKILL)
                await self._gone(kill_s)
        return StopReport(
            how=how,
            elapsed_ms=round((time.monotonic() - start) * 1000, 1),
            survivors=self._members() if how == "SIGKILL" else [],
        )

    async def kill(self, *, kill_s: float = KILL_S) -> None:
        """End the group at once; the leader has exited afterwards, and is not reaped yet."""
        self.signal_group(signal.SIGKILL)
        await self._gone(kill_s)

    def kill_rest(self) -> None:
        """Kill what is left of the group after the leader has exited, and reap the leader."""
        self.signal_group(signal.SIGKILL)
        self.reap()

    def reap(self) -> None:
        """Collect the exit status if there is one, and let go of the pipes."""
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._unwatch()
        if self._popen.poll() is not None:
            _running.discard(self)

    async def _gone(self, within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        if not await self.wait_exit(within_s):
            return False
        while self._members():
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    def _members(self) -> list[int]:
        return [] if self._popen.returncode is not None else group_members(self.pid)

    def _watch(self) -> None:
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self.pid)
            self._loop.add_reader(self._pidfd, self._has_exited)
        else:
            threading.Thread(target=self._wait_in_thread, daemon=True).start()

    def _wait_in_thread(self) -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self.exited.set)

    def _has_exited(self) -> None:
        self._unwatch()
        self.exited.set()

    def _unwatch(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None


def group_members(group: int) -> list[int]:
    """List the live pids of a process group, zombies left out.

    Without ``/proc`` the answer is empty: there the leader's exit is all that can be seen.
    """
    if group < 2 or not os.path.isdir(_PROC):
        return []
    found: list[int] = []
    for entry in os.listdir(_PROC):
        if entry.isdigit():
            state, its_group = _state_and_group(entry)
            if its_group == group and state not in (b"Z", b"X"):
                found.append(int(entry))
    return found


def _state_and_group(pid: str) -> tuple[bytes, int]:
    # Raw calls: every process of the machine is looked at, in a turn of the loop.
    try:
        fd = os.open(f"{_PROC}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b"", 0
    try:
        state, _parent, group = os.read(fd, 512).rpartition(b")")[2].split(None, 3)[:3]
        return state, int(group)
    except (OSError, ValueError):
        return b"", 0
    finally:
        os.close(fd)


def kill_all() -> None:
    """Send SIGKILL to every group that was started here and not reaped: the last resort."""
    for process in tuple(_running):
        process.signal_group(signal.SIGKILL)


def exit_words(returncode: int | None) -> str:
    """Say how a process ended: ``exited (status 3)`` or ``killed by SIGKILL``."""
    if returncode is None:
        return "did not exit"
    if returncode >= 0:
        return f"exited (status {returncode})"
    return f"killed by {signal_name(-returncode)}"


def signal_name(number: int) -> str:
    """Give a signal's name, or ``signal N`` for one that Python has no name for."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _fd(pipe: object) -> int:
    if pipe is None or getattr(pipe, "closed", True):
        return -1
    fileno = getattr(pipe, "fileno", None)
    return fileno() if callable(fileno) else -1  # pyright: ignore[reportReturnType]  # a pipe's is an int
