"""What every target promises, whatever the transport; one contract suite proves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol

import msgspec

from preflight.events import Stream, TargetInfo

OnLine = Callable[[Stream, str], None]

DEFAULT_KEEP_BYTES = 1024 * 1024
"""How much of each stream a result keeps unless told; what comes after it is streamed only."""


class ExecResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a script ended.

    ``exit_code`` is 128 + n where signal n ended it. ``truncated`` when a stream was longer than
    was to be kept: the first bytes are here, all lines went to ``on_line``.
    """

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int = 0
    truncated: bool = False

    @property
    def text(self) -> str:
        """The stdout as text, bad bytes replaced."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        """The stderr as text, bad bytes replaced."""
        return self.stderr.decode("utf-8", "replace")


class KillReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a process that was to be stopped.

    ``how`` is the last signal that was needed; ``survivors`` are pids found alive afterwards.
    """

    op: str
    pid: int
    how: str
    elapsed_ms: float
    survivors: list[int] = []


OnKill = Callable[[KillReport], None]


class Become(msgspec.Struct, frozen=True, kw_only=True):
    """Whose rights an operation needs; the password is sudo's, for the account that logs in."""

    user: str = "root"
    password: str = ""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Who logs in: ``uid`` is -1 where it is not known, ``sudo`` whether sudo is installed."""

    uid: int = -1
    sudo: bool = False


class Target(Protocol):
    """A machine. Use it as an async context manager: entering connects and probes, once.

    Raises :class:`preflight.errors.TargetUnreachable` on entering, or when the link is lost
    before anything was started; :class:`preflight.errors.TargetError` when an operation fails.
    """

    @property
    def name(self) -> str:
        """The name in the inventory."""
        ...

    @property
    def info(self) -> TargetInfo:
        """What the probe found; empty before the target was entered."""
        ...

    @property
    def account(self) -> Account:
        """Whose rights operations without ``become`` have."""
        ...

    @property
    def notices(self) -> list[str]:
        """What a person should know of how the target is reached, such as an insecure policy."""
        ...

    async def __aenter__(self) -> Target: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    async def facts(self) -> dict[str, object]:
        """Give the fact tree: ``hostname``, ``os``, ``disks``, ``memory``, ``cpus``, ``env``."""
        ...

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
        """Run ``script`` in the target's native shell; a non-zero exit is a result.

        With ``become`` it runs with those rights; ``TargetError`` with a ``sudo-…`` reason when
        it can't.

        Lines arrive whole and in order per stream, as they are written.
        Cancel: the process group is dead when ``CancelledError`` comes out, or ``on_kill`` was
        told of what is left: SIGTERM, one second, SIGKILL.
        """
        ...

    async def put_file(
        self, path: str, data: bytes, *, mode: int | None = None, become: Become | None = None
    ) -> None:
        """Write a file: parents are made, the replace is atomic, no half file is ever seen."""
        ...

    async def get_file(
        self, path: str, *, limit_bytes: int | None = None, become: Become | None = None
    ) -> bytes:
        """Read a file; one that is longer than ``limit_bytes`` is a ``TargetError``."""
        ...
