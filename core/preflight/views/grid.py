"""Targets × tasks: what every cell, every row and the whole run have come to."""

from __future__ import annotations

import msgspec

from preflight.events import (
    Change,
    PlanRefused,
    RunFinished,
    RunStarted,
    Status,
    TargetFinished,
    TargetInfo,
    TargetReady,
    TargetStarted,
    TargetUnreachableEvent,
    TaskFinished,
    TaskProgress,
    TaskStarted,
    Violation,
)
from preflight.views.clean import plain
from preflight.views.clock import seconds
from preflight.views.states import RUNNING, State

_ENDED: dict[Status, State] = {
    "ok": State.OK,
    "changed": State.CHANGED,
    "skipped": State.SKIPPED,
    "failed": State.FAILED,
    "ignored": State.IGNORED,
    "cancelled": State.CANCELLED,
}


class Column(msgspec.Struct):
    """A task, as a column: the stable key, its name and module."""

    key: str
    name: str
    module: str


class Row(msgspec.Struct):
    """A target, as a row; times are the engine's, in seconds since 1970."""

    target: str
    """The target's name as events and cancels have it."""
    name: str
    """The same, harmless."""
    transport: str = ""
    address: str = ""
    info: TargetInfo | None = None
    status: str = "waiting"
    reason: str = ""
    message: str = ""
    violations: list[Violation] = []
    started_at: float = 0.0
    elapsed_ms: float = 0.0
    latest: int = -1
    """The column that was last heard of; -1 for none."""


class Cell(msgspec.Struct):
    """What is known of one task on one target beyond its state."""

    phase: str = ""
    started_at: float = 0.0
    phase_at: float = 0.0
    done: int = 0
    total: int = 0
    status: str = ""
    reason: str = ""
    message: str = ""
    error: str = ""
    elapsed_ms: float = 0.0
    changes: list[Change] = []


class Grid:
    """The fold behind the matrix, the header and the details; rows that changed are noted."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.columns: list[Column] = []
        self.cells: list[bytearray] = []
        self.details: dict[tuple[int, int], Cell] = {}
        self.counts: dict[State, int] = dict.fromkeys(State, 0)
        self.run: RunStarted | None = None
        self.finished: RunFinished | None = None
        self.started_at = 0.0
        self.dirty: set[int] = set()
        self.reshaped = False
        self._row_of: dict[str, int] = {}
        self._column_of: dict[str, int] = {}

    def row_of(self, target: str) -> int:
        """Give the row of a target; a new one for a name that no event announced."""
        row = self._row_of.get(target)
        if row is None:
            row = self._row_of[target] = len(self.rows)
            self.rows.append(Row(target=target, name=plain(target)))
            self.cells.append(bytearray([State.PENDING]) * len(self.columns))
            self.counts[State.PENDING] += len(self.columns)
            self.reshaped = True
        return row

    def column_of(self, key: str, name: str = "", module: str = "") -> int:
        """Give the column of a task; a new one for a key that no event announced."""
        column = self._column_of.get(key)
        if column is None:
            column = self._column_of[key] = len(self.columns)
            self.columns.append(Column(key, plain(name) or key, plain(module)))
            for row, cells in zip(self.rows, self.cells, strict=True):
                cells.append(State.PENDING if row.status == "waiting" else State.ABSENT)
                self.counts[State(cells[-1])] += 1
            self.reshaped = True
        return column

    def has(self, target: str, task: str) -> bool:
        """Tell whether both the target and the task are known."""
        return target in self._row_of and task in self._column_of

    def state(self, row: int, column: int) -> State:
        """Give the state of a cell."""
        return State(self.cells[row][column])

    def set_state(self, row: int, column: int, state: State) -> None:
        """Change the state of a cell."""
        self.counts[State(self.cells[row][column])] -= 1
        self.counts[state] += 1
        self.cells[row][column] = state
        self.dirty.add(row)

    def detail(self, row: int, column: int) -> Cell:
        """Give what is known of a cell, to be read and written."""
        return self.details.setdefault((row, column), Cell())

    def running(self, row: int) -> list[int]:
        """Give the columns of what runs on a target now."""
        return [column for column, state in enumerate(self.cells[row]) if state in RUNNING]

    @property
    def total(self) -> int:
        """Tell how many cells the run has, as far as is known."""
        return sum(self.counts.values()) - self.counts[State.ABSENT]

    @property
    def done(self) -> int:
        """Tell how many cells have come to their end."""
        open_states = (State.PENDING, State.CHECKING, State.APPLYING, State.UNWINDING)
        return self.total - sum(self.counts[state] for state in open_states)

    def run_started(self, event: RunStarted) -> None:
        """Take the first event: all targets become rows."""
        self.run = event
        self.started_at = seconds(event.ts)
        for target in event.targets:
            self.row_of(target)

    def run_finished(self, event: RunFinished) -> None:
        """Take the last event."""
        self.finished = event

    def target_started(self, event: TargetStarted) -> None:
        """Take the beginning of a target: its tasks become columns."""
        number = self.row_of(event.target)
        row = self.rows[number]
        row.status, row.started_at = "contacting", seconds(event.ts)
        row.transport, row.address = plain(event.transport), plain(event.address)
        planned = {self.column_of(task.key, task.name, task.module) for task in event.tasks}
        for column in range(len(self.columns)):
            self.set_state(number, column, State.PENDING if column in planned else State.ABSENT)
        self.dirty.add(number)

    def target_ready(self, event: TargetReady) -> None:
        """Take what a target says of itself."""
        number = self.row_of(event.target)
        self.rows[number].info, self.rows[number].status = event.info, "running"
        self.dirty.add(number)

    def target_unreachable(self, event: TargetUnreachableEvent) -> None:
        """Take that a target could not be reached."""
        number = self.row_of(event.target)
        self.rows[number].status, self.rows[number].reason = "unreachable", plain(event.reason)
        self._give_up(number, State.UNREACHABLE)

    def plan_refused(self, event: PlanRefused) -> None:
        """Take that the plan can't run on a target: the tasks at fault are marked."""
        number = self.row_of(event.target)
        row = self.rows[number]
        row.status, row.violations = "refused", event.violations
        for violation in event.violations:
            column = self.column_of(violation.task, "", violation.module)
            cell = self.detail(number, column)
            cell.status, cell.reason = "failed", violation.reason
            cell.message = plain(violation.message)
            self.set_state(number, column, State.FAILED)
        self._skip_waiting(number)

    def target_finished(self, event: TargetFinished) -> None:
        """Take the last word about a target; what never started is skipped."""
        number = self.row_of(event.target)
        row = self.rows[number]
        row.status, row.elapsed_ms = event.status, event.elapsed_ms
        row.reason = plain(event.reason) or row.reason
        row.message = plain(event.message)
        self._skip_waiting(number)
        self.dirty.add(number)

    def task_started(self, event: TaskStarted) -> None:
        """Take the beginning of a phase."""
        number = self.row_of(event.target)
        column = self.column_of(event.task, event.name, event.module)
        cell = self.detail(number, column)
        cell.phase, cell.phase_at = event.phase, seconds(event.ts)
        cell.started_at = cell.started_at or cell.phase_at
        self.rows[number].latest = column
        self.set_state(number, column, State.CHECKING if event.phase == "check" else State.APPLYING)

    def task_progress(self, event: TaskProgress) -> None:
        """Take how far a task has come."""
        number = self.row_of(event.target)
        cell = self.detail(number, self.column_of(event.task))
        cell.done, cell.total = event.done, event.total
        self.dirty.add(number)

    def task_finished(self, event: TaskFinished) -> None:
        """Take the last word about a task."""
        number = self.row_of(event.target)
        column = self.column_of(event.task, event.name, event.module)
        cell = self.detail(number, column)
        cell.status, cell.reason = event.status, event.reason
        cell.message, cell.error = plain(event.message), event.error
        cell.elapsed_ms, cell.changes = event.elapsed_ms, event.changes
        state = _ENDED[event.status]
        if state is State.CHANGED and self.run is not None and self.run.mode == "check":
            state = State.WOULD_CHANGE
        if cell.started_at or state is State.FAILED:
            self.rows[number].latest = column
        self.set_state(number, column, state)

    def _give_up(self, number: int, state: State) -> None:
        if self.columns and self.state(number, 0) is State.PENDING:
            self.set_state(number, 0, state)
        self._skip_waiting(number)
        self.dirty.add(number)

    def _skip_waiting(self, number: int) -> None:
        for column, state in enumerate(self.cells[number]):
            if state == State.PENDING:
                self.set_state(number, column, State.SKIPPED)
