"""What every pane paints with: styles by name, lines of parts, and ASCII where that is asked."""

from __future__ import annotations

from functools import lru_cache

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.content import Content
from textual.dom import DOMNode
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from preflight.views.clean import Sgr
from preflight.views.parts import Item, Part, Parts
from preflight.views.states import in_ascii
from preflight_tui.theme import paint_style


def app_of(node: DOMNode) -> App[int]:
    """Give the app that a widget belongs to."""
    app: App[int] = node.app  # pyright: ignore  # Textual leaves its type open
    return app


class Painted(Widget):
    """A widget that paints its lines itself; it repaints only those that changed."""

    DEFAULT_CSS = """
    Painted {
        border: round $frame;
        border-title-color: $foreground;
        border-title-style: bold;
        border-subtitle-color: $quiet;
        background: $background;
    }
    Painted:focus { border: round $primary; border-title-color: $primary; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._looks: dict[str, Style] = {}
        self._ascii: bool | None = None

    @property
    def in_ascii(self) -> bool:
        """Tell whether the terminal shows ASCII alone."""
        if self._ascii is None:
            self._ascii = self.screen.has_class("-ascii")
        return self._ascii

    def look(self, name: str) -> Style:
        """Give the style that a name stands for, on the widget's own background."""
        style = self._looks.get(name)
        if style is None:
            base = self.visual_style.rich_style
            variables = app_of(self).theme_variables
            style = Style(bgcolor=base.bgcolor) + paint_style(name, variables, colours=True)
            self._looks[name] = style
        return style

    def notify_style_update(self) -> None:
        """Forget the styles: the theme, or the background, is another one."""
        self._looks.clear()
        self._ascii = None
        super().notify_style_update()

    def panel_style(self) -> Style:
        """Give what is laid over a line that is chosen."""
        value = app_of(self).theme_variables["panel"]
        if not value.startswith("#"):  # a theme of the terminal's own colours
            return Style(bold=True)
        return Style(bgcolor=value)

    def shown(self, text: str) -> str:
        """Give ``text`` as the terminal can show it."""
        return in_ascii(text) if self.in_ascii else text

    def strip(self, parts: Parts, width: int, over: Style | None = None) -> Strip:
        """Give a line of exactly ``width`` cells; one that is too long ends in ``…``."""
        segments: list[Segment] = []
        used = 0
        total = sum(cell_len(text) for text, _ in parts)
        room = width if total <= width else max(0, width - 1)
        for text, name in parts:
            piece = self.shown(text)
            cells = cell_len(piece)
            if used + cells > room:
                piece, cells = set_cell_size(piece, room - used), room - used
            style = self.look(name)
            segments.append(Segment(piece, style + over if over else style))
            used += cells
            if used >= room:
                break
        rest = self.look("") + over if over else self.look("")
        if total > width:
            segments.append(Segment(self.shown("…"), rest))
            used += 1
        if used < width:
            segments.append(Segment(" " * (width - used), rest))
        return Strip(segments, max(width, 0))

    def blank(self, width: int) -> Strip:
        """Give an empty line."""
        return Strip([Segment(" " * width, self.look(""))], width)

    def frame(self, title: str, subtitle: str = "") -> None:
        """Set the words in the frame; nothing is painted where they are the same."""
        for name, text in (("border_title", title), ("border_subtitle", subtitle)):
            content = Content(self.shown(text))
            if str(getattr(self, name) or "") != content.plain:
                setattr(self, name, content)

    def repaint_row(self, row: int) -> None:
        """Ask for one line to be painted again."""
        if 0 <= row < self.size.height:
            self.refresh(Region(0, row, self.size.width, 1))


def fit(left: list[Item], right: list[Item], width: int, gap: str = "   ") -> Parts:
    """Give one line of the items that fit: the last one of the highest rank is left out first."""
    left, right = list(left), list(right)
    while True:
        head, tail = _joined(left, gap), _joined(right, gap)
        used = _cells(head) + _cells(tail) + 1
        ranks = [item.rank for item in (*left, *right) if item.rank]
        if used <= width or not ranks:
            break
        worst = max(ranks)
        side = left if any(item.rank == worst for item in left) else right
        last = max(place for place, item in enumerate(side) if item.rank == worst)
        del side[last]
    space = max(1, width - _cells(head) - _cells(tail) - 1)
    return [*head, (" " * space, ""), *tail] if tail else head


def _joined(items: list[Item], gap: str) -> Parts:
    parts: Parts = []
    for number, item in enumerate(items):
        parts += [(gap, ""), *item.parts] if number else item.parts
    return parts


def _cells(parts: Parts) -> int:
    return sum(cell_len(text) for text, _ in parts)


def wrap(parts: Parts, width: int, hang: int = 0) -> list[Parts]:
    """Break a line at ``width`` cells, at blanks where there are some; the rest hangs in."""
    if _cells(parts) <= width or width <= hang + 4:
        return [parts]
    lines: list[Parts] = [[]]
    used = 0
    for word, name in _words(parts):
        cells = cell_len(word)
        while used + cells > width and word.strip():
            if used > (hang if len(lines) > 1 else 0) and cells <= width - hang:
                word = word.lstrip()
            else:
                head = set_cell_size(word, width - used).rstrip("\x00")
                lines[-1].append((head, name))
                word = word[len(head) :]
            lines.append([(" " * hang, "")])
            used, cells = hang, cell_len(word)
        if word:
            lines[-1].append((word, name))
            used += cells
    return lines


def _words(parts: Parts) -> list[Part]:
    found: list[Part] = []
    for text, name in parts:
        start = 0
        for place, char in enumerate(text):
            if char == " " and place > start and text[place - 1] != " ":
                found.append((text[start:place], name))
                start = place
        found.append((text[start:], name))
    return found


@lru_cache(512)
def sgr_style(look: Sgr) -> Style:
    """Give the style for the colours that a program on the target asked for."""
    return Style(
        color=_colour(look.fore),
        bgcolor=_colour(look.back),
        bold=look.bold or None,
        dim=look.dim or None,
        italic=look.italic or None,
        underline=look.underline or None,
        reverse=look.reverse or None,
        strike=look.strike or None,
    )


def _colour(value: int | tuple[int, int, int] | None) -> str | None:
    if value is None:
        return None
    if isinstance(value, int):
        return f"color({value})"
    return "#{:02x}{:02x}{:02x}".format(*value)
