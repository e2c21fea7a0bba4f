"""sudo on the engine's own machine: the way to other rights, and the way to stop what has them.

The password goes through a pipe of its own to sudo's askpass helper, and only when sudo asks: it
can be no command's input, and no argument that others see.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path

from preflight.errors import Reason, TargetError
from preflight.ports.target import Become

# Answers once: a second question means that the first answer was wrong.
_ASKPASS = """\
#!/bin/sh
mkdir {folder}/asked 2>/dev/null || {{ : >{folder}/again; exit 1; }}
IFS= read -r answer <{folder}/answer && printf '%s\\n' "$answer"
"""


class Sudo:
    """Makes commands that run with the rights of ``become``; one for each use, in ``with``."""

    def __init__(self, become: Become) -> None:
        self._become = become
        self._folder: Path | None = None
        self._refused = False

    def argv(self, script: str, env: Mapping[str, str] | None = None) -> list[str]:
        """Give the command that runs ``script``; sudo starts with a clean environment."""
        ask = "-A" if self._become.password else "-n"
        exports = "".join(f"export {k}={shlex.quote(v)}\n" for k, v in (env or {}).items())
        return ["sudo", ask, "-u", self._become.user, "--", "sh", "-c", exports + script]

    def env(self) -> dict[str, str]:
        """Give the environment of sudo itself; its messages come in English."""
        helper = {"SUDO_ASKPASS": str(self._folder / "askpass")} if self._folder else {}
        return {**os.environ, **helper, "LC_ALL": "C"}

    @contextlib.contextmanager
    def ready(self) -> Generator[None]:
        """Lay the askpass helper ready while sudo may ask."""
        if not self._become.password:
            yield
            return
        folder = Path(tempfile.mkdtemp(prefix="preflight-sudo-"))
        self._folder = folder
        answer = -1
        try:
            os.mkfifo(folder / "answer", 0o600)
            # Opened both ways: neither side waits for the other, and nothing touches the disk.
            answer = os.open(folder / "answer", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            os.write(answer, self._become.password.encode("utf-8", "surrogateescape") + b"\n")
            helper = folder / "askpass"
            helper.write_text(_ASKPASS.format(folder=shlex.quote(str(folder))))
            helper.chmod(0o700)
            yield
        finally:
            if answer >= 0:
                os.close(answer)
            self._refused = (folder / "again").exists()
            self._folder = None
            shutil.rmtree(folder, ignore_errors=True)

    def judge(self, exit_code: int, stderr: str) -> None:
        """Say why sudo refused a command that can't fail; nothing when it did not.

        Raises :class:`TargetError` with a ``sudo-…`` reason.
        """
        if exit_code == 0:
            return
        user = self._become.user
        if self._refused or "incorrect password" in stderr:
            words = f"sudo refused the password for {user}"
            raise TargetError(words, Reason.SUDO_AUTH_FAILED)
        if "password is required" in stderr:
            words = f"sudo asks for a password to become {user}: set become.password"
            raise TargetError(words, Reason.SUDO_PASSWORD_REQUIRED)
        said = (stderr.strip().splitlines() or [f"exit code {exit_code}"])[-1]
        raise TargetError(f"sudo does not let us become {user}: {said}")


def needs_sudo(become: Become | None) -> bool:
    """Tell whether the rights are other ones than those that the engine has already."""
    return become is not None and not (become.user in ("root", "0") and os.geteuid() == 0)


def missing() -> TargetError:
    """Make the error of a machine without sudo."""
    return TargetError("become needs sudo, which is not installed here", Reason.SUDO_MISSING)
