"""The control shell beside a work shell: ends an operation when asked, or when the link dies."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import asyncssh
import msgspec

from preflight.errors import TargetUnreachable
from preflight.targets.marks import MarkCutter
from preflight.targets.posix_control import BEAT_S, control_program
from preflight.targets.posix_shell import new_token
from preflight.targets.ssh_channel import Channel
from preflight.targets.ssh_shell import Entry, Noise


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The control shell's answer: the last signal, or ``none``, and what was found alive after."""

    how: str
    survivors: list[int] = []


class ControlShell:
    """Writes never wait: what is said before the program listens is sent when it does."""

    def __init__(self, *, beat_s: float = BEAT_S) -> None:
        self.can_find = True
        self._decided = asyncio.Event()
        self._beat_s = beat_s
        self._token = new_token()
        self._waiting: dict[str, asyncio.Future[Ended]] = {}
        self._held: list[bytes] | None = []
        self._channel: Channel | None = None
        self._hear: Callable[[bytes], None] = _ignore
        self._timer: asyncio.TimerHandle | None = None
        self._cutter = MarkCutter(self._token, _ignore, self._on_mark)

    @property
    def usable(self) -> bool:
        """Whether it is there to be asked."""
        return self.can_find and self._channel is not None and not self._channel.closed.is_set()

    async def open(
        self,
        connection: asyncssh.SSHClientConnection,
        *,
        within_s: float,
        entry: Entry | None = None,
    ) -> None:
        """Start it; whether it listens is told by :meth:`listening`.

        Raises as :meth:`Channel.open`, and what ``entry`` raises.
        """
        noise = Noise()
        way = entry or Entry()
        self._hear = noise.add
        self._channel = await Channel.open(
            connection,
            way.command,
            on_out=self._on_out,
            on_err=self._on_err,
            on_closed=self._on_closed,
        )
        try:
            async with asyncio.timeout(within_s):
                await way.pass_through(self._channel, noise)
        except TimeoutError as exc:
            self._channel.close()
            raise TargetUnreachable(f"no answer from /bin/sh within {within_s:g} s") from exc
        except BaseException:
            self._channel.close()
            raise
        self._hear = _ignore
        self._channel.write(control_program(self._token, beat_s=self._beat_s).encode())
        self._beat()

    async def listening(self, *, within_s: float) -> bool:
        """Wait until it reads what it is told; False where it will not, or can find nothing.

        Nothing may be started before: a link that is cut meanwhile would take with it what was
        said and not read.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._decided.wait()
        return self._held is None and self.usable

    def watch(self, shell: int) -> None:
        """Name the work shell, whose children are the operations."""
        self._say(f"W {shell}")

    def register(self, op: str, leader: int) -> None:
        """Let the program know an operation, so that it can end it without being asked."""
        self._say(f"R {op} {leader}")

    def forget(self, op: str) -> None:
        """The operation has ended by itself."""
        self._say(f"E {op}")

    async def end(self, op: str, leader: int, *, grace_s: float, within_s: float) -> Ended | None:
        """End an operation's processes; ``None`` when no answer came in time.

        ``how`` ``none`` means that nothing was found, not that nothing exists: what forked twice,
        called setsid and emptied its environment is seen by nobody.
        """
        if not self.usable:
            return None
        answer: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._waiting[op] = answer
        self._say(f"K {op} {leader if leader > 1 else '-'} {round(grace_s * 100)}")
        try:
            async with asyncio.timeout(within_s):
                return await answer
        except TimeoutError:
            return None
        finally:
            self._waiting.pop(op, None)

    def leave(self) -> None:
        """Let it go in peace: nothing that runs is ended."""
        self._say("Q")
        self._stop_beating()
        if self._channel is not None:
            self._channel.close()

    def _say(self, line: str) -> None:
        data = f"{line}\n".encode("ascii")
        if self._held is not None:
            self._held.append(data)
        elif self._channel is not None:
            self._channel.write(data)

    def _beat(self) -> None:
        self._say("H")
        self._timer = asyncio.get_running_loop().call_later(self._beat_s, self._beat)

    def _stop_beating(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_out(self, data: bytes) -> None:
        self._hear(data)
        self._cutter.feed(data)

    def _on_err(self, data: bytes) -> None:
        self._hear(data)

    def _on_mark(self, words: list[str]) -> None:
        match words:
            case ["C"]:
                self._decided.set()
                held, self._held = self._held or [], None
                if self._channel is not None and held:
                    self._channel.write(b"".join(held))
            case ["N"]:
                self.can_find = False
                self._decided.set()
            case ["D", op, how, *left]:
                answer = self._waiting.pop(op, None)
                if answer is not None and not answer.done():
                    pids = [int(pid) for pid in left if pid.isdigit()]
                    answer.set_result(Ended(how=how, survivors=pids))
            case _:
                pass

    def _on_closed(self) -> None:
        self._hear(b"")
        self._decided.set()
        self._stop_beating()
        for answer in self._waiting.values():
            answer.cancel()
        self._waiting.clear()


def _ignore(_data: bytes) -> None:
    """What is no mark is nobody's."""
