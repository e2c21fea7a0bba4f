"""``powershell``: a script run by PowerShell on the target, and a script that says whether to."""

from __future__ import annotations

import asyncio
import json
import secrets
import shlex
from pathlib import Path
from typing import Annotated, cast

import msgspec
from msgspec import Meta

from preflight.errors import ModuleError
from preflight.modules.answers import NO_TOOL, expect, words_of
from preflight.modules.params import Path_, Scalar, as_text, bind, check_path, invalid
from preflight.modules.shell import ENV_NAME, LONGEST_MESSAGE
from preflight.ports.module import ApplyResult, Args, CheckResult, TaskContext
from preflight.ports.target import ExecResult

_Text = Annotated[str, Meta(min_length=1, description="a script that is not empty")]

# The script comes by stdin, whatever its length, and is in no list of processes. It lies in a
# folder that only the account can read, for as long as it runs.
_RUN = f"""
shell=$(command -v pwsh || command -v powershell) || {{ echo pwsh >&2; exit {NO_TOOL}; }}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM HUP INT
cat >"$work/script.ps1" || exit 1
printf '%s' "$wrapper" >"$work/check.ps1" || exit 1
unset CDPATH
cd -- "$folder" 2>/dev/null || {{ echo "working_dir $folder can't be entered" >&2; exit 1; }}
NO_COLOR=1 POWERSHELL_TELEMETRY_OPTOUT=1 POWERSHELL_UPDATECHECK=Off
export NO_COLOR POWERSHELL_TELEMETRY_OPTOUT POWERSHELL_UPDATECHECK
"$shell" -NoProfile -NonInteractive -File "$work/$start" "$@" </dev/null
"""
# A program's exit code is the script's, unless the script sets one of its own.
_EPILOGUE = "\nif ($LASTEXITCODE) { exit $LASTEXITCODE }\n"
# Everything but the last output goes on as it is; the last is the answer, behind a random mark.
_CHECK = """\
$ErrorActionPreference = 'Stop'
$out = @(& (Join-Path $PSScriptRoot 'script.ps1'))
if ($LASTEXITCODE) { exit $LASTEXITCODE }
if ($out.Count -gt 1) { $out[0..($out.Count - 2)] | Out-String -Stream }
if ($out.Count -gt 0) { 'MARK' + (ConvertTo-Json -InputObject $out[-1] -Compress -Depth 3) }
"""


class PowershellParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``file`` is the controller's; a relative one is looked for beside the playbook.

    ``check_script`` ends with a boolean, true when there is something to do, or with a map that
    holds ``needs_change`` and perhaps ``message``. It wins over ``creates``.
    """

    script: _Text | None = None
    file: Path_ | None = None
    args: list[Scalar] = []
    check_script: _Text | None = None
    creates: Path_ | None = None
    working_dir: Path_ | None = None
    env: dict[str, Scalar] = {}

    def __post_init__(self) -> None:
        if (self.script is None) == (self.file is None):
            raise ValueError("give either script or file")


class PowershellModule:
    """Runs the script unless the check script, or ``creates``, says that it is not needed."""

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        """Ask the check script, or look for ``creates``; without both it is to be run."""
        params = _bind(args)
        if params.check_script is not None:
            return await _ask(params, ctx)
        if params.file is not None:
            await _text(params, ctx)  # a file that is not there is an error here already
        if params.creates is None:
            return CheckResult(needs_change=True, message=f"would run {_shown(params)}")
        place = shlex.quote(_argument(params.creates))
        enter = f"unset CDPATH\ncd -- {_folder(params)} 2>/dev/null || exit 3\n"
        look = f"if [ -e {place} ] || [ -L {place} ]; then exit 0; else exit 3; fi\n"
        result = await ctx.exec(enter + look)
        if result.exit_code == 3:
            words = f"would run {_shown(params)}: {params.creates} is not there"
            return CheckResult(needs_change=True, message=words)
        expect(result, f"can't look for {params.creates}")
        return CheckResult(needs_change=False, message=f"{params.creates} is there")

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        """Run it; its lines arrive as they are written, and an exit code but 0 is a failure."""
        params = _bind(args)
        script = await _text(params, ctx)
        result = await _run(script + _EPILOGUE, params, ctx, arguments=params.args)
        _judge(result, _shown(params))
        lines = result.text.strip().splitlines()
        only = lines[0] if len(lines) == 1 and len(lines[0]) <= LONGEST_MESSAGE else ""
        return ApplyResult(message=only or f"ran {_shown(params)}")


def _bind(args: Args) -> PowershellParams:
    params = bind(args, PowershellParams)
    for name in params.env:
        if not ENV_NAME.fullmatch(name):
            raise invalid(f"env: {name!r} is not the name of a variable")
    for name in ("working_dir", "creates"):
        path = getattr(params, name)
        if path is not None:
            check_path(path, name)
    if any("\0" in as_text(one) for one in params.args):
        raise invalid("args can't hold a NUL character")
    return params


async def _text(params: PowershellParams, ctx: TaskContext) -> str:
    if params.script is not None:
        return params.script
    try:
        return await asyncio.to_thread(_read, ctx.folder, params.file or "")
    except OSError as exc:
        words = f"file {params.file!r}, looked for from {ctx.folder}, can't be read"
        raise invalid(f"{words} on the controller: {exc.strerror or exc}") from exc
    except UnicodeDecodeError as exc:
        raise invalid(f"file {params.file} is not UTF-8") from exc


def _read(folder: Path, name: str) -> str:
    return (folder / Path(name).expanduser()).read_bytes().decode("utf-8-sig")


async def _ask(params: PowershellParams, ctx: TaskContext) -> CheckResult:
    mark = f"preflight-{secrets.token_hex(8)}:"
    wrapper = _CHECK.replace("MARK", mark)
    result = await _run(params.check_script or "", params, ctx, wrapper=wrapper)
    _judge(result, "check_script")
    answer = ""
    for line in result.text.splitlines():
        if line.startswith(mark):
            answer = line.removeprefix(mark)
        else:
            ctx.output("out", line)
    needs, said = _answer(answer)
    words = said or (f"would run {_shown(params)}" if needs else "check_script finds nothing to do")
    return CheckResult(needs_change=needs, message=words)


def _answer(text: str) -> tuple[bool, str]:
    if not text:
        raise ModuleError("check_script printed nothing: end it with $true or $false")
    try:
        value: object = json.loads(text)
    except ValueError:
        value = text
    if isinstance(value, bool):
        return value, ""
    if isinstance(value, dict):
        known = {key.lower(): item for key, item in cast("dict[str, object]", value).items()}
        needs = known.get("needs_change")
        if isinstance(needs, bool):
            return needs, str(known.get("message") or "")
    words = "check_script must end with $true, $false or a map with needs_change"
    raise ModuleError(f"{words}, and ended with {text[:LONGEST_MESSAGE]}")


async def _run(
    script: str,
    params: PowershellParams,
    ctx: TaskContext,
    *,
    arguments: list[Scalar] | None = None,
    wrapper: str = "",
) -> ExecResult:
    words = shlex.join([as_text(one) for one in arguments or []])
    head = (
        f"set -- {words}\nfolder={_folder(params)}\nwrapper={shlex.quote(wrapper)}\n"
        f"start={'check.ps1' if wrapper else 'script.ps1'}\n"
    )
    env = {name: as_text(value) for name, value in params.env.items()}
    return await ctx.exec(head + _RUN, stdin=script.encode(), env=env, stream=not wrapper)


def _judge(result: ExecResult, what: str) -> None:
    if result.exit_code == NO_TOOL:
        expect(result, "powershell")
    if result.exit_code != 0:
        said = words_of(result)
        code = f"exit code {result.exit_code}"
        more = "" if said == code else f": {said}"
        raise ModuleError(f"{what} ended with {code}{more}")


def _folder(params: PowershellParams) -> str:
    return shlex.quote(_argument(params.working_dir or "."))


def _argument(path: str) -> str:
    return path if path.startswith("/") else f"./{path}"


def _shown(params: PowershellParams) -> str:
    return f"{params.file}" if params.file is not None else "the script"
