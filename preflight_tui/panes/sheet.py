"""A list of lines with a chosen one: details, plugins, cancels, keys, summaries."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.strip import Strip

from preflight.views.parts import Parts
from preflight_tui.keys import bindings
from preflight_tui.panes.paint import Painted, wrap


class Sheet(Painted, can_focus=True):
    """Lines that scroll; with ``choose`` one of them is chosen, and enter opens it."""

    BINDINGS = bindings("list")

    class Chosen(Message):
        """Another line was chosen by the operator."""

        def __init__(self, sheet: Sheet, line: int) -> None:
            super().__init__()
            self.sheet = sheet
            self.line = line

        @property
        def control(self) -> Sheet:
            """Give the sheet that it happened in."""
            return self.sheet

    class Opened(Chosen):
        """The chosen line is to be opened."""

    def __init__(
        self,
        *,
        choose: bool = False,
        wrap: bool = True,
        hang: int = 0,
        heads: int = 0,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.chosen = heads if choose else -1
        self._heads = heads
        self._wrap = wrap
        self._hang = hang
        self._given: list[Parts] = []
        self._lines: list[tuple[int, Parts]] = []
        self._painted: list[tuple[int, Parts]] = []
        self._top = 0

    @property
    def lines(self) -> list[Parts]:
        """Give the lines that were shown last, before they were broken."""
        return self._given

    @property
    def height_wanted(self) -> int:
        """Tell how many lines there are when they are broken at this width."""
        return len(self._lines)

    def show(self, lines: list[Parts], chosen: int | None = None) -> None:
        """Show other lines; only those that differ are painted."""
        place = self.chosen if chosen is None else chosen + self._heads
        if lines == self._given and place == self.chosen and self._painted:
            return
        self.chosen, self._given = place, lines
        self._lay_out()

    def choose(self, line: int) -> None:
        """Choose a line, counted without the headings, and bring it into sight."""
        self.chosen = line + self._heads
        self._lay_out()

    def _lay_out(self) -> None:
        width = self.size.width
        self._lines = [
            (number, piece)
            for number, line in enumerate(self._given)
            for piece in (wrap(line, width, self._hang) if self._wrap else [line])
        ]
        self._keep_in_sight()
        now = self._visible()
        if len(now) != len(self._painted):
            self.refresh()
        else:
            for row, (old, new) in enumerate(zip(self._painted, now, strict=True)):
                if old != new:
                    self.repaint_row(row)
        self._painted = now

    def _visible(self) -> list[tuple[int, Parts]]:
        heads = self._lines[: self._heads]
        body = self._lines[self._heads + self._top :]
        shown = (heads + body)[: self.size.height]
        return [(number if number != self.chosen else -1, parts) for number, parts in shown]

    def _keep_in_sight(self) -> None:
        room = max(1, self.size.height - self._heads)
        last = max(0, len(self._lines) - self._heads - room)
        if self.chosen >= 0:
            self.chosen = min(self.chosen, max(self._heads, len(self._given) - 1))
            at = next((row for row, line in enumerate(self._lines) if line[0] == self.chosen), 0)
            at -= self._heads
            self._top = max(min(self._top, at), at - room + 1)
        self._top = max(0, min(self._top, last))

    def render_line(self, y: int) -> Strip:
        """Paint a line."""
        width = self.size.width
        visible = self._painted
        if y >= len(visible):
            return self.blank(width)
        number, parts = visible[y]
        if self.chosen < 0:
            return self.strip(parts, width)
        over = self.panel_style() if number == -1 else None
        mark = ("▸ ", "key") if number == -1 else ("  ", "")
        return self.strip([mark, *parts], width, over)

    def on_resize(self) -> None:
        """Break the lines anew."""
        self._painted = []
        self._lay_out()

    def action_up(self) -> None:
        """Go up a line."""
        self._move(-1)

    def action_down(self) -> None:
        """Go down a line."""
        self._move(1)

    def action_page(self, direction: int) -> None:
        """Go a page up or down."""
        self._move(direction * max(1, self.size.height - self._heads - 1))

    def action_edge(self, direction: int) -> None:
        """Go to the first or the last line."""
        self._move(direction * len(self._lines))

    def action_open(self) -> None:
        """Open the chosen line."""
        if self.chosen >= self._heads:
            self.post_message(self.Opened(self, self.chosen - self._heads))

    def _move(self, by: int) -> None:
        if self.chosen < 0:
            self._top += by
            self._lay_out()
            return
        before = self.chosen
        self.chosen = max(self._heads, min(self.chosen + by, len(self._given) - 1))
        self._lay_out()
        if self.chosen != before:
            self.post_message(self.Chosen(self, self.chosen - self._heads))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Go down."""
        event.stop()
        self._move(2)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Go up."""
        event.stop()
        self._move(-2)

    def on_click(self, event: events.Click) -> None:
        """Choose the line under the pointer; a second click opens it."""
        row = event.get_content_offset_capture(self).y
        if self.chosen < 0 or not 0 <= row < len(self._painted):
            return
        number = self._painted[row][0]
        if number == -1:
            self.action_open()
        elif number >= self._heads:
            self._move(number - self.chosen)
