"""The bars around every screen: what the run is, how far it is, the screens, the keys."""

from __future__ import annotations

from collections.abc import Mapping

from textual.strip import Strip

from preflight.views.parts import Item, Parts
from preflight_tui.keys import hints
from preflight_tui.panes.paint import Painted, fit


class Bar(Painted):
    """Some lines without a frame that are set from outside."""

    DEFAULT_CSS = """
    Bar { height: auto; border: none; }
    Bar:focus { border: none; }
    """

    def __init__(self, height: int = 1, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.styles.height = height
        self._lines: list[Parts] = [[] for _ in range(height)]

    def show(self, row: int, parts: Parts) -> None:
        """Show other words in a line; painted only where they differ."""
        if self._lines[row] != parts:
            self._lines[row] = parts
            self.repaint_row(row)

    def render_line(self, y: int) -> Strip:
        """Paint a line."""
        return self.strip(self._lines[y] if y < len(self._lines) else [], self.size.width)


def progress_parts(
    share: float, bad_share: float, numbers: Parts, counts: Parts, width: int
) -> Parts:
    """Give the line of the progress: a bar, its numbers and the counts."""
    tail = fit([Item(numbers)], [Item(counts)], 0)
    used = sum(len(text) for text, _ in tail)
    room = max(8, min(width - used - 4, width // 2))
    filled = round(room * share)
    bad = min(filled, max(1, round(room * bad_share))) if bad_share else 0
    bar: Parts = [
        (" ", ""),
        ("█" * (filled - bad), "bar"),
        ("█" * bad, "bar-failed"),
        ("░" * (room - filled), "bar-rest"),
        (" ", ""),
    ]
    return fit([Item([*bar, *numbers])], [Item(counts)], width)


def tab_parts(tabs: list[tuple[str, str]], now: str) -> Parts:
    """Give the line of the screens' names, the one that is open marked."""
    parts: Parts = [(" ", "")]
    for number, (name, title) in enumerate(tabs, 1):
        style = "tab-now" if name == now else "tab"
        parts += [(f" {number} {title} ", style), (" ", "")]
    return parts


def key_parts(places: list[str], width: int, own: Mapping[str, str]) -> Parts:
    """Give the line of the keys that work where the focus is; ``own`` are the operator's."""
    items: list[Item] = []
    for key in hints(places):
        name = own.get(key.id) or key.show or key.keys
        items.append(Item([(name, "key"), (f" {key.hint}", "muted")], key.rank))
    return fit([Item([(" ", "")]), *items], [], width, gap="  ")
