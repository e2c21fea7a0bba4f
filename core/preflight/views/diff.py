"""What a check found different, line by line."""

from __future__ import annotations

from difflib import unified_diff

from preflight.events import Change
from preflight.views.clean import plain
from preflight.views.parts import Parts

_STYLES = {"+": "ok", "-": "error", "@": "checking"}


def diff_lines(changes: list[Change]) -> list[Parts]:
    """Give every change: its path, then its lines with ``-`` before and ``+`` after."""
    lines: list[Parts] = []
    for change in changes:
        lines.append([(plain(change.path), "bold"), (f"  {_what(change)}", "muted")])
        before = (change.before or "").splitlines()
        after = (change.after or "").splitlines()
        texts = list(unified_diff(before, after, n=3, lineterm=""))[2:]
        lines += [[(plain(text) or " ", _STYLES.get(text[:1], ""))] for text in texts]
        lines.append([])
    return lines or [[("The check found nothing different here.", "muted")]]


def _what(change: Change) -> str:
    if change.before is None:
        return "new"
    return "removed" if change.after is None else "changed"
