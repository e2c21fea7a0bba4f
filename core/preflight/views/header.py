"""What stands above every screen: which run this is, how far it is, what it came to."""

from __future__ import annotations

from preflight.views.clean import plain
from preflight.views.clock import watch
from preflight.views.parts import Item, Parts
from preflight.views.states import LOOKS, RUNNING, State
from preflight.views.store import Store

_ETA_FROM_S = 5.0  # before that the first tasks say nothing about the others
_ENDINGS = {
    "ok": ("FINISHED", "ok"),
    "failed": ("FINISHED WITH FAILURES", "failed"),
    "refused": ("REFUSED", "failed"),
    "cancelled": ("CANCELLED", "cancelled"),
    "crashed": ("CRASHED", "failed"),
}


def elapsed_s(store: Store) -> float:
    """Give the seconds that the run has taken, by the engine's clock."""
    finished = store.grid.finished
    if finished is not None and finished.elapsed_ms:
        return finished.elapsed_ms / 1000
    if not store.grid.started_at:
        return 0.0
    return max(0.0, store.clock.now() - store.grid.started_at)


def title(store: Store, *, live: bool) -> tuple[list[Item], list[Item]]:
    """Give the first line: what the run is on the left, its time on the right."""
    run = store.grid.run
    if run is None:
        return [Item([(" preflight ", "brand")]), Item([("waiting for the run", "muted")])], []
    mode = "APPLY" if run.mode == "apply" else "CHECK"
    size = f"{_count(len(store.grid.rows), 'target')} × {_count(len(store.grid.columns), 'task')}"
    left = [
        Item([(" preflight ", "brand")]),
        Item([(plain(run.playbook) or "playbook", "bold")]),
        Item([(f" {mode} ", f"mode-{run.mode}")]),
        Item([("run ", "muted"), (plain(run.run_id), "")], 2),
        Item([(size, "muted")], 4),
    ]
    if run.concurrency:
        left.append(Item([(f"{run.concurrency} at once", "muted")], 5))
    state = run_state(store, live=live)
    if state:
        left.append(Item(state))
    right = [Item([(watch(elapsed_s(store)), "bold")])]
    remaining = eta_s(store)
    if live and remaining is not None:
        right.append(Item([(f"ETA ~{watch(remaining)}", "muted")], 3))
    return left, right


def run_state(store: Store, *, live: bool) -> Parts:
    """Give the word for what the run is in, where it is not just going on."""
    finished = store.grid.finished
    if finished is not None:
        word, style = _ENDINGS.get(finished.status, (finished.status.upper(), "bold"))
        return [(word, style)]
    if any(not request.path for request in store.cancels.open_requests):
        return [("CANCELLING", "unwinding")]
    if not live:
        return [("INCOMPLETE", "warning")]
    return []


def eta_s(store: Store) -> float | None:
    """Guess the seconds that are left; ``None`` while there is too little to go by."""
    done, total = store.grid.done, store.grid.total
    elapsed = elapsed_s(store)
    if store.grid.finished is not None or elapsed < _ETA_FROM_S or done * 20 < total or not done:
        return None
    return elapsed * (total - done) / done


def progress(store: Store) -> tuple[float, Parts, Parts]:
    """Give the share that is done from 0 to 1, its numbers, and the counts by state."""
    done, total = store.grid.done, store.grid.total
    share = done / total if total else 0.0
    return (
        share,
        [(f"{int(share * 100):3}%", "bold"), (f"  {done}/{total}", "muted")],
        counts(store),
    )


def counts(store: Store) -> Parts:
    """Give the number of cells in each state that there is any of, with its symbol."""
    grid = store.grid
    parts: Parts = []
    for state in (
        State.OK,
        State.CHANGED,
        State.WOULD_CHANGE,
        State.FAILED,
        State.IGNORED,
        State.UNREACHABLE,
        State.KILLED,
        State.CANCELLED,
        State.SKIPPED,
    ):
        if grid.counts[state]:
            look = LOOKS[state]
            parts += [(f"{look.symbol}{grid.counts[state]}", look.style), (" ", "")]
    running = sum(grid.counts[state] for state in RUNNING)
    if running:
        parts += [(f"{LOOKS[State.APPLYING].symbol}{running} now", "applying"), (" ", "")]
    return parts[:-1]


def small(store: Store) -> Parts:
    """Give the one line for a terminal that is too small."""
    failed = store.grid.counts[State.FAILED] + store.grid.counts[State.UNREACHABLE]
    running = sum(store.grid.counts[state] for state in RUNNING)
    return [
        (f"{store.grid.done}/{store.grid.total}", "bold"),
        (f" ◕{running}", "applying"),
        (f" ✗{failed}", "failed" if failed else "muted"),
        (" widen the terminal", "muted"),
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
