"""All that runs under one account of a target: its work shell, and the control shell beside it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TypeVar

import msgspec

from preflight.control import finish
from preflight.errors import PreflightError, Reason, TargetError, TargetUnreachable
from preflight.ports.target import Become, KillReport, OnKill
from preflight.procs import KILL_S, TERM_S
from preflight.targets.posix_control import BEAT_S
from preflight.targets.posix_shell import new_token, operation_text
from preflight.targets.ssh_become import SudoEntry
from preflight.targets.ssh_channel import ChannelRefused
from preflight.targets.ssh_kill import ControlShell, Ended
from preflight.targets.ssh_links import Links
from preflight.targets.ssh_shell import Entry, Operation, WorkShell

REGISTER_S = 0.1
"""An operation that runs for so long is made known to the control shell; most end before. Until
then the dead-man's switch finds it as a child of the work shell."""

_OPEN_S = 20.0  # a login shell with slow start-up files, or sudo with a slow PAM module
_LISTEN_S = 5.0  # it starts beside the work shell, and is mostly the first to be ready
_START_S = 2.0  # for the first word of an operation that was sent: one round trip
_ANSWER_S = TERM_S + KILL_S + 0.5  # the control shell's own bound is 0.4 s below it
_SECOND_S = 4.0  # for a second connection, where the first does not answer
_REUSE_S = 0.5  # for the work shell to notice that the operation has ended
_STOP_S = _START_S + _ANSWER_S + 2 * _SECOND_S + _REUSE_S + 1

T = TypeVar("T")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to run; ``stdin_file`` and ``script_file`` are paths on the target."""

    script: str
    stdin: bytes = b""
    env: Mapping[str, str] | None = None
    stdin_file: str = ""
    script_file: str = ""


class Lane:
    """Runs one operation at a time, each at most once."""

    def __init__(
        self, links: Links, become: Become | None = None, *, beat_s: float = BEAT_S
    ) -> None:
        self.second_control = False
        self.unwatched = False
        self._links = links
        self._become = become
        self._beat_s = beat_s
        self._lock = asyncio.Lock()
        self._work: WorkShell | None = None
        self._control: ControlShell | None = None

    async def open(self, first: str = "") -> str:
        """Open both shells, and give what the script ``first`` printed.

        Raises :class:`TargetUnreachable`, or :class:`TargetError` where no shell is to be had.
        """
        work, control = WorkShell(), ControlShell(beat_s=self._beat_s)
        said, watching = await _both(self._open_work(work, first), self._open_control(control))
        if isinstance(said, PreflightError):
            control.leave()
            raise said
        self._work = work
        self._control = None
        if watching is None and await control.listening(within_s=_LISTEN_S):
            control.watch(work.pid)
            self._control = control
        self.unwatched = self._control is None
        return said

    async def run(
        self,
        request: Request,
        on_out: Callable[[bytes], None],
        on_err: Callable[[bytes], None],
        on_kill: OnKill | None,
    ) -> int:
        """Run it, and give its exit code.

        Raises :class:`TargetUnreachable` where it was not sent, and :class:`TargetError` with
        ``UNKNOWN_OUTCOME`` where the link was lost after that; it is never sent twice.
        """
        async with self._lock:
            work = await self._ready()
            op = secrets.token_hex(8)
            operation = Operation(new_token(), on_out, on_err)
            work.send(operation, _text(op, operation, request))
            known = _Registration(op, operation, self._control)
            try:
                await operation.ended.wait()
            except asyncio.CancelledError:
                await finish(self._stop(op, operation, on_kill), within_s=_STOP_S)
                raise
            finally:
                known.end()
                work.done()
                if not operation.ended.is_set():
                    work.close()
            if operation.code is None and self._links.open:
                await finish(self._stop(op, operation, on_kill), within_s=_STOP_S)
        if operation.code is None:
            raise TargetError(
                "the link was lost while the command ran: whether it ended is not known, and it is "
                "not run again",
                Reason.UNKNOWN_OUTCOME,
            )
        return operation.code

    def leave(self) -> None:
        """End both shells in peace."""
        if self._control is not None:
            self._control.leave()
        if self._work is not None:
            self._work.close()

    async def _ready(self) -> WorkShell:
        for last in (False, True):
            if self._links.open and self._work is not None and self._work.usable:
                return self._work
            try:
                if self._links.open and self._control is not None and self._control.usable:
                    await self._renew_work(self._control)
                else:
                    await self.open()
            except TargetUnreachable:
                if last:
                    raise
        if self._work is None:
            raise TargetUnreachable("there is no connection")
        return self._work

    async def _renew_work(self, control: ControlShell) -> None:
        work = WorkShell()
        await self._open_work(work, "")
        control.watch(work.pid)
        self._work = work

    async def _open_work(self, work: WorkShell, first: str) -> str:
        link = await self._links.main()
        try:
            return await work.open(
                link.connection, within_s=_OPEN_S, first=first, entry=self._entry()
            )
        except ChannelRefused:
            link = await self._links.spare()
            return await work.open(
                link.connection, within_s=_OPEN_S, first=first, entry=self._entry()
            )

    async def _open_control(self, control: ControlShell) -> None:
        link = await self._links.main()
        try:
            await control.open(link.connection, within_s=_OPEN_S, entry=self._entry())
        except ChannelRefused:
            self.second_control = True
            link = await self._links.spare()
            await control.open(link.connection, within_s=_OPEN_S, entry=self._entry())

    def _entry(self) -> Entry:
        return Entry() if self._become is None else SudoEntry(self._become)

    async def _stop(self, op: str, operation: Operation, on_kill: OnKill | None) -> None:
        begin = time.monotonic()
        await _within(_START_S, operation.started.wait())
        ended: Ended | None = None
        if operation.code is None:  # with its own exit code it has ended, and its group with it
            ended = await self._end(op, operation.pid)
            await _within(_REUSE_S, operation.ended.wait())
        if on_kill is not None:
            on_kill(
                KillReport(
                    op="exec",
                    pid=operation.pid,
                    how=_how(operation, ended),
                    elapsed_ms=round((time.monotonic() - begin) * 1000, 1),
                    survivors=ended.survivors if ended is not None else [],
                )
            )

    async def _end(self, op: str, pid: int) -> Ended | None:
        ended: Ended | None = None
        if self._control is not None and self._links.open:
            ended = await self._control.end(op, pid, grace_s=TERM_S, within_s=_ANSWER_S)
        return ended if ended is not None else await self._end_from_outside(op, pid)

    async def _end_from_outside(self, op: str, pid: int) -> Ended | None:
        """Ask through a second connection, where the first does not answer."""
        link = await self._links.another(within_s=_SECOND_S)
        if link is None:
            return None
        control = ControlShell(beat_s=self._beat_s)
        try:
            await control.open(link.connection, within_s=_SECOND_S, entry=self._entry())
            # What it is to end is older than itself: only the mark says that it is ours.
            return await control.end(op, pid, grace_s=TERM_S, within_s=_SECOND_S)
        except PreflightError:
            return None
        finally:
            control.leave()
            await link.close()


def _text(op: str, operation: Operation, request: Request) -> bytes:
    return operation_text(
        operation.token,
        op,
        request.script,
        env=request.env,
        stdin=request.stdin,
        stdin_file=request.stdin_file,
        script_file=request.script_file,
    )


class _Registration:
    """Makes an operation known to the control shell once it has run for a while."""

    def __init__(self, op: str, operation: Operation, control: ControlShell | None) -> None:
        self._op = op
        self._operation = operation
        self._control = control
        self._known = False
        self._timer = asyncio.get_running_loop().call_later(REGISTER_S, self._look)

    def end(self) -> None:
        """The operation has ended."""
        self._timer.cancel()
        if self._known and self._control is not None:
            self._control.forget(self._op)

    def _look(self) -> None:
        if self._operation.pid and self._control is not None:
            self._known = True
            self._control.register(self._op, self._operation.pid)
        elif not self._operation.ended.is_set():
            self._timer = asyncio.get_running_loop().call_later(REGISTER_S, self._look)


def _how(operation: Operation, ended: Ended | None) -> str:
    if ended is not None and ended.how != "none":
        return ended.how
    if operation.code is not None:
        return "exited"
    return "unconfirmed" if ended is None else "no process found"


async def _within(seconds: float, waiting: Coroutine[object, object, object]) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await waiting


async def _both(
    work: Coroutine[object, object, str], control: Coroutine[object, object, None]
) -> tuple[str | PreflightError, PreflightError | None]:
    """Run both at once; an error of one is a value, and does not end the other."""
    async with asyncio.TaskGroup() as group:
        first = group.create_task(_caught(work))
        second = group.create_task(_caught(control))
    problem = second.result()
    return first.result(), problem


async def _caught(one: Coroutine[object, object, T]) -> T | PreflightError:
    try:
        return await one
    except PreflightError as exc:
        return exc
