"""The engine as an ordinary account of this machine, with a copy of ``/etc`` of its own.

In a mount namespace: accounts, passwords and sudo rules are seen in there alone. The account may
read every file, so that it can run the engine from wherever that is installed, and do no more.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from tests.support.command import Outcome, Running
from tests.support.sshd import ACCOUNTS, PASSWORD, why_no_sudo

_ENTER = r"""
set -e
mount --bind "$1/etc" /etc
shift
exec setpriv --reuid "$1" --regid "$1" --clear-groups \
  --inh-caps +dac_read_search --ambient-caps +dac_read_search -- "${@:2}"
"""


def why_no_become() -> str:
    """Say why local become can't be tried here; empty where it can."""
    return why_no_sudo() or ("" if shutil.which("setpriv") else "setpriv is not installed")


class BecomePlace:
    """A folder that belongs to the account, with a playbook in it."""

    def __init__(self, folder: Path, account: str) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        (self.folder / "home").mkdir()
        self._outside = folder
        self._number = ACCOUNTS[account]
        etc = folder / "etc"
        subprocess.run(["cp", "-a", "/etc", str(etc)], check=True)
        for name, number in ACCOUNTS.items():
            self._append("passwd", f"{name}:x:{number}:{number}::{self.folder}/home:/bin/sh")
            self._append("group", f"{name}:x:{number}:")
            self._append(
                "shadow", f"{name}:{'*' if name == 'free' else _hash()}:19000:0:99999:7:::"
            )
        self._append("sudoers", "asks ALL=(ALL) ALL")
        self._append("sudoers", "free ALL=(ALL) NOPASSWD: ALL")
        self._own()

    def write(self, text: str) -> None:
        """Write the playbook."""
        (self.folder / "site.yml").write_text(text, encoding="utf-8")
        self._own()

    def start(self, *words: str) -> Running:
        """Start the command as the account."""
        enter = ["unshare", "--mount", "bash", "-c", _ENTER, "bash", str(self._outside)]
        return Running(self.folder, words, before=[*enter, str(self._number)])

    def run(self, *words: str) -> Outcome:
        """Run the command to its end."""
        with self.start(*words) as running:
            return running.end()

    def everything_written(self) -> str:
        """All that the engine left: the record above all."""
        files = [path for path in (self.folder / ".preflight").rglob("*") if path.is_file()]
        return "".join(path.read_text(encoding="utf-8", errors="replace") for path in files)

    def accounts(self) -> list[str]:
        """The accounts that there are in the copy."""
        lines = (self._outside / "etc/passwd").read_text(encoding="utf-8").splitlines()
        return [line.partition(":")[0] for line in lines]

    def _append(self, name: str, line: str) -> None:
        with (self._outside / "etc" / name).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def _own(self) -> None:
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, self._number, self._number, follow_symlinks=False)


def owner_of(path: Path) -> str:
    """Whose a file is."""
    return pwd.getpwuid(path.stat().st_uid).pw_name


def _hash() -> str:
    command = ["openssl", "passwd", "-6", "-stdin"]
    done = subprocess.run(command, input=f"{PASSWORD}\n".encode(), capture_output=True, check=True)
    return done.stdout.decode().strip()
