"""The work shell: one ``sh`` for all operations of a target, each framed by marks of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import asyncssh

from preflight.errors import TargetError, TargetUnreachable
from preflight.targets.marks import MarkCutter
from preflight.targets.posix_shell import boot_text, new_token
from preflight.targets.ssh_channel import Channel

_KEPT_NOISE_BYTES = 2000  # what a login shell says instead of starting ours, for the message


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

    def _out_mark(self, words: list[str]) -> None:
        match words:
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
        self, connection: asyncssh.SSHClientConnection, *, within_s: float, command: str = "exec /bin/sh"
    ) -> None:
        """Start the shell and wait for its first word.

        What login files print before it is passed over. Raises :class:`TargetError` when the
        account's login shell starts no ``sh``; as :meth:`Channel.open` else.
        """
        noise: list[bytes] = []
        boot = Operation(new_token(), noise.append, noise.append)
        self._current = boot
        self._channel = await Channel.open(
            connection, command, on_out=self._on_out, on_err=self._on_err, on_closed=self._on_closed
        )
        self._channel.write(boot_text(boot.token))
        try:
            async with asyncio.timeout(within_s):
                await boot.ended.wait()
        except TimeoutError as exc:
            self.close()
            raise TargetUnreachable(f"no answer from /bin/sh within {within_s:g} s") from exc
        except BaseException:
            self.close()
            raise
        self._current = None
        if boot.code is None:
            said = b"".join(noise)[:_KEPT_NOISE_BYTES].decode("utf-8", "replace").strip()
            raise TargetError(f"the login shell starts no /bin/sh: {said or 'it ended without a word'}")
        self.pid = boot.pid

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
