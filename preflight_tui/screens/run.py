"""The home screen: targets × tasks, the tasks of the target, details, output, plugins."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Vertical
from textual.widget import Widget

from preflight.views.detail import cell_lines, cell_title, task_line
from preflight.views.plugin_text import plugin_heading, plugin_line, summary
from preflight.views.store import Changes
from preflight_tui.panes.lineview import LineView
from preflight_tui.panes.matrix import Matrix
from preflight_tui.panes.sheet import Sheet
from preflight_tui.screens.base import ConsoleScreen

_LEAST_DETAIL = 8  # lines, the frame included
_LEAST_TASKS = 5  # lines, the frame included, that a list of tasks is worth showing in
_LEAST_PLUGINS = 4  # plugins that are in sight before the matrix gets the room


class RunScreen(ConsoleScreen):
    """The run in one picture."""

    TAB = "run"

    DEFAULT_CSS = """
    RunScreen #body { layout: horizontal; }
    RunScreen #left { width: 62; height: 1fr; }
    RunScreen #right { width: 1fr; height: 1fr; }
    RunScreen #tasks { height: 1fr; min-height: 3; }
    RunScreen #plugins { height: 1fr; min-height: 4; }
    RunScreen #detail { height: 8; }
    RunScreen #output { height: 1fr; }
    RunScreen.-wide #left { width: 96; }
    RunScreen.-narrow #body { layout: vertical; }
    RunScreen.-narrow #left { width: 1fr; height: 10; }
    RunScreen.-narrow #right { width: 1fr; height: 1fr; }
    RunScreen.-narrow #detail, RunScreen.-narrow #plugins { display: none; }
    RunScreen.-normal.-short #plugins { display: none; }
    """

    def body(self) -> Iterable[Widget]:
        """Make the panes."""
        with Vertical(id="left"):
            yield Matrix(self.store, id="matrix")
            yield Sheet(choose=True, wrap=False, id="tasks")
            yield Sheet(heads=1, wrap=False, id="plugins")
        with Vertical(id="right"):
            yield Sheet(hang=11, id="detail")
            yield LineView(zone_s=self.console_app.options.zone_s, id="output")

    def show_body(self, changes: Changes | None) -> None:
        """Show the panes; only what changed is painted."""
        app = self.console_app
        row, column = app.cursor
        matrix = self.query_one(Matrix)
        if changes is None or changes.reshaped or changes.plugins:
            self._share_out()
        matrix.worst_first = app.worst_first
        matrix.place_cursor(row, column)
        matrix.show(None if changes is None or changes.reshaped else changes.rows)
        self._show_tasks(row, column)
        detail = self.query_one("#detail", Sheet)
        detail.frame(cell_title(self.store, row, column))
        detail.show(cell_lines(self.store, row, column))
        height = max(_LEAST_DETAIL, min(detail.height_wanted + 2, self.size.height // 3))
        if detail.styles.height is None or detail.styles.height.value != height:
            detail.styles.height = height
        app.show_output(self.query_one("#output", LineView))
        if changes is None or changes.plugins:
            self._show_plugins()

    def _share_out(self) -> None:
        """Give the left side to the matrix, then to the tasks, then to the plugins."""
        matrix, tasks = self.query_one(Matrix), self.query_one("#tasks", Sheet)
        plugins = self.query_one("#plugins", Sheet)
        room = self.query_one("#left").size.height
        if not room:
            return
        names = len(self.store.plugins.names)
        least = 0 if self.has_class("-narrow") else min(max(1, names), _LEAST_PLUGINS) + 3
        wanted = len(self.store.grid.rows) + 2 + matrix.heads
        left = room - wanted - least
        tasks_wanted = len(self.store.grid.columns) + 2
        tasks.set_class(left < min(_LEAST_TASKS, tasks_wanted), "-gone")
        plugins.set_class(not least or room < least * 2, "-gone")
        if tasks.has_class("-gone"):
            matrix.styles.height = "1fr" if plugins.has_class("-gone") else room - least
            return
        matrix.styles.height = wanted
        tasks.styles.height = min(left, tasks_wanted) if least else "1fr"

    def _show_tasks(self, row: int, column: int) -> None:
        tasks = self.query_one("#tasks", Sheet)
        if not 0 <= row < len(self.store.grid.rows) or tasks.has_class("-gone"):
            return
        tasks.frame(f"Tasks of {self.store.grid.rows[row].name}")
        count = len(self.store.grid.columns)
        tasks.show([task_line(self.store, row, each) for each in range(count)], column)

    def _show_plugins(self) -> None:
        pane = self.query_one("#plugins", Sheet)
        plugins = self.store.plugins
        pane.frame("Plugins", summary(plugins))
        lines = [plugin_line(plugins, name) for name in plugins.names]
        pane.show([plugin_heading(), *lines] if lines else [[("none started yet", "muted")]])

    def on_matrix_moved(self, message: Matrix.Moved) -> None:
        """Put the cursor where the operator wants it."""
        self.console_app.put_cursor(message.row, message.column)

    def on_matrix_opened(self) -> None:
        """Go to the output."""
        self.query_one("#output", LineView).focus()

    def on_sheet_chosen(self, message: Sheet.Chosen) -> None:
        """Follow the task that was chosen."""
        if message.sheet.id == "tasks":
            self.console_app.put_cursor(self.console_app.cursor[0], message.line)

    def on_sheet_opened(self, message: Sheet.Opened) -> None:
        """Go to the output, or to the plugins."""
        if message.sheet.id == "plugins":
            self.console_app.action_go("plugins")
        else:
            self.query_one("#output", LineView).focus()
