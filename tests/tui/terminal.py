"""A console in a real terminal: under tmux, or on a pty whose every byte is seen."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Generator
from fcntl import ioctl
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = [sys.executable, "-m", "preflight_tui"]
PATIENCE_S = 30.0  # a machine that is busy with other things

PROJECT = """\
inventory:
  hosts:
    - {name: alpha, transport: local}
    - {name: beta, transport: local}
"""

PLAYBOOK = """\
name: Probes
tasks:
  - name: say hello
    shell: {cmd: sh, args: [-c, "echo hello from $0", "{{ target.name }}"]}
  - name: probe
    module: slow_probe
    params: {mode: "{{ vars.mode }}", seconds: 300}
  - name: never reached
    shell: {cmd: "true"}
"""


def until(condition: Callable[[], object], what: Callable[[], str]) -> None:
    """Wait until a condition holds; fails with ``what()`` when it does not in good time."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(what())
        time.sleep(0.02)


def project(folder: Path, mode: str = "polite") -> list[str]:
    """Lay down a project; gives the command that runs its playbook."""
    (folder / "preflight.yml").write_text(PROJECT, encoding="utf-8")
    (folder / "probes.yml").write_text(PLAYBOOK, encoding="utf-8")
    plugins = str(ROOT / "plugins")
    return [*PYTHON, "apply", "probes.yml", "--plugin-dir", plugins, "-e", f"mode={mode}"]


def record(folder: Path) -> list[dict[str, object]]:
    """Give the events that the newest run of a project has recorded."""
    runs = sorted((folder / ".preflight" / "runs").glob("*/events.ndjson"))
    if not runs:
        return []
    lines = runs[-1].read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines]


def kinds(folder: Path) -> list[object]:
    """Give the types of the events of the newest run."""
    return [event["type"] for event in record(folder)]


class Tmux:
    """A shell in a tmux of its own; what it shows, and keys for it."""

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        self.folder = folder
        self._socket = f"/tmp/preflight-tmux-{os.getpid()}-{id(self)}"
        width, height = size
        self._do("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), "sh")
        self.run(f"cd {shlex.quote(str(folder))}; PS1='ready> '; clear")
        until(lambda: self.text.startswith("ready>"), lambda: self.text)

    def _do(self, *words: str) -> str:
        line = ["tmux", "-S", self._socket, *words]
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        for name in ("TMUX", "CI", "NO_COLOR", "COLUMNS", "LINES"):
            environment.pop(name, None)
        return subprocess.run(
            line, env=environment, capture_output=True, text=True, check=True
        ).stdout

    @property
    def text(self) -> str:
        """Everything that can be read on the terminal."""
        return self._do("capture-pane", "-p")

    def keys(self, *keys: str) -> None:
        """Press keys, by their tmux names."""
        self._do("send-keys", *keys)

    def run(self, line: str) -> None:
        """Type a line and enter."""
        self._do("send-keys", "-l", line)
        self.keys("Enter")

    def start(self, command: list[str]) -> None:
        """Run a command; its exit code is printed after it."""
        self.run(f"clear; {shlex.join(command)}; echo exit code $?")

    def sees(self, *texts: str) -> None:
        """Wait until the terminal shows all texts."""
        until(
            lambda: all(text in self.text for text in texts),
            lambda: f"{[text for text in texts if text not in self.text]} not in\n{self.text}",
        )

    def lacks(self, text: str) -> None:
        """Wait until the terminal no longer shows a text."""
        until(lambda: text not in self.text, lambda: f"{text!r} still in\n{self.text}")

    def is_clean(self) -> None:
        """Wait until the terminal is as it was before the console: screen, mouse, cursor, echo."""
        self.run("clear; echo echo is off: $(stty -a | grep -cw -e -echo)")
        self.sees("echo is off: 0")
        flags = "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{bracket_paste_flag}"
        until(
            lambda: self._do("display-message", "-p", flags).split()[:3] == ["0", "0", "1"],
            lambda: self._do("display-message", "-p", flags),
        )

    def close(self) -> None:
        """End the tmux and all in it."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self._do("kill-server")
        Path(self._socket).unlink(missing_ok=True)


@contextlib.contextmanager
def tmux(folder: Path, size: tuple[int, int] = (120, 36)) -> Generator[Tmux]:
    """Open a terminal in a project's folder; a run that is left there is cancelled at the end."""
    terminal = Tmux(folder, size)
    try:
        yield terminal
    finally:
        terminal.close()
        end_engines(folder)


def console_pid(folder: Path) -> int:
    """Wait for the process of the one console of a project; gives its number."""
    pids: list[int] = []

    def found() -> bool:
        words = f"preflight_tui.console --folder {folder}"
        listed = subprocess.run(
            ["pgrep", "-f", "--", words], capture_output=True, text=True, check=False
        )
        pids[:] = [int(word) for word in listed.stdout.split()]
        return len(pids) == 1

    until(found, lambda: f"consoles: {pids}")
    return pids[0]


def engine_pid(folder: Path) -> int:
    """Give the process of the engine of a project's newest run; 0 when there is none."""
    events = record(folder)
    if not events:
        return 0
    words = f"--run-id {events[0]['run_id']} --engine-ready-fd"
    listed = subprocess.run(
        ["pgrep", "-f", "--", words], capture_output=True, text=True, check=False
    )
    return next((int(word) for word in listed.stdout.split()), 0)


def end_engines(folder: Path) -> None:
    """End the engine that a run of a project has left."""
    if (pid := engine_pid(folder)) > 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


class Pty:
    """A command on a terminal of its own, all of whose bytes are kept."""

    def __init__(self, command: list[str], folder: Path, size: tuple[int, int] = (80, 24)) -> None:
        self.data = b""
        self._closed = False
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        for name in ("CI", "NO_COLOR", "TMUX", "COLUMNS", "LINES"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)

    def read(self, for_s: float = 0.05) -> None:
        """Take what has come, waiting a little."""
        with contextlib.suppress(OSError):
            if select.select([self._master], [], [], for_s)[0]:
                self.data += os.read(self._master, 1 << 20)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def sees(self, *texts: str) -> None:
        """Read until the bytes hold all texts."""

        def come() -> bool:
            self.read()
            return all(text.encode() in self.data for text in texts)

        until(come, lambda: f"{texts} not in {self.data[-3000:]!r}")

    def wait(self) -> int:
        """Read to the end; gives the exit code."""

        def ended() -> bool:
            self.read()
            return self.process.poll() is not None

        until(ended, lambda: f"does not end: {self.data[-500:]!r}")
        self.read()
        return self.process.returncode

    def close(self) -> None:
        """End the command, and the terminal with it."""
        if self._closed:
            return
        self._closed = True
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)


@contextlib.contextmanager
def on_pty(command: list[str], folder: Path, size: tuple[int, int] = (80, 24)) -> Generator[Pty]:
    """Run a command on a pty."""
    terminal = Pty(command, folder, size)
    try:
        yield terminal
    finally:
        terminal.close()
        end_engines(folder)
