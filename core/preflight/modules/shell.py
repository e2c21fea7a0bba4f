"""``shell``: run an executable on the target."""

from __future__ import annotations

import re
import shlex
from typing import Annotated

import msgspec
from msgspec import Meta

from preflight.errors import ModuleError
from preflight.modules.params import Path_, Scalar, as_text, bind, check_path, invalid
from preflight.ports.module import ApplyResult, Args, CheckResult, TaskContext
from preflight.ports.target import ExecResult

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST_MESSAGE = 200  # characters of a single line of output that becomes the task's message
_SHOWN_COMMAND = 60
# What the script says for itself, so that a command's own exit code 126 or 127 is told apart.
_NOT_FOUND = "preflight: no such executable"
_NO_FOLDER = "preflight: no such working_dir"


class ShellParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``cmd`` is one executable, ``args`` are handed to it as they are: no shell reads them.

    With ``creates`` the task is done once that path is there; a relative one is in ``working_dir``.
    """

    cmd: Annotated[str, Meta(min_length=1, description="an executable")]
    args: list[Scalar] = []
    creates: Path_ | None = None
    working_dir: Path_ | None = None
    env: dict[str, Scalar] = {}


class ShellModule:
    """Runs the command whenever ``creates`` does not say that it was done."""

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        """Look for ``creates``; without it the command is always to be run."""
        params = _bind(args)
        if params.creates is None:
            return CheckResult(needs_change=True, message=f"would run {_shown(params)}")
        place = shlex.quote(_argument(check_path(params.creates, "creates")))
        look = f"if [ -e {place} ] || [ -L {place} ]; then exit 0; else exit 3; fi\n"
        enter = _enter(params.working_dir, otherwise="exit 3")
        result = await ctx.exec(enter + look)
        if result.exit_code == 0:
            return CheckResult(needs_change=False, message=f"{params.creates} is there")
        if result.exit_code != 3:
            raise ModuleError(f"can't look for {params.creates}: {_last_line(result)}")
        missing = f"{params.creates} is not there"
        return CheckResult(needs_change=True, message=f"would run {_shown(params)}: {missing}")

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        """Run it; both streams arrive as they are written, and an exit code but 0 is a failure."""
        params = _bind(args)
        env = {name: as_text(value) for name, value in params.env.items()}
        result = await ctx.exec(_script(params), env=env, stream=True)
        if result.exit_code != 0:
            raise ModuleError(_failure(params, result))
        lines = result.text.strip().splitlines()
        only = lines[0] if len(lines) == 1 and len(lines[0]) <= LONGEST_MESSAGE else ""
        return ApplyResult(message=only or f"ran {_shown(params)}")


def _bind(args: Args) -> ShellParams:
    params = bind(args, ShellParams)
    for name in params.env:
        if not ENV_NAME.fullmatch(name):
            raise invalid(f"env: {name!r} is not the name of a variable")
    if any("\0" in text for text in (params.cmd, *map(as_text, params.args))):
        raise invalid("cmd and args can't hold a NUL character")
    if params.working_dir is not None:
        check_path(params.working_dir, "working_dir")
    return params


def _script(params: ShellParams) -> str:
    words = " ".join(shlex.quote(word) for word in (params.cmd, *map(as_text, params.args)))
    cmd = shlex.quote(params.cmd)
    missing = f"{{ echo {shlex.quote(_NOT_FOUND)} >&2; exit 127; }}"
    enter = _enter(params.working_dir, otherwise=f"echo {shlex.quote(_NO_FOLDER)} >&2; exit 126")
    return f"{enter}command -v -- {cmd} >/dev/null 2>&1 || {missing}\nexec {words}\n"


def _enter(folder: str | None, *, otherwise: str) -> str:
    if folder is None:
        return ""
    return (
        f"unset CDPATH\ncd -- {shlex.quote(_argument(folder))} 2>/dev/null || {{ {otherwise}; }}\n"
    )


def _argument(path: str) -> str:
    """Keep a relative path from being read as an option, or as ``cd -``."""
    return path if path.startswith("/") else f"./{path}"


def _failure(params: ShellParams, result: ExecResult) -> str:
    last = _last_line(result)
    if result.exit_code == 126 and last == _NO_FOLDER:
        return f"working_dir {params.working_dir} can't be entered: make it first"
    if result.exit_code == 127 and last == _NOT_FOUND:
        return f"there is no executable {params.cmd!r} on the target; {_cure(params)}"
    said = f": {last}" if last else ""
    return f"{_shown(params)} ended with exit code {result.exit_code}{said}"


def _cure(params: ShellParams) -> str:
    if not any(sign in params.cmd for sign in " |&;<>$\n"):
        return "install it, or write its whole path"
    try:
        first, *rest = shlex.split(params.cmd)
    except ValueError:
        first, rest = "", []
    if first and not any(sign in params.cmd for sign in "|&;<>$*\n"):
        return f"cmd is one executable: write cmd: {first} and args: [{', '.join(rest)}]"
    return "cmd is one executable: write cmd: sh and args: [-c, '…'] for a line that a shell reads"


def _last_line(result: ExecResult) -> str:
    lines = [line.strip() for line in result.error_text.splitlines() if line.strip()]
    return lines[-1][:LONGEST_MESSAGE] if lines else ""


def _shown(params: ShellParams) -> str:
    words = " ".join((params.cmd, *map(as_text, params.args)))
    words = " ".join(words.split())
    return words if len(words) <= _SHOWN_COMMAND else words[: _SHOWN_COMMAND - 1] + "…"
