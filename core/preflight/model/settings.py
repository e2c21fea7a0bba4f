"""Durations, and the numbers that bound the engine."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")

DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$"
DURATION_WORDS = "a duration such as 90s, 5m or 1h30m"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds a run.

    *Units*: ``cancel_grace``, ``init_timeout`` and ``timeout`` in seconds. ``concurrency`` is how
    many targets run at once, 0 for all. ``keep_runs`` counts finished runs.
    Source: protocol.md sections 2 and 5 for the first three.
    """

    cancel_grace: float = 2.0
    init_timeout: float = 10.0
    max_message_bytes: int = 67_108_864
    concurrency: int = 32
    keep_runs: int = 20
    timeout: float | None = None
    fail_fast: bool = False


_Count = Annotated[int, Meta(ge=1, description="a whole number from 1 on")]
_MessageBytes = Annotated[int, Meta(ge=4096, description="a number of bytes from 4096 on")]
_Duration = Annotated[str, Meta(pattern=DURATION_PATTERN, description=DURATION_WORDS)]


class ProjectSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What ``settings`` of ``preflight.yml`` may bound; a flag of the command line wins."""

    cancel_grace: _Duration | None = None
    init_timeout: _Duration | None = None
    max_message_bytes: _MessageBytes | None = None
    concurrency: _Count | None = None
    keep_runs: _Count | None = None

    def given(self) -> dict[str, object]:
        """List what is set, durations in seconds, by the names that ``Settings`` has for them."""
        found: dict[str, object] = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None:
                found[name] = parse_duration(value) if isinstance(value, str) else value
        return found


def parse_duration(text: str) -> float:
    """Give the seconds that a text such as ``90s``, ``5m`` or ``1h30m`` names.

    Raises ``ValueError`` for a text without a unit, and for nothing at all.
    """
    trimmed = text.strip()
    end = 0
    seconds = 0.0
    for part in _PART.finditer(trimmed):
        if part.start() != end:
            break
        seconds += float(part[1]) * _UNITS[part[2]]
        end = part.end()
    if not trimmed or end != len(trimmed) or seconds <= 0:
        raise ValueError(f"{text!r} is not {DURATION_WORDS}")
    return seconds
