"""``user``: an account with its groups, home, shell and password, or no account."""

from __future__ import annotations

import posixpath
import shlex
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from preflight.errors import ModuleError
from preflight.events import Change
from preflight.modules.accounts import Found, look
from preflight.modules.answers import NEED, expect
from preflight.modules.params import Path_, Scalar, as_text, bind, check_path, invalid
from preflight.ports.module import ApplyResult, Args, CheckResult, TaskContext

_NAME = r"^(?![0-9]+$)[A-Za-z0-9_.][A-Za-z0-9_.@-]*\$?$"
AccountName = Annotated[str, Meta(pattern=_NAME, max_length=256, description="an account's name")]
GroupName = Annotated[str, Meta(pattern=_NAME, max_length=256, description="a group's name")]
_Uid = Annotated[int, Meta(ge=0, le=4294967294, description="a number from 0")]

# No home of a person: what is directly below these is never removed with an account.
_KEPT_PARENTS = ("/", "/usr", "/usr/local", "/var", "/etc", "/boot", "/bin", "/sbin", "/lib")


class UserParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``groups`` are added to those that the account is in, and must exist.

    ``password`` is the password itself, ``password_hash`` what crypt made of it. ``system`` counts
    only when the account is made. ``remove_home`` goes with ``ensure: absent``.
    """

    name: AccountName
    ensure: Literal["present", "absent"] = "present"
    password: Scalar | None = None
    password_hash: str | None = None
    groups: list[GroupName] = []
    home: Path_ | None = None
    shell: Path_ | None = None
    uid: _Uid | None = None
    system: bool = False
    remove_home: bool = False

    def __post_init__(self) -> None:
        if self.password is not None and self.password_hash is not None:
            raise ValueError("password and password_hash can't both be given: keep one")
        if self.remove_home and self.ensure == "present":
            raise ValueError("remove_home goes with ensure: absent")

    @property
    def secret(self) -> tuple[str, str]:
        """What kind of password there is, ``plain`` or ``hash`` or neither, and the password."""
        if self.password_hash is not None:
            return "hash", self.password_hash
        return ("", "") if self.password is None else ("plain", as_text(self.password))


class UserModule:
    """Makes an account, changes what differs, or removes it."""

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        """Compare, with one exec; a password is compared where the target can."""
        params = _bind(args)
        found = await _look(params, ctx)
        changes = _changes(params, found)
        if changes:
            what = "would be changed" if found.exists else "would be created"
            if params.ensure == "absent":
                what = "would be removed"
            words = f"the account {params.name} {what}"
            return CheckResult(needs_change=True, message=words, changes=changes)
        if params.ensure == "absent":
            return CheckResult(needs_change=False, message=f"there is no account {params.name}")
        words = f"the account {params.name} is as wanted"
        if found.password == "unknown":
            words += ", but its password can't be compared: the target lacks perl"
        return CheckResult(needs_change=False, message=words)

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        """Do what the check found."""
        params = _bind(args)
        found = await _look(params, ctx)
        changes = _changes(params, found)
        if params.ensure == "absent":
            if found.exists:
                await _remove(params, found, ctx)
            return ApplyResult(message=f"removed the account {params.name}")
        lines = [_modify(params, found) if found.exists else _create(params)]
        kind, secret = params.secret
        stdin = ""
        if any(one.path.endswith("(password)") for one in changes):
            lines.append(f"chpasswd{' -e' if kind == 'hash' else ''} || exit 1")
            stdin = f"{params.name}:{secret}\n"
        script = f"{NEED}need useradd usermod chpasswd\n" + "\n".join(lines) + "\nexit 0\n"
        result = await ctx.exec(script, stdin=stdin.encode())
        expect(result, f"the account {params.name} can't be made so")
        done = "changed" if found.exists else "created"
        return ApplyResult(message=f"{done} the account {params.name}")


def _bind(args: Args) -> UserParams:
    params = bind(args, UserParams)
    kind, secret = params.secret
    if any(sign in secret for sign in "\n\r\0"):
        raise invalid("a password can't hold a line's end")
    if kind == "hash" and (not secret or ":" in secret):
        raise invalid("password_hash is no hash: write what `openssl passwd -6` gives")
    if kind == "plain" and not secret:
        raise invalid("password is empty: leave it out, or give one")
    for name in ("home", "shell"):
        path = getattr(params, name)
        if path is not None and (not check_path(path, name).startswith("/") or ":" in path):
            raise invalid(f"{name} {path!r} must be absolute and can't hold a colon")
    if params.ensure == "absent" and params.name == "root":
        raise invalid("root is never removed")
    return params


async def _look(params: UserParams, ctx: TaskContext) -> Found:
    if params.ensure == "absent":
        found = await look(params.name, ctx)
        if params.remove_home and found.exists:
            _refuse_home(found)
        return found
    kind, secret = params.secret
    found = await look(params.name, ctx, groups=params.groups, kind=kind, password=secret)
    if found.no_groups:
        words = ", ".join(found.no_groups)
        raise ModuleError(f"{params.name} can't be in {words}: no such group, make it first")
    return found


def _refuse_home(found: Found) -> None:
    home = posixpath.normpath(found.home or "/")
    if home == "/" or posixpath.dirname(home) in _KEPT_PARENTS:
        raise ModuleError(f"the home {found.home} is never removed: leave remove_home out")


def _changes(params: UserParams, found: Found) -> list[Change]:
    name = params.name
    if params.ensure == "absent":
        return [Change(path=name, before="an account", after=None)] if found.exists else []
    changes: list[Change] = []
    if not found.exists:
        after = "a system account" if params.system else "an account"
        changes.append(Change(path=name, before=None, after=after))
    wanted = {
        "uid": None if params.uid is None else str(params.uid),
        "home": params.home,
        "shell": params.shell,
    }
    for what, value in wanted.items():
        now: str = getattr(found, what)
        if value is not None and value != now:
            before = now if found.exists else None
            changes.append(Change(path=f"{name} ({what})", before=before, after=value))
    missing = [group for group in params.groups if group not in found.groups]
    if missing:
        joined = ",".join(found.groups) if found.exists else None
        after = ",".join([*found.groups, *missing])
        changes.append(Change(path=f"{name} (groups)", before=joined, after=after))
    if params.secret[0] and (not found.exists or found.password == "other"):
        before = "another one" if found.exists else None
        changes.append(Change(path=f"{name} (password)", before=before, after="the given one"))
    return changes


def _create(params: UserParams) -> str:
    words: list[str] = []
    words.append("-M" if params.system and params.home is None else "-m")
    if params.system:
        words.append("-r")
    if params.uid is not None:
        words += ["-u", str(params.uid)]
    if params.home is not None:
        words += ["-d", params.home]
    if params.shell is not None:
        words += ["-s", params.shell]
    if params.groups:
        words += ["-G", ",".join(params.groups)]
    name = shlex.quote(params.name)
    # A group of that name may be left from an earlier account: useradd wants to be told.
    own = f"own=; getent group {name} >/dev/null && own='-g '{name}\n"
    return f"{own}useradd $own {shlex.join(words)} -- {name} </dev/null || exit 1"


def _modify(params: UserParams, found: Found) -> str:
    words: list[str] = []
    if params.uid is not None and str(params.uid) != found.uid:
        words += ["-u", str(params.uid)]
    if params.shell is not None and params.shell != found.shell:
        words += ["-s", params.shell]
    missing = [group for group in params.groups if group not in found.groups]
    if missing:
        words += ["-a", "-G", ",".join(missing)]
    lines: list[str] = []
    if params.home is not None and params.home != found.home:
        words += ["-d", params.home]
        if found.home_exists:  # what is there moves along, unless the new place is taken
            home = shlex.quote(params.home)
            lines.append(f"move=-m; [ -e {home} ] && move=")
    if words:
        move = "${move:-} " if lines else ""
        rest = shlex.join([*words, "--", params.name])
        lines.append(f"usermod {move}{rest} </dev/null || exit 1")
    return "\n".join(lines)


async def _remove(params: UserParams, found: Found, ctx: TaskContext) -> None:
    flag = "-r " if params.remove_home and found.home_exists else ""
    script = f"{NEED}need userdel\nuserdel {flag}-- {shlex.quote(params.name)} </dev/null\n"
    result = await ctx.exec(script)
    expect(result, f"the account {params.name} can't be removed")
