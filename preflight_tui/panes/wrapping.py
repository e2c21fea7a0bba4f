"""Break, cut and mark the segments of a line of output."""

from __future__ import annotations

from itertools import pairwise

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip


def cut(segments: list[Segment], cells: int, style: Style) -> list[Segment]:
    """Give at most ``cells`` cells, and how many bytes more there are."""
    text = "".join(segment.text for segment in segments)
    if len(text) <= cells and cell_len(text) <= cells:
        return segments
    kept = Strip(segments).crop(0, cells)
    left = len(text.encode()) - sum(len(segment.text.encode()) for segment in kept)
    size = f"{left} bytes" if left < 1024 else f"{left / 1024:.0f} KB"
    return [*kept, Segment(f" … +{size}", style)]


def folded(head: list[Segment], body: list[Segment], width: int, base: Style) -> list[Strip]:
    """Give a line as strips of at most ``width`` cells; what is broken hangs under the text."""
    hang = sum(segment.cell_length for segment in head)
    room = width - hang
    total = sum(segment.cell_length for segment in body)
    if total <= room or room < 8:
        return [Strip([*head, *body], hang + total)]
    lines: list[list[Segment]] = [[]]
    used = 0
    for piece in body:
        text, style = piece.text, piece.style
        while used + cell_len(text) > room:
            end = _break(text, room - used, at_start=not lines[-1])
            if end:
                lines[-1].append(Segment(text[:end], style))
            text = text[end:].lstrip(" ") if text[end : end + 1] == " " else text[end:]
            lines.append([])
            used = 0
        if text:
            lines[-1].append(Segment(text, style))
            used += cell_len(text)
    pad = [Segment(" " * hang, base)]
    return [Strip([*(pad if number else head), *line]) for number, line in enumerate(lines) if line]


def _break(text: str, room: int, *, at_start: bool) -> int:
    """Give where to break ``text`` so that ``room`` cells hold it: at a blank if there is one."""
    end = len(set_cell_size(text[: room + 1], room)) if room > 0 else 0
    while end and cell_len(text[:end]) > room:
        end -= 1
    if text[end : end + 1] == " ":
        return end
    blank = text.rfind(" ", 0, end)
    if blank > 0 and (not at_start or blank > room // 2):
        return blank + 1
    return end if end or not at_start else 1


def paint_spans(
    segments: list[Segment], spans: list[tuple[int, int]], style: Style
) -> list[Segment]:
    """Give the segments with the characters of ``spans`` in another style."""
    edges = sorted({edge for each in spans for edge in each})
    found: list[Segment] = []
    place = 0
    for segment in segments:
        end = place + len(segment.text)
        cuts = [place, *(edge for edge in edges if place < edge < end), end]
        for start, stop in pairwise(cuts):
            inside = any(first <= start < last for first, last in spans)
            text = segment.text[start - place : stop - place]
            found.append(Segment(text, style if inside else segment.style))
        place = end
    return found
