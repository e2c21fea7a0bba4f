"""Throw-away accounts on this machine: made as root, with names that nobody has, and removed."""

from __future__ import annotations

import grp
import os
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager


def why_no_accounts() -> str:
    """Say why no account can be made here; empty where one can."""
    if os.getuid() != 0:
        return "needs root: accounts are made and removed"
    missing = [tool for tool in ("useradd", "usermod", "userdel", "chpasswd") if not _there(tool)]
    return f"not installed: {', '.join(missing)}" if missing else ""


class Names:
    """Makes names that nobody has, and knows which to remove in the end."""

    def __init__(self) -> None:
        self._given: list[str] = []

    def new(self) -> str:
        """A name for an account or a group that is not there."""
        self._given.append(f"pftest{secrets.token_hex(4)}")
        return self._given[-1]

    def sweep(self) -> None:
        """Remove whatever was made of them."""
        for name in self._given:
            subprocess.run(["userdel", "-f", "-r", name], capture_output=True, check=False)
            subprocess.run(["groupdel", name], capture_output=True, check=False)


@contextmanager
def throw_away_names() -> Generator[Names]:
    """Give names; what was made of them is removed."""
    names = Names()
    try:
        yield names
    finally:
        names.sweep()


def make_account(name: str, password: str = "") -> None:
    """Make an account with a home and a password."""
    subprocess.run(["useradd", "-m", "-s", "/bin/sh", name], check=True, capture_output=True)
    if password:
        line = f"{name}:{password}\n".encode()
        subprocess.run(["chpasswd"], input=line, check=True, capture_output=True)


def make_group(name: str) -> None:
    """Make a group."""
    subprocess.run(["groupadd", name], check=True, capture_output=True)


def shadow_of(name: str) -> str:
    """What stands for the account's password."""
    with open("/etc/shadow", encoding="utf-8") as lines:
        return next(line.split(":")[1] for line in lines if line.startswith(f"{name}:"))


def groups_of(name: str) -> set[str]:
    """The groups that an account was added to."""
    return {group.gr_name for group in grp.getgrall() if name in group.gr_mem}


def exists(name: str) -> bool:
    """Whether there is an account of that name."""
    return any(entry.pw_name == name for entry in pwd.getpwall())


def _there(tool: str) -> bool:
    return shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is not None
