"""The plugins: all of them in a list, and everything about the chosen one."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from preflight.views.parts import Parts
from preflight.views.plugin_text import instance_lines, plugin_heading, plugin_line, summary
from preflight.views.store import Changes
from preflight_tui.panes.sheet import Sheet
from preflight_tui.screens.base import ConsoleScreen

_NONE = "No plugin yet. Plugins start on first use: a task that names one starts it."


class PluginsScreen(ConsoleScreen):
    """Every plugin's state, error, stderr and life."""

    TAB = "plugins"

    DEFAULT_CSS = """
    PluginsScreen #body { layout: horizontal; }
    PluginsScreen #list { width: 70; height: 1fr; }
    PluginsScreen #one { width: 1fr; height: 1fr; }
    PluginsScreen.-narrow #body { layout: vertical; }
    PluginsScreen.-narrow #list { width: 1fr; height: 8; }
    """

    def body(self) -> Iterable[Widget]:
        """Make the panes."""
        yield Sheet(choose=True, wrap=False, heads=1, id="list")
        yield Sheet(hang=11, id="one")

    def show_body(self, changes: Changes | None) -> None:
        """Show the list and the chosen plugin."""
        plugins = self.store.plugins
        sheet = self.query_one("#list", Sheet)
        sheet.frame("Plugins", summary(plugins))
        lines = [plugin_line(plugins, name, wide=True) for name in plugins.names]
        sheet.show([plugin_heading(wide=True), *lines] if lines else [[(_NONE, "muted")]])
        self._show_one(sheet)

    def on_sheet_chosen(self) -> None:
        """Show the plugin that was chosen."""
        self._show_one(self.query_one("#list", Sheet))

    def _show_one(self, sheet: Sheet) -> None:
        one = self.query_one("#one", Sheet)
        names = self.store.plugins.names
        at = sheet.chosen - 1
        if not 0 <= at < len(names):
            one.frame("Details")
            one.show([])
            return
        lines: list[Parts] = []
        host: list[str] = []
        for instance in self.store.plugins.of(names[at]):
            if lines:
                lines.append([])
            if instance.target:
                lines.append([("on ", "muted"), (instance.target, "bold")])
            zone_s = self.console_app.options.zone_s
            lines += instance_lines(instance, zone_s=zone_s, host=host)
        one.frame(names[at])
        one.show(lines)
