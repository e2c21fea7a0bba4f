"""The console: what keys do, and what is asked of the engine.

It is a process of its own: whatever happens to it, the run goes on.
"""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from preflight.views import cancelling
from preflight.views.detail import cell_title
from preflight.views.diff import diff_lines
from preflight.views.parts import Parts
from preflight_tui import output
from preflight_tui.keys import PRIORITY, bindings
from preflight_tui.palette import KeyCommands
from preflight_tui.screens.base import ConsoleScreen
from preflight_tui.screens.capabilities import CapabilitiesScreen
from preflight_tui.screens.dialogs import Answer, Ask, Cancelling, Listing, Prompt, help_lines
from preflight_tui.screens.output import OutputScreen
from preflight_tui.screens.plugins import PluginsScreen
from preflight_tui.screens.run import RunScreen
from preflight_tui.screens.summary import SummaryScreen
from preflight_tui.screens.wire import WireScreen
from preflight_tui.viewer import Viewer

INTERRUPTED = 130
"""The exit code of a run, or a console, that was left by ctrl+c."""


class ConsoleApp(Viewer):
    """Shows one run, live or past. Its result is the exit code, or ``None`` when it crashed."""

    COMMANDS: ClassVar = {KeyCommands}
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app"), *PRIORITY]
    SCREENS: ClassVar = {
        "run": RunScreen,
        "output": OutputScreen,
        "plugins": PluginsScreen,
        "capabilities": CapabilitiesScreen,
        "wire": WireScreen,
        "summary": SummaryScreen,
    }

    def action_go(self, name: str) -> None:
        """Open a screen."""
        if name in self.SCREENS and not (
            isinstance(self.screen, ConsoleScreen) and name == self.screen.TAB
        ):
            self.switch_screen(name)  # pyright: ignore  # Textual leaves its type open

    def action_home(self) -> None:
        """Go back: end a search, leave a zoomed pane, go home; never quit."""
        view = self.view()
        if view is not None and view.find is not None:
            view.search("")
        elif self.screen.maximized is not None:
            self.screen.minimize()
        elif isinstance(self.screen, ConsoleScreen) and self.screen.TAB != "run":
            self.action_go("run")
        else:
            self.screen.set_focus(next(iter(self.screen.focus_chain), None))

    def action_find(self) -> None:
        """Ask what to find in the output, or which frames of the wire to show."""
        if isinstance(self.screen, WireScreen):
            words = " ".join(self.screen.words)
            prompt = Prompt("words that a frame must hold; !word: must not", words)
            self.push_screen(prompt, self._filter_wire)
            return
        view = self.view()
        if view is None:
            return

        def found(needle: str | None) -> None:
            self.needle = needle or ""
            view.search(self.needle)
            self.finding = view
            if needle:
                view.focus()

        self.push_screen(Prompt("find in the output; capitals count when there are some"), found)

    def _filter_wire(self, words: str | None) -> None:
        if isinstance(self.screen, WireScreen):
            self.screen.search(words or "")

    def action_follow(self) -> None:
        """Follow the end of the output, and the task that runs."""
        if isinstance(self.screen, WireScreen):
            self.screen.toggle_follow()
        view = self.view()
        if view is not None:
            view.toggle_follow()
            self.auto = self.auto or view.follow
            self.paint(self.collect())

    def action_wrap(self) -> None:
        """Break long lines, or not."""
        if (view := self.view()) is not None:
            view.toggle_wrap()

    def action_time(self) -> None:
        """Show other time stamps."""
        if (view := self.view()) is not None:
            view.next_time()

    def action_task(self, direction: int) -> None:
        """Go to the next task of the target, or the one before."""
        self.put_cursor(self.cursor[0], self.cursor[1] + direction)

    def action_zoom(self) -> None:
        """Show the pane that has the focus alone, or all again."""
        if self.screen.maximized is not None:
            self.screen.minimize()
        elif self.focused is not None:
            self.screen.maximize(self.focused, container=False)
        self.call_after_refresh(self.paint, None)

    def action_theme(self, name: str) -> None:
        """Use another theme."""
        self.theme = name

    def action_sort(self) -> None:
        """Show the targets in another order."""
        self.worst_first = not self.worst_first
        self.notify("worst first" if self.worst_first else "as in the inventory", markup=False)
        self.paint(None)

    def action_diff(self) -> None:
        """Show what the check of the task found different."""
        row, column = self.cursor
        grid = self.store.grid
        if 0 <= row < len(grid.rows) and 0 <= column < len(grid.columns):
            changes = grid.detail(row, column).changes
            self.push_screen(Listing(cell_title(self.store, row, column), diff_lines(changes)))

    def action_copy(self) -> None:
        """Copy what is selected, or the lines that are in sight."""
        output.copy_sight(self)

    def action_copy_all(self) -> None:
        """Copy the whole output of the task."""
        output.copy_all(self)

    def action_export(self) -> None:
        """Write the output of the task to a file."""
        if (path := output.exported(self)) is not None:
            self.notify(f"Written to {path}", markup=False)

    def action_pager(self) -> None:
        """Open the output of the task in the operator's pager."""
        if (path := output.exported(self)) is not None:
            with self.suspend():
                output.open_pager(path)

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Listing("Keys", help_lines(self.keys_of), hang=20))

    def action_cancel(self) -> None:
        """Ask what to cancel: the task under the cursor, its target, or the run."""
        row, column = self.cursor
        if not self._can_cancel():
            return
        if not cancelling.can_cancel(self.store, row, column):
            self.action_cancel_run()
            return
        target, key = self.store.grid.rows[row].target, self.store.grid.columns[column].key
        answers = [
            Answer("escape", "Keep running", "keep"),
            Answer("c", "Cancel this task", f"{target}/{key}"),
            Answer("t", f"Cancel all of {self.store.grid.rows[row].name}", target),
            Answer("C", "Cancel the whole run", ""),
        ]
        self.push_screen(
            Ask("Cancel", cancelling.ask_lines(self.store, row, column), answers), self._cancel
        )

    def action_cancel_run(self) -> None:
        """Ask whether to cancel the run."""
        if not self._can_cancel():
            return
        answers = [
            Answer("escape", "Keep running", "keep"),
            Answer("C", "Cancel the whole run  (ctrl+c)", ""),
        ]
        self.push_screen(Ask("Cancel", cancelling.ask_run_lines(self.store), answers), self._cancel)

    def action_cancelling(self) -> None:
        """Show every cancel with its steps."""
        if self.store.cancels.requests or self.pending:
            self._show_cancelling()
        else:
            self.notify("Nothing is being cancelled: c cancels.", markup=False)

    def action_interrupt(self) -> None:
        """Take ctrl+c: ask, then cancel, then kill, then leave."""
        if not self.bridge.live or self.store.grid.finished is not None:
            self.exit(self.exit_code())
        elif self.kill_asked:
            self.exit(INTERRUPTED)
        elif "" in self.store.cancels.requests or "" in self.pending:
            self.kill_now()
        elif not (isinstance(self.screen, Ask) and self.screen.confirm("")):
            self.action_cancel_run()

    def action_leave(self) -> None:
        """Quit; while the run goes on ask what is to become of it."""
        if not self.bridge.live or self.store.grid.finished is not None:
            self.exit(self.exit_code())
            return
        if isinstance(self.screen, Ask):
            return
        lines: list[Parts] = [[("The run is going on.", "bold")], []]
        lines.append([("Detached, it goes on without this console: ", "muted")])
        lines.append([(f"preflight-tui attach {self.options.run_id}", "")])
        answers = [
            Answer("escape", "Stay", "stay"),
            Answer("d", "Detach: the run goes on", "detach"),
            Answer("C", "Cancel the run and quit", "cancel"),
        ]
        self.push_screen(Ask("Quit", lines, answers), self._leave)

    def kill_now(self) -> None:
        """Ask the engine to kill what is unwinding, each cancel that is open."""
        paths = [request.path for request in self.store.cancels.open_requests] or list(self.pending)
        self.kill_asked = self.kill_asked or "" in paths
        for path in paths:
            self._ask_engine(path, kill=True)
        self._show_cancelling()

    def _can_cancel(self) -> bool:
        if self.bridge.live and self.store.grid.finished is None:
            return True
        self.notify("Nothing runs: the run is over.", markup=False)
        return False

    def _cancel(self, path: str | None) -> None:
        if path is None or path == "keep":
            return
        self.auto = False  # what was cancelled stays in sight
        self.pending[path] = self.monotonic()
        self._ask_engine(path, kill=False)
        if "/" not in path:
            self._show_cancelling()
        self.paint(self.collect())

    def _leave(self, answer: str | None) -> None:
        if answer == "detach":
            self.exit(0)
        elif answer == "cancel":
            self.leave_when_over = True
            self._cancel("")

    def _ask_engine(self, path: str, *, kill: bool) -> None:
        self.run_worker(self._send(path, kill), name="cancel", exit_on_error=False)

    async def _send(self, path: str, kill: bool) -> None:
        try:
            await self.bridge.feed.cancel(path, kill)
        except Exception as exc:  # whatever the link says, the operator must see it
            self.notify(f"The engine could not be told: {exc}", severity="error", markup=False)

    def _show_cancelling(self) -> None:
        if not any(isinstance(screen, Cancelling) for screen in self.screen_stack):
            self.push_screen(Cancelling())
