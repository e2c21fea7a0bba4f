"""The way of every cancel: asked, sent, unwinding, and how it came to its end.

A step is shown when its event came, never because a key was pressed.
Source: console.md F7.
"""

from __future__ import annotations

import msgspec

from preflight.events import (
    CancelFinished,
    CancelRequested,
    CancelSent,
    PluginCancelReceived,
    PluginStopped,
    TargetOpCancelled,
    TaskFinished,
)
from preflight.views.clean import plain
from preflight.views.clock import seconds, span
from preflight.views.grid import Grid
from preflight.views.states import State

UNWINDING = frozenset({"asked", "sent"})


class Step(msgspec.Struct, frozen=True):
    """One thing that happened on the way, and when, in seconds since 1970."""

    at: float
    text: str


class CancelRow(msgspec.Struct):
    """One task that is, or was, being stopped; times are the engine's.

    ``state``: asked, sent, cancelled, stopped, finished, killed or lost.
    """

    target: str
    task: str
    name: str
    plugin: str = ""
    request_id: int = 0
    method: str = ""
    state: str = "asked"
    asked_at: float = 0.0
    sent_at: float = 0.0
    grace_ms: int = 0
    elapsed_ms: float = 0.0
    result: str = ""
    steps: list[Step] = []

    def left_s(self, now: float) -> float:
        """Give the seconds of grace that are left at ``now``; 0.0 when it is over."""
        if self.state != "sent":
            return 0.0
        return max(0.0, self.sent_at + self.grace_ms / 1000 - now)


class Request(msgspec.Struct):
    """One cancel that the engine has in hand, or has brought to its end."""

    path: str
    by: str
    at: float
    kill: bool = False
    outcome: str = ""
    elapsed_ms: float = 0.0
    detail: str = ""


class Cancels:
    """The fold behind the cancel screen; it also marks the cells of the grid."""

    def __init__(self, grid: Grid) -> None:
        self.requests: dict[str, Request] = {}
        self.rows: dict[tuple[str, str], CancelRow] = {}
        self.changed = False
        self._grid = grid

    @property
    def open_requests(self) -> list[Request]:
        """Give the cancels that have not come to their end."""
        return [request for request in self.requests.values() if not request.outcome]

    @property
    def unwinding(self) -> list[CancelRow]:
        """Give the tasks that are being stopped now."""
        return [row for row in self.rows.values() if row.state in UNWINDING]

    def requested(self, event: CancelRequested) -> None:
        """Take that the engine has a cancel in hand: all that runs below it is asked to stop."""
        self.changed = True
        at = seconds(event.ts)
        known = self.requests.get(event.path)
        if known is None or known.outcome:
            self.requests[event.path] = Request(event.path, event.by, at, kill=event.kill)
        else:
            known.kill = known.kill or event.kill
        for number, known_row in enumerate(self._grid.rows):
            for column in self._grid.running(number):
                key = self._grid.columns[column].key
                if _covers(event.path, known_row.target, key):
                    row = self._row(known_row.target, key, at)
                    text = "kill asked" if event.kill else f"asked by {event.by}"
                    row.steps.append(Step(at, text))

    def sent(self, event: CancelSent) -> None:
        """Take that the plugin was told: its grace begins."""
        at = seconds(event.ts)
        row = self._row(event.target, event.task, at)
        row.plugin, row.request_id = plain(event.plugin), event.request_id
        row.method = plain(event.method)
        row.sent_at, row.grace_ms, row.state = at, event.grace_ms, "sent"
        how = "SIGTERM, its pipe is full" if event.out_of_band else f"id {event.request_id}"
        row.steps.append(Step(at, f"cancel sent to {row.plugin} ({how})"))

    def plugin_received(self, event: PluginCancelReceived) -> None:
        """Take that the plugin abandons an operation of its own."""
        self._note(event.target, event.task, event.ts, f"plugin stops its {plain(event.op)}")

    def target_op(self, event: TargetOpCancelled) -> None:
        """Take that a process on the target was stopped."""
        text = f"target process {event.pid}: {plain(event.how)} in {span(event.elapsed_ms / 1000)}"
        if event.survivors:
            text += f", still there: {', '.join(map(str, event.survivors))}"
        self._note(event.target, event.task, event.ts, text)

    def plugin_stopped(self, event: PluginStopped) -> None:
        """Take the end of a plugin's process: what it was to unwind is killed or lost."""
        for row in self.unwinding:
            if row.plugin != event.plugin or event.target not in ("", row.target):
                continue
            killed = event.how == "killed"
            how = "killed" if killed else f"ended by itself, {_exit(event)}"
            self._note(row.target, row.task, event.ts, f"plugin process {event.pid} {how}")
            row.state = "killed" if killed else "lost"
            row.elapsed_ms = (seconds(event.ts) - row.asked_at) * 1000
            row.result = _exit(event)
            self._mark(row, State.KILLED)

    def task_finished(self, event: TaskFinished) -> None:
        """Take the last word of a task that was being stopped; call it after the grid's."""
        row = self.rows.get((event.target, event.task))
        if row is None:
            return
        if row.state in ("killed", "lost"):
            self._mark(row, State.KILLED)
            return
        if row.state not in UNWINDING:
            return
        if event.status == "cancelled":
            row.state = "cancelled" if row.plugin else "stopped"
        else:
            row.state, row.result = "finished", event.status
        row.elapsed_ms = (seconds(event.ts) - row.asked_at) * 1000
        self._note(row.target, row.task, event.ts, outcome_text(row))

    def finished(self, event: CancelFinished) -> None:
        """Take the end of a cancel."""
        self.changed = True
        request = self.requests.setdefault(
            event.path, Request(event.path, "operator", seconds(event.ts))
        )
        request.outcome, request.elapsed_ms = event.outcome, event.elapsed_ms
        request.detail = plain(event.detail)
        for row in self.unwinding:
            # How a task ended is told by its own last word, except where it never gets one.
            if event.path == f"{row.target}/{row.task}" and event.outcome in ("killed", "lost"):
                row.state = event.outcome
                row.elapsed_ms = event.elapsed_ms
                self._mark(row, State.KILLED)

    def _row(self, target: str, task: str, at: float) -> CancelRow:
        self.changed = True
        row = self.rows.get((target, task))
        if row is None or row.state not in UNWINDING:
            number, column = self._grid.row_of(target), self._grid.column_of(task)
            name = self._grid.columns[column].name
            row = self.rows[target, task] = CancelRow(target, task, name, asked_at=at)
            if column in self._grid.running(number):
                self._grid.set_state(number, column, State.UNWINDING)
        return row

    def _note(self, target: str, task: str, ts: str, text: str) -> None:
        row = self.rows.get((target, task))
        if row is not None:
            row.steps.append(Step(seconds(ts), text))
            self.changed = True
            self._grid.dirty.add(self._grid.row_of(target))

    def _mark(self, row: CancelRow, state: State) -> None:
        self.changed = True
        self._grid.set_state(self._grid.row_of(row.target), self._grid.column_of(row.task), state)


def outcome_text(row: CancelRow) -> str:
    """Give the words for how the cancel of a task ended, or ``""`` while it goes on."""
    took = span(row.elapsed_ms / 1000)
    match row.state:
        case "cancelled":
            return f"cancelled in {took}"
        case "stopped":
            return f"stopped in {took}"
        case "finished":
            return f"finished before the cancel ({row.result})"
        case "killed":
            return f"killed after {took}, state unknown"
        case "lost":
            return f"plugin ended by itself, {row.result or 'no answer'}"
        case _:
            return ""


def _exit(event: PluginStopped) -> str:
    return event.signal or f"exit {event.exit_code}"


def _covers(path: str, target: str, task: str) -> bool:
    return path in ("", target, f"{target}/{task}")
