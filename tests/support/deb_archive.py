"""An archive of packages of the tests' own, with a package database of its own.

apt and dpkg are the real ones; what they read, lock and write is in a folder. The machine's own
packages, lists and locks are never looked at.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

_APT_CONF = """\
Dir::State "{state}";
Dir::State::status "{admin}/status";
Dir::State::lists "{state}/lists";
Dir::Cache "{cache}";
Dir::Etc "{etc}";
Dir::Log "{folder}/log";
DPkg::Options {{ "--force-script-chrootless"; }};
APT::Sandbox::User "root";
"""


def why_no_apt() -> str:
    """Say why apt can't be tried here; empty where it can."""
    if os.getuid() != 0:
        return "needs root: dpkg unpacks as root only"
    missing = [tool for tool in ("apt-get", "dpkg", "dpkg-deb") if not shutil.which(tool)]
    return f"not installed: {', '.join(missing)}" if missing else ""


class DebArchive:
    """Packages that are for sale, and the database of those that are installed."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._sale = folder / "sale"
        self.admin = folder / "admin"
        self.content = folder / "content"
        self.log = folder / "apt.log"
        for made in (
            *(self._sale, self.admin / "info", self.admin / "updates", self.admin / "triggers"),
            *(folder / "state/lists/partial", folder / "cache/archives/partial", folder / "log"),
            *(folder / "etc/apt.conf.d", folder / "etc/preferences.d", self.content),
            folder / "etc/sources.list.d",
        ):
            made.mkdir(parents=True)
        (self.admin / "status").touch()
        (folder / "etc/sources.list").write_text(f"deb [trusted=yes] copy:{self._sale} ./\n")
        conf = _APT_CONF.format(
            folder=folder,
            admin=self.admin,
            state=folder / "state",
            cache=folder / "cache",
            etc=folder / "etc",
        )
        (folder / "apt.conf").write_text(conf)
        monkeypatch.setenv("APT_CONFIG", str(folder / "apt.conf"))
        monkeypatch.setenv("DPKG_ADMINDIR", str(self.admin))
        self._index: list[str] = []
        self._watch(monkeypatch)

    def sell(self, name: str, version: str, *, postinst: str = "", **fields: str) -> None:
        """Put a package on sale; it has one file and one file of configuration."""
        tree = self._folder / "build" / f"{name}-{version}"
        place = tree / str(self.content).lstrip("/")
        (tree / "DEBIAN").mkdir(parents=True)
        place.mkdir(parents=True)
        (place / name).write_text(version)
        (place / f"{name}.conf").write_text("x")
        lines = {
            "Package": name,
            "Version": version,
            "Architecture": "all",
            "Maintainer": "nobody <nobody@example.org>",
            "Description": "a package of the tests",
            **fields,
        }
        control = "".join(f"{key}: {value}\n" for key, value in lines.items())
        (tree / "DEBIAN/control").write_text(control)
        (tree / "DEBIAN/conffiles").write_text(f"{self.content}/{name}.conf\n")
        if postinst:
            (tree / "DEBIAN/postinst").write_text(f"#!/bin/sh\n{postinst}\n")
            (tree / "DEBIAN/postinst").chmod(0o755)
        deb = self._sale / f"{name}_{version}_all.deb"
        subprocess.run(
            ["dpkg-deb", "--build", str(tree), str(deb)], check=True, capture_output=True
        )
        data = deb.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        self._index.append(
            f"{control}Filename: ./{deb.name}\nSize: {len(data)}\nSHA256: {digest}\n"
        )
        (self._sale / "Packages").write_text("\n".join(self._index))

    def take_back(self, name: str, version: str) -> None:
        """Have a package no longer on sale; only the index that was fetched still names it."""
        (self._sale / f"{name}_{version}_all.deb").unlink()
        self._index = [one for one in self._index if f"{name}_{version}_all.deb" not in one]
        (self._sale / "Packages").write_text("\n".join(self._index))

    def states(self) -> dict[str, str]:
        """What dpkg says of every package that it knows."""
        show = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}${Version}\n"]
        done = subprocess.run(show, capture_output=True, text=True, check=False)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines())

    def calls(self, verb: str) -> int:
        """How often apt-get was called with that verb."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return sum(verb in line.split() and "-s" not in line.split() for line in lines)

    def _watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real, seen = shutil.which("apt-get"), self._folder / "bin"
        seen.mkdir()
        (seen / "apt-get").write_text(f'#!/bin/sh\necho "$*" >>{self.log}\nexec {real} "$@"\n')
        (seen / "apt-get").chmod(0o755)
        monkeypatch.setenv("PATH", f"{seen}:{os.environ['PATH']}:/usr/sbin:/sbin")
