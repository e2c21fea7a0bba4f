"""What is held of every frame in every scenario, whatever the scenario is about."""

from __future__ import annotations

from collections import deque
from typing import cast

import msgspec

Frame = dict[str, object]

_KEPT_FRAMES = 30  # of a talk: enough to see what led to a fault
_SHOWN_BYTES = 400  # of a frame


class Seen(msgspec.Struct, frozen=True):
    """A fault: what was seen, and the frames that led to it."""

    words: str
    frames: list[str]


class Watch:
    """The first fault of each kind in one plugin, and how many lines of output it sent."""

    def __init__(self) -> None:
        self.faults: dict[str, Seen] = {}
        self.output_count = 0

    def note(self, id: str, words: str, frames: list[str]) -> None:
        """Keep a fault; of a kind the first is kept."""
        self.faults.setdefault(id, Seen(words, frames))


class Log:
    """The newest frames of one talk, cut to what can be shown."""

    def __init__(self) -> None:
        self._frames: deque[str] = deque(maxlen=_KEPT_FRAMES)

    @property
    def frames(self) -> list[str]:
        """The frames, oldest first; ``>`` is to the plugin."""
        return list(self._frames)

    def add(self, arrow: str, data: bytes) -> None:
        """Keep what was written or read."""
        text = data[:_SHOWN_BYTES].rstrip(b"\n").decode("utf-8", "replace")
        more = f" … {len(data)} bytes" if len(data) > _SHOWN_BYTES else ""
        self._frames.append(f"{arrow} {text}{more}")


def shape_fault(frame: Frame) -> str:
    """Say why a JSON object is no frame; empty for one that is.

    A response may lack ``result``: that is an empty result.
    """
    if frame.get("jsonrpc") != "2.0":
        return 'jsonrpc is not "2.0"'
    if "method" in frame:
        return "" if isinstance(frame["method"], str) else "method is no string"
    if "id" not in frame:
        return "neither method nor id"
    if frame.get("error") is not None:
        if "result" in frame and frame["result"] is not None:
            return "both a result and an error"
        error = members(frame["error"])
        code, message = error.get("code"), error.get("message")
        if not isinstance(code, int) or isinstance(code, bool) or not isinstance(message, str):
            return "an error needs an integer code and a message"
    return ""


def members(value: object) -> Frame:
    """Give an object's members; none for what is no object."""
    return cast("Frame", value) if isinstance(value, dict) else {}


def error_code(frame: Frame) -> object:
    """Give the code of an error answer; None for a result."""
    return members(frame.get("error")).get("code")
