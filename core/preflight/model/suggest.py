"""Guesses at what somebody meant to write."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Give ``; did you mean 'x'?`` for the nearest of ``known``, or nothing."""
    import difflib  # only needed once something is wrong

    near = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
