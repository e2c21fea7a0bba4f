"""What a run came to: the result, what needs somebody, and what fails in the same way."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from preflight.events import TargetCounts
from preflight.views.clean import plain
from preflight.views.clock import span, watch
from preflight.views.detail import glyph
from preflight.views.header import counts, elapsed_s, run_state
from preflight.views.parts import Parts, label
from preflight.views.states import BAD, State
from preflight.views.store import Store


class Need(NamedTuple):
    """Something that needs somebody: the cell, the line that says so, and why."""

    row: int
    column: int
    parts: Parts
    why: str


def result_lines(store: Store, *, live: bool, record: str) -> list[Parts]:
    """Give what the run has come to so far, or at its end."""
    grid = store.grid
    if grid.run is None:
        return [[("nothing is known of the run yet", "muted")]]
    state = run_state(store, live=live) or [("RUNNING", "applying")]
    lines = [label("run", [*state, (f"  {plain(grid.run.run_id)}", "muted")], 8)]
    if grid.finished is not None:
        lines.append(label("targets", _targets(grid.finished.targets), 8))
    tasks = counts(store) or [("none yet", "muted")]
    lines.append(label("tasks", [*tasks, (f"  of {grid.total}", "muted")], 8))
    lines.append(label("time", [(watch(elapsed_s(store)), "bold"), *_slowest(store)], 8))
    if grid.finished is not None:
        lines.append(label("exit", [(str(grid.finished.exit_code), "bold")], 8))
    if grid.run.retry_of:
        lines.append(label("again", [(f"a retry of {plain(grid.run.retry_of)}", "")], 8))
    if record:
        size = f"  {store.position / 1_000_000:.1f} MB, {store.events} events"
        lines.append(label("record", [(record, ""), (size, "muted")], 8))
    return lines


def needs(store: Store) -> list[Need]:
    """Give every cell that failed, was killed or was not reached, one line each."""
    grid = store.grid
    found: list[Need] = []
    width = max((len(row.name) for row in grid.rows), default=6)
    for number, row in enumerate(grid.rows):
        bad = [column for column, state in enumerate(grid.cells[number]) if state in BAD]
        if not bad and row.status in ("unreachable", "refused"):
            why = row.reason or row.status
            name = row.name.ljust(width) + "  "
            parts: Parts = [("! ", "unreachable"), (name, "bold"), (why, "")]
            found.append(Need(number, -1, parts, why))
        for column in bad:
            state = State(grid.cells[number][column])
            cell = grid.detail(number, column)
            lost = state is State.UNREACHABLE
            why = row.reason if lost else plain(cell.error or cell.message or cell.reason)
            if state is State.KILLED:
                why = "killed while it was cleaning up: its state is unknown"
            task = "connect" if lost else f"{column + 1:02} {grid.columns[column].name}"
            words: Parts = [glyph(state), (f" {row.name.ljust(width)}  ", "bold")]
            found.append(Need(number, column, [*words, (f"{task:<24}  ", ""), (why, "error")], why))
    return found


def same(found: list[Need]) -> list[Parts]:
    """Give a line for every reason that more than one of them has."""
    groups = Counter(need.why for need in found if need.why)
    return [
        [(f"{number} fail in the same way: ", "muted"), (why, "")]
        for why, number in groups.most_common(3)
        if number > 1
    ]


def _targets(totals: TargetCounts) -> Parts:
    parts: Parts = []
    for name, style in (
        ("ok", "ok"),
        ("failed", "error"),
        ("unreachable", "error"),
        ("refused", "error"),
        ("cancelled", "cancelled"),
        ("not_started", "muted"),
    ):
        number: int = getattr(totals, name)
        if number:
            parts.append((f"{number} {name.replace('_', ' ')}   ", style))
    return parts or [("none", "muted")]


def _slowest(store: Store) -> Parts:
    cells = store.grid.details
    if not cells:
        return []
    (row, column), cell = max(cells.items(), key=lambda item: item[1].elapsed_ms)
    if not cell.elapsed_ms:
        return []
    name, task = store.grid.rows[row].name, store.grid.columns[column].name
    return [(f"   slowest: {task} on {name}, {span(cell.elapsed_ms / 1000)}", "muted")]
