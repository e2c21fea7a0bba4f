"""``wait``: until a port is open or a file is there; the target itself looks, again and again."""

from __future__ import annotations

import math
import shlex
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from preflight.errors import ModuleError, Reason
from preflight.model.settings import DURATION_PATTERN, DURATION_WORDS, parse_duration
from preflight.modules.params import Scalar, as_text, bind, check_path, invalid
from preflight.ports.module import ApplyResult, Args, CheckResult, TaskContext

_Duration = Annotated[str, Meta(pattern=DURATION_PATTERN, description=DURATION_WORDS)]
_NOT_YET = 3
_NO_TOOL = 4
_PROBE_S = 2  # seconds for one attempt to connect: a dropped packet must not eat the whole wait

# Each connects once, from the target, and says by its exit code whether that worked.
_PORT = r"""
if command -v python3 >/dev/null 2>&1; then
  met() { python3 -c 'import socket,sys
socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3])).close()' \
    "$host" "$port" "$most" 2>/dev/null; }
elif command -v bash >/dev/null 2>&1 && command -v timeout >/dev/null 2>&1; then
  met() { timeout "$most" bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$host" "$port" 2>/dev/null; }
elif command -v nc >/dev/null 2>&1; then
  met() { nc -z -w "$most" "$host" "$port" >/dev/null 2>&1; }
elif command -v perl >/dev/null 2>&1; then
  met() { perl -MIO::Socket::IP -e 'exit !IO::Socket::IP->new(
PeerHost => $ARGV[0], PeerPort => $ARGV[1], Timeout => $ARGV[2])' \
    "$host" "$port" "$most" 2>/dev/null; }
else
  exit 4
fi
"""
_FILE = 'met() { [ -e "$path" ] || [ -L "$path" ]; }\n'
_LOOP = r"""
end=$(( $(date +%s) + seconds ))
until met; do
  [ "$(date +%s)" -le "$end" ] || exit 3
  sleep "$interval"
done
exit 0
"""


class WaitParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``target`` is ``host:port``, ``[address]:port`` or a port of the target itself, or a path."""

    condition: Literal["port_open", "file_exists"]
    target: Scalar
    timeout: _Duration = "5m"
    interval: _Duration = "1s"


class WaitModule:
    """Waits on the target, with one script: no round trip per look."""

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        """Look once; never waits."""
        params = bind(args, WaitParams)
        script = _probe(params) + f"met && exit 0\nexit {_NOT_YET}\n"
        if await _ask(script, params, ctx):
            return CheckResult(needs_change=False, message=f"{_words(params)} already")
        return CheckResult(needs_change=True, message=f"would wait until {_words(params)}")

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        """Wait; raises with ``Reason.TIMEOUT`` when the time is over."""
        params = bind(args, WaitParams)
        seconds = math.floor(parse_duration(params.timeout))  # the loop adds up to one more
        interval = f"{parse_duration(params.interval):g}"
        head = f"seconds={seconds}\ninterval={interval}\n"
        if not await _ask(head + _probe(params) + _LOOP, params, ctx):
            words = f"waited {params.timeout} in vain until {_words(params)}"
            raise ModuleError(words, Reason.TIMEOUT)
        return ApplyResult(message=_words(params))


def _probe(params: WaitParams) -> str:
    text = as_text(params.target)
    if params.condition == "file_exists":
        path = check_path(text, "target")
        return f"path={shlex.quote(path if path.startswith('/') else './' + path)}\n{_FILE}"
    host, port = _address(text)
    return f"host={shlex.quote(host)}\nport={port}\nmost={_PROBE_S}\n{_PORT}"


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon:
        host = "localhost"
    elif host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise invalid(f"target {text!r}: put an IPv6 address in brackets, [address]:port")
    if not host or host.startswith("-") or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise invalid(f"target {text!r} is not host:port with a port from 1 to 65535")
    return host, int(port)


async def _ask(script: str, params: WaitParams, ctx: TaskContext) -> bool:
    result = await ctx.exec(script)
    if result.exit_code == _NO_TOOL:
        words = "the target has no python3, bash, nc or perl to look for a port: install one"
        raise ModuleError(words, Reason.MISSING_PREREQUISITE)
    if result.exit_code not in (0, _NOT_YET):
        said = result.error_text.strip().splitlines() or [f"exit code {result.exit_code}"]
        raise ModuleError(f"can't look whether {_words(params)}: {said[-1]}")
    return result.exit_code == 0


def _words(params: WaitParams) -> str:
    text = as_text(params.target)
    return f"port {text} is open" if params.condition == "port_open" else f"{text} is there"
