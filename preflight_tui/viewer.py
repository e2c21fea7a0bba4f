"""The part of the console that shows: it drains the feed, and paints when there is a reason to."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from textual import events
from textual.app import App
from textual.filter import LineFilter, Monochrome, NoColor

from preflight.views.detail import cell_title
from preflight.views.parts import Parts
from preflight.views.store import Changes, Store
from preflight_tui.bridge import DRAIN_S, SLICE_S, Bridge
from preflight_tui.keys import keymap
from preflight_tui.panes.lineview import LineView
from preflight_tui.screens.base import ConsoleScreen
from preflight_tui.screens.dialogs import Cancelling
from preflight_tui.theme import THEMES, HarmlessFilter, start_theme

ENGINE_GONE = 70  # the code for a bug of ours: an engine always has a last word
CATCH_UP_BYTES = 1024 * 1024  # behind by that much, most of the time goes into reading
_CATCH_UP_S = 0.035
PAINT_S = 0.1  # seconds between two paintings, unless a key was pressed
_KEYED_S = 0.3  # after a key every drain paints
_COUNTDOWN_S = 0.2  # how often a grace that counts down is painted
_SECOND_S = 1.0  # how often the run's clock is painted while nothing happens
_ANSWER_S = 1.0  # an engine that has not taken a cancel by then is reported
_LAST_S = 2.0  # from being told to go to the end, whatever holds it up
_FIND_S = 0.010  # of each drain for a search


class Options(NamedTuple):
    """What a console is told when it starts."""

    ascii: bool = False
    zone_s: float = 0.0
    theme: str = ""
    report: Path | None = None
    run_id: str = ""
    record: str = ""


class Viewer(App[int]):
    """Shows a store on its screens; :class:`preflight_tui.app.ConsoleApp` adds what keys do."""

    TITLE = "preflight"
    COMMAND_PALETTE_BINDING = "ctrl+p"
    CSS = """
    .-ascii Sheet, .-ascii Matrix, .-ascii LineView { border: ascii $frame; }
    .-ascii Sheet:focus, .-ascii Matrix:focus, .-ascii LineView:focus { border: ascii $primary; }
    .-ascii #box { border: ascii $accent; }
    .-ascii #box Sheet { border: none; }
    """

    def __init__(
        self,
        bridge: Bridge,
        options: Options | None = None,
        *,
        keys: Mapping[str, str] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.bridge = bridge
        self.store: Store = bridge.store
        self.options = options or Options()
        self.cursor = (0, -1)
        self.auto = True
        self.pending: dict[str, float] = {}
        self.notice: Parts = []
        self.needle = ""
        self.was_over = True
        self._was_live = bridge.live
        self._loop: asyncio.AbstractEventLoop | None = None
        self.finding: LineView | None = None
        self.worst_first = False
        self.monotonic = monotonic
        self._painted_at = 0.0
        self._keyed_at = -1.0
        self.leave_when_over = False
        self.kill_asked = False
        self._owed: Changes | None = None
        for theme in THEMES:
            self.register_theme(theme)
        wanted = self.options.theme or start_theme()
        self.theme = wanted if wanted in self.available_themes else THEMES[0].name
        self.animation_level = "none"
        self.keys_of = dict(keys or {})
        self.set_keymap(keymap(self.keys_of))

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Give the filters of every line, the one that keeps the terminal safe last."""
        filters = [each for each in super().get_line_filters() if type(each) is not Monochrome]
        if "NO_COLOR" in os.environ:
            filters.append(NoColor())
        return [*filters, HarmlessFilter()]

    async def on_mount(self) -> None:
        """Open the home screen, and begin to take events."""
        self._loop = asyncio.get_running_loop()
        self.was_over = self.store.grid.finished is not None
        await self.push_screen("run")
        self.run_worker(self.bridge.pump(), name="pump", exit_on_error=True)
        self.set_interval(DRAIN_S, self.tick, name="drain")

    def told_to_go(self, number: int) -> None:
        """Leave because of a signal; safe in a signal handler.

        A terminal that is gone, or that does not read, holds the loop up for ever: a thread then
        ends the process, and the launcher gives the terminal back.
        """
        code = 128 + number
        last = threading.Timer(_LAST_S, os._exit, (code,))
        last.daemon = True
        last.start()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(lambda: self.exit(code, return_code=code))

    def tick(self) -> None:
        """Drain the feed, and paint where there is a reason to: at most 20 times a second."""
        now = self.monotonic()
        keyed = now - self._keyed_at < _KEYED_S
        catching_up = self.bridge.behind_bytes > CATCH_UP_BYTES and not keyed
        self.bridge.drain(_CATCH_UP_S if catching_up else SLICE_S)
        if not self.screen_stack:  # between two screens
            return
        self._advance_find()
        since = now - self._painted_at
        changes = self.collect()
        if (changes.any and (keyed or since >= PAINT_S)) or since >= self._pace():
            self.paint(changes)
        if self.bridge.live != self._was_live:
            self._was_live = self.bridge.live
            self.paint(None)
        over = self.store.grid.finished is not None
        if over and not self.was_over and self.bridge.feed.live and not self.app_focus:
            self.bell()  # the operator looks elsewhere
        self.was_over = over
        if self.leave_when_over and (self.store.grid.finished or not self.bridge.live):
            self.exit(self.exit_code())

    def paint(self, changes: Changes | None) -> None:
        """Show the store on every screen that can be seen; ``None``: all of it."""
        self._painted_at = self.monotonic()
        self._owed = None
        self._follow_run()
        self._notice()
        for screen in self.screen_stack:
            if isinstance(screen, ConsoleScreen | Cancelling):
                screen.show(changes)

    def collect(self) -> Changes:
        """Give what changed since the last painting."""
        new = self.store.take_changes()
        old = self._owed
        if old is not None:
            new = Changes(
                new.rows | old.rows,
                new.logs | old.logs,
                *(a or b for a, b in zip(new[2:], old[2:], strict=True)),
            )
        self._owed = new
        return new

    def _pace(self) -> float:
        if not self.bridge.live or self.store.grid.finished is not None:
            return float("inf") if not self.pending else _SECOND_S
        unwinding = self.store.cancels.unwinding or self.pending
        return _COUNTDOWN_S if unwinding else _SECOND_S

    def _follow_run(self) -> None:
        grid = self.store.grid
        if not self.auto or not grid.rows:
            return
        row = min(self.cursor[0], len(grid.rows) - 1)
        running = grid.running(row)
        if not running and grid.rows[row].elapsed_ms:
            row = next((each for each in range(len(grid.rows)) if grid.running(each)), row)
            running = grid.running(row)
        self.cursor = (row, running[-1] if running else grid.rows[row].latest)

    def _notice(self) -> None:
        requests = self.store.cancels.requests
        now = self.monotonic()
        for path in [path for path in self.pending if path in requests]:
            del self.pending[path]
        late = max((now - at for at in self.pending.values()), default=0.0)
        self.notice = []
        if self.bridge.ended and self.bridge.feed.live and self.store.grid.finished is None:
            self.notice = [(f"engine is gone, last event {self.store.last_ts[11:23]}", "error")]
        elif late > _ANSWER_S:
            self.notice = [(f"engine is not answering ({late:.1f} s)", "error")]
        elif self.pending:
            self.notice = [("cancel asked", "unwinding")]
        elif self.bridge.behind_bytes > CATCH_UP_BYTES:
            self.notice = [(f"reading, {self.bridge.behind_bytes // 1048576} MB behind", "warning")]

    def exit_code(self) -> int:
        """Give the run's exit code: 0 while it goes on without us, 70 where its engine died."""
        finished = self.store.grid.finished
        if finished is not None:
            return finished.exit_code
        return ENGINE_GONE if self.bridge.ended else 0

    async def on_event(self, event: events.Event) -> None:
        """Note that a key was pressed: the next drains paint at once."""
        if isinstance(event, events.Key):
            self._keyed_at = self.monotonic()
        await super().on_event(event)

    def put_cursor(self, row: int, column: int) -> None:
        """Put the cursor on a cell: from now on it stays where the operator put it."""
        rows, columns = len(self.store.grid.rows), len(self.store.grid.columns)
        if not rows:
            return
        self.auto = False
        self.cursor = (max(0, min(row, rows - 1)), max(-1, min(column, columns - 1)))
        self._keyed_at = self.monotonic()
        self.paint(self.collect())

    def show_output(self, view: LineView) -> None:
        """Let a pane show the output of the cell under the cursor."""
        grid = self.store.grid
        row, column = self.cursor
        if not 0 <= row < len(grid.rows):
            view.update_lines()
            return
        task = grid.columns[column].key if 0 <= column < len(grid.columns) else ""
        view.start_at = grid.started_at
        details = view.screen.query("#detail")
        named = bool(details) and details.first().display
        subject = "Output" if named else cell_title(self.store, row, column)
        view.open(self.bridge.reader((grid.rows[row].target, task)), subject)
        view.update_lines()

    def view(self) -> LineView | None:
        """Give the output that is on the screen, if one is."""
        views = [one for one in self.screen.query(LineView) if one.display]
        return views[0] if views else None

    def _advance_find(self) -> None:
        if self.finding is None or self.finding.find is None or self.finding.find.done:
            return
        view, find = self.finding, self.finding.find
        until = self.monotonic() + _FIND_S
        before = find.count
        find.step(lambda: self.monotonic() < until)
        view.words()
        if before == 0 and find.count:
            view.action_hit(-1)

    def _fatal_error(self) -> None:
        """Write the report of a bug of ours to a file: a traceback on the screen shows secrets."""
        text = traceback.format_exc()
        if self.options.report is not None:
            with suppress(OSError):
                self.options.report.write_text(text, encoding="utf-8")
        self._close_messages_no_wait()
