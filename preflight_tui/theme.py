"""The themes, what a style's name looks like in each, and how foreign text is kept harmless."""

from __future__ import annotations

import os
import re

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import BUILTIN_THEMES, Theme

DARK = Theme(
    name="preflight-dark",
    primary="#6cb6ff",
    secondary="#9d8cff",
    accent="#f0a6ff",
    success="#5fd38d",
    warning="#f2c14e",
    error="#ff6b6b",
    foreground="#dfe5ee",
    background="#0e1318",
    surface="#0e1318",
    panel="#1a222c",
    dark=True,
    variables={"frame": "#334150", "quiet": "#8b98a9", "faint": "#566475"},
)

LIGHT = Theme(
    name="preflight-light",
    primary="#0b5cad",
    secondary="#5b3fb8",
    accent="#92278f",
    success="#116b35",
    warning="#8a5a00",
    error="#b3141d",
    foreground="#1b222b",
    background="#fbfbf9",
    surface="#fbfbf9",
    panel="#e9ebee",
    dark=False,
    variables={"frame": "#b9c1cb", "quiet": "#56616e", "faint": "#8d97a3"},
)

CONTRAST = Theme(
    name="preflight-contrast",
    primary="#7fd4ff",
    secondary="#c9b8ff",
    accent="#ff9cff",
    success="#57ff8f",
    warning="#ffe14d",
    error="#ff8080",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#202020",
    dark=True,
    variables={"frame": "#ffffff", "quiet": "#e0e0e0", "faint": "#b0b0b0"},
)

ANSI = Theme(
    name="preflight-ansi",
    primary="ansi_bright_blue",
    secondary="ansi_cyan",
    accent="ansi_magenta",
    success="ansi_green",
    warning="ansi_yellow",
    error="ansi_red",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    dark=True,
    ansi=True,
    variables={
        **BUILTIN_THEMES["ansi-dark"].variables,
        "frame": "ansi_bright_black",
        "quiet": "ansi_default",
        "faint": "ansi_bright_black",
    },
)

THEMES = (DARK, LIGHT, CONTRAST, ANSI)

# name of a style -> (colour: a key of the theme's variables, what else)
STYLES: dict[str, tuple[str, str]] = {
    "": ("foreground", ""),
    "bold": ("foreground", "bold"),
    "muted": ("quiet", ""),
    "brand": ("primary", "bold reverse"),
    "title": ("primary", "bold"),
    "key": ("primary", "bold"),
    "mode-apply": ("warning", "bold reverse"),
    "mode-check": ("primary", "bold reverse"),
    "pending": ("faint", ""),
    "checking": ("primary", ""),
    "applying": ("primary", "bold"),
    "ok": ("success", ""),
    "changed": ("warning", "bold"),
    "would": ("warning", ""),
    "skipped": ("quiet", "dim"),
    "ignored": ("error", ""),
    "failed": ("error", "bold reverse"),
    "unreachable": ("error", "bold"),
    "unwinding": ("accent", "bold"),
    "cancelled": ("accent", ""),
    "killed": ("error", "bold underline"),
    "error": ("error", ""),
    "warning": ("warning", ""),
    "accent": ("accent", ""),
    "in": ("secondary", ""),
    "bar": ("success", ""),
    "bar-failed": ("error", ""),
    "bar-rest": ("faint", ""),
    "hit": ("warning", "reverse"),
    "hit-now": ("accent", "bold reverse"),
    "tab": ("quiet", ""),
    "tab-now": ("foreground", "bold reverse"),
}


def start_theme() -> str:
    """Give the theme to begin with: ``TEXTUAL_THEME``, or ansi where NO_COLOR is set."""
    asked = os.environ.get("TEXTUAL_THEME", "").split(",")[0].strip()
    if "NO_COLOR" in os.environ:
        return ANSI.name
    return asked or DARK.name


def paint_style(name: str, variables: dict[str, str], *, colours: bool) -> Style:
    """Give the look of a style's name, without a background."""
    variable, attributes = STYLES.get(name, STYLES[""])
    words = dict.fromkeys(attributes.split(), True)
    bold, dim = words.get("bold"), words.get("dim")
    underline, reverse = words.get("underline"), words.get("reverse")
    colour = None
    if colours:
        value = variables.get(variable, variables["foreground"])
        colour = Color.parse(value).rich_color
    return Style(color=colour, bold=bold, dim=dim, underline=underline, reverse=reverse)


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class HarmlessFilter(LineFilter):
    """The last gate before the terminal: no control character of any text gets through."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Remove control characters from the segments of a line."""
        if not any(_CONTROL.search(segment.text) for segment in segments):
            return segments
        return [
            Segment(_CONTROL.sub("", segment.text), segment.style, segment.control)
            for segment in segments
        ]
