"""The frames on the plugins' wires that the console was told of, requests paired with answers."""

from __future__ import annotations

from collections import deque

import msgspec

from preflight.events import WireFrame
from preflight.views.clean import plain
from preflight.views.clock import seconds, span, time_of_day
from preflight.views.parts import Parts, label

KEPT_FRAMES = 5_000
"""Frames that are kept in memory; older ones are counted, and stand in the record."""

_ANSWERS = frozenset({"result", "error"})
_BAD = frozenset({"invalid", "error"})


class Frame(msgspec.Struct):
    """A frame with its number, and the numbers of what it answers, or what answers it."""

    number: int
    event: WireFrame
    pair: int = -1


class Wire:
    """The fold behind the wire screen: the newest frames, the count of all, what is in flight."""

    def __init__(self) -> None:
        self.frames: deque[Frame] = deque(maxlen=KEPT_FRAMES)
        self.count = 0
        self.bytes = 0
        self.changed = False
        self.broken = 0
        self._open: dict[tuple[str, str, str, str], Frame] = {}

    @property
    def dropped(self) -> int:
        """Tell how many frames are in the record alone."""
        return self.count - len(self.frames)

    @property
    def in_flight(self) -> list[Frame]:
        """Give the requests that no answer has come to yet."""
        return list(self._open.values())

    def get(self, number: int) -> Frame | None:
        """Give a frame by its number; ``None`` for one that is no longer kept."""
        at = number - self.dropped
        return self.frames[at] if 0 <= at < len(self.frames) else None

    def frame(self, event: WireFrame) -> None:
        """Take a frame."""
        one = Frame(self.count, event)
        self.frames.append(one)
        self.count += 1
        self.bytes += event.bytes
        self.broken += event.kind == "invalid"
        self.changed = True
        if event.id is None:
            return
        asked = "in" if event.dir == "out" else "out"
        if event.kind in _ANSWERS:
            request = self._open.pop((event.plugin, event.target, asked, str(event.id)), None)
            if request is not None:
                one.pair, request.pair = request.number, one.number
        else:
            self._open[event.plugin, event.target, event.dir, str(event.id)] = one

    def matching(self, words: list[str]) -> list[Frame]:
        """Give the frames that hold every word; ``!word`` excludes."""
        found: list[Frame] = []
        for one in self.frames:
            event = one.event
            text = f"{event.plugin} {event.target} {event.task} {event.dir} {event.kind}".lower()
            if all(
                word[1:] not in text if word.startswith("!") else word in text for word in words
            ):
                found.append(one)
        return found


def heading() -> Parts:
    """Give the heading over the lines of :func:`line`."""
    head = f"  {'time':<12}   {'id':>5}  {'method':<16} {'took':>8} {'bytes':>7}  state"
    return [(head, "muted")]


def line(wire: Wire, one: Frame, *, zone_s: float) -> Parts:
    """Give a frame as a line of a list."""
    event = one.event
    out = event.dir == "out"
    number = "" if event.id is None else str(event.id)
    answer = wire.get(one.pair) if one.pair > one.number else None
    took = event.took_ms
    if answer is not None:
        took = (seconds(answer.event.ts) - seconds(event.ts)) * 1000
    kind = plain(event.kind)
    style = "error" if kind in _BAD else ("muted" if kind in _ANSWERS else "")
    return [
        ("⇢ " if out else "⇠ ", "checking" if out else "in"),
        (time_of_day(event.ts, zone_s), "muted"),
        (f"   {number[:5]:>5}  ", ""),
        (f"{kind:<16.16} ", style),
        (f"{'' if took is None else span(took / 1000):>8} ", ""),
        (f"{event.bytes:>7}  ", "muted"),
        *_state(wire, one),
        (f"{plain(event.plugin)} {plain(event.target)}", "muted"),
    ]


def _state(wire: Wire, one: Frame) -> Parts:
    if one in wire.in_flight:
        return [("◔ waiting   ", "checking")]
    answer = wire.get(one.pair) if one.pair > one.number else None
    if answer is not None and answer.event.kind == "error":
        return [("✗ error     ", "error")]
    return [("✓ answered  ", "ok") if answer is not None else (" " * 12, "")]


def detail(wire: Wire, one: Frame, *, zone_s: float) -> list[Parts]:
    """Give all that is known of a frame, its pair and its text."""
    event = one.event
    way = "host to plugin" if event.dir == "out" else "plugin to host"
    lines = [
        label("way", [(f"{way}, {plain(event.plugin)} on {plain(event.target)}", "")]),
        label("sent", [(time_of_day(event.ts, zone_s), ""), (f"  {event.bytes} bytes", "muted")]),
    ]
    other = wire.get(one.pair) if one.pair >= 0 else None
    if other is not None:
        apart = span(abs(seconds(other.event.ts) - seconds(event.ts)))
        word = "answered" if other.number > one.number else "answers"
        text = f"{time_of_day(other.event.ts, zone_s)} {plain(other.event.kind)}, {apart}"
        lines.append(label(word, [(text, "")]))
    elif one in wire.in_flight:
        lines.append(label("answered", [("not yet", "checking")]))
    return [*lines, [], *([(text, "")] for text in pretty(event.preview))]


def pretty(preview: str) -> list[str]:
    """Give a frame's text indented where it is whole JSON, else as it came."""
    try:
        text = msgspec.json.format(preview, indent=2)
    except msgspec.DecodeError:
        return [plain(preview)] if preview else ["(its text was not recorded)"]
    return [plain(part) for part in text.splitlines()]
