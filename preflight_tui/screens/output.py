"""The output of a task on the whole screen."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from preflight.views.store import Changes
from preflight_tui.panes.lineview import LineView
from preflight_tui.screens.base import ConsoleScreen


class OutputScreen(ConsoleScreen):
    """Nothing but output."""

    TAB = "output"

    def body(self) -> Iterable[Widget]:
        """Make the pane."""
        yield LineView(zone_s=self.console_app.options.zone_s, id="output")

    def show_body(self, changes: Changes | None) -> None:
        """Show the output of the cell under the cursor."""
        self.console_app.show_output(self.query_one(LineView))
