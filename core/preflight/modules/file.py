"""``file``: a file with a content, a mode and an owner, or no file."""

from __future__ import annotations

import asyncio
import hashlib
import shlex
from pathlib import Path
from typing import Literal

import msgspec

from preflight.errors import ModuleError, PreflightError
from preflight.events import Change
from preflight.modules.inspection import MAX_SHOWN_BYTES, Found, look
from preflight.modules.params import Mode, Path_, Scalar, as_text, bind, check_path, invalid
from preflight.modules.rights import Rights, rights_changes, set_rights, wanted_rights
from preflight.ports.module import ApplyResult, Args, CheckResult, TaskContext


class FileParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``src`` and ``content_template`` are files of the controller; a relative one is looked for
    beside the playbook. The template's text is rendered. Without any of the three an existing
    file's content is left as it is.
    """

    dest: Path_
    ensure: Literal["present", "absent"] = "present"
    src: Path_ | None = None
    content: Scalar | None = None
    content_template: Path_ | None = None
    mode: Mode | int | None = None
    owner: Scalar | None = None
    group: Scalar | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("src", "content", "content_template") if _has(self, name)]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} can't both be given: keep one")
        if self.ensure == "absent" and given:
            raise ValueError(f"ensure: absent and {given[0]} contradict each other: remove one")


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    data: bytes | None
    sha256: str
    rights: Rights


class FileModule:
    """Compares content by hash, and writes only what differs."""

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        """Compare, with one exec; a missing ``src`` is an error here already."""
        params = _bind(args)
        if params.ensure == "absent":
            return _check_absent(params.dest, await look(params.dest, ctx))
        wanted = await _wanted(params, ctx)
        found = await _look_for_file(params.dest, wanted, ctx)
        changes = await _changes(params.dest, wanted, found, ctx)
        if not changes:
            return CheckResult(needs_change=False, message=f"{params.dest} is as wanted")
        what = "would be created" if found.kind == "missing" else "would be changed"
        return CheckResult(needs_change=True, message=f"{params.dest} {what}", changes=changes)

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        """Write the content atomically where it differs, then set the rights."""
        params = _bind(args)
        if params.ensure == "absent":
            await _remove(params.dest, ctx)
            return ApplyResult(message=f"removed {params.dest}")
        wanted = await _wanted(params, ctx)
        found = await _look_for_file(params.dest, wanted, ctx)
        mode = wanted.rights.mode
        missing = found.kind == "missing"
        if missing or await _content_differs(params.dest, wanted, found, ctx):
            await ctx.put_file(params.dest, wanted.data or b"", mode=mode)
            own = Rights(owner=wanted.rights.owner, group=wanted.rights.group)
            await set_rights(params.dest, wanted.rights if own.asked else own, ctx)
        else:
            await set_rights(params.dest, wanted.rights, ctx)
        return ApplyResult(message=f"{'created' if missing else 'changed'} {params.dest}")


def _has(params: FileParams, name: str) -> bool:
    return getattr(params, name) is not None


def _bind(args: Args) -> FileParams:
    params = bind(args, FileParams)
    check_path(params.dest, "dest")
    if params.dest.endswith("/"):
        raise invalid(f"dest {params.dest!r} names a folder: write the file's whole path")
    return params


async def _wanted(params: FileParams, ctx: TaskContext) -> _Wanted:
    data: bytes | None = None
    if params.content is not None:
        data = as_text(params.content).encode()
    elif params.src is not None:
        data = await _read(params.src, "src", ctx)
    elif params.content_template is not None:
        name = params.content_template
        data = _rendered(name, await _read(name, "content_template", ctx), ctx)
    return _Wanted(
        data=data,
        sha256="" if data is None else hashlib.sha256(data).hexdigest(),
        rights=wanted_rights(params.mode, params.owner, params.group),
    )


async def _read(name: str, param: str, ctx: TaskContext) -> bytes:
    try:
        return await asyncio.to_thread(_read_file, name, ctx.folder)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        place = f"{name!r}, looked for from {ctx.folder},"
        raise invalid(f"{param} {place} can't be read on the controller: {reason}") from exc


def _read_file(name: str, folder: Path) -> bytes:
    return (folder / Path(name).expanduser()).read_bytes()


def _rendered(name: str, data: bytes, ctx: TaskContext) -> bytes:
    if ctx.render is None:
        raise invalid("content_template can't be rendered here: use content")
    try:
        return ctx.render(data.decode()).encode()
    except UnicodeDecodeError as exc:
        raise invalid(f"content_template {name} is not UTF-8: use src") from exc
    except PreflightError as exc:
        raise PreflightError(exc.reason, f"content_template {name}: {exc.message}") from exc


async def _look_for_file(dest: str, wanted: _Wanted, ctx: TaskContext) -> Found:
    found = await look(dest, ctx, wanted_sha256=None if wanted.data is None else wanted.sha256)
    if found.kind == "directory":
        raise ModuleError(f"{dest} is a directory: give a file's path, or remove it first")
    if found.kind == "other":
        raise ModuleError(f"{dest} is neither a file nor a directory: it is left alone")
    if found.unreadable:
        raise ModuleError(f"{dest} can't be read: use become, or another user")
    return found


async def _content_differs(dest: str, wanted: _Wanted, found: Found, ctx: TaskContext) -> bool:
    if wanted.data is None:
        return False
    if found.sha256:
        return found.sha256 != wanted.sha256
    return await ctx.get_file(dest) != wanted.data  # nothing there to hash with


async def _changes(dest: str, wanted: _Wanted, found: Found, ctx: TaskContext) -> list[Change]:
    rights = rights_changes(dest, wanted.rights, found)
    if found.kind == "missing":
        return [Change(path=dest, before=None, after=_shown(wanted.data or b"")), *rights]
    if await _content_differs(dest, wanted, found, ctx):
        before = _shown(found.content) if found.content is not None else f"sha256 {found.sha256}"
        return [Change(path=dest, before=before, after=_shown(wanted.data or b"")), *rights]
    return rights


def _shown(data: bytes) -> str:
    """Give small text as it is, all else by its hash."""
    if len(data) <= MAX_SHOWN_BYTES and b"\0" not in data:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return f"sha256 {hashlib.sha256(data).hexdigest()}, {len(data)} bytes"


def _check_absent(dest: str, found: Found) -> CheckResult:
    if found.kind == "directory" and not found.link:
        raise ModuleError(f"{dest} is a directory: remove it with the module 'directory'")
    if not found.exists:
        return CheckResult(needs_change=False, message=f"{dest} is not there")
    change = Change(path=dest, before="a file", after=None)
    return CheckResult(needs_change=True, message=f"{dest} would be removed", changes=[change])


async def _remove(dest: str, ctx: TaskContext) -> None:
    place = shlex.quote(dest if dest.startswith("/") else f"./{dest}")
    result = await ctx.exec(f"rm -f -- {place}")
    if result.exit_code != 0:
        raise ModuleError(f"can't remove {dest}: {result.error_text.strip()}")
