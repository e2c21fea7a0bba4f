"""The words for one target, or for one task on it: a line of the matrix, a list, the details."""

from __future__ import annotations

from preflight.views.cancels import CancelRow, outcome_text
from preflight.views.clean import plain
from preflight.views.clock import span
from preflight.views.grid import Cell, Row
from preflight.views.parts import Part, Parts, label
from preflight.views.plugins import SYMBOLS
from preflight.views.states import BAD, LOOKS, RUNNING, State
from preflight.views.store import Store

_SKIPS = {
    "tag-filtered": "tags",
    "when-condition-false": "when",
    "dependency-failed": "dependency",
    "already-satisfied": "in place",
}
_NAME, _MODULE = 28, 14  # the most cells that the columns of a list of tasks are aligned at
_BAR = 6  # cells of the bar that counts a grace down


def glyph(state: State) -> Part:
    """Give a state's symbol in its style."""
    return LOOKS[state].symbol, LOOKS[state].style


def target_order(store: Store, *, worst_first: bool) -> list[int]:
    """Give the rows in the order of the inventory, or those in trouble before others."""
    rows = list(range(len(store.grid.rows)))
    if worst_first:
        worst = {row: max(store.grid.cells[row], default=0) for row in rows}
        rows.sort(key=lambda row: -worst[row] if worst[row] in BAD else 0)
    return rows


def now_text(store: Store, number: int) -> Part:
    """Give the short words that end a target's line: what it does, or what it came to."""
    grid = store.grid
    row = grid.rows[number]
    running = grid.running(number)
    if running:
        return _running(store, number, running[-1])
    if row.status in ("waiting", "contacting"):
        word = "connecting" if row.status == "contacting" else "waiting"
        return word, "muted" if word == "waiting" else "checking"
    if row.status == "unreachable":
        return f"! unreachable: {row.reason}", "unreachable"
    if row.status == "refused":
        return f"refused: {row.violations[0].message if row.violations else row.reason}", "error"
    return _ended(store, number)


def _running(store: Store, number: int, column: int) -> Part:
    grid = store.grid
    task = grid.columns[column]
    row = store.cancels.rows.get((grid.rows[number].target, task.key))
    if grid.state(number, column) is State.UNWINDING and row is not None:
        return cancel_state(row, store.clock.now())
    cell = grid.detail(number, column)
    done = f" {cell.done}/{cell.total}" if cell.total else ""
    return f"{task.name}{done}", LOOKS[grid.state(number, column)].style


def _ended(store: Store, number: int) -> Part:
    grid = store.grid
    row = grid.rows[number]
    if row.latest >= 0:
        state = grid.state(number, row.latest)
        task = grid.columns[row.latest]
        stopped = store.cancels.rows.get((row.target, task.key))
        if state in (State.CANCELLED, State.KILLED) and stopped is not None:
            return f"{LOOKS[state].symbol} {outcome_text(stopped)}", LOOKS[state].style
        if state is State.FAILED:
            return f"✗ {row.latest + 1:02} {task.name}", "error"
    if row.status == "running":
        return "", "muted"
    return ("done", "ok") if row.status == "ok" else (row.status.replace("_", " "), "muted")


def cancel_state(row: CancelRow, now: float) -> Part:
    """Give the words for where a cancel stands, the grace counted down."""
    if row.state == "asked":
        return "◍ asked", "unwinding"
    if row.state == "sent":
        left = row.left_s(now)
        filled = round(_BAR * left * 1000 / row.grace_ms) if row.grace_ms else 0
        return f"◍ {left:.1f} s left {'█' * filled}{'░' * (_BAR - filled)}", "unwinding"
    state = State.CANCELLED if row.state in ("cancelled", "stopped") else State.KILLED
    if row.state == "finished":
        state = State.OK
    return f"{LOOKS[state].symbol} {outcome_text(row)}", LOOKS[state].style


def task_line(store: Store, number: int, column: int) -> Parts:
    """Give a task of a target as a line of a list."""
    grid = store.grid
    task, state = grid.columns[column], grid.state(number, column)
    cell = grid.details.get((number, column), Cell())
    style = "bold" if state in RUNNING else ("muted" if state is State.SKIPPED else "")
    names = max(len(each.name) for each in grid.columns)
    modules = max(len(each.module) for each in grid.columns)
    parts: Parts = [
        glyph(state),
        (f" {column + 1:02} ", "muted"),
        (task.name.ljust(min(names, _NAME)), style),
        (f"  {task.module.ljust(min(modules, _MODULE))}", "muted"),
    ]
    if state in RUNNING:
        took = max(0.0, store.clock.now() - cell.started_at)
        done = f"  {cell.done}/{cell.total}" if cell.total else ""
        parts.append((f"  {span(took)}{done}", LOOKS[state].style))
    elif cell.status:
        took = span(cell.elapsed_ms / 1000) if cell.elapsed_ms else ""
        why = _SKIPS.get(cell.reason, cell.reason) if state is State.SKIPPED else took
        parts.append((f"  {why}", "muted"))
    return parts


def cell_title(store: Store, number: int, column: int) -> str:
    """Give the name of a cell for the frame around what belongs to it."""
    if not 0 <= number < len(store.grid.rows):
        return "output"
    name = store.grid.rows[number].name
    if not 0 <= column < len(store.grid.columns):
        return name
    return f"{name} · {column + 1:02} {store.grid.columns[column].name}"


def cell_lines(store: Store, number: int, column: int) -> list[Parts]:
    """Give the details of a task on a target, or of the target where ``column`` is -1."""
    grid = store.grid
    if not 0 <= number < len(grid.rows):
        return [[("no target yet", "muted")]]
    row = grid.rows[number]
    if not 0 <= column < len(grid.columns):
        return _target_lines(store, number)
    cell = grid.details.get((number, column), Cell())
    state = grid.state(number, column)
    task = grid.columns[column]
    lines = [label("state", _state(store, state, cell))]
    lines.append(
        label("module", [(task.module or "unknown", ""), *_process(store, row, task.module)])
    )
    lines.append(label("target", _target(row)))
    lines += [label("why", [(plain(line), "")]) for line in cell.message.splitlines()[:2]]
    lines += [label("error", [(plain(line), "error")]) for line in cell.error.splitlines()[:3]]
    for change in cell.changes[:3]:
        lines.append(label("change", [(plain(change.path), "changed")]))
    if len(cell.changes) > 3:
        lines.append(label("", [(f"and {len(cell.changes) - 3} more", "muted")]))
    return lines + cancel_lines(store, row.target, task.key)


def cancel_lines(store: Store, target: str, task: str) -> list[Parts]:
    """Give the steps of the cancel of a task, each with its time since it was asked for."""
    row = store.cancels.rows.get((target, task))
    if row is None:
        return []
    lines = [label("cancel", [cancel_state(row, store.clock.now())])]
    for step in row.steps:
        after = f"+{span(max(0.0, step.at - row.asked_at))}"
        lines.append(label("", [(after.rjust(8) + "  ", "muted"), (step.text, "")]))
    return lines


def _target_lines(store: Store, number: int) -> list[Parts]:
    row = store.grid.rows[number]
    lines = [label("state", [now_text(store, number)]), label("target", _target(row))]
    if row.info is not None:
        info = row.info
        words = (info.hostname, info.init, info.package_manager)
        lines.append(label("host", [("  ".join(plain(word) for word in words if word), "")]))
    lines += [label("refused", [(plain(one.message), "error")]) for one in row.violations[:6]]
    if row.message:
        lines.append(label("message", [(row.message, "")]))
    return lines


def _state(store: Store, state: State, cell: Cell) -> Parts:
    look = LOOKS[state]
    parts: Parts = [(f"{look.symbol} {look.word}", look.style)]
    if state in RUNNING:
        parts.append((f"  {span(max(0.0, store.clock.now() - cell.started_at))}", "muted"))
    elif cell.elapsed_ms:
        parts.append((f"  after {span(cell.elapsed_ms / 1000)}", "muted"))
    if cell.total:
        parts.append((f"  {cell.done}/{cell.total}", "muted"))
    if cell.reason:
        parts.append((f"  {cell.reason}", "muted"))
    return parts


def _process(store: Store, row: Row, module: str) -> Parts:
    one = store.plugins.instances.get((module, row.target))
    if one is None:
        return []
    style = SYMBOLS[one.state][1]
    version = f" {one.version}" if one.version else ""
    pid = f"  pid {one.pid}" if one.pid else ""
    protocol = f"  protocol {one.protocol_version}" if one.protocol_version else ""
    return [
        (version, ""),
        ("  plugin ", "muted"),
        (one.state, style),
        (f"{pid}{protocol}", "muted"),
    ]


def _target(row: Row) -> Parts:
    parts: Parts = [
        (" ".join(word for word in (row.transport, row.address) if word) or row.name, "")
    ]
    if row.info is not None:
        words = (row.info.name, row.info.version, row.info.arch, row.info.runtime_kind)
        parts.append(("  " + " ".join(plain(word) for word in words if word), "muted"))
    return parts
