"""``service``: a systemd unit that runs or does not, and whether it starts at boot."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from preflight.errors import ModuleError, Reason
from preflight.events import Change
from preflight.modules.answers import NEED, expect, fields, words_of
from preflight.modules.params import bind
from preflight.ports.module import ApplyResult, Args, CheckResult, TaskContext

UnitName = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9:_.@\\][A-Za-z0-9:_.@\\-]*$", description="the name of a unit"),
]
_ASKED = "Id,LoadState,LoadError,ActiveState,UnitFileState,NeedDaemonReload,Type,RemainAfterExit"
# An alias is asked for by its unit's own name: systemctl enables nothing by another.
_LOOK = f"""
need systemctl
found=$(systemctl show -p {_ASKED} -- "$unit") || exit 1
printf '%s\\n' "$found"
id=$(printf '%s\\n' "$found" | sed -n 's/^Id=//p')
echo "Enabled=$(systemctl is-enabled -- "$id" 2>/dev/null | tail -n 1)"
exit 0
"""
_START = """
systemctl start -- "$unit" || {
  code=$?
  systemctl status --no-pager --full --lines=10 -- "$unit" 2>/dev/null
  exit "$code"
}
now=$(systemctl is-active -- "$unit" 2>/dev/null)
case $now in
  active|reloading|refreshing) ;;
  *) echo "it was started, and is $now now" >&2; exit 1 ;;
esac
"""
_RUNNING = ("active", "reloading", "refreshing")
_NOT_RUNNING = ("inactive", "failed")
_NOT_BOOTED = "not been booted with systemd"
# What is-enabled says: of a unit that nothing starts at boot by itself, of one that is started,
# and of one that is made elsewhere.
_BY_HAND = ("disabled", "static", "indirect", "linked", "linked-runtime")
_ENABLED = ("enabled", "alias")
_MADE = ("generated", "transient")


class ServiceParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``automatic`` is enabled, ``manual`` not enabled, ``disabled`` masked: nothing can start it.

    ``state: disabled`` is stopped and masked.
    """

    name: UnitName
    state: Literal["running", "stopped", "disabled"] | None = None
    startup_type: Literal["automatic", "manual", "disabled"] | None = None

    def __post_init__(self) -> None:
        if self.state == "running" and self.startup_type == "disabled":
            raise ValueError("state: running and startup_type: disabled contradict each other")
        if self.state == "disabled" and self.startup_type in ("automatic", "manual"):
            words = f"state: disabled and startup_type: {self.startup_type} contradict each other"
            raise ValueError(words)

    @property
    def startup(self) -> str | None:
        """What is wanted at boot, ``state: disabled`` included."""
        return "disabled" if self.state == "disabled" else self.startup_type

    @property
    def running(self) -> bool | None:
        """Whether it is to run; ``None`` when that is left as it is."""
        return None if self.state is None else self.state == "running"


class _Unit(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    active: str
    enabled: str
    stale: bool
    ends_by_itself: bool


class ServiceModule:
    """Starts, stops, enables and masks."""

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        """Compare, with one exec; what systemd would refuse is refused here already."""
        params = bind(args, ServiceParams)
        unit = await _look(params, ctx)
        changes = [*_startup_changes(params, unit), *_state_changes(params, unit)]
        if not changes:
            words = f"{params.name} is as wanted: {unit.active}, {unit.enabled or 'no unit file'}"
            return CheckResult(needs_change=False, message=words)
        what = ", ".join(f"{one.before} → {one.after}" for one in changes)
        return CheckResult(needs_change=True, message=f"{params.name}: {what}", changes=changes)

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        """Do what is left to do: first what holds at boot, then what runs now."""
        params = bind(args, ServiceParams)
        unit = await _look(params, ctx)
        steps = ["systemctl daemon-reload || exit 1"] if unit.stale else []
        if _startup_changes(params, unit):
            steps += _startup_steps(params, unit)
        if _state_changes(params, unit):
            steps.append(_START if params.running else 'systemctl stop -- "$unit" || exit 1')
        if params.startup == "disabled" and unit.enabled != "masked":
            steps.append('systemctl mask -- "$unit" || exit 1')  # stopped first: what is masked too
        if steps:
            head = f"{NEED}unit={shlex.quote(unit.id)}\n"
            result = await ctx.exec(head + "\n".join(steps) + "\nexit 0\n", stream=True)
            expect(result, f"{params.name} can't be brought there", prefer=("Job for", "Failed"))
        return ApplyResult(message=f"{params.name} is as wanted")


async def _look(params: ServiceParams, ctx: TaskContext) -> _Unit:
    result = await ctx.exec(f"{NEED}unit={shlex.quote(params.name)}\n{_LOOK}")
    if result.exit_code and _NOT_BOOTED in result.error_text:
        words = f"service needs systemd, and the target does not run it: {words_of(result)}"
        raise ModuleError(words, Reason.MISSING_PREREQUISITE)
    expect(result, f"can't look at {params.name}")
    found = fields(result.text)
    load = found.get("LoadState", "")
    if load not in ("loaded", "masked"):
        why = found.get("LoadError", "").partition(" ")[2].strip('"')
        raise ModuleError(f"there is no unit {params.name} ({load or 'unknown'}){_after(why)}")
    oneshot = found.get("Type") == "oneshot" and found.get("RemainAfterExit") == "no"
    return _Unit(
        id=found.get("Id") or params.name,
        active=found.get("ActiveState", ""),
        enabled=found.get("Enabled") or found.get("UnitFileState", ""),
        stale=found.get("NeedDaemonReload") == "yes",
        ends_by_itself=oneshot,
    )


def _startup_changes(params: ServiceParams, unit: _Unit) -> list[Change]:
    now, wanted = unit.enabled, params.startup
    converged = {
        None: True,
        "automatic": now in _ENABLED,
        "manual": now in _BY_HAND,
        "disabled": now == "masked",
    }[wanted]
    if converged:
        return []
    name = params.name
    if wanted == "automatic" and now in ("static", "indirect"):
        words = "has no [Install] section" if now == "static" else "is started through other units"
        raise ModuleError(f"{name} can't be enabled: it is {now} and {words}; enable what needs it")
    if wanted != "disabled" and now in _MADE:
        raise ModuleError(f"{name} is {now}: change what makes it, systemctl can't")
    if not now:
        raise ModuleError(f"{name} has no unit file: nothing can be said of its start at boot")
    after = {"automatic": "enabled", "manual": "disabled", "disabled": "masked"}[str(wanted)]
    return [Change(path=f"{name} (startup)", before=now, after=after)]


def _state_changes(params: ServiceParams, unit: _Unit) -> list[Change]:
    name = params.name
    if params.running is None:
        return []
    if unit.active in (_RUNNING if params.running else _NOT_RUNNING):
        return []
    if params.running and unit.ends_by_itself:
        words = f"{name} is a oneshot that ends by itself: it can't be kept running"
        raise ModuleError(words)
    if params.running and unit.enabled.startswith("masked") and params.startup is None:
        raise ModuleError(f"{name} is masked: set startup_type, or nothing can start it")
    after = "active" if params.running else "inactive"
    return [Change(path=f"{name} (state)", before=unit.active, after=after)]


def _startup_steps(params: ServiceParams, unit: _Unit) -> list[str]:
    if params.startup == "disabled":
        return []  # masked at the very end: a masked unit can't be enabled, but may still run
    steps: list[str] = []
    if unit.enabled.startswith("masked"):
        runtime = " --runtime" if unit.enabled == "masked-runtime" else ""
        steps.append(f'systemctl unmask{runtime} -- "$unit" || exit 1')
    if params.startup == "automatic":
        return [*steps, 'systemctl enable -- "$unit" || exit 1']
    if unit.enabled.endswith("-runtime"):
        steps.append('systemctl disable --runtime -- "$unit" || exit 1')
    return [*steps, 'systemctl disable -- "$unit" || exit 1']


def _after(why: str) -> str:
    return f": {why}" if why else ": install what brings it"
