"""The states of a task on a target, with their symbol, word and the name of their style.

Every symbol is one cell wide everywhere: no emoji, none of ambiguous width.
Source: console.md F5.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class State(IntEnum):
    """What a cell of the matrix shows; small numbers, kept in a bytearray."""

    ABSENT = 0
    PENDING = 1
    CHECKING = 2
    APPLYING = 3
    OK = 4
    CHANGED = 5
    WOULD_CHANGE = 6
    SKIPPED = 7
    IGNORED = 8
    FAILED = 9
    UNREACHABLE = 10
    UNWINDING = 11
    CANCELLED = 12
    KILLED = 13


class Look(NamedTuple):
    """How a state is shown: a symbol, one for terminals without it, a word, a style's name."""

    symbol: str
    ascii: str
    word: str
    style: str


LOOKS: dict[State, Look] = {
    State.ABSENT: Look(" ", " ", "not in its plan", "muted"),
    State.PENDING: Look("∙", ".", "waiting", "pending"),
    State.CHECKING: Look("◔", "c", "checking", "checking"),
    State.APPLYING: Look("◕", "a", "applying", "applying"),
    State.OK: Look("✓", "=", "ok", "ok"),
    State.CHANGED: Look("~", "~", "changed", "changed"),
    State.WOULD_CHANGE: Look("∆", "d", "would change", "would"),
    State.SKIPPED: Look("-", "-", "skipped", "skipped"),
    State.IGNORED: Look("x", "x", "failed, ignored", "ignored"),
    State.FAILED: Look("✗", "X", "failed", "failed"),
    State.UNREACHABLE: Look("!", "!", "unreachable", "unreachable"),
    State.UNWINDING: Look("◍", "%", "cancelling", "unwinding"),
    State.CANCELLED: Look("⊘", "@", "cancelled", "cancelled"),
    State.KILLED: Look("⊗", "K", "killed, state unknown", "killed"),
}

RUNNING = frozenset({State.CHECKING, State.APPLYING, State.UNWINDING})
BAD = frozenset({State.FAILED, State.UNREACHABLE, State.KILLED})
WAITING = frozenset({State.ABSENT, State.PENDING})

_ASCII = str.maketrans(
    {look.symbol: look.ascii for look in LOOKS.values()}
    | dict(zip("◌⇢⇠▸▾█░━─│·…×↑↓←→◀▶•†", "o><>v#.=-|:~x^v<><>*+", strict=True))
    | {"⏎": "enter", "⇥": "tab"}
)


def in_ascii(text: str) -> str:
    """Give ``text`` for a terminal that shows ASCII alone; what has no likeness becomes ``?``."""
    if text.isascii():
        return text
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
