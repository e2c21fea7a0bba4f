"""``system_package``: packages of the system, by apt or dnf, there or not there."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from preflight.errors import ModuleError
from preflight.events import Change
from preflight.model.settings import DURATION_PATTERN, DURATION_WORDS, parse_duration
from preflight.modules.answers import NEED, expect, fields
from preflight.modules.packages import TELLING, change, has_version, look_for
from preflight.modules.params import Scalar, as_text, bind, invalid
from preflight.ports.module import ApplyResult, Args, CheckResult, TaskContext

# A sign at the end would tell apt to remove, one at the beginning is an option or a group.
_Name = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9+._:-]*[A-Za-z0-9+])?$",
        description="the name of a package",
    ),
]
_VERSION_SIGNS = frozenset(".+-:~^_")
_Duration = Annotated[str, Meta(pattern=DURATION_PATTERN, description=DURATION_WORDS)]


class Package(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One package; with ``version`` exactly that one, an older one than is there included."""

    name: _Name
    version: Scalar | None = None
    ensure: Literal["present", "absent"] = "present"


class SystemPackageParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``lock_timeout`` is how long another package manager may be waited for."""

    packages: Annotated[list[Package], Meta(min_length=1, description="a list that is not empty")]
    lock_timeout: _Duration = "5m"


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    manager: str
    versions: dict[str, list[str]]


class SystemPackageModule:
    """Installs and removes with one call each, and looks afterwards whether it is so."""

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        """Compare, with one exec; nothing is fetched."""
        params = _bind(args)
        found = await _look(params, ctx)
        changes = _changes(params, found)
        if not changes:
            count = len(params.packages)
            words = f"{count} package{'s' * (count != 1)} as wanted"
            return CheckResult(needs_change=False, message=words)
        names = ", ".join(one.path for one in changes)
        return CheckResult(needs_change=True, message=f"would change {names}", changes=changes)

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        """Remove, then install; the index is refreshed once, and only where it has to be."""
        params = _bind(args)
        found = await _look(params, ctx)
        due = {one.path for one in _changes(params, found)}
        if due:
            wanted = [one for one in params.packages if one.name in due]
            script = change(
                found.manager,
                install=[(one.name, _version(one)) for one in wanted if one.ensure == "present"],
                remove=[one.name for one in wanted if one.ensure == "absent"],
                lock_s=math.ceil(parse_duration(params.lock_timeout)),
            )
            result = await ctx.exec(NEED + script, stream=True)
            expect(result, f"{found.manager} failed", prefer=TELLING)
            _judge(params, await _look(params, ctx))
        return ApplyResult(message=f"changed {', '.join(sorted(due))}")


def _bind(args: Args) -> SystemPackageParams:
    params = bind(args, SystemPackageParams)
    names = [one.name for one in params.packages]
    for one in params.packages:
        version = _version(one)
        if names.count(one.name) > 1:
            raise invalid(f"packages: {one.name} is named twice")
        if version and one.ensure == "absent":
            raise invalid(f"packages: {one.name} is to be absent: leave its version out")
        if not all(
            sign.isascii() and (sign.isalnum() or sign in _VERSION_SIGNS) for sign in version
        ):
            raise invalid(f"packages: {version!r} is not the version of a package")
    return params


def _version(package: Package) -> str:
    return "" if package.version is None else as_text(package.version)


async def _look(params: SystemPackageParams, ctx: TaskContext) -> _Found:
    names = [one.name for one in params.packages]
    result = await ctx.exec(NEED + look_for(names))
    expect(result, "system_package needs apt or dnf")
    versions: dict[str, list[str]] = {}
    for line in result.text.splitlines():
        kind, _, value = line.partition("=")
        if kind == "package" and value.count("|") >= 2:
            state, version, name = value.split("|", 2)
            if state[1:2] == "i":  # config-files, unpacked and half-installed are not installed
                versions.setdefault(name, []).append(version)
    return _Found(manager=fields(result.text).get("manager", ""), versions=versions)


def _changes(params: SystemPackageParams, found: _Found) -> list[Change]:
    changes: list[Change] = []
    for one in params.packages:
        there, version = found.versions.get(one.name, []), _version(one)
        before = ", ".join(there) or None
        if one.ensure == "absent":
            if there:
                changes.append(Change(path=one.name, before=before, after=None))
        elif not there or (version and not _any_version(found, one)):
            changes.append(Change(path=one.name, before=before, after=version or "installed"))
    return changes


def _any_version(found: _Found, package: Package) -> bool:
    there, wanted = found.versions[package.name], _version(package)
    return any(has_version(found.manager, version, wanted) for version in there)


def _judge(params: SystemPackageParams, found: _Found) -> None:
    """Raise where the manager said that all went well, and it is not so."""
    left = _changes(params, found)
    if not left:
        return
    first = left[0]
    now = first.before or "not installed"
    words = f"{found.manager} reported success, but {first.path} is {now}"
    raise ModuleError(f"{words}: is it a name that other packages provide? name the package")
