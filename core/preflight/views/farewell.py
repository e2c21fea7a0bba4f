"""What stays on the terminal when a console was left: at most thirty lines."""

from __future__ import annotations

from preflight.views.clean import plain
from preflight.views.clock import watch
from preflight.views.header import counts, elapsed_s, run_state
from preflight.views.parts import text_of
from preflight.views.states import BAD, LOOKS, State
from preflight.views.store import Store

_SHOWN = 10  # failures: the record and the summary screen have all


def farewell(store: Store, record: str, run_id: str, *, gone: bool = False) -> list[str]:
    """Give the lines: what the run came to, what failed, where its record is."""
    run = store.grid.run
    if run is None:
        return []
    if store.grid.finished is None and gone:
        return [f"{plain(run.playbook)}: the record ends at {store.last_ts}: {record}"]
    if store.grid.finished is None:
        return [f"{plain(run.playbook)}: the run goes on: preflight-tui attach {run_id}"]
    state = text_of(run_state(store, live=False)).lower()
    lines = [
        f"{plain(run.playbook)}: {state} in {watch(elapsed_s(store))}   {text_of(counts(store))}"
    ]
    failures = failed_lines(store)
    lines += failures[:_SHOWN]
    if len(failures) > _SHOWN:
        lines.append(f"  and {len(failures) - _SHOWN} more")
    if record:
        lines.append(f"record {record}   again: preflight-tui replay {run_id}")
    return lines


def failed_lines(store: Store) -> list[str]:
    """Give a line for every cell that failed, was killed or was not reached."""
    grid = store.grid
    lines: list[str] = []
    for number, row in enumerate(grid.rows):
        bad = [column for column, state in enumerate(grid.cells[number]) if state in BAD]
        if not bad and row.status == "unreachable":
            lines.append(f"  ! {row.name}  {row.reason}")
        for column in bad:
            state = State(grid.cells[number][column])
            cell = grid.detail(number, column)
            why = row.reason if state is State.UNREACHABLE else cell.message or plain(cell.error)
            task = "" if state is State.UNREACHABLE else f"{grid.columns[column].name}  "
            lines.append(f"  {LOOKS[state].symbol} {row.name}  {task}{why}".rstrip())
    return lines
