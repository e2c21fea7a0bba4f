"""Which plugin agreed with this host on what."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from preflight.views import capabilities
from preflight.views.store import Changes
from preflight_tui.panes.sheet import Sheet
from preflight_tui.screens.base import ConsoleScreen

_NONE = "No plugin has answered a handshake yet: capabilities are agreed on there."


class CapabilitiesScreen(ConsoleScreen):
    """Plugins × capabilities, and a sentence for each cell of the chosen plugin."""

    TAB = "capabilities"

    DEFAULT_CSS = """
    CapabilitiesScreen #body { layout: vertical; }
    CapabilitiesScreen #table { height: 1fr; }
    CapabilitiesScreen #legend { height: 1; border: none; }
    CapabilitiesScreen #one { height: 1fr; }
    """

    def body(self) -> Iterable[Widget]:
        """Make the panes."""
        yield Sheet(choose=True, wrap=False, heads=1, id="table")
        legend = Sheet(wrap=False, id="legend")
        legend.can_focus = False
        yield legend
        yield Sheet(hang=4, id="one")

    def show_body(self, changes: Changes | None) -> None:
        """Show the table and the chosen plugin."""
        plugins = self.store.plugins
        sheet = self.query_one("#table", Sheet)
        sheet.frame("Plugin × capability", "agreed = both sides offer it")
        sheet.show(capabilities.table(plugins) if plugins.names else [[(_NONE, "muted")]])
        self.query_one("#legend", Sheet).show([capabilities.legend()])
        self._show_one()

    def on_sheet_chosen(self) -> None:
        """Show the plugin that was chosen."""
        self._show_one()

    def _show_one(self) -> None:
        one = self.query_one("#one", Sheet)
        names = self.store.plugins.names
        at = self.query_one("#table", Sheet).chosen - 1
        if 0 <= at < len(names):
            one.frame(names[at])
            one.show(capabilities.explain(self.store.plugins, names[at]))
