"""Files over SSH: small ones in one round trip through the work shell, large ones over SFTP.

Where the server has no SFTP, or another account must write, all goes through the shell.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import asyncssh

from preflight.control import finish
from preflight.errors import PreflightError, TargetError
from preflight.ports.target import Become, ExecResult
from preflight.targets.posix_files import APPEND, COMMIT, PREPARE, READ, REMOVE, TOO_LONG, WRITE
from preflight.targets.posix_shell import MAX_INLINE_BYTES
from preflight.targets.ssh_links import Links

_BLOCK_BYTES = 1024 * 1024  # of content in one operation, and in one write to SFTP
_SFTP_S = 10.0  # for the subsystem to start
_IDLE_S = 30.0  # for the server to take one more block
_CLEAN_S = 3.0  # to remove a temporary file after a cancel
_UNBOUNDED = 1 << 62


class Run(Protocol):
    """Runs a script of ours; the target's own ``exec`` without its surroundings."""

    def __call__(
        self,
        script: str,
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        keep_bytes: int = 4096,
        become: Become | None = None,
    ) -> Awaitable[ExecResult]:
        """Run it."""
        ...


class Files:
    """Puts and gets files of one target."""

    def __init__(self, links: Links, run: Run, notice: Callable[[str], None]) -> None:
        self._links = links
        self._run = run
        self._notice = notice
        self._sftp: asyncssh.SFTPClient | None = None
        self._sftp_of: asyncssh.SSHClientConnection | None = None
        self._no_sftp = False

    async def put(
        self, path: str, data: bytes, *, mode: int | None = None, become: Become | None = None
    ) -> None:
        """Write a file as the port promises; a ``TargetError`` holds the target's words."""
        names = {"P": path, "M": f"{mode:04o}" if mode is not None else "", "T": _temporary_name()}
        if len(data) <= MAX_INLINE_BYTES:
            _expect(await self._run(WRITE, stdin=data, env=names, become=become), "write", path)
            return
        digest = await asyncio.to_thread(_digest, data)
        names.update(S=str(len(data)), H=digest)
        prepared = await self._run(PREPARE, env=names, become=become)
        temporary = _expect(prepared, "write", path).stdout.decode("utf-8", "surrogateescape")
        if temporary == "same\n":
            return
        try:
            await self._send(temporary.removesuffix("\n"), data, become)
            _expect(await self._run(COMMIT, env=names, become=become), "write", path)
        except BaseException as exc:
            await self._remove(temporary.removesuffix("\n"), become)
            if isinstance(exc, OSError | asyncssh.Error):
                raise TargetError(f"can't write {path!r}: {_words(exc)}") from exc
            raise

    async def get(
        self, path: str, *, limit_bytes: int | None = None, become: Become | None = None
    ) -> bytes:
        """Read a file, of at most ``limit_bytes`` where that is set."""
        names = {"P": path, "L": "" if limit_bytes is None else str(limit_bytes)}
        result = await self._run(READ, env=names, keep_bytes=_UNBOUNDED, become=become)
        if result.exit_code == TOO_LONG:
            size = result.text.strip() or result.error_text.strip()
            raise TargetError(
                f"{path} has {size} bytes, more than the {limit_bytes} that may be read"
            )
        return _expect(result, "read", path).stdout

    async def stow(self, data: bytes, *, become: Become | None = None) -> str:
        """Put bytes into a temporary file that only the account can read, and give its path."""
        script = 'umask 077; T=${TMPDIR:-/tmp}/$N; : >"$T" && printf %s "$T"'
        made = await self._run(script, env={"N": _temporary_name()}, become=become)
        path = _expect(made, "make", "a temporary file").stdout.decode("utf-8", "surrogateescape")
        try:
            await self._send_by_shell(path, data, become)
        except BaseException:
            await self._remove(path, become)
            raise
        return path

    async def remove(self, path: str, *, become: Become | None = None) -> None:
        """Remove a temporary file, best effort."""
        await self._remove(path, become)

    def close(self) -> None:
        """Let go of SFTP."""
        if self._sftp is not None:
            self._sftp.exit()
            self._sftp = None

    async def _send(self, temporary: str, data: bytes, become: Become | None) -> None:
        sftp = await self._open_sftp() if become is None else None
        if sftp is None:
            await self._send_by_shell(temporary, data, become)
            return
        name = temporary.encode("utf-8", "surrogateescape")
        view = memoryview(data)
        async with sftp.open(name, "wb", encoding=None) as file:
            for start in range(0, len(data), _BLOCK_BYTES):
                async with asyncio.timeout(_IDLE_S):
                    await file.write(bytes(view[start : start + _BLOCK_BYTES]))

    async def _send_by_shell(self, temporary: str, data: bytes, become: Become | None) -> None:
        view = memoryview(data)
        for start in range(0, len(data), _BLOCK_BYTES):
            block = bytes(view[start : start + _BLOCK_BYTES])
            done = await self._run(APPEND, stdin=block, env={"P": temporary}, become=become)
            _expect(done, "write", temporary)

    async def _open_sftp(self) -> asyncssh.SFTPClient | None:
        connection = (await self._links.main()).connection
        if self._no_sftp:
            return None
        if self._sftp is None or self._sftp_of is not connection:
            try:
                async with asyncio.timeout(_SFTP_S):
                    self._sftp = await connection.start_sftp_client(path_encoding=None)
            except (asyncssh.Error, OSError, TimeoutError) as exc:
                self._no_sftp = True
                self._notice(f"no SFTP on the target ({_words(exc)}): files go through the shell")
                return None
            self._sftp_of = connection
        return self._sftp

    async def _remove(self, temporary: str, become: Become | None) -> None:
        async def remove() -> None:
            await self._run(REMOVE, env={"P": temporary}, become=become)

        try:
            await finish(remove(), within_s=_CLEAN_S)
        except PreflightError:
            return  # the link is gone: there is nobody to tell


def _expect(result: ExecResult, verb: str, path: str) -> ExecResult:
    if result.exit_code == 0:
        return result
    # What a tool says ends with the reason: "cat: /x: No such file or directory".
    words = result.error_text.strip().splitlines()
    said = words[-1].rpartition(": ")[2] if words else f"exit code {result.exit_code}"
    raise TargetError(f"can't {verb} {path!r}: {said}")


def _temporary_name() -> str:
    return f".preflight-{secrets.token_hex(8)}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _words(exc: BaseException) -> str:
    reason = getattr(exc, "reason", "")
    return str(reason or exc or type(exc).__name__)
