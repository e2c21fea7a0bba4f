"""The work shell of a POSIX target: the text that starts it, and the text of each operation.

Knows nothing of transports. One operation is one write, and its answer comes without another round
trip. The marks that frame the output are made of a token that is random for each operation and is
known to the work shell alone: it is neither in the arguments nor in the environment of anything
that an operation starts, so that no output can hold it by accident. The script travels in the
environment, which other accounts can't read, not in the arguments, which all can.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Mapping

from preflight.errors import Reason, TargetError
from preflight.targets.posix_kill import MARK

MAX_INLINE_BYTES = 64 * 1024
"""Longer stdin goes by file: up to here one round trip wins. Source: ssh.md, Files."""
MAX_SCRIPT_BYTES = 96 * 1024
"""Longer scripts go by file: one string of the environment holds 128 KiB at most."""

RUN = "PREFLIGHT_RUN"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# The leader is started in a session of its own: the child of a shell without job control leads no
# group yet, so that setsid does not fork and the exit code is the script's. What is left of the
# group when the script has ended is killed, as on the local target: the pid was given to this
# shell's own child, and a number that is not a new child's is refused.
_BOOT = r"""
if command -v setsid >/dev/null 2>&1; then pf_own=setsid
elif command -v perl >/dev/null 2>&1; then pf_own='perl -MPOSIX=setsid -e setsid;exec@ARGV'
else pf_own=
fi
pf_body='pf_run=$PREFLIGHT_RUN; unset PREFLIGHT_RUN; eval "$pf_run"'
pf_file='pf_run=$PREFLIGHT_RUN; unset PREFLIGHT_RUN; exec sh "$pf_run"'
pf_last=
pf_end() {
  case $2 in '' | 0* | 1 | *[!0-9]* | "$pf_last") pf_code=126 ;; *) pf_wait "$@" ;; esac
  printf '\036%s E %s\n' "$1" "$pf_code"
  printf '\036%s\n' "$1" >&2
}
pf_wait() {
  pf_last=$2
  printf '\036%s P %s\n' "$1" "$2"
  { wait "$2"; pf_code=$?; } 2>/dev/null
  kill -s KILL -- "-$2" 2>/dev/null
}
"""


def new_token() -> str:
    """Make a token that no output holds by accident: 96 random bits as hex."""
    return secrets.token_hex(12)


def quote(data: bytes) -> bytes:
    """Quote for ``sh``. Raises :class:`TargetError` for a NUL, which no script can hold."""
    if b"\0" in data:
        raise TargetError("a script or a variable can't hold a NUL byte", Reason.INVALID_PARAMS)
    return b"'" + data.replace(b"'", b"'\\''") + b"'"


def boot_text(token: str, first: str = "") -> bytes:
    """Give what a fresh ``sh`` reads first, and a first script for the same flight.

    The answer on stdout: a mark ``S``, what ``first`` prints, and ``W pid`` with the shell's own
    pid; on stderr a bare mark. What login files print comes before ``S``.
    """
    run = f"( {first}\n) </dev/null 2>/dev/null\n" if first else ""
    begin = f"printf '\\036{token} S\\n'\n"
    ready = f"printf '\\036{token} W %s\\n' \"$$\"; printf '\\036{token}\\n' >&2\n"
    return (_BOOT + begin + run + ready).encode()


def operation_text(
    token: str,
    op: str,
    script: str,
    *,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    stdin_file: str = "",
    script_file: str = "",
) -> bytes:
    """Give what the work shell reads to run ``script``: one complete command, stdin included.

    The answer on stdout: a mark ``P pid`` once it runs, its output, a mark ``E code``; on stderr
    its output and a bare mark. Raises :class:`TargetError` for a variable that can't be set.
    """
    source = script_file or script
    words = [assignment(MARK, op), assignment(RUN, source)]
    words += [assignment(name, value) for name, value in (env or {}).items()]
    body = "$pf_file" if script_file else "$pf_body"
    text = b" ".join(words) + f' $pf_own sh -c "{body}"'.encode()
    if stdin_file:
        text += b" <" + quote(stdin_file.encode("utf-8", "surrogateescape"))
    elif stdin:
        # Never as raw data behind a command: a shell reads its script in blocks and would eat it.
        sent = base64.encodebytes(stdin).rstrip(b"\n")
        text = f"base64 -d <<'{token}' | ".encode() + text
        return text + b" &\n" + sent + f"\n{token}\npf_end {token} $!\n".encode()
    else:
        text += b" </dev/null"
    return text + f" & pf_end {token} $!\n".encode()


def assignment(name: str, value: str) -> bytes:
    """Give ``NAME='value'``."""
    if not _NAME.match(name):
        raise TargetError(f"{name!r} can't be the name of a variable", Reason.INVALID_PARAMS)
    return name.encode() + b"=" + quote(value.encode("utf-8", "surrogateescape"))
