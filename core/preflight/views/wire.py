"""The frames on the plugins' wires that the console was told of, requests paired with answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from preflight.events import WireFrame

KEPT_FRAMES = 5_000
"""Frames that are kept in memory; older ones are counted, and stand in the record."""


class Wire:
    """The fold behind the wire screen: the newest frames, and the count of all."""

    def __init__(self) -> None:
        self.frames: deque[WireFrame] = deque(maxlen=KEPT_FRAMES)
        self.count = 0
        self.bytes = 0
        self.changed = False

    @property
    def dropped(self) -> int:
        """Tell how many frames are in the record alone."""
        return self.count - len(self.frames)

    def frame(self, event: WireFrame) -> None:
        """Take a frame."""
        self.frames.append(event)
        self.count += 1
        self.bytes += event.bytes
        self.changed = True

    def matching(self, words: list[str]) -> Iterator[tuple[int, WireFrame]]:
        """Give the number and the frame of those that hold every word; ``!word`` excludes."""
        for number, frame in enumerate(self.frames, self.dropped):
            text = f"{frame.plugin} {frame.target} {frame.task} {frame.dir} {frame.kind}".lower()
            if all((word[1:] not in text) if word[:1] == "!" else (word in text) for word in words):
                yield number, frame
