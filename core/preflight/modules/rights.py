"""Mode, owner and group of a path: compared with what is wanted, and set."""

from __future__ import annotations

import shlex

import msgspec

from preflight.errors import ModuleError
from preflight.events import Change
from preflight.modules.inspection import Found
from preflight.modules.params import Scalar, as_text, parse_mode
from preflight.ports.module import TaskContext


class Rights(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted; ``None`` leaves it as it is. Owner and group are names or numbers."""

    mode: int | None = None
    owner: str | None = None
    group: str | None = None

    @property
    def asked(self) -> bool:
        """Whether anything is wanted."""
        return (self.mode, self.owner, self.group) != (None, None, None)


def wanted_rights(mode: str | int | None, owner: Scalar | None, group: Scalar | None) -> Rights:
    """Make rights of params."""
    return Rights(
        mode=parse_mode(mode),
        owner=None if owner is None else as_text(owner),
        group=None if group is None else as_text(group),
    )


def rights_changes(path: str, wanted: Rights, found: Found) -> list[Change]:
    """List what differs; of what is missing nothing is known, and all that is wanted differs."""
    changes: list[Change] = []
    there = found.kind != "missing"
    if wanted.mode is not None and wanted.mode != found.mode:
        before = f"{found.mode:04o}" if there else None
        changes.append(Change(path=f"{path} (mode)", before=before, after=f"{wanted.mode:04o}"))
    if wanted.owner is not None and wanted.owner not in (found.owner, found.uid):
        before = found.owner if there else None
        changes.append(Change(path=f"{path} (owner)", before=before, after=wanted.owner))
    if wanted.group is not None and wanted.group not in (found.group, found.gid):
        before = found.group if there else None
        changes.append(Change(path=f"{path} (group)", before=before, after=wanted.group))
    return changes


async def set_rights(path: str, wanted: Rights, ctx: TaskContext) -> None:
    """Set what is wanted, with one exec; the mode last, because a new owner clears bits of it."""
    place = shlex.quote(path if path.startswith("/") else f"./{path}")
    lines: list[str] = []
    if wanted.owner is not None:
        lines.append(f"chown -- {shlex.quote(wanted.owner)} {place} || exit 1")
    if wanted.group is not None:
        lines.append(f"chgrp -- {shlex.quote(wanted.group)} {place} || exit 1")
    if wanted.mode is not None:
        lines.append(f"chmod {wanted.mode:04o} {place} || exit 1")
    if not lines:
        return
    result = await ctx.exec("\n".join(lines))
    if result.exit_code != 0:
        said = result.error_text.strip().splitlines() or ["it was refused"]
        raise ModuleError(f"can't set the rights of {path}: {said[-1]}")
