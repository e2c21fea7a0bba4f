"""The machine that runs the engine, as a target."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import stat
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from preflight.control import finish
from preflight.errors import TargetError
from preflight.events import TargetInfo
from preflight.lines import LineReader
from preflight.ports.target import DEFAULT_KEEP_BYTES, ExecResult, KillReport, OnKill, OnLine
from preflight.procs import KILL_S, TERM_S, Process
from preflight.targets.posix import FACTS, PROBE, Probe, read_facts, read_probe

_CHUNK_BYTES = 256 * 1024
# The kernel takes at most 128 KiB for one argument (MAX_ARG_STRLEN); longer scripts go by file.
_LONGEST_ARGUMENT_BYTES = 100_000
# What the script wrote is in the pipe when it exits: only the reading takes time. The bound is for
# a grandchild in a session of its own that goes on writing.
_DRAIN_S = 0.5


class LocalTarget:
    """Scripts run by ``sh``, files through the file system."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._probe = Probe()
        self._facts: dict[str, object] | None = None

    @property
    def info(self) -> TargetInfo:
        """What the probe found."""
        return self._probe.info

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
    ) -> ExecResult:
        """Run ``script`` with ``sh``; see the port for what is promised.

        Once the script itself has ended nothing is waited for: what is left of its group is
        killed, and a grandchild that holds a pipe open delays nothing.
        """
        process = _start(script, env)
        out = LineReader("out", on_line, keep_bytes)
        err = LineReader("err", on_line, keep_bytes)
        feeding = _Writer(process, stdin)
        reading = (_Reader(process.stdout_fd, out), _Reader(process.stderr_fd, err))
        try:
            await process.wait_exit()
            process.signal_group(signal.SIGKILL)  # the script is over: its leftovers too
            for reader in reading:
                await reader.drain(_DRAIN_S)
        except asyncio.CancelledError:
            report = await finish(process.stop(), within_s=TERM_S + KILL_S + 1)
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

    async def put_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Write a file beside its place, then rename it over."""
        given_up = threading.Event()
        try:
            await asyncio.to_thread(_write_atomically, path, data, mode, given_up)
        except asyncio.CancelledError:
            given_up.set()  # the thread goes on, but replaces nothing any more
            raise
        except (OSError, ValueError) as exc:
            raise TargetError(f"can't write {path!r}: {_words(exc)}") from exc

    async def get_file(self, path: str, *, limit_bytes: int | None = None) -> bytes:
        """Read a file."""
        try:
            return await asyncio.to_thread(_read, path, limit_bytes)
        except (OSError, ValueError) as exc:
            raise TargetError(f"can't read {path!r}: {_words(exc)}") from exc


class _Reader:
    """Feeds one of a process's pipes to a :class:`LineReader`, a chunk a turn of the loop."""

    def __init__(self, fd: int, lines: LineReader) -> None:
        self._fd = fd
        self._lines = lines
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._readable)

    async def drain(self, within_s: float) -> None:
        """Read what is there, at most for ``within_s`` seconds."""
        deadline = self._loop.time() + within_s
        while not self._ended.is_set() and self._loop.time() < deadline:
            if not self._readable():
                return
            await asyncio.sleep(0)

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._fd = -1
            self._lines.close()
        self._ended.set()

    def _readable(self) -> bool:
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return False
        self._lines.feed(chunk)
        return True


class _Writer:
    """Writes what the script reads from its stdin, then closes it."""

    def __init__(self, process: Process, data: bytes) -> None:
        self._process = process
        self._rest = memoryview(data)
        self._loop = asyncio.get_running_loop()
        self._fd = process.stdin_fd
        self._waiting = False
        self._writable()

    def close(self) -> None:
        if self._fd >= 0:
            if self._waiting:
                self._loop.remove_writer(self._fd)
            self._fd = -1
            self._process.close_stdin()

    def _writable(self) -> None:
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._fd, self._rest[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            if not self._waiting:
                self._waiting = True
                self._loop.add_writer(self._fd, self._writable)
            return
        except OSError:  # the script does not want its stdin
            pass
        self.close()


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
        raise TargetError(f"can't start sh: {_words(exc)}") from exc


def _write_atomically(path: str, data: bytes, mode: int | None, given_up: threading.Event) -> None:
    place = Path(os.path.realpath(path))  # a link stays a link: its target is replaced
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory")
    place.parent.mkdir(parents=True, exist_ok=True)
    old = place.stat() if place.exists() else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file")  # /dev/null must stay what it is
    handle, temporary = tempfile.mkstemp(prefix=".preflight-", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode if mode is not None else _mode(old))
        if old is not None:
            with contextlib.suppress(PermissionError):
                os.chown(temporary, old.st_uid, old.st_gid)
        if given_up.is_set():
            raise InterruptedError(errno.EINTR, "cancelled")
        os.replace(temporary, place)
    except BaseException:
        os.unlink(temporary)
        raise


def _mode(old: os.stat_result | None) -> int:
    return stat.S_IMODE(old.st_mode) if old is not None else 0o644


def _read(path: str, limit_bytes: int | None) -> bytes:
    # Not blocking, since nobody may ever write into a FIFO.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "is a directory")
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file")
        data = file.read() if limit_bytes is None else file.read(limit_bytes + 1)
    if limit_bytes is not None and len(data) > limit_bytes:
        size = max(status.st_size, len(data))
        raise TargetError(f"{path} has {size} bytes, more than the {limit_bytes} that may be read")
    return data


def _words(exc: OSError | ValueError) -> str:
    return exc.strerror or str(exc) if isinstance(exc, OSError) else str(exc)
