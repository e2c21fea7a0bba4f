"""How the width of the matrix is shared out among names, cells and words."""

from __future__ import annotations

from typing import NamedTuple

_NOW_CELLS = 18  # the least that the words at the end of a line get
_NAME_CELLS = 22  # the most that a target's name gets


class Layout(NamedTuple):
    """How a width is shared out: the name, the cells (``step`` wide each), the words."""

    name: int
    step: int
    first: int
    columns: int
    now: int


def share_out(width: int, longest: int, columns: int, left: int) -> Layout:
    """Give the layout for ``columns`` tasks, the first shown one near ``left``."""
    name = max(6, min(longest, _NAME_CELLS))
    room = width - name - 5 - _NOW_CELLS
    step = next((step for step in (3, 2) if columns * step <= room), 1)
    shown = max(0, min(columns, room // step))
    first = max(0, min(left, columns - shown))
    return Layout(name, step, first, shown, max(0, width - name - 5 - shown * step))


def column_numbers(layout: Layout, *, tens: bool) -> str:
    """Give the numbers over the cells, from 1; in narrow cells the tens stand above the ones."""
    numbers = range(layout.first + 1, layout.first + layout.columns + 1)
    if layout.step > 1:
        return "".join(f"{number:02}".rjust(layout.step) for number in numbers)
    if tens:
        return "".join(str(number // 10 % 10) if number % 10 == 0 else " " for number in numbers)
    return "".join(str(number % 10) for number in numbers)
