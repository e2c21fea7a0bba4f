"""The work shell: one ``sh`` for all operations of a target, each framed by marks of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import asyncssh

from preflight.errors import TargetError, TargetUnreachable
from preflight.targets.marks import MarkCutter
from preflight.targets.posix_shell import boot_text, new_token
from preflight.targets.ssh_channel import Channel

_KEPT_NOISE = 2000  # what a login shell says instead of starting ours, for the message


class Noise:
    """What a shell says before it is ours."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._more = asyncio.Event()

    @property
    def text(self) -> str:
        """All of it, bad bytes replaced."""
        return b"".join(self._chunks).decode("utf-8", "replace")

    def add(self, data: bytes) -> None:
        """Take more of it; nothing says that the shell has ended."""
        self._chunks.append(data)
        self._more.set()

    def clear(self) -> None:
        """Forget what was said."""
        self._chunks.clear()

    async def wait_more(self) -> None:
        """Wait for more, or for the end."""
        self._more.clear()
        await self._more.wait()


class Entry:
    """How a shell is reached: here by a plain ``sh``; under sudo there is a door to pass."""

    command = "exec /bin/sh"

    async def pass_through(self, channel: Channel, said: Noise) -> None:
        """Wait until it is a shell that reads what is written; ``said`` grows meanwhile."""


class Operation:
    """One operation on the wire: ``pid`` once it runs, ``code`` once it has ended.

    ``ended`` is set by the end of both streams, or by the end of the shell; ``code`` is ``None``
    where it is not known whether and how the operation ended.
    """

    def __init__(
        self, token: str, on_out: Callable[[bytes], None], on_err: Callable[[bytes], None]
    ) -> None:
        self.token = token
        self.pid = 0
        self.on_begin: Callable[[], None] = _nothing
        self.on_lost: Callable[[], None] = _nothing
        self.code: int | None = None
        self.started = asyncio.Event()
        self.ended = asyncio.Event()
        self.out = MarkCutter(token, on_out, self._out_mark)
        self.err = MarkCutter(token, on_err, self._err_mark)
        self._code: int | None = None
        self._err_ended = False

    def lose(self) -> None:
        """The shell is gone: what was seen of the operation is all there is."""
        self.out.close()
        self.err.close()
        self.started.set()
        self.ended.set()
        self.on_lost()

    def _out_mark(self, words: list[str]) -> None:
        match words:
            case ["S"]:
                self.on_begin()
            case ["P" | "W", pid] if pid.isdigit():
                self.pid = int(pid)
                self.started.set()
                if words[0] == "W":
                    self._code = 0
            case ["E", code] if code.isdigit():
                self._code = int(code)
            case _:
                pass
        self._look()

    def _err_mark(self, _words: list[str]) -> None:
        self._err_ended = True
        self._look()

    def _look(self) -> None:
        if self._code is not None and self._err_ended:
            self.code = self._code
            self.started.set()
            self.ended.set()


class WorkShell:
    """Runs one operation at a time; who uses it sees to that."""

    def __init__(self) -> None:
        self.pid = 0
        self.spoilt = False
        self._channel: Channel | None = None
        self._current: Operation | None = None

    @property
    def usable(self) -> bool:
        """False once it has ended, or once something still writes that is no operation's."""
        return self._channel is not None and not self._channel.closed.is_set() and not self.spoilt

    async def open(
        self,
        connection: asyncssh.SSHClientConnection,
        *,
        within_s: float,
        first: str = "",
        entry: Entry | None = None,
    ) -> str:
        """Start the shell, wait for its first word, and give what the script ``first`` printed.

        What login files print before it is passed over. Raises :class:`TargetError` when the
        account's login shell starts no ``sh``, or what ``entry`` raises; else as
        :meth:`Channel.open`.
        """
        noise = Noise()
        boot = Operation(new_token(), noise.add, noise.add)
        boot.on_begin = noise.clear
        boot.on_lost = lambda: noise.add(b"")
        self._current = boot
        try:
            async with asyncio.timeout(within_s):
                await self._boot(connection, entry or Entry(), noise, boot_text(boot.token, first))
                await boot.ended.wait()
        except TimeoutError as exc:
            self.close()
            raise TargetUnreachable(f"no answer from /bin/sh within {within_s:g} s") from exc
        except BaseException:
            self.close()
            raise
        self._current = None
        if boot.code is None:
            words = noise.text[:_KEPT_NOISE].strip() or "it ended without a word"
            raise TargetError(f"the login shell starts no /bin/sh: {words}")
        self.pid = boot.pid
        return noise.text

    async def _boot(
        self, connection: asyncssh.SSHClientConnection, entry: Entry, noise: Noise, text: bytes
    ) -> None:
        self._channel = await Channel.open(
            connection,
            entry.command,
            on_out=self._on_out,
            on_err=self._on_err,
            on_closed=self._on_closed,
        )
        await entry.pass_through(self._channel, noise)
        self._channel.write(text)

    def send(self, operation: Operation, text: bytes) -> None:
        """Put an operation on the wire; it may have started from here on."""
        if self._channel is not None:
            self._current = operation
            self._channel.write(text)
            if self._channel.closed.is_set():
                operation.lose()

    def done(self) -> None:
        """The operation has ended: what comes from here on is nobody's."""
        self._current = None

    def close(self) -> None:
        """End the shell."""
        self.spoilt = True
        if self._channel is not None:
            self._channel.close()

    def _on_out(self, data: bytes) -> None:
        if self._current is None:
            self.spoilt = True
        else:
            self._current.out.feed(data)

    def _on_err(self, data: bytes) -> None:
        if self._current is None:
            self.spoilt = True
        else:
            self._current.err.feed(data)

    def _on_closed(self) -> None:
        if self._current is not None:
            self._current.lose()


def _nothing() -> None:
    """Where nobody wants to know."""
