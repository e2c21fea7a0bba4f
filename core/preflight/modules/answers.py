"""What a script of ours answers: fields, one a line, or a tool's own words where it failed."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.errors import ModuleError, Reason
from preflight.ports.target import ExecResult

NO_TOOL = 124
"""The exit code of a script that lacks a program; what it lacks is the last line of stderr."""

_LONGEST_WORDS = 200

NEED = f"""
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/sbin:/sbin
need() {{
  for tool; do
    command -v "$tool" >/dev/null 2>&1 || {{ echo "$tool" >&2; exit {NO_TOOL}; }}
  done
}}
"""
"""The head of a script: the tools speak English, and ``need`` ends it where one is missing."""


def fields(text: str) -> dict[str, str]:
    """Read ``name=value`` lines; other lines are passed over."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def expect(result: ExecResult, what: str, *, prefer: Sequence[str] = ()) -> None:
    """Raise where a script failed: ``what`` could not be done, and why, in the tool's words.

    ``prefer`` are beginnings of lines that say more than the last one does.
    """
    if result.exit_code == 0:
        return
    said = words_of(result, prefer=prefer)
    if result.exit_code == NO_TOOL:
        words = f"{what}: there is no {said} on the target: install it"
        raise ModuleError(words, Reason.MISSING_PREREQUISITE)
    raise ModuleError(f"{what}: {said}")


def words_of(result: ExecResult, *, prefer: Sequence[str] = ()) -> str:
    """Give the line of stderr that says most, or else the exit code."""
    lines = [line.strip() for line in result.error_text.splitlines() if line.strip()]
    better = [line for line in lines if line.startswith(tuple(prefer))] if prefer else []
    chosen = (better or lines[-1:] or [f"exit code {result.exit_code}"])[0]
    return chosen[:_LONGEST_WORDS]
