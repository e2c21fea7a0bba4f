"""Lines as pieces of text with the name of a style: what a pane paints."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Part: TypeAlias = "tuple[str, str]"
"""A piece of harmless text, and the name of its style; ``""`` for ordinary text."""

Parts: TypeAlias = "list[Part]"


class Item(NamedTuple):
    """A piece of a bar that may be left out: the highest ``rank`` goes first, 0 never."""

    parts: Parts
    rank: int = 0


def text_of(parts: Parts) -> str:
    """Give the text of a line without its styles."""
    return "".join(text for text, _ in parts)


def label(name: str, parts: Parts, width: int = 10) -> Parts:
    """Give a line that begins with a muted name."""
    return [(name.ljust(width) + " ", "muted"), *parts]
