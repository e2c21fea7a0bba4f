"""A recorded ``/proc`` on disk, and the kill walk run over it with signals that only get noted.

Nothing here can signal anything: ``kill`` is a function of the script that writes a line.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from preflight.targets.posix_kill import MARK, WALK

_SHELLS = {"dash": ["dash"], "bash": ["bash"], "bash --posix": ["bash", "--posix"]}
_SHELLS["busybox"] = ["busybox", "ash"]

SHELLS = [
    pytest.param(
        argv,
        id=name,
        marks=pytest.mark.skipif(
            shutil.which(argv[0]) is None,
            reason=f"{argv[0]} is not installed: the walk isn't tried in it",
        ),
    )
    for name, argv in _SHELLS.items()
]

# Signals are written down; a process that is not stubborn is gone after one.
_NOTED = """
pf_say() { printf '%s\\n' "$*"; }
sleep() { :; }
kill() {
  printf 'signal %s %s\\n' "$2" "$3"
  case " $stubborn " in
    *" $3 "*) ;;
    *" $3:TERM "*) if [ "$2" = KILL ]; then rm -r "$pf_proc/$3"; fi ;;
    *) rm -r "$pf_proc/$3" ;;
  esac
}
set -f
IFS=' '
"""


@dataclass(frozen=True)
class Entry:
    """One process as ``/proc`` shows it; ``op`` is the mark in its environment."""

    pid: int
    parent: int
    group: int
    start: int
    op: str = ""
    name: str = "sh"
    state: str = "S"


def record(folder: Path, entries: list[Entry]) -> Path:
    """Write the recorded ``/proc``."""
    for one in entries:
        place = folder / str(one.pid)
        place.mkdir(parents=True)
        rest = f"{one.state} {one.parent} {one.group} {one.group} 0 -1 4194304 1 2 3 4 5 6 7 8"
        text = f"{one.pid} ({one.name}) {rest} 20 0 1 0 {one.start} 1 2 3\n"
        (place / "stat").write_text(text, encoding="utf-8")
        mark = f"A=1\0{MARK}={one.op}\0B=2\0" if one.op else "A=1\0B=2\0"
        (place / "environ").write_bytes(mark.encode())
    return folder


def walk(
    shell: list[str], proc: Path, call: str, *, stubborn: str = "", setup: str = ""
) -> list[str]:
    """Run ``call`` over the recorded tree; gives the lines that were said and signalled."""
    script = f"{WALK}{_NOTED}pf_proc='{proc}' stubborn='{stubborn}'\n{setup}\n{call}\n"
    done = subprocess.run(
        [*shell, "-c", script], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def signalled(lines: list[str]) -> set[int]:
    """Give the pids that any signal was sent to."""
    return {int(line.split()[2]) for line in lines if line.startswith("signal ")}
