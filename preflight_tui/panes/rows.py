"""Paint one line of output: its time, its kind, its text in its own colours, what was found."""

from __future__ import annotations

from typing import NamedTuple

from rich.segment import Segment
from textual.strip import Strip

from preflight.views.clean import PLAIN, runs
from preflight.views.log import LogRow
from preflight_tui.panes.paint import Painted, sgr_style
from preflight_tui.panes.wrapping import cut, folded, paint_spans

MAX_CELLS = 4096
"""Cells of a line that are shown; how much more there is stands at its end."""

_KINDS = {
    "check": "checking",
    "apply": "applying",
    "out": "muted",
    "err": "warning",
    "stderr": "warning",
    "error": "error",
    "warning": "warning",
    "result": "bold",
    "cancel": "unwinding",
    "rpc": "in",
    "plugin": "in",
    "target": "muted",
    "missing": "muted",
}
_STRONG = frozenset({"check", "apply", "result"})


class Hit(NamedTuple):
    """Where a line holds what is looked for, and the name of the style for it."""

    spans: list[tuple[int, int]]
    style: str


def row_strips(pane: Painted, row: LogRow, stamp: str, hit: Hit, room: int) -> list[Strip]:
    """Give a line in strips of at most ``room`` cells, in the styles of a pane."""
    base = pane.look("")
    plain = pane.look("bold") if row.kind in _STRONG else base
    head = [
        Segment(stamp, pane.look("muted")),
        Segment(f"{row.kind:<6.6} ", pane.look(_KINDS.get(row.kind, ""))),
    ]
    body = [
        Segment(text, plain if look == PLAIN else base + sgr_style(look))
        for text, look in runs(row.text)
    ]
    if hit.spans:
        body = paint_spans(body, hit.spans, pane.look(hit.style))
    body = cut(body, MAX_CELLS, pane.look("muted"))
    if pane.in_ascii:
        body = [Segment(pane.shown(text), style) for text, style, _ in body]
    return folded(head, body, room, base)
