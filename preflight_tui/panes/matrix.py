"""Targets × tasks as one picture: a symbol for every task on every target, painted by rows."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip

from preflight.views.detail import now_text, target_order
from preflight.views.states import BAD, LOOKS, RUNNING, State
from preflight.views.store import Store
from preflight_tui.keys import bindings
from preflight_tui.panes.columns import Layout, column_numbers, share_out
from preflight_tui.panes.paint import Painted


class Matrix(Painted, can_focus=True):
    """The matrix; its cursor is one cell. ``column`` -1 is the target itself."""

    BINDINGS = bindings("matrix")

    class Moved(Message):
        """The operator moved the cursor."""

        def __init__(self, row: int, column: int) -> None:
            super().__init__()
            self.row = row
            self.column = column

    class Opened(Message):
        """The cell under the cursor is to be opened."""

    def __init__(self, store: Store, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.store = store
        self.order: list[int] = []
        self.worst_first = False
        self.cursor = (0, -1)
        self._top = 0
        self._left = 0
        self._shape: tuple[int, int, int, int] | None = None
        self._share = share_out(0, 0, 0, 0)

    @property
    def heads(self) -> int:
        """Tell how many lines the heading takes."""
        return 2 if self._layout().step == 1 and len(self.store.grid.columns) > 9 else 1

    def show(self, dirty: set[int] | None = None) -> None:
        """Paint again: all of it, or the rows of the targets that changed."""
        self.order = target_order(self.store, worst_first=self.worst_first)
        self._keep_in_sight()
        self._words()
        if dirty is None:
            self.refresh()
            return
        for row in range(self.heads, self.size.height):
            number = self._number(row)
            if number is None:
                break
            if number in dirty or State.UNWINDING in self.store.grid.cells[number]:
                self.repaint_row(row)

    def place_cursor(self, row: int, column: int) -> None:
        """Put the cursor on a cell."""
        if (row, column) == self.cursor:
            return
        old = self.cursor
        before = (self._top, self._left)
        self.cursor = (row, column)
        self._keep_in_sight()
        if before != (self._top, self._left) or old[1] != column:
            self.refresh()
        else:
            self.show({row, old[0]})

    def action_up(self) -> None:
        """Go to the target above."""
        self._move(-1, 0)

    def action_down(self) -> None:
        """Go to the target below."""
        self._move(1, 0)

    def action_left(self) -> None:
        """Go to the task before."""
        self._move(0, -1)

    def action_right(self) -> None:
        """Go to the next task."""
        self._move(0, 1)

    def action_page(self, direction: int) -> None:
        """Go a page up or down."""
        self._move(direction * max(1, self.size.height - self.heads), 0)

    def action_edge(self, direction: int) -> None:
        """Go to the first or the last target."""
        self._move(direction * len(self.order), 0)

    def action_open(self) -> None:
        """Open the cell under the cursor."""
        self.post_message(self.Opened())

    def action_failure(self, direction: int) -> None:
        """Go to the next failure, or the one before, row by row."""
        cells = self.store.grid.cells
        width = len(self.store.grid.columns)
        total = width * len(self.order)
        if not total:
            return
        place = self._position() * width + max(0, self.cursor[1])
        for _ in range(total):
            place = (place + direction) % total
            row, column = self.order[place // width], place % width
            if State(cells[row][column]) in BAD:
                self.post_message(self.Moved(row, column))
                return

    def render_line(self, y: int) -> Strip:
        """Paint a line: the heading, or a target."""
        layout = self._layout()
        width = self.size.width
        if y < self.heads:
            return self._heading(y, layout, width)
        number = self._number(y)
        return self.blank(width) if number is None else self._row(number, layout, width)

    def _row(self, number: int, layout: Layout, width: int) -> Strip:
        grid = self.store.grid
        here = number == self.cursor[0]
        over = self.panel_style() if here else None
        plain = self._over("bold" if here else "", over)
        name = set_cell_size(self.shown(grid.rows[number].name), layout.name)
        mark = self.shown("▸") if here else " "
        name_style = plain
        if here and self.cursor[1] < 0 and self.has_focus:
            name_style = plain + Style(reverse=True)
        segments = [Segment(mark, self._over("key", over)), Segment(name, name_style)]
        segments += [Segment("  ", plain), *self._cells(number, layout, over)]
        text, style = now_text(self.store, number)
        segments.append(Segment("  ", plain))
        used = 5 + layout.name + layout.columns * layout.step
        room = max(0, width - used)
        text = self.shown(text)
        if cell_len(text) > room:
            text = set_cell_size(text, max(0, room - 1)) + self.shown("…")[:room]
        segments.append(Segment(set_cell_size(text, room), self._over(style, over)))
        return Strip(segments).adjust_cell_length(width, plain)

    def _cells(self, number: int, layout: Layout, over: Style | None) -> list[Segment]:
        """Give the symbols of a target: neighbours of one look are one segment."""
        cells = self.store.grid.cells[number]
        row, at = self.cursor
        segments: list[Segment] = []
        text, last = "", -1
        for column in range(layout.first, layout.first + layout.columns):
            value = cells[column]
            cursor = row == number and column == at
            if (value != last or cursor) and text:
                segments.append(self._segment(text, last, over))
                text = ""
            symbol = LOOKS[State(value)].symbol
            if layout.step > 1 and (value == State.FAILED or cursor):
                segments.append(Segment(text + " ", self._over("", over)))
                text = ""
            elif layout.step > 1:
                text += " "
            text += symbol
            last = value
            if cursor:
                style = self._over(LOOKS[State(value)].style, over) + Style(reverse=True, bold=True)
                segments.append(Segment(self.shown(text), style))
                text = ""
            if layout.step > 1:
                pad = " " * (layout.step - 2)
                if value == State.FAILED and not cursor:
                    segments.append(self._segment(text, last, over))
                    text = ""
                text += pad
                last = value if value != State.FAILED else State.ABSENT
        if text:
            segments.append(self._segment(text, last, over))
        return segments

    def _segment(self, text: str, value: int, over: Style | None) -> Segment:
        return Segment(self.shown(text), self._over(LOOKS[State(value)].style, over))

    def _over(self, name: str, over: Style | None) -> Style:
        style = self.look(name)
        return style + over if over else style

    def _heading(self, y: int, layout: Layout, width: int) -> Strip:
        numbers = column_numbers(layout, tens=self.heads == 2 and y == 0)
        last = y == self.heads - 1
        name = "target" if last else ""
        end = "now" if last else ""
        text = f" {name.ljust(layout.name)}  {numbers}  {end}"
        return self.strip([(text, "muted")], width)

    def _layout(self) -> Layout:
        grid = self.store.grid
        shape = (self.size.width, len(grid.rows), len(grid.columns), self._left)
        if shape != self._shape:
            longest = max((cell_len(row.name) for row in grid.rows), default=6)
            self._shape = shape
            self._share = share_out(self.size.width, longest, len(grid.columns), self._left)
        return self._share

    def _number(self, row: int) -> int | None:
        at = row - self.heads + self._top
        return self.order[at] if row >= self.heads and at < len(self.order) else None

    def _position(self) -> int:
        row = self.cursor[0]
        return self.order.index(row) if row in self.order else 0

    def _move(self, rows: int, columns: int) -> None:
        if not self.order:
            return
        position = max(0, min(self._position() + rows, len(self.order) - 1))
        column = max(-1, min(self.cursor[1] + columns, len(self.store.grid.columns) - 1))
        moved = (self.order[position], column)
        if moved != self.cursor:
            self.post_message(self.Moved(*moved))

    def _keep_in_sight(self) -> None:
        room = max(1, self.size.height - self.heads)
        at = self._position()
        self._top = max(min(self._top, at), at - room + 1)
        self._top = max(0, min(self._top, len(self.order) - room))
        shown = max(1, self._layout().columns)
        column = max(0, self.cursor[1])
        self._left = max(0, max(min(self._left, column), column - shown + 1))

    def _words(self) -> None:
        grid = self.store.grid
        room = max(0, self.size.height - self.heads)
        last = min(len(self.order), self._top + room)
        bad = sum(grid.counts[state] for state in BAD)
        words = (
            ""
            if last - self._top >= len(self.order)
            else f"{self._top + 1}-{last} of {len(self.order)}"
        )
        if bad:
            words += f"{' · ' if words else ''}{bad} failed · n next"
        running = sum(grid.counts[state] for state in RUNNING)
        self.frame("Targets × tasks", words or (f"{running} running" if running else ""))

    def on_focus(self) -> None:
        """Show the cursor as it is with the focus."""
        self.refresh()

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self._keep_in_sight()
        self._words()

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the pointer is."""
        offset = event.get_content_offset_capture(self)
        number = self._number(offset.y)
        if number is None:
            return
        layout = self._layout()
        column = (offset.x - 3 - layout.name) // layout.step + layout.first
        inside = 0 <= column < layout.first + layout.columns
        self.post_message(self.Moved(number, column if inside else self.cursor[1]))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Go down."""
        event.stop()
        self._move(1, 0)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Go up."""
        event.stop()
        self._move(-1, 0)
