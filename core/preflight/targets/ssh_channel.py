"""One channel of an SSH connection, with a program on its other end: bytes in, bytes out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import asyncssh

from preflight.errors import TargetUnreachable

OPEN_S = 10.0
"""Seconds for a channel to open on a connection that answers. Two round trips are needed."""
_LAST_WORDS_S = 0.2  # the exit status may overtake the last output


class ChannelRefused(TargetUnreachable):
    """The server opens no further channel on this connection: its MaxSessions is used up."""


class Channel(asyncssh.SSHClientSession[bytes]):
    """Hands each packet on at once; never waits and never buffers."""

    def __init__(
        self,
        on_out: Callable[[bytes], None],
        on_err: Callable[[bytes], None],
        on_closed: Callable[[], None],
    ) -> None:
        self.closed = asyncio.Event()
        self.exit_code: int | None = None
        self._on_out = on_out
        self._on_err = on_err
        self._on_closed = on_closed
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None

    @classmethod
    async def open(
        cls,
        connection: asyncssh.SSHClientConnection,
        command: str,
        *,
        on_out: Callable[[bytes], None],
        on_err: Callable[[bytes], None],
        on_closed: Callable[[], None],
    ) -> Channel:
        """Open a channel and start ``command``, without a terminal.

        Raises :class:`ChannelRefused` where the server has no room for one,
        :class:`TargetUnreachable` where the connection does not answer.
        """
        session = cls(on_out, on_err, on_closed)
        try:
            async with asyncio.timeout(OPEN_S):
                await connection.create_session(  # pyright: ignore[reportUnknownMemberType]  # asyncssh leaves the kind of data open
                    lambda: session, command, encoding=None, request_pty=False
                )
        except asyncssh.ChannelOpenError as exc:
            if connection.is_closed():
                raise TargetUnreachable(f"the connection was lost: {exc.reason}") from exc
            raise ChannelRefused(f"the server refused a channel: {exc.reason}") from exc
        except (OSError, asyncssh.Error, TimeoutError) as exc:
            raise TargetUnreachable(f"the connection was lost: {exc or 'no answer'}") from exc
        return session

    def write(self, data: bytes) -> None:
        """Send; what is written after the end is dropped."""
        if self._channel is not None and not self.closed.is_set():
            try:
                self._channel.write(data)  # pyright: ignore[reportUnknownMemberType]  # idem
            except BrokenPipeError:
                self._end_soon()  # the program has ended, and its last words are on the way

    def close(self) -> None:
        """End the channel, and with it the program's stdin."""
        if self._channel is not None:
            self._channel.close()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """Called by asyncssh."""
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Called by asyncssh, with each packet."""
        if datatype is None:
            self._on_out(data)
        else:
            self._on_err(data)

    def exit_status_received(self, status: int) -> None:
        """Called by asyncssh: the program has ended, even if a child still holds a stream."""
        self.exit_code = status
        self._end_soon()

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        """Called by asyncssh, where a signal ended the program."""
        self._end_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh, once."""
        self._end()

    def _end_soon(self) -> None:
        asyncio.get_running_loop().call_later(_LAST_WORDS_S, self._end)

    def _end(self) -> None:
        if not self.closed.is_set():
            self.closed.set()
            self._on_closed()
