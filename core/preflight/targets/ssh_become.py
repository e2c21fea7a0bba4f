"""sudo as the way into a shell, once for each account; the password only when it is asked for.

The prompt is a random text of ours, in any language; the password is written when sudo has printed
it, and never else, so that it can't become anybody's input. A second prompt means that the first
answer was wrong.
"""

from __future__ import annotations

from preflight.errors import Reason, TargetError
from preflight.ports.target import Become
from preflight.targets.posix_shell import new_token, quote
from preflight.targets.ssh_channel import Channel
from preflight.targets.ssh_shell import Entry, Noise


class SudoEntry(Entry):
    """A shell of another account."""

    def __init__(self, become: Become) -> None:
        self._become = become
        self._prompt = new_token()
        self._ready = new_token()
        user = quote(become.user.encode()).decode()
        asking = f"-k -S -p {self._prompt}" if become.password else "-n"
        # LC_ALL for sudo's own words; the shell drops it again.
        self.command = (
            f"exec env LC_ALL=C sudo {asking} -u {user} -- "
            f"/bin/sh -c 'unset LC_ALL; echo {self._ready}; exec /bin/sh'"
        )

    async def pass_through(self, channel: Channel, said: Noise) -> None:
        """Answer sudo's prompt where there is one.

        Raises :class:`TargetError` with the reason where sudo does not let us in.
        """
        answered = 0
        while True:
            text = said.text
            if self._ready in text:
                return
            asked = text.count(self._prompt)
            if asked > 1:
                raise TargetError(
                    f"sudo refused the password for {self._become.user}", Reason.SUDO_AUTH_FAILED
                )
            if asked > answered:
                answered = asked
                channel.write(self._become.password.encode("utf-8", "surrogateescape") + b"\n")
            if channel.closed.is_set():
                raise self._refusal(text.replace(self._prompt, ""))
            await said.wait_more()

    def _refusal(self, text: str) -> TargetError:
        words = text.strip() or "sudo ended without a word"
        if "password is required" in words:
            return TargetError(
                f"sudo asks for a password to become {self._become.user}: set become.password, or "
                "allow it without one (NOPASSWD)",
                Reason.SUDO_PASSWORD_REQUIRED,
            )
        if "sudo" in words and ("not found" in words or "No such file" in words):
            return TargetError("there is no sudo on the target", Reason.SUDO_MISSING)
        return TargetError(f"sudo does not let us become {self._become.user}: {words}")
