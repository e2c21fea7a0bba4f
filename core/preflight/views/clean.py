"""Foreign text made harmless: colours are kept as data, every other control sequence is removed.

What targets and plugins print is hostile until it went through here.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple, TypeAlias

TAB_CELLS = 4

Colour: TypeAlias = "int | tuple[int, int, int] | None"


class Sgr(NamedTuple):
    """The looks that a colour sequence may give; a colour is 0 to 255 or red, green, blue."""

    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False
    fore: Colour = None
    back: Colour = None


PLAIN = Sgr()

Run: TypeAlias = "tuple[str, Sgr]"

_CSI = r"(?:\x1b\[|\x9b)(?P<params>[0-?]*)[ -/]*(?P<final>[@-~])"
_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
_SHORT = r"\x1b[ -/]*[0-Z\\^-~]"
_SEQUENCE = re.compile(f"{_CSI}|{_STRING}|{_SHORT}")
_VARIATION = re.compile("[︀-️]")  # terminals disagree on the width that these give

_FLAGS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_OFF = {
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    27: ("reverse",),
    29: ("strike",),
    39: ("fore",),
    49: ("back",),
}


def plain(text: str) -> str:
    """Give ``text`` on one line without any control character and without colours."""
    if text.isprintable() and not _VARIATION.search(text):
        return text
    return "".join(part for part, _ in runs(text.replace("\n", " ")))


def runs(text: str) -> list[Run]:
    """Give ``text`` in pieces of equal looks; carriage returns and backspaces overwrite."""
    if text.isprintable() and not _VARIATION.search(text):
        return [(text, PLAIN)] if text else []
    return _joined(_cells(text))


def _cells(text: str) -> list[Run]:
    cells: list[Run] = []
    place = 0
    look = PLAIN
    position = 0
    for match in _SEQUENCE.finditer(text):
        place = _write(cells, place, text[position : match.start()], look)
        position = match.end()
        if match["final"] == "m":
            look = _sgr(look, match["params"])
    _write(cells, place, text[position:], look)
    return cells


def _write(cells: list[Run], place: int, text: str, look: Sgr) -> int:
    for char in text:
        if char == "\r":
            place = 0
        elif char == "\b":
            place = max(0, place - 1)
        else:
            for shown in _harmless(char, place):
                cells[place : place + 1] = [(shown, look)]
                place += 1
    return place


def _harmless(char: str, place: int) -> str:
    if char == "\t":
        return " " * (TAB_CELLS - place % TAB_CELLS)
    if char.isprintable():
        return "" if _VARIATION.match(char) else char
    match unicodedata.category(char):
        case "Zs" | "Zl" | "Zp":
            return " "
        case "Cs" | "Co" | "Cn":
            return "�"
        case _:
            return ""


def _joined(cells: list[Run]) -> list[Run]:
    pieces: list[Run] = []
    start = 0
    for end in range(1, len(cells) + 1):
        if end == len(cells) or cells[end][1] != cells[start][1]:
            pieces.append(("".join(char for char, _ in cells[start:end]), cells[start][1]))
            start = end
    return pieces


def _sgr(look: Sgr, params: str) -> Sgr:
    codes = [int(part) if part.isdecimal() else 0 for part in re.split("[;:]", params)]
    while codes:
        code = codes.pop(0)
        if code == 0:
            look = PLAIN
        elif code in _FLAGS:
            look = look._replace(**{_FLAGS[code]: True})
        elif code in _OFF:
            look = look._replace(**{name: Sgr._field_defaults[name] for name in _OFF[code]})
        elif code in (38, 48):
            look = look._replace(**{"fore" if code == 38 else "back": _extended(codes)})
        else:
            look = _sixteen(look, code)
    return look


def _sixteen(look: Sgr, code: int) -> Sgr:
    for base, name, first in ((30, "fore", 0), (40, "back", 0), (90, "fore", 8), (100, "back", 8)):
        if base <= code <= base + 7:
            return look._replace(**{name: code - base + first})
    return look


def _extended(codes: list[int]) -> Colour:
    kind = codes.pop(0) if codes else 0
    if kind == 5 and codes:
        return min(codes.pop(0), 255)
    if kind == 2 and len(codes) >= 3:
        red, green, blue = (min(codes.pop(0), 255) for _ in range(3))
        return red, green, blue
    return None
