"""A raw plugin that does what a list of byte actions says; it uses none of our codec.

What it read, and what it noted, lies in files beside it, to be looked at afterwards.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Action = list[object]

# The bytes of plugin-scenarios.md.
R1 = (
    b'{"jsonrpc":"2.0","id":1,"result":{"protocol_version":2,"min_protocol_version":2,'
    b'"name":"demo","version":"0.1.0"}}\n'
)
R2 = b'{"jsonrpc":"2.0","id":2,"result":{"needs_change":false}}\n'
R3 = R2.replace(b'"id":2', b'"id":3')
Q7 = b'{"jsonrpc":"2.0","id":7,"method":"run_command","params":{"script":"sleep 30"}}\n'

_SCRIPT = """\
#!{python} -IS
import json, os, select, signal, sys, time

here = {here!r}
log = os.open(here + ".received", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
buffer = bytearray()

def put(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]

def line():
    global buffer
    seen = 0
    while (end := buffer.find(b"\\n", seen)) < 0:
        seen = len(buffer)
        chunk = os.read(0, 1 << 16)
        if not chunk:
            raise SystemExit(0)
        put(log, chunk)
        buffer += chunk
    found = bytes(buffer[:end])
    del buffer[:end + 1]
    return found

def note(text):
    with open(here + ".notes", "a") as file:
        file.write(json.dumps([time.monotonic(), os.getpid(), text]) + "\\n")

def run(actions):
    for name, *args in actions:
        args = [arg.encode("latin-1") if isinstance(arg, str) else arg for arg in args]
        DO[name](*args)

def pieces(data, size, every):
    for start in range(0, len(data), size):
        put(1, data[start:start + size])
        time.sleep(every)

def until(part):
    while part not in line():
        pass

def eof():
    while chunk := os.read(0, 1 << 16):
        put(log, chunk)

def fork(actions, new_session):
    if os.fork() == 0:
        if new_session:
            os.setsid()
            if os.fork():
                os._exit(0)
        run(actions)
        os._exit(0)

def repeat(times, actions):
    for _ in range(times):
        run(actions)

def quiet(seconds):
    note("noisy" if select.select([0], [], [], seconds)[0] else "quiet")

def tty():
    try:
        os.open("/dev/tty", os.O_RDWR)
        note("opened")
    except OSError as exc:
        note(exc.strerror)

def on_signal(number, actions):
    signal.signal(number, lambda *_: run(actions))

DO = dict(
    write=lambda fd, data, times: [put(fd, data) for _ in range(times)],
    numbered=lambda before, after, times: put(
        1, b"".join(before + b"%d" % n + after for n in range(times))
    ),
    pieces=pieces,
    read=lambda count: [line() for _ in range(count)],
    until=until,
    eof=eof,
    sleep=time.sleep,
    close=os.close,
    exit=os._exit,
    kill=lambda number: os.kill(os.getpid(), number),
    abort=os.abort,
    ignore=lambda number: signal.signal(number, signal.SIG_IGN),
    on_signal=on_signal,
    fork=fork,
    quiet=quiet,
    repeat=repeat,
    note=lambda text: note(text.decode()),
    tty=tty,
)
with open(here + ".starts", "a") as file:
    file.write("x")
start = os.path.getsize(here + ".starts") - 1
with open(here + ".actions") as file:
    scripts = json.load(file)
run(scripts[min(start, len(scripts) - 1)])
"""


class FakePlugin:
    """One executable; ``path`` is where it lies."""

    def __init__(self, folder: Path, name: str, scripts: Sequence[Sequence[Action]]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"preflight-plugin-{name}"
        text = _SCRIPT.format(python=sys.executable, here=str(self.path))
        self._beside("actions").write_text(json.dumps(scripts), encoding="ascii")
        # Written by a child, since a fork of another test must not hold it open for writing.
        self.path.write_text(text, encoding="utf-8")
        self.path.chmod(0o755)

    @property
    def received(self) -> bytes:
        """Every byte that any process of this plugin has read."""
        place = self._beside("received")
        return place.read_bytes() if place.exists() else b""

    @property
    def lines(self) -> list[dict[str, object]]:
        """The whole frames that were read."""
        return [json.loads(line) for line in self.received.split(b"\n")[:-1]]

    @property
    def starts(self) -> int:
        """How many processes were started."""
        place = self._beside("starts")
        return place.stat().st_size if place.exists() else 0

    @property
    def notes(self) -> list[str]:
        """What was noted, in order."""
        return [str(text) for _, _, text in self._notes()]

    def pid_of(self, text: str) -> int:
        """The process that noted this."""
        return next(pid for _, pid, noted in self._notes() if noted == text)

    def _notes(self) -> list[tuple[float, int, str]]:
        place = self._beside("notes")
        if not place.exists():
            return []
        return [json.loads(line) for line in place.read_text(encoding="ascii").splitlines()]

    def _beside(self, kind: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{kind}")


def lay(folder: Path, *actions: Action, name: str = "demo") -> FakePlugin:
    """Lay down a plugin that does the same at each start."""
    return FakePlugin(folder, name, [actions])


def write(data: bytes, *, times: int = 1) -> Action:
    """Write to stdout, whole and at once."""
    return ["write", 1, data.decode("latin-1"), times]


def stderr(data: bytes, *, times: int = 1) -> Action:
    """Write to stderr."""
    return ["write", 2, data.decode("latin-1"), times]


def pieces(data: bytes, size: int, *, every: float = 0.0) -> Action:
    """Write in pieces, with a pause of so many seconds after each."""
    return ["pieces", data.decode("latin-1"), size, every]


def numbered(before: bytes, after: bytes, times: int) -> Action:
    """Write a line for each number from 0, with the number between the two."""
    return ["numbered", before.decode("latin-1"), after.decode("latin-1"), times]


def read(count: int = 1) -> Action:
    """Read so many lines; exits 0 at the end of stdin."""
    return ["read", count]


def until(part: bytes) -> Action:
    """Read lines until one has this in it."""
    return ["until", part.decode("latin-1")]


def eof() -> Action:
    """Read to the end of stdin."""
    return ["eof"]


def sleep(seconds: float) -> Action:
    """Do nothing for a while."""
    return ["sleep", seconds]


def quiet(seconds: float) -> Action:
    """Note ``quiet`` when nothing comes to read for so long, else ``noisy``."""
    return ["quiet", seconds]


def close(fd: int) -> Action:
    """Close a file descriptor."""
    return ["close", fd]


def leave(status: int) -> Action:
    """Exit at once."""
    return ["exit", status]


def kill(number: int) -> Action:
    """Send itself a signal."""
    return ["kill", int(number)]


def abort() -> Action:
    """Die as from a failed assertion in C."""
    return ["abort"]


def ignore(number: int) -> Action:
    """Ignore a signal from now on."""
    return ["ignore", int(number)]


def on_signal(number: int, *actions: Action) -> Action:
    """Do these when the signal comes."""
    return ["on_signal", int(number), actions]


def child(*actions: Action) -> Action:
    """Let a child in the same group do these."""
    return ["fork", actions, False]


def daemon(*actions: Action) -> Action:
    """Let a child that has left session and group do these."""
    return ["fork", actions, True]


def repeat(times: int, *actions: Action) -> Action:
    """Do these so many times."""
    return ["repeat", times, actions]


def note(text: str) -> Action:
    """Write down that this point was reached, and by which process."""
    return ["note", text]


def open_tty() -> Action:
    """Try to open the controlling terminal, and note what came of it."""
    return ["tty"]


def output(text: str) -> bytes:
    """The frame of one output line."""
    return frame({"method": "output", "params": {"line": text}})


def answer(id: int, **result: object) -> bytes:
    """The frame of a result."""
    return frame({"id": id, "result": result})


def request(id: object, method: str, **params: object) -> bytes:
    """The frame of a request of the plugin."""
    return frame({"id": id, "method": method, "params": params})


def frame(members: dict[str, object]) -> bytes:
    """One line."""
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


def shaken(*actions: Action, handshake: bytes = R1) -> list[Action]:
    """Shake hands, then do these."""
    return [read(), write(handshake), *actions]


def session_of(pid: int) -> int:
    """The session of a process that is alive; 0 for a zombie or one that is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    fields = stat.rpartition(b")")[2].split()
    return 0 if fields[0] in (b"Z", b"X") else int(fields[3])


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    return session_of(pid) != 0


def children() -> set[int]:
    """The pids of this process's children, zombies included."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text(encoding="ascii").split()}
    return found


def open_fds() -> dict[int, str]:
    """What this process has open."""
    found: dict[int, str] = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[int(entry.name)] = os.readlink(entry)
        except OSError:
            continue
    return found
