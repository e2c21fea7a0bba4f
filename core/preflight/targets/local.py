"""The machine that runs the engine, as a target."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import tempfile
import threading
from collections.abc import Mapping
from types import TracebackType

from preflight.control import finish
from preflight.errors import TargetError
from preflight.events import TargetInfo
from preflight.lines import LineReader
from preflight.ports.target import (
    DEFAULT_KEEP_BYTES,
    Account,
    Become,
    ExecResult,
    KillReport,
    OnKill,
    OnLine,
)
from preflight.procs import KILL_S, TERM_S, Process, StopReport
from preflight.targets.local_files import read_file, write_atomically
from preflight.targets.local_pipes import PipeReader, PipeWriter
from preflight.targets.local_sudo import Sudo, missing, needs_sudo
from preflight.targets.posix import FACTS, PROBE, Probe, read_facts, read_probe
from preflight.targets.posix_files import READ, TOO_LONG, WRITE

# The kernel takes at most 128 KiB for one argument (MAX_ARG_STRLEN); longer scripts go by file.
_LONGEST_ARGUMENT_BYTES = 100_000
# What the script wrote is in the pipe when it exits: only the reading takes time. The bound is for
# a grandchild in a session of its own that goes on writing.
_DRAIN_S = 0.5
_NO_LIMIT = 1 << 62


class LocalTarget:
    """Scripts run by ``sh``, files through the file system."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._probe = Probe()
        self._facts: dict[str, object] | None = None
        self._granted: set[Become] = set()

    @property
    def info(self) -> TargetInfo:
        """What the probe found."""
        return self._probe.info

    @property
    def account(self) -> Account:
        """The account that the engine runs as."""
        return Account(uid=self._probe.uid, sudo=self._probe.sudo)

    @property
    def notices(self) -> list[str]:
        """Nothing is between the engine and its own machine."""
        return []

    async def __aenter__(self) -> LocalTarget:
        self._probe = read_probe((await self.exec(PROBE)).text)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Nothing stays open between operations."""

    async def facts(self) -> dict[str, object]:
        """Give the fact tree, gathered once."""
        if self._facts is None:
            self._facts = read_facts(self.info, (await self.exec(FACTS)).text)
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
        """Run ``script`` with ``sh``; see the port for what is promised.

        Once the script itself has ended nothing is waited for: what is left of its group is
        killed, and a grandchild that holds a pipe open delays nothing.
        """
        if become is not None and needs_sudo(become):
            await self._may_become(become)
            sudo = Sudo(become)
            with sudo.ready():
                process = _start_as(sudo, script, env)
                return await self._attend(process, stdin, on_line, on_kill, keep_bytes, become)
        process = _start(script, env)
        return await self._attend(process, stdin, on_line, on_kill, keep_bytes)

    async def _may_become(self, become: Become) -> None:
        """Ask sudo once for each account, with a command that can't fail by itself."""
        if become in self._granted:
            return
        sudo = Sudo(become)
        with sudo.ready():
            process = _start_as(sudo, "exit 0", None)
            done = await self._attend(process, b"", None, None, DEFAULT_KEEP_BYTES)
        sudo.judge(done.exit_code, done.error_text)
        self._granted.add(become)

    async def _attend(
        self,
        process: Process,
        stdin: bytes,
        on_line: OnLine | None,
        on_kill: OnKill | None,
        keep_bytes: int,
        become: Become | None = None,
    ) -> ExecResult:
        """Feed, read and end a process."""
        out = LineReader("out", on_line, keep_bytes)
        err = LineReader("err", on_line, keep_bytes)
        feeding = PipeWriter(process, stdin)
        reading = (PipeReader(process.stdout_fd, out), PipeReader(process.stderr_fd, err))
        try:
            await process.wait_exit()
            process.signal_group(signal.SIGKILL)  # the script is over: its leftovers too
            for reader in reading:
                await reader.drain(_DRAIN_S)
        except asyncio.CancelledError:
            ending = process.stop() if become is None else self._stop_as(process, become)
            report = await finish(ending, within_s=2 * (TERM_S + KILL_S) + 1)
            if on_kill is not None:
                on_kill(
                    KillReport(
                        op="exec",
                        pid=process.pid,
                        how=report.how,
                        elapsed_ms=report.elapsed_ms,
                        survivors=report.survivors,
                    )
                )
            raise
        finally:
            feeding.close()
            for reader in reading:
                reader.close()
            process.kill_rest()
        code = process.returncode or 0
        return ExecResult(
            stdout=out.kept,
            stderr=err.kept,
            exit_code=code if code >= 0 else 128 - code,
            truncated=out.truncated or err.truncated,
        )

    async def _stop_as(self, process: Process, become: Become) -> StopReport:
        """Stop a group that has other rights than the engine: by sudo, as it was started."""
        await self._signal_as(process, "TERM", become)
        report = await process.stop()
        if report.survivors:
            await self._signal_as(process, "KILL", become)
            return await process.stop(term_s=0.1)
        return report

    async def _signal_as(self, process: Process, name: str, become: Become) -> None:
        if process.pid > 1 and process.returncode is None:
            await self.exec(f"kill -s {name} -- -{process.pid}", become=become)

    async def put_file(
        self, path: str, data: bytes, *, mode: int | None = None, become: Become | None = None
    ) -> None:
        """Write a file beside its place, then rename it over."""
        if become is not None and needs_sudo(become):
            env = {
                "P": path,
                "M": f"{mode:04o}" if mode is not None else "",
                "T": f".preflight-{secrets.token_hex(4)}",
            }
            done = await self.exec(WRITE, stdin=data, env=env, become=become)
            _expect(done, f"can't write {path!r}")
            return
        given_up = threading.Event()
        try:
            await asyncio.to_thread(write_atomically, path, data, mode, given_up)
        except asyncio.CancelledError:
            given_up.set()  # the thread goes on, but replaces nothing any more
            raise
        except (OSError, ValueError) as exc:
            raise TargetError(f"can't write {path!r}: {_error_words(exc)}") from exc

    async def get_file(
        self, path: str, *, limit_bytes: int | None = None, become: Become | None = None
    ) -> bytes:
        """Read a file."""
        if become is not None and needs_sudo(become):
            most = str(limit_bytes) if limit_bytes is not None else ""
            keep = limit_bytes if limit_bytes is not None else _NO_LIMIT
            done = await self.exec(READ, env={"P": path, "L": most}, keep_bytes=keep, become=become)
            _expect(done, f"can't read {path!r}")
            return done.stdout
        try:
            return await asyncio.to_thread(read_file, path, limit_bytes)
        except (OSError, ValueError) as exc:
            raise TargetError(f"can't read {path!r}: {_error_words(exc)}") from exc


def _start_as(sudo: Sudo, script: str, env: Mapping[str, str] | None) -> Process:
    try:
        return Process(sudo.argv(script, env), env=sudo.env())
    except FileNotFoundError as exc:
        raise missing() from exc
    except OSError as exc:
        raise TargetError(f"can't start sudo: {_error_words(exc)}") from exc


def _expect(done: ExecResult, what: str) -> None:
    if done.exit_code == TOO_LONG:
        raise TargetError(f"{what}: it has {done.text.strip()} bytes, more than may be read")
    if done.exit_code != 0:
        said = done.error_text.strip() or f"exit code {done.exit_code}"
        raise TargetError(f"{what}: {said}")


def _start(script: str, env: Mapping[str, str] | None) -> Process:
    merged = {**os.environ, **env} if env else None
    try:
        if len(script) < _LONGEST_ARGUMENT_BYTES // 4:
            return Process(["sh", "-c", script], env=merged)
        with tempfile.TemporaryFile() as file:
            file.write(script.encode())
            file.flush()
            file.seek(0)
            number = file.fileno()
            return Process(["sh", f"/dev/fd/{number}"], env=merged, pass_fds=[number])
    except (OSError, ValueError) as exc:  # a ValueError is a NUL, which no argument can hold
        raise TargetError(f"can't start sh: {_error_words(exc)}") from exc


def _error_words(exc: OSError | ValueError) -> str:
    return exc.strerror or str(exc) if isinstance(exc, OSError) else str(exc)
