"""An OpenSSH server of the tests' own: its keys, its accounts, a high port on loopback.

As root it runs in a pid and mount namespace of its own. What it runs can't signal anything else on
the machine; its ``/etc``, with accounts, passwords and sudo rules, is a copy of its own; and when
the server ends, the kernel ends everything that it started. There pid 1 has process group 0, as in
a container. Other accounts than root run the plain server as themselves.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from preflight.targets.posix_kill import MARK

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
SUDO = shutil.which("sudo")
PASSWORD = 'it\'s a "$HOME" \\ pässword; 秘密'
"""The password of the accounts ``asks`` and ``plain``: all that a shell could trip over."""

ACCOUNTS = {"free": 47001, "asks": 47002, "plain": 47003}
"""Who may do what: ``free`` sudo without a password, ``asks`` with one, ``plain`` not at all."""

_ENTER = r"""
set -e
mkdir -p /run/sshd
mount --bind "$1/etc" /etc
exec "$2" -D -e -f "$3"
"""


def why_no_sshd() -> str:
    """Say why no server can be started here; empty where one can."""
    if not os.access(SSHD, os.X_OK):
        return "sshd is not installed: apt-get install openssh-server"
    return ""


def why_no_accounts() -> str:
    """Say why there can be no accounts of our own here; empty where there can."""
    if why_no_sshd():
        return why_no_sshd()
    if os.getuid() != 0:
        return "needs root: the accounts are in a copy of /etc in a namespace"
    probe = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=10, check=False)
    return f"no namespaces here: {done.stderr.strip()}" if done.returncode else ""


def why_no_sudo() -> str:
    """Say why become can't be tried here; empty where it can."""
    return why_no_accounts() or ("" if SUDO else "sudo is not installed: apt-get install sudo")


@dataclass(frozen=True)
class Seen:
    """A process that runs in the server's namespace; ``pid`` is the number outside of it."""

    pid: int
    command: str
    marked: bool


@dataclass
class Sshd:
    """A running server."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    host_key: asyncssh.SSHKey
    isolated: bool
    address: str = "127.0.0.1"
    _inside: str = field(default="", repr=False)

    @property
    def key_file(self) -> Path:
        """The private key that every account takes."""
        return self.folder / "client_key"

    @property
    def me(self) -> str:
        """The account to use where it does not matter."""
        return "free" if self.isolated else pwd.getpwuid(os.getuid()).pw_name

    def home(self, account: str) -> Path:
        """A folder that belongs to the account."""
        return self.folder / "home" / account

    def known_hosts(self, name: str = "known_hosts") -> Path:
        """A file that knows this server."""
        path = self.folder / name
        line = self.host_key.export_public_key("openssh").decode().split(" ", 2)
        path.write_text(
            f"[{self.address}]:{self.port} {line[0]} {line[1].strip()}\n", encoding="ascii"
        )
        return path

    def processes(self) -> list[Seen]:
        """List what runs on the target, the server's own processes left out."""
        found: list[Seen] = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == self.process.pid:
                continue
            try:
                if self.isolated and os.readlink(entry / "ns/pid") != self._namespace():
                    continue
                state = (entry / "stat").read_bytes().rpartition(b") ")[2][:1]
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                marked = f"{MARK}=".encode() in (entry / "environ").read_bytes()
            except OSError:
                continue
            theirs = command.startswith("sshd") or SSHD in command
            if state not in b"ZX" and (marked or (self.isolated and not theirs)):
                found.append(Seen(int(entry.name), command, marked))
        return found

    def ops(self) -> list[Seen]:
        """List the processes that belong to operations of ours."""
        return [one for one in self.processes() if one.marked]

    def cut(self) -> None:
        """End every connection from the server's side, as a crash of sshd would."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and self._is_connection(entry):
                os.kill(int(entry.name), signal.SIGKILL)

    def _is_connection(self, entry: Path) -> bool:
        try:
            command = (entry / "cmdline").read_bytes()
            ours = self.isolated and os.readlink(entry / "ns/pid") == self._namespace()
        except OSError:
            return False
        return ours and command.startswith(b"sshd: ")

    def _namespace(self) -> str:
        if not self._inside:
            child = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
            self._inside = os.readlink(f"/proc/{child.split()[0]}/ns/pid")
        return self._inside


@contextmanager
def sshd(*lines: str, isolated: bool | None = None) -> Generator[Sshd]:
    """Start a server with these lines in its configuration; all of it is gone afterwards."""
    separate = not why_no_accounts() if isolated is None else isolated
    folder = Path(tempfile.mkdtemp(prefix="preflight-sshd-"))
    folder.chmod(0o755)
    try:
        host_key = _write_keys(folder)
        _write_accounts(folder)
        for _attempt in range(5):
            server = _start(folder, host_key, list(lines), separate)
            if server is not None:
                break
        else:
            raise RuntimeError((folder / "sshd.log").read_text(encoding="utf-8", errors="replace"))
        try:
            yield server
        finally:
            server.process.kill()  # in a namespace this is unshare, and --kill-child ends pid 1
            server.process.wait(10)
            if server.process.stderr is not None:
                server.process.stderr.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_keys(folder: Path) -> asyncssh.SSHKey:
    host_key = new_key(folder / "host_key")
    client = new_key(folder / "client_key")
    (folder / "authorized_keys").write_bytes(client.export_public_key())
    return host_key


def new_key(path: Path) -> asyncssh.SSHKey:
    """Make an Ed25519 key and write its private half."""
    key = asyncssh.generate_private_key("ssh-ed25519")  # pyright: ignore[reportUnknownMemberType]  # asyncssh
    path.write_bytes(key.export_private_key())
    path.chmod(0o600)
    return key


def _write_accounts(folder: Path) -> None:
    etc = folder / "etc"
    if os.getuid() == 0:
        # All of it: a file that is replaced outside takes a mount over it away in here. Lock files
        # of others may vanish meanwhile; what matters is written below.
        subprocess.run(["cp", "-a", "/etc", str(etc)], check=False, stderr=subprocess.DEVNULL)
    else:
        etc.mkdir()
    home = folder / "home"
    home.mkdir()
    passwd = [line for line in Path("/etc/passwd").read_text().splitlines() if line[:5] != "root:"]
    passwd.append(f"root:x:0:0:root:{home}/root:/bin/sh")
    (home / "root").mkdir()
    shadow = ["root:*:19000:0:99999:7:::", "sshd:*:19000:0:99999:7:::"]
    group = Path("/etc/group").read_text().splitlines()
    hashed = _hash(PASSWORD) if os.getuid() == 0 else "*"
    for name, number in ACCOUNTS.items():
        passwd.append(f"{name}:x:{number}:{number}::{home}/{name}:/bin/bash")
        group.append(f"{name}:x:{number}:")
        shadow.append(f"{name}:{hashed if name != 'free' else '*'}:19000:0:99999:7:::")
        (home / name).mkdir()
        if os.getuid() == 0:
            os.chown(home / name, number, number)
    for name, lines in {"passwd": passwd, "group": group, "shadow": shadow}.items():
        (etc / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (etc / "shadow").chmod(0o600)
    rules = [
        "Defaults env_reset",
        "root ALL=(ALL) ALL",
        "asks ALL=(ALL) ALL",
        "free ALL=(ALL) NOPASSWD: ALL",
    ]
    (etc / "sudoers").unlink(missing_ok=True)
    (etc / "sudoers").write_text("\n".join(rules) + "\n", encoding="ascii")
    (etc / "sudoers").chmod(0o440)


def _hash(password: str) -> str:
    done = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"],
        input=password.encode() + b"\n",
        capture_output=True,
        timeout=10,
        check=True,
    )
    return done.stdout.decode().strip()


def _start(
    folder: Path, host_key: asyncssh.SSHKey, lines: list[str], separate: bool
) -> Sshd | None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    usual = [
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {folder}/host_key",
        f"AuthorizedKeysFile {folder}/authorized_keys",
        "PidFile none",
        "UsePAM no",
        "StrictModes no",
        "PrintMotd no",
        "PermitRootLogin yes",
        "MaxStartups 200:30:400",
        "LogLevel VERBOSE",
    ]
    if not any(line.startswith("Subsystem") for line in lines):
        usual.append("Subsystem sftp internal-sftp")
    config = folder / "sshd_config"
    # sshd takes the first value that it reads for a keyword
    config.write_text("\n".join([*lines, *usual]) + "\n", encoding="utf-8")
    if separate:
        enter = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child=KILL", "--"]
        command = [*enter, "sh", "-c", _ENTER, "sh", str(folder), SSHD, str(config)]
    else:
        command = [SSHD, "-D", "-e", "-f", str(config)]
    if shutil.which(
        "setpriv"
    ):  # a test run that is killed can't clean up: it takes the server along
        command = ["setpriv", "--pdeathsig", "KILL", "--", *command]
    log = folder / "sshd.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    if _wait_listening(process, port):
        return Sshd(folder, port, process, host_key, separate)
    process.kill()
    process.wait(10)
    return None


def _wait_listening(process: subprocess.Popen[bytes], port: int) -> bool:
    for _attempt in range(500):
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return True
        else:
            return False
    return False
