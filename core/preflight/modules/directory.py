"""``directory``: a directory with a mode and an owner, or none."""

from __future__ import annotations

import posixpath
import shlex
from typing import Literal

import msgspec

from preflight.errors import ModuleError
from preflight.events import Change
from preflight.modules.inspection import GUARDED, Found, guarded, look
from preflight.modules.params import Mode, Path_, Scalar, bind, check_path, invalid
from preflight.modules.rights import Rights, rights_changes, set_rights, wanted_rights
from preflight.ports.module import ApplyResult, Args, CheckResult, TaskContext

# Never removed, whatever a playbook says: what is directly below the root, and what is directly
# below these. A variable that came out empty makes such paths.
_GUARDED_PARENTS = ("/", "/usr", "/home", "/Users", "/System", "/Library", "/private", "/var")

# Where a link in a parent leads to is what counts, so the target itself judges.
_GUARD = r"""
unset CDPATH
if parent=$(cd -P -- "$parent" 2>/dev/null && pwd -P); then
  case $parent in /) full=/$name ;; *) full=$parent/$name ;; esac
  home=$(cd -P -- "${HOME:-/}" 2>/dev/null && pwd -P)
  if [ ! -L "$full" ]; then
    case $parent in {guarded}) exit 3 ;; esac
    case $home/ in "$full"/*) exit 3 ;; esac
    case $(pwd -P)/ in "$full"/*) exit 3 ;; esac
  fi
fi
"""
_REMOVE = r"""
[ -n "$full" ] || exit 0
if [ -L "$full" ]; then rm -f -- "$full"; else rm -rf -- "$full"; fi
"""


class DirectoryParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``mode``, ``owner`` and ``group`` are of the directory itself, not of what is in it."""

    path: Path_
    ensure: Literal["present", "absent"] = "present"
    mode: Mode | int | None = None
    owner: Scalar | None = None
    group: Scalar | None = None


class DirectoryModule:
    """Makes a directory with its parents, or removes one with all that is in it."""

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        """Look at the path, with one exec."""
        params = _bind(args)
        if params.ensure == "absent":
            found = await look(params.path, ctx, guard=_guard(params.path))
            return _check_absent(params.path, found)
        found = await look(params.path, ctx)
        if found.exists and found.kind != "directory":
            raise ModuleError(f"{params.path} is there and is no directory: remove it first")
        changes = rights_changes(params.path, _rights(params), found)
        if found.kind == "missing":
            changes = [Change(path=params.path, before=None, after="a directory"), *changes]
        if not changes:
            return CheckResult(needs_change=False, message=f"{params.path} is as wanted")
        what = "would be created" if found.kind == "missing" else "would be changed"
        return CheckResult(needs_change=True, message=f"{params.path} {what}", changes=changes)

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        """Make it and set its rights, or remove it."""
        params = _bind(args)
        if params.ensure == "absent":
            await _remove(params.path, ctx)
            return ApplyResult(message=f"removed {params.path}")
        place = params.path if params.path.startswith("/") else f"./{params.path}"
        result = await ctx.exec(f"mkdir -p -- {shlex.quote(place)}")
        if result.exit_code != 0:
            raise ModuleError(f"can't make {params.path}: {result.error_text.strip()}")
        await set_rights(params.path, _rights(params), ctx)
        return ApplyResult(message=f"{params.path} is as wanted")


def _bind(args: Args) -> DirectoryParams:
    params = bind(args, DirectoryParams)
    check_path(params.path, "path")
    if params.ensure == "absent":
        _refuse_dangerous(params.path)
    return params


def _rights(params: DirectoryParams) -> Rights:
    return wanted_rights(params.mode, params.owner, params.group)


def _refuse_dangerous(path: str) -> None:
    if not path.startswith("/"):
        raise invalid(f"path {path!r} is not absolute: only an absolute path is ever removed")
    normal = posixpath.normpath("/" + path.lstrip("/"))
    if normal == "/" or posixpath.dirname(normal) in _GUARDED_PARENTS:
        raise invalid(f"path {path!r} is never removed as a whole: name what is in it")


def _check_absent(path: str, found: Found) -> CheckResult:
    if not found.exists:
        return CheckResult(needs_change=False, message=f"{path} is not there")
    if found.kind != "directory" and not found.link:
        raise ModuleError(f"{path} is no directory: remove it with the module 'file'")
    change = Change(path=path, before="a directory", after=None)
    return CheckResult(needs_change=True, message=f"{path} would be removed", changes=[change])


def _guard(path: str) -> str:
    parent, name = posixpath.split(posixpath.normpath(path))
    head = f"parent={shlex.quote(parent)}\nname={shlex.quote(name)}\nfull="
    return head + _GUARD.replace("{guarded}", "|".join(_GUARDED_PARENTS))


async def _remove(path: str, ctx: TaskContext) -> None:
    result = await ctx.exec(_guard(path) + _REMOVE)
    if result.exit_code == GUARDED:
        raise guarded(path)
    if result.exit_code != 0:
        said = result.error_text.strip().splitlines() or ["it was refused"]
        raise ModuleError(f"can't remove {path}: {said[-1]}")
