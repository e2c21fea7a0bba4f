"""The output of a task: a window over the record, whose memory does not grow with its length."""

from __future__ import annotations

from collections import OrderedDict

from textual import events
from textual.selection import Selection
from textual.strip import Strip

from preflight.views.clean import plain
from preflight.views.clock import seconds, span, time_of_day
from preflight.views.find import Find
from preflight.views.log import LogReader, LogRow
from preflight_tui.keys import bindings
from preflight_tui.panes.paint import Painted
from preflight_tui.panes.rows import MAX_CELLS, Hit, row_strips

_KEPT_LINES = 512
_TIMES = ("clock", "since", "off")


class LineView(Painted, can_focus=True):
    """A window over the lines of a reader; follows their end until the operator goes up."""

    BINDINGS = bindings("log")
    ALLOW_SELECT = True

    def __init__(self, *, zone_s: float = 0.0, id: str | None = None) -> None:
        super().__init__(id=id)
        self.follow = True
        self.wrap = True
        self.time = "clock"
        self.find: Find | None = None
        self.subject = "Output"
        self.start_at = 0.0
        self._zone_s = zone_s
        self._reader: LogReader | None = None
        self._anchor = (0, 0)
        self._side = 0
        self._hit = -1
        self._strips: OrderedDict[tuple[int, int], list[Strip]] = OrderedDict()
        self._shown: list[tuple[int, int]] = []
        self._length = 0

    @property
    def reader(self) -> LogReader | None:
        """Give what the lines come from."""
        return self._reader

    def open(self, reader: LogReader | None, subject: str) -> None:
        """Show the lines of another reader, from their end."""
        self.subject = subject
        if reader is self._reader:
            return
        self._reader, self._anchor, self._hit, self.find = reader, (0, 0), -1, None
        self.follow = True
        self.renew()

    def renew(self) -> None:
        """Paint everything again."""
        self._strips.clear()
        self.update_lines(force=True)

    def update_lines(self, *, force: bool = False) -> None:
        """Paint what came since the last time."""
        length = len(self._reader) if self._reader is not None else 0
        if length != self._length or force:
            self._length = length
            self._lay_out()
            self.refresh()
        self.words()

    def words(self) -> None:
        """Set the words in the frame."""
        last = self._shown[-1][0] + 1 if self._shown else 0
        below = self._length - last
        lines = "line" if self._length == 1 else "lines"
        parts = [f"{self._length:,} {lines}".replace(",", " ")]
        if self.find is not None:
            at = self.find.number(self._hit)
            more = "" if self.find.done else " so far"
            parts.insert(0, f"/{plain(self.find.needle)} {at} of {self.find.count}{more}")
        if below > 0 and not self.follow:
            parts.append(f"{below} below")
        parts.append("FOLLOW" if self.follow else "paused, f follows")
        self.frame(self.subject, " · ".join(parts))

    def action_up(self) -> None:
        """Go up a line."""
        self._scroll(-1)

    def action_down(self) -> None:
        """Go down a line."""
        self._scroll(1)

    def action_left(self) -> None:
        """Show what is further left."""
        self._slide(-16)

    def action_right(self) -> None:
        """Show what is further right."""
        self._slide(16)

    def action_page(self, direction: int) -> None:
        """Go a page up or down."""
        self._scroll(direction * max(1, self.size.height - 1))

    def action_edge(self, direction: int) -> None:
        """Go to the first line, or to the last one and follow."""
        self.follow = direction > 0
        self._anchor = (0, 0)
        self.update_lines(force=True)

    def action_hit(self, direction: int) -> None:
        """Go to the next match, or the one before."""
        if self.find is None:
            return
        start = self._hit if self._hit >= 0 else (self._shown[-1][0] + 1 if self._shown else 0)
        hit = self.find.beyond(start, newer=direction > 0 and self._hit >= 0)
        if hit is not None:
            self._hit = hit
            self.go_to(hit)

    def go_to(self, line: int) -> None:
        """Bring a line into the middle of the window."""
        self.follow = False
        self._anchor = (max(0, line - self.size.height // 2), 0)
        self.renew()

    def toggle_follow(self) -> None:
        """Follow the end, or stay here."""
        if self.follow and self._shown:
            self._anchor = self._shown[0]
        self.follow = not self.follow
        self.update_lines(force=True)

    def toggle_wrap(self) -> None:
        """Break long lines, or let them run out of the window."""
        self.wrap, self._side = not self.wrap, 0
        self._anchor = (self._anchor[0], 0)
        self.renew()

    def next_time(self) -> None:
        """Show the time of day, the time since the start, or none."""
        self.time = _TIMES[(_TIMES.index(self.time) + 1) % len(_TIMES)]
        self.renew()

    def search(self, needle: str) -> None:
        """Find ``needle``; an empty one ends the search."""
        self._hit = -1
        self.find = Find(self._reader, needle) if needle and self._reader is not None else None
        self.renew()

    def render_line(self, y: int) -> Strip:
        """Paint a line of the window."""
        width = self.size.width
        if y >= len(self._shown):
            if y == 0 and not self._length:
                return self.strip([("no output yet", "muted")], width)
            return self.blank(width)
        line, piece = self._shown[y]
        strips = self._line(line)
        strip = strips[min(piece, len(strips) - 1)]
        if not self.wrap and self._side:
            strip = strip.crop_extend(self._side, self._side + width, self.look(""))
        return self._selected(strip.crop_extend(0, width, self.look("")), y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Give the selected text of the lines that are in the window."""
        lines = [
            "".join(segment.text for segment in self.render_line(y)).rstrip()
            for y in range(len(self._shown))
        ]
        return selection.extract("\n".join(lines)), "\n"

    @property
    def text(self) -> str:
        """Give the lines that are in sight."""
        reader = self._reader
        if reader is None:
            return ""
        in_sight = dict.fromkeys(line for line, _ in self._shown)
        return "\n".join(plain(reader.row(line).text) for line in in_sight)

    def selection_updated(self, selection: Selection | None) -> None:
        """Paint the selection."""
        self.refresh()

    def notify_style_update(self) -> None:
        """Forget what was painted in other colours."""
        self._strips.clear()
        super().notify_style_update()

    def on_resize(self) -> None:
        """Break the lines anew."""
        self._anchor = (self._anchor[0], 0)
        self.renew()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Go down."""
        event.stop()
        self._scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Go up."""
        event.stop()
        self._scroll(-3)

    def _selected(self, strip: Strip, y: int) -> Strip:
        selection = self.text_selection
        if selection is not None and (where := selection.get_span(y)) is not None:
            start, end = where
            end = strip.cell_length if end == -1 else end
            style = self.screen.get_component_rich_style("screen--selection")
            before, middle, after = strip.divide([start, end, strip.cell_length])
            strip = Strip.join([before, middle.apply_style(style), after])
        return strip.apply_offsets(0, y)

    def _scroll(self, by: int) -> None:
        if not self._shown:
            return
        line, piece = self._shown[0]
        step = 1 if by > 0 else -1
        for _ in range(abs(by)):
            piece += step
            if piece < 0:
                if line == 0:
                    piece = 0
                    break
                line -= 1
                piece = len(self._line(line)) - 1
            elif piece >= len(self._line(line)):
                if line + 1 >= self._length:
                    piece -= 1
                    break
                line, piece = line + 1, 0
        self.follow = False
        self._anchor = (line, piece)
        self.update_lines(force=True)

    def _slide(self, by: int) -> None:
        if not self.wrap:
            self._side = max(0, self._side + by)
            self.refresh()

    def _lay_out(self) -> None:
        height = self.size.height
        if not self._length or not height:
            self._shown = []
            return
        if not self.follow:
            self._shown = self._downwards(self._anchor, height)
            if len(self._shown) == height or self._anchor == (0, 0):
                return
            self.follow = self._shown[-1][0] + 1 >= self._length
        shown: list[tuple[int, int]] = []
        line = self._length - 1
        while line >= 0 and len(shown) < height:
            shown += [(line, piece) for piece in reversed(range(len(self._line(line))))]
            line -= 1
        self._shown = shown[:height][::-1]

    def _downwards(self, anchor: tuple[int, int], height: int) -> list[tuple[int, int]]:
        line, piece = anchor
        shown: list[tuple[int, int]] = []
        while line < self._length and len(shown) < height:
            shown += [(line, each) for each in range(piece, len(self._line(line)))]
            line, piece = line + 1, 0
        return shown[:height]

    def _line(self, line: int) -> list[Strip]:
        key = (line, self.size.width)
        strips = self._strips.get(key)
        if strips is not None:
            self._strips.move_to_end(key)
            return strips
        assert self._reader is not None
        row = self._reader.row(line)
        first = line == 0 or self._reader.row(line - 1).ts != row.ts
        spans = self.find.span(plain(row.text)) if self.find is not None else []
        hit = Hit(spans, "hit-now" if line == self._hit else "hit")
        stamp = self._stamp(row, with_time=first)
        room = self.size.width if self.wrap else MAX_CELLS + 64
        strips = row_strips(self, row, stamp, hit, room)
        if row.kind != "missing":
            self._strips[key] = strips
            if len(self._strips) > _KEPT_LINES:
                self._strips.popitem(last=False)
        return strips

    def _stamp(self, row: LogRow, *, with_time: bool) -> str:
        if self.time == "off":
            return ""
        if self.time == "clock":
            return f"{time_of_day(row.ts, self._zone_s) if with_time else '':<12} "
        since = span(max(0.0, seconds(row.ts) - self.start_at)) if with_time else ""
        return f"{since:>8} "
