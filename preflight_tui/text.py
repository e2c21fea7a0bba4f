"""A run as plain lines: a fold over events, for a terminal, a log or a screen reader.

One line for each change of state, never a carriage return; foreign text is made harmless first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from preflight.events import (
    CancelFinished,
    CancelRequested,
    CancelSent,
    Counts,
    Diagnostic,
    Event,
    PlanRefused,
    PluginFailed,
    PluginStopped,
    PluginWarning,
    RunFinished,
    RunStarted,
    TargetCounts,
    TargetFinished,
    TargetOpCancelled,
    TargetStarted,
    TargetUnreachableEvent,
    TaskFinished,
    TaskOutput,
)
from preflight.views.clean import plain

_COLOURS = {
    "ok": "32",
    "changed": "33",
    "skipped": "2",
    "failed": "1;31",
    "ignored": "35",
    "cancelled": "36",
    "unreachable": "1;31",
    "refused": "1;31",
    "not_started": "2",
}


_SHOWN_FAILURES = 10

# A piece of a line: text, or text with the status whose colour it gets.
Piece: TypeAlias = str | tuple[str, str]


class TextView:
    """Turns events into lines and gives them to ``write``, a line a call, without a newline."""

    def __init__(
        self, write: Callable[[str], None], *, colour: bool = False, verbose: bool = False
    ) -> None:
        self._write = write
        self._colour = colour
        self._verbose = verbose
        self._totals: dict[str, int] = {}
        self._failures: list[str] = []
        self._dry_run = False

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case RunStarted():
                self._run_started(event)
            case TargetStarted():
                self._totals[event.target] = len(event.tasks)
            case TaskOutput() if self._verbose:
                for line in event.lines:
                    self._say(event, f"{line.stream:<6} {line.text}")
            case TaskFinished():
                self._task_finished(event)
            case TargetUnreachableEvent():
                self._say(event, ("UNREACHABLE", "failed"), f" {event.reason}")
            case PlanRefused():
                for one in event.violations:
                    self._say(event, f"REFUSED {one.task}: {one.message} ({one.reason})")
            case TargetFinished() if event.message and event.status != "unreachable":
                words = event.status.replace("_", " ")
                self._say(event, (words, event.status), f": {event.message}")
            case RunFinished():
                self._run_finished(event)
            case _:
                self._plugin_or_cancel(event)

    def _run_started(self, event: RunStarted) -> None:
        self._dry_run = event.mode == "check"
        what = "check (nothing is changed)" if self._dry_run else "apply"
        count = len(event.targets)
        self._say(
            event,
            f"{event.playbook}: {what} on {count} target{'s' * (count != 1)}, run {event.run_id}",
        )

    def _task_finished(self, event: TaskFinished) -> None:
        total = self._totals.get(event.target, 0)
        place = f"[{event.index + 1}/{total}] " if event.index >= 0 and total else ""
        word = "would change" if self._dry_run and event.status == "changed" else event.status
        if event.status in ("failed", "cancelled"):
            word = word.upper()
        said = event.error or event.message
        why = f" {event.reason}" if event.status in ("failed", "ignored", "skipped") else ""
        seconds = f" {event.elapsed_ms / 1000:.3f}s" if event.elapsed_ms >= 1 else ""
        self._say(event, f"{place}{event.name} ", (word, event.status), why + seconds)
        failed = event.status in ("failed", "ignored")
        shown = failed or event.status == "cancelled" or self._verbose
        if said and shown:
            for line in said.splitlines():
                self._write(f"    {plain(line)}")
        if failed and not self._verbose:
            for line in event.output_tail:
                self._write(f"    | {plain(line)}")
        if event.status == "failed":
            first = next(iter((said or event.reason).splitlines()), "no reason given")
            self._failures.append(f"{event.target}: {event.name}: {first}")

    def _plugin_or_cancel(self, event: Event) -> None:
        match event:
            case PluginFailed():
                self._say(event, f"plugin {event.plugin} can't be used: {event.reason}")
            case PluginWarning():
                self._say(event, f"plugin {event.plugin} {event.kind}: {event.detail}")
            case PluginStopped() if event.how != "closed":
                end = event.signal or f"exit {event.exit_code}"
                self._say(event, f"plugin {event.plugin} {event.how}: pid {event.pid}, {end}")
            case CancelRequested():
                word = "kill" if event.kill else "cancel"
                self._say(event, f"{word} requested by {event.by} for {event.path or 'the run'}")
            case CancelSent():
                way = ", by SIGTERM: its pipe is full" if event.out_of_band else ""
                grace = f"{event.grace_ms / 1000:g} s of grace"
                said = f"cancel sent to {event.plugin} for {event.method} id {event.request_id}"
                self._say(event, f"{said}, {grace}{way}")
            case TargetOpCancelled():
                pids = ", ".join(map(str, event.survivors))
                found = event.how.startswith("SIG") or event.how == "exited"
                left = f", still there: {pids}" if pids else ", no survivor found" if found else ""
                said = f"{event.op} stopped on the target by {event.how}, pid {event.pid}"
                self._say(event, f"{said}, {event.elapsed_ms:.0f} ms{left}")
            case CancelFinished():
                said = f"cancel of {event.path or 'the run'}: {event.outcome.replace('_', ' ')}"
                self._say(event, f"{said} after {event.elapsed_ms:.0f} ms")
            case Diagnostic():
                self._say(event, f"{event.level}: {event.summary}")
                for line in event.detail.splitlines():
                    self._write(f"    {plain(line)}")
            case _:
                pass

    def _run_finished(self, event: RunFinished) -> None:
        for failure in self._failures[:_SHOWN_FAILURES]:
            self._write(self._joined([("failed", "failed"), f"  {failure}"]))
        if len(self._failures) > _SHOWN_FAILURES:
            self._write(f"and {len(self._failures) - _SHOWN_FAILURES} more failures")
        status = {"ok": "ok", "cancelled": "cancelled"}.get(event.status, "failed")
        self._say(
            event,
            (event.status.upper(), status),
            f" in {event.elapsed_ms / 1000:.1f} s: targets {_counted(event.targets)}; "
            f"tasks {_counted(event.tasks)}; exit {event.exit_code}",
        )

    def _say(self, event: Event, *pieces: Piece) -> None:
        target = f"{event.target} " if event.target else ""
        self._write(f"{event.ts[11:23]} " + self._joined([target, *pieces]))

    def _joined(self, pieces: list[Piece]) -> str:
        """Make one line: each piece made harmless, then painted."""
        return "".join(
            plain(piece) if isinstance(piece, str) else self._painted(*piece) for piece in pieces
        )

    def _painted(self, words: str, status: str) -> str:
        colour = _COLOURS.get(status) if self._colour else None
        return f"\x1b[{colour}m{plain(words)}\x1b[0m" if colour else plain(words)


def _counted(counts: Counts | TargetCounts) -> str:
    shown = [
        f"{getattr(counts, name)} {name.replace('_', ' ')}"
        for name in counts.__struct_fields__
        if getattr(counts, name)
    ]
    return ", ".join(shown) or "none"
