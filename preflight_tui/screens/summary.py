"""What the run came to, and what needs somebody."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from preflight.views import summary
from preflight.views.cancelling import notes
from preflight.views.parts import Parts
from preflight.views.store import Changes
from preflight_tui.panes.sheet import Sheet
from preflight_tui.screens.base import ConsoleScreen


class SummaryScreen(ConsoleScreen):
    """The result, and a line for everything that needs somebody; enter goes there."""

    TAB = "summary"

    DEFAULT_CSS = """
    SummaryScreen #body { layout: vertical; }
    SummaryScreen #result { height: 9; }
    SummaryScreen #needs { height: 1fr; }
    SummaryScreen #same { height: auto; border: none; }
    """

    def body(self) -> Iterable[Widget]:
        """Make the panes."""
        result = Sheet(hang=9, id="result")
        result.can_focus = False
        yield result
        yield Sheet(choose=True, wrap=False, id="needs")
        same = Sheet(id="same")
        same.can_focus = False
        yield same

    def show_body(self, changes: Changes | None) -> None:
        """Show the result and what needs somebody."""
        app = self.console_app
        result = self.query_one("#result", Sheet)
        result.frame("Result")
        result.show(
            summary.result_lines(self.store, live=app.bridge.live, record=app.options.record)
        )
        result.styles.height = result.height_wanted + 2
        needs = summary.needs(self.store)
        sheet = self.query_one("#needs", Sheet)
        sheet.frame(f"Needs you ({len(needs)})", "enter opens" if needs else "")
        nothing = "Nothing needs you." if self.store.grid.finished else "Nothing needs you so far."
        sheet.show([need.parts for need in needs] if needs else [[(nothing, "ok")]])
        extra: list[Parts] = [*summary.same(needs), *notes(self.store)]
        same = self.query_one("#same", Sheet)
        same.styles.height = len(extra)
        same.show(extra)

    def on_sheet_opened(self, message: Sheet.Opened) -> None:
        """Go to the cell."""
        needs = summary.needs(self.store)
        if 0 <= message.line < len(needs):
            need = needs[message.line]
            self.console_app.action_go("run")
            self.console_app.put_cursor(need.row, need.column)
