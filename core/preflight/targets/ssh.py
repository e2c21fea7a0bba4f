"""A machine over SSH, as a target. Nothing of SSH is imported before one is entered."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from preflight.control import finish
from preflight.errors import TargetError
from preflight.events import TargetInfo
from preflight.model.inventory import Host
from preflight.ports.target import DEFAULT_KEEP_BYTES, Account, Become, ExecResult, OnKill, OnLine
from preflight.targets.posix_control import BEAT_S

if TYPE_CHECKING:
    from preflight.targets.ssh_session import Session

_CLOSE_S = 5.0


class SshTarget:
    """One connection, kept for the run; commands go through one shell, in one round trip each.

    ``notices`` are what a person should know of how the target is reached: an insecure policy, a
    new host key, no SFTP, no room for a second channel.
    """

    def __init__(self, host: Host, *, beat_s: float = BEAT_S) -> None:
        self.name = host.name
        self._host = host
        self._beat_s = beat_s
        self._session: Session | None = None
        self._facts: dict[str, object] | None = None

    @property
    def info(self) -> TargetInfo:
        """What the probe found."""
        return self._session.probe.info if self._session is not None else TargetInfo()

    @property
    def account(self) -> Account:
        """The account that logged in."""
        probe = self._session.probe if self._session is not None else None
        return Account(uid=probe.uid, sudo=probe.sudo) if probe is not None else Account()

    @property
    def linked(self) -> bool:
        """Whether there is a connection that nobody has noticed an end of."""
        return self._session is not None and self._session.linked

    @property
    def notices(self) -> list[str]:
        """What there is to say about the way to the target, so far."""
        return self._session.notices if self._session is not None else []

    async def __aenter__(self) -> SshTarget:
        # Deferred: asyncssh takes most of a second to import, and local runs need none of it.
        from preflight.targets.ssh_session import Session

        session = Session(self._host, beat_s=self._beat_s)
        await session.open()
        self._session = session
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._session is not None:
            await finish(self._session.close(), within_s=_CLOSE_S)

    async def facts(self) -> dict[str, object]:
        """Give the fact tree, gathered once."""
        if self._facts is None:
            self._facts = await self._entered().facts()
        return self._facts

    async def exec(
        self,
        script: str,
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        on_line: OnLine | None = None,
        on_kill: OnKill | None = None,
        keep_bytes: int = DEFAULT_KEEP_BYTES,
        become: Become | None = None,
    ) -> ExecResult:
        """Run ``script`` with ``sh``, as the account that logs in or as ``become`` says.

        Raises :class:`TargetError` with ``UNKNOWN_OUTCOME`` where the link was lost after the
        command may have started: it is never run again.
        """
        return await self._entered().exec(
            script,
            stdin=stdin,
            env=env,
            on_line=on_line,
            on_kill=on_kill,
            keep_bytes=keep_bytes,
            become=become,
        )

    async def put_file(
        self, path: str, data: bytes, *, mode: int | None = None, become: Become | None = None
    ) -> None:
        """Write a file beside its place, then rename it over."""
        await self._entered().put_file(path, data, mode=mode, become=become)

    async def get_file(
        self, path: str, *, limit_bytes: int | None = None, become: Become | None = None
    ) -> bytes:
        """Read a file."""
        return await self._entered().get_file(path, limit_bytes=limit_bytes, become=become)

    def _entered(self) -> Session:
        if self._session is None:
            raise TargetError(f"{self.name} was not entered")
        return self._session
