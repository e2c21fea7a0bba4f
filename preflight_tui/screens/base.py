"""What every screen has: the run above, the screens' names, the keys below, a line when small."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from textual.app import ComposeResult
from textual.containers import Container
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget

from preflight.views import header
from preflight.views.parts import Item, Parts
from preflight.views.states import BAD
from preflight.views.store import Changes, Store
from preflight_tui.panes.bars import Bar, key_parts, progress_parts, tab_parts
from preflight_tui.panes.lineview import LineView
from preflight_tui.panes.matrix import Matrix
from preflight_tui.panes.paint import app_of, fit
from preflight_tui.panes.sheet import Sheet

if TYPE_CHECKING:
    from preflight_tui.app import ConsoleApp

TABS = [
    ("run", "Run"),
    ("output", "Output"),
    ("plugins", "Plugins"),
    ("capabilities", "Capabilities"),
    ("wire", "Wire"),
    ("summary", "Summary"),
]

WIDTHS = [(0, "-tiny"), (60, "-narrow"), (100, "-normal"), (160, "-wide")]
HEIGHTS = [(0, "-flat"), (16, "-short"), (30, "-tall")]


def console(node: DOMNode) -> ConsoleApp:
    """Give the console that a widget belongs to."""
    return cast("ConsoleApp", app_of(node))


class ConsoleScreen(Screen[None]):
    """A screen of the console; ``name`` is its name in :data:`TABS`."""

    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    TAB: str = ""

    DEFAULT_CSS = """
    ConsoleScreen { background: $background; layout: vertical; }
    ConsoleScreen #body { height: 1fr; }
    ConsoleScreen #small { display: none; }
    ConsoleScreen.-short #tabs { display: none; }
    ConsoleScreen.-tiny > *, ConsoleScreen.-flat > * { display: none; }
    ConsoleScreen.-tiny #small, ConsoleScreen.-flat #small { display: block; }
    ConsoleScreen .-gone { display: none; }
    """

    @property
    def console_app(self) -> ConsoleApp:
        """Give the app, which has the store and the cursor."""
        return console(self)

    @property
    def store(self) -> Store:
        """Give what is known of the run."""
        return self.console_app.store

    def compose(self) -> ComposeResult:
        """Make the bars and, between them, what the screen is for."""
        yield Bar(2, id="title")
        yield Bar(1, id="tabs")
        with Container(id="body"):
            yield from self.body()
        yield Bar(1, id="keys")
        yield Bar(1, id="small")

    def body(self) -> Iterable[Widget]:
        """Make the panes."""
        return ()

    def on_mount(self) -> None:
        """Show what is known already."""
        self.set_class(self.console_app.options.ascii, "-ascii")
        self.call_after_refresh(self.show, None)

    def on_screen_resume(self) -> None:
        """Show what happened while another screen was open."""
        self.call_after_refresh(self.show, None)

    def on_resize(self) -> None:
        """Fit everything to the new size."""
        self.call_after_refresh(self.show, None)

    def on_descendant_focus(self) -> None:
        """Show the keys of the pane that has the focus."""
        self._show_keys()

    def show(self, changes: Changes | None) -> None:
        """Show the store; ``None``: all of it, as after a resize."""
        if not self.is_mounted:
            return
        width = self.size.width
        app = self.console_app
        left, right = header.title(self.store, live=app.bridge.live or not app.bridge.ended)
        if app.notice:
            left.append(Item(app.notice))
        bar = self.query_one("#title", Bar)
        bar.show(0, fit(left, right, width))
        share, numbers, counts = header.progress(self.store)
        grid = self.store.grid
        bad = sum(grid.counts[state] for state in BAD) / max(1, grid.total)
        bar.show(1, progress_parts(share, bad, numbers, counts, width))
        self.query_one("#tabs", Bar).show(0, tab_parts(TABS, self.TAB))
        self.query_one("#small", Bar).show(0, header.small(self.store))
        if changes is None:
            self._show_keys()
        self.show_body(changes)

    def show_body(self, changes: Changes | None) -> None:
        """Show the panes."""

    def _show_keys(self) -> None:
        places = ["app"]
        if self.query(LineView):
            places.append("output")
        match self.focused:
            case Matrix():
                places.append("matrix")
            case LineView():
                places.append("log")
            case Sheet():
                places.append("list")
            case _:
                pass
        self.query_one("#keys", Bar).show(0, self.key_line(places))

    def key_line(self, places: list[str]) -> Parts:
        """Give the line of the keys."""
        return key_parts(places, self.size.width, self.console_app.keys_of)
