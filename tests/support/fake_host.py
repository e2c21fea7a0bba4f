"""FH: starts a real plugin process, writes raw bytes to it and keeps the raw bytes it writes.

Knows nothing of the SDK: what it reads, it reads with the standard library.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import select
import signal
import subprocess
import termios
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PATIENCE_S = 10.0
"""How long anything is waited for; far more than it takes on a busy machine."""

Frame = dict[str, object]

I1 = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol_version":2,'
    b'"min_protocol_version":2,"capabilities":[],"target":{"family":"linux","name":"",'
    b'"version":"","arch":"","hostname":"","package_manager":"","init":"",'
    b'"runtime_kind":"posix-shell"}}}\n'
)
C2 = b'{"jsonrpc":"2.0","id":2,"method":"check","params":{"args":{"path":"/srv/x"}}}\n'
X2 = b'{"jsonrpc":"2.0","method":"cancel","params":{"id":2}}\n'


class Stream:
    """Everything one pipe has carried, and a place up to which it was looked at."""

    def __init__(self, fd: int, *, start: bool = True) -> None:
        # A descriptor of its own: once the host has closed its own, the number is another's.
        self._fd = os.dup(fd)
        self._changed = threading.Condition()
        self._reading = threading.Event()
        self._seen = 0
        self.data = bytearray()
        self.ended = False
        if start:
            self._reading.set()
        threading.Thread(target=self._read, daemon=True).start()

    def start(self) -> None:
        """Begin to read, where it was made not to."""
        self._reading.set()

    def give_up(self) -> None:
        """Close the pipe without reading it; only where it was made not to read."""
        assert not self._reading.is_set()
        os.close(self._fd)
        self._fd = os.open(os.devnull, os.O_RDONLY)
        self._reading.set()

    def line(self, timeout: float = PATIENCE_S) -> bytes:
        """The next whole line without its newline. Raises: EOFError, TimeoutError."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: self.ended or b"\n" in self.data[self._seen :], timeout
            )
            end = self.data.find(b"\n", self._seen)
            if end >= 0:
                line = bytes(self.data[self._seen : end])
                self._seen = end + 1
                return line
            if found:
                raise EOFError(f"ended with {bytes(self.data[self._seen :])[:200]!r}")
            raise TimeoutError(f"no line within {timeout:g} s")

    def wait_for(self, part: bytes, timeout: float = PATIENCE_S) -> None:
        """Wait until these bytes have come, wherever. Raises: TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: part in self.data or self.ended, timeout):
                raise TimeoutError(f"{part!r} did not come; there is {bytes(self.data)[-500:]!r}")
            assert part in self.data, f"{part!r} did not come; there is {bytes(self.data)!r}"

    def wait_end(self, timeout: float = PATIENCE_S) -> bytes:
        """Everything, once the pipe is closed. Raises: TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.ended, timeout):
                raise TimeoutError("the pipe is still open")
            return bytes(self.data)

    def _read(self) -> None:
        self._reading.wait()
        while True:
            try:
                chunk = os.read(self._fd, 1 << 16)
            except OSError:
                chunk = b""
            with self._changed:
                self.data += chunk
                self.ended = not chunk
                self._changed.notify_all()
            if not chunk:
                os.close(self._fd)
                return


class FakeHost:
    """One plugin process in a session of its own, as a host starts it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        reads: bool = True,
    ) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._stdin = self.process.stdin
        self.out = Stream(self.process.stdout.fileno(), start=reads)
        self.err = Stream(self.process.stderr.fileno())
        self._fence = 900_000

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def send(self, data: bytes) -> None:
        """Write these bytes, and nothing else."""
        view = memoryview(data)
        while view:
            view = view[self._stdin.write(view) or 0 :]

    def request(self, key: object, method: str, params: object = None) -> None:
        """Write one request."""
        frame: Frame = {"jsonrpc": "2.0", "id": key, "method": method, "params": params or {}}
        self.send(json.dumps(frame).encode() + b"\n")

    def check(self, key: object = 2, **args: object) -> None:
        """Write one check with these args."""
        self.request(key, "check", {"args": args})

    def cancel(self, key: object = 2) -> None:
        """Write one cancel."""
        frame = {"jsonrpc": "2.0", "method": "cancel", "params": {"id": key}}
        self.send(json.dumps(frame).encode() + b"\n")

    def answer(self, op: Frame, result: object) -> None:
        """Answer a request of the plugin."""
        frame = {"jsonrpc": "2.0", "id": op["id"], "result": result}
        self.send(json.dumps(frame).encode() + b"\n")

    def ran(self, op: Frame, stdout: str = "", *, exit_code: int = 0) -> None:
        """Answer a run_command."""
        self.answer(op, {"stdout": stdout, "stderr": "", "exit_code": exit_code})

    def frame(self, timeout: float = PATIENCE_S) -> Frame:
        """The next line of the plugin, which must be a JSON-RPC object."""
        try:
            line = self.out.line(timeout)
        except (EOFError, TimeoutError) as exc:
            exc.add_note(f"stderr: {bytes(self.err.data)[-2000:]!r}, ended: {self.process.poll()}")
            raise
        frame = json.loads(line)
        assert isinstance(frame, dict), line
        assert frame.get("jsonrpc") == "2.0", line  # pyright: ignore[reportUnknownMemberType]
        return frame  # pyright: ignore[reportUnknownVariableType]

    def frames_until(self, wanted: Callable[[Frame], bool]) -> list[Frame]:
        """All frames up to the first wanted one, it included."""
        frames = [self.frame()]
        while not wanted(frames[-1]):
            frames.append(self.frame())
        return frames

    def until_answer(self, key: object) -> list[Frame]:
        """All frames up to the response to this id, it included."""
        return self.frames_until(lambda f: "method" not in f and f.get("id") == key)

    def fence(self) -> list[Frame]:
        """Every frame that came before the answer to a request sent now.

        The plugin takes what it reads in order, so whatever it has to say about earlier
        lines without running a handler is among them: an empty list proves silence.
        """
        self._fence += 1
        self.request(self._fence, "fence")
        return self.until_answer(self._fence)[:-1]

    def initialize(self, line: bytes = I1) -> Frame:
        """The answer to ``initialize``."""
        self.send(line)
        return self.frame()

    def open_gate(self) -> None:
        """Let a handler go on that waits in ``gate()``."""
        self.process.send_signal(signal.SIGUSR1)

    def close_stdin(self) -> None:
        """What a host that ends does first."""
        self._stdin.close()

    def read_no_more(self) -> None:
        """Close the end that the plugin writes to, unread."""
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.out.give_up()

    def wait(self, timeout: float = PATIENCE_S) -> int:
        """The exit status, negative for a signal. Raises: subprocess.TimeoutExpired."""
        return self.process.wait(timeout)

    def wait_readable(self, timeout: float = PATIENCE_S) -> None:
        """Wait until the plugin has written something that nobody has read yet."""
        assert self.process.stdout is not None
        poller = select.poll()
        poller.register(self.process.stdout.fileno(), select.POLLIN)
        assert poller.poll(timeout * 1000), "nothing was written"

    def wait_blocked_in_write(self, timeout: float = PATIENCE_S) -> None:
        """Wait until the pipe has filled up, and has stayed the same for a tenth of a second.

        A full pipe may hold fewer bytes than its size (each write starts a page), and it
        tells nobody: so this looks, and looks again.
        """
        assert self.process.stdout is not None
        size = fcntl.fcntl(self.process.stdout.fileno(), fcntl.F_GETPIPE_SZ)
        deadline = time.monotonic() + timeout
        tick = threading.Event()
        waiting = array.array("i", [0])
        same, last = 0, -1
        while same < 10 and time.monotonic() < deadline:
            fcntl.ioctl(self.process.stdout.fileno(), termios.FIONREAD, waiting)
            same = same + 1 if waiting[0] == last and last > size // 2 else 0
            last = waiting[0]
            tick.wait(0.01)
        assert same >= 10, f"{last} bytes in a pipe of {size}"

    def rss_kib(self) -> int:
        """The plugin's resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1])

    def leftovers(self) -> list[int]:
        """The processes that still live in the plugin's session."""
        return [pid for pid in _all_pids() if _session_of(pid) == self.process.pid]

    def wait_no_leftovers(self, timeout: float = PATIENCE_S) -> None:
        """Wait until the whole session is gone. Raises: AssertionError."""
        deadline = time.monotonic() + timeout
        tick = threading.Event()
        while (left := self.leftovers()) and time.monotonic() < deadline:
            tick.wait(0.01)  # the kernel tells nobody of a grandchild's end
        assert not left, f"still there: {left}"

    def kill(self) -> None:
        """End the whole session, and make sure of it."""
        for pid in {self.process.pid, *self.leftovers()}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait(PATIENCE_S)
        self.wait_no_leftovers()
        self.out.start()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


def members(value: object) -> dict[str, object]:
    """A value that has to be a JSON object."""
    assert isinstance(value, dict), value
    return value  # pyright: ignore[reportUnknownVariableType]


def wait_pidfd(pidfd: int, timeout: float = PATIENCE_S) -> bool:
    """True when that process ended in time."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(timeout * 1000))


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _session_of(pid: int) -> int:
    """The session of a process that is alive; 0 for a zombie or one that is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    fields = stat.rpartition(b")")[2].split()
    return 0 if fields[0] == b"Z" else int(fields[3])
