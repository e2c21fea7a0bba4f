"""``reboot``: a new boot of the target, proved by the kernel's boot id.

Never of the machine that the engine runs on, by whatever way that is reached.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from preflight.errors import ModuleError, PreflightError, Reason
from preflight.events import Change
from preflight.model.settings import DURATION_PATTERN, DURATION_WORDS, parse_duration
from preflight.modules.answers import NEED, expect, fields, words_of
from preflight.modules.params import bind
from preflight.ports.module import ApplyResult, Args, CheckResult, TaskContext

BOOT_ID = "/proc/sys/kernel/random/boot_id"

_Duration = Annotated[str, Meta(pattern=DURATION_PATTERN, description=DURATION_WORDS)]
_Seconds = Annotated[int, Meta(ge=1, description="seconds from 1")]
_LOOK_S = 20.0  # for one look at a machine that is going down or coming up
_LOST = (Reason.UNKNOWN_OUTCOME, Reason.TARGET_UNREACHABLE, Reason.TARGET_ERROR)

# needs-restarting is a program of its own, or a command of dnf; its 1 alone means yes.
_LOOK = r"""
need systemctl
boot=$(cat "$file") || exit 1
echo "boot=$boot"
for flag in $flags; do
  [ -e "$flag" ] && { echo "needed=$flag is there"; exit 0; }
done
if command -v needs-restarting >/dev/null 2>&1; then
  needs-restarting -r >/dev/null 2>&1
  case $? in
    0) ;;
    1) echo "needed=needs-restarting says so" ;;
    *) echo "unknown=needs-restarting failed" ;;
  esac
elif command -v dnf >/dev/null 2>&1; then
  echo "unknown=needs-restarting is not installed (dnf-utils)"
elif ! command -v apt-get >/dev/null 2>&1; then
  echo "unknown=nothing on the target knows"
fi
exit 0
"""


class RebootParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``timeout`` is a duration, or seconds: how long the target may take to be there again."""

    condition: Literal["always", "if_needed"] = "if_needed"
    timeout: _Duration | _Seconds = "5m"

    @property
    def timeout_s(self) -> float:
        """The timeout in seconds."""
        return parse_duration(self.timeout) if isinstance(self.timeout, str) else self.timeout


class RebootModule:
    """Reboots with systemd, and waits until the target answers with another boot id."""

    def __init__(
        self,
        *,
        boot_id: str = BOOT_ID,
        flags: tuple[str, ...] = ("/run/reboot-required", "/var/run/reboot-required"),
        poll_s: float = 2.0,
    ) -> None:
        self._boot_id = boot_id
        self._flags = flags
        self._poll_s = poll_s

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        """Look whether the system asks for a reboot."""
        params = bind(args, RebootParams)
        found = await self._look(ctx)
        why = found.get("needed", "")
        if params.condition == "if_needed" and not why:
            unknown = found.get("unknown", "")
            words = f"can't tell whether a reboot is needed: {unknown}" if unknown else "not needed"
            return CheckResult(needs_change=False, message=words)
        words = f"would reboot: {why or 'always asked for'}"
        change = Change(path="boot id", before=found["boot"], after="another one")
        return CheckResult(needs_change=True, message=words, changes=[change])

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        """Reboot and wait; raises with ``Reason.TIMEOUT`` when no new boot was seen.

        Cancel: the waiting ends; the target reboots all the same.
        """
        params = bind(args, RebootParams)
        before = (await self._look(ctx))["boot"]
        start = time.monotonic()
        try:
            result = await ctx.exec(f"{NEED}systemctl reboot </dev/null\n")
        except PreflightError as exc:
            if exc.reason not in _LOST:  # the link goes down with the machine: that is no failure
                raise
        else:
            expect(result, "the target refuses to reboot", prefer=("Failed",))
        await self._wait_boot(before, ctx, until=start + params.timeout_s, limit=params.timeout)
        return ApplyResult(message=f"rebooted in {time.monotonic() - start:.0f} s")

    async def _look(self, ctx: TaskContext) -> dict[str, str]:
        head = f"file={shlex.quote(self._boot_id)}\nflags={shlex.quote(' '.join(self._flags))}\n"
        result = await ctx.exec(NEED + head + _LOOK)
        expect(result, "reboot can't look at the target")
        found = fields(result.text)
        if not found.get("boot"):
            raise ModuleError(f"{self._boot_id} is empty: a reboot could not be proved")
        if found["boot"] == _own_boot_id():
            words = "the target runs on the engine's own kernel: a reboot would end the engine"
            raise ModuleError(words, Reason.UNSUPPORTED_ON_RUNTIME)
        return found

    async def _wait_boot(
        self, before: str, ctx: TaskContext, *, until: float, limit: str | int
    ) -> None:
        last = "it does not answer"
        while (left := until - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(min(left, _LOOK_S)):
                    result = await ctx.exec(f"cat {shlex.quote(self._boot_id)}")
                now = result.text.strip()
                if now and now != before:
                    return
                last = "it still has the boot id that it had" if now else words_of(result)
            except PreflightError as exc:
                if exc.reason not in _LOST:
                    raise
                last = exc.message
            except TimeoutError:
                if left >= _LOOK_S:  # a look that the end cut short says nothing
                    last = "it does not answer"
            await asyncio.sleep(min(self._poll_s, max(0.0, until - time.monotonic())))
        raise ModuleError(f"no new boot within {_shown(limit)}: {last}", Reason.TIMEOUT)


def _own_boot_id() -> str:
    try:
        return Path(BOOT_ID).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _shown(limit: str | int) -> str:
    return limit if isinstance(limit, str) else f"{limit} s"
