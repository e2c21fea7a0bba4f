"""The words around a cancel: what a dialog asks, what its screen shows while it goes on."""

from __future__ import annotations

from statistics import median

from preflight.views.cancels import UNWINDING, CancelRow, outcome_text
from preflight.views.clock import span
from preflight.views.detail import cancel_state
from preflight.views.parts import Parts, label
from preflight.views.states import LOOKS, RUNNING, State
from preflight.views.store import Store

_OBVIOUS = {"asked by operator"}  # steps that the operator made himself


def grace(store: Store) -> str:
    """Give the words for the grace that a plugin gets."""
    run = store.grid.run
    return span(run.cancel_grace_ms / 1000) if run is not None and run.cancel_grace_ms else "2.0 s"


def running_count(store: Store, path: str) -> int:
    """Tell how many tasks at and below ``path`` run now."""
    grid = store.grid
    return sum(
        path in ("", row.target, f"{row.target}/{grid.columns[column].key}")
        for number, row in enumerate(grid.rows)
        for column in grid.running(number)
    )


def can_cancel(store: Store, row: int, column: int) -> bool:
    """Tell whether the task of a cell runs, or may still come."""
    grid = store.grid
    if not (0 <= row < len(grid.rows) and 0 <= column < len(grid.columns)):
        return False
    return grid.state(row, column) in RUNNING | {State.PENDING}


def ask_lines(store: Store, row: int, column: int) -> list[Parts]:
    """Give what an operator must know before a task is cancelled."""
    grid = store.grid
    task, target = grid.columns[column], grid.rows[row]
    state = grid.state(row, column)
    lines: list[Parts] = [
        [
            ("Cancel ", ""),
            (f"{column + 1:02} {task.name}", "bold"),
            (" on ", ""),
            (target.name, "bold"),
            ("?", ""),
        ],
        [],
        label("state", [(LOOKS[state].word, LOOKS[state].style)], 7),
    ]
    one = store.plugins.instances.get((task.module, target.target))
    if one is not None:
        lines.append(label("plugin", [(f"{task.module} (pid {one.pid})", "")], 7))
        others = [
            each
            for each in grid.running(row)
            if each != column and grid.columns[each].module == task.module
        ]
        if others:
            lines.append([(f"killing it would also end {len(others)} more", "warning")])
    else:
        lines.append(label("module", [(f"{task.module} (built in)", "")], 7))
    return [*lines, [], [(_how(store, plugin=one is not None), "muted")]]


def ask_run_lines(store: Store) -> list[Parts]:
    """Give what an operator must know before the run is cancelled."""
    running = running_count(store, "")
    tasks = "1 task runs" if running == 1 else f"{running} tasks run"
    plugins = sum(one.state == "ready" for one in store.plugins.instances.values())
    return [
        [("Cancel the whole run?", "bold")],
        [],
        [(f"{tasks} now. No new task is started.", "")],
        [],
        [(_how(store, plugin=plugins > 0), "muted")],
    ]


def heading(store: Store) -> Parts:
    """Give how many tasks have come how far."""
    rows = list(store.cancels.rows.values())
    now = store.clock.now()
    ended = [row.elapsed_ms for row in rows if row.state in ("cancelled", "stopped", "finished")]
    parts: Parts = [(f"{len(ended)} answered", "ok" if ended else "muted")]
    if ended:
        parts.append((f" (median {span(median(ended) / 1000)})", "muted"))
    waiting = [row for row in rows if row.state in UNWINDING]
    parts += [(" · ", "muted"), (f"{len(waiting)} unwinding", "unwinding" if waiting else "muted")]
    left = [row.left_s(now) for row in waiting if row.state == "sent"]
    if left:
        parts.append((f", {max(left):.1f} s left", "unwinding"))
    for state in ("killed", "lost"):
        count = sum(row.state == state for row in rows)
        if count or state == "killed":
            parts += [(" · ", "muted"), (f"{count} {state}", "error" if count else "muted")]
    return parts


def lines(store: Store) -> list[Parts]:
    """Give a line for every task that is being stopped, and its last step under it."""
    now = store.clock.now()
    found: list[Parts] = []
    for row in sorted(store.cancels.rows.values(), key=lambda row: row.state not in UNWINDING):
        found.append(_line(store, row, now))
        shown = [step for step in row.steps if step.text not in _OBVIOUS]
        if row.state not in UNWINDING and shown and shown[-1].text == outcome_text(row):
            shown.pop()
        found += [_step(row, step.at, step.text) for step in shown]
    for request in store.cancels.requests.values():
        if request.outcome:
            what = request.path or "the run"
            took = span(request.elapsed_ms / 1000)
            words = request.outcome.replace("_", " ")
            found.append([(f"cancel of {what}: ", "muted"), (f"{words} after {took}", "bold")])
    return found or [[("waiting for the engine to take it", "muted")]]


def notes(store: Store) -> list[Parts]:
    """Give what follows from what was killed."""
    hit = [row.target for row in store.cancels.rows.values() if row.state in ("killed", "lost")]
    if not hit:
        return []
    names = ", ".join(dict.fromkeys(hit))
    return [[(f"{names}: clean-up did not finish, the state there is unknown", "error")]]


def _line(store: Store, row: CancelRow, now: float) -> Parts:
    targets = max((len(each.name) for each in store.grid.rows), default=6)
    tasks = max(len(each.name) for each in store.cancels.rows.values())
    number = store.grid.row_of(row.target)
    return [
        (store.grid.rows[number].name.ljust(min(targets, 20)) + "  ", "bold"),
        (row.name.ljust(min(tasks, 24)) + "  ", ""),
        cancel_state(row, now),
    ]


def _step(row: CancelRow, at: float, text: str) -> Parts:
    after = f"+{span(max(0.0, at - row.asked_at))}"
    return [(f"{after:>11}  ", "muted"), (text, "muted")]


def _how(store: Store, *, plugin: bool) -> str:
    if not plugin:
        return "What runs on the target is stopped at once."
    return (
        f"A cancel notice goes to the plugin now. It has {grace(store)} to clean up and answer; "
        "after that it is killed."
    )
