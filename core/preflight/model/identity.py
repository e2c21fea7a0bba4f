"""Task keys, and the references of ``depends_on`` resolved to them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from preflight.model.suggest import did_you_mean

_MAX_KEY = 80  # characters: keys are in every event


class Named(NamedTuple):
    """What a task can be called by, and where it is in the file."""

    name: str
    id: str
    depends_on: Sequence[str]
    line: int


def slug(text: str) -> str:
    """Give ``text`` in lower case with everything but letters and digits turned into dashes."""
    letters = unicodedata.normalize("NFC", text).lower()
    words = "".join(one if one.isalnum() else " " for one in letters).split()
    return "-".join(words)[:_MAX_KEY].strip("-") or "task"


def task_keys(names: Sequence[str]) -> list[str]:
    """Give every name a key of its own: its slug, with ``-2``, ``-3``, … where that is taken.

    A suffix never takes the slug of another task: ``a``, ``a``, ``a 2`` are ``a``, ``a-3``,
    ``a-2``.
    """
    slugs = [slug(name) for name in names]
    taken = set(slugs)
    seen: set[str] = set()
    keys: list[str] = []
    for one in slugs:
        key = one
        number = 2
        while key in seen or (key != one and key in taken):
            key = f"{one}-{number}"
            number += 1
        seen.add(key)
        keys.append(key)
    return keys


def resolve_dependencies(
    tasks: Sequence[Named], keys: Sequence[str]
) -> tuple[list[list[str]], list[tuple[int, int, str]]]:
    """Give each task's dependencies as keys, and what is wrong as (task, reference, message).

    A reference is a task's ``id``, or its name where only one task has it.
    """
    wrong = list(_repeated_ids(tasks))
    by_id = {task.id: key for task, key in zip(tasks, keys, strict=True) if task.id}
    by_name: dict[str, list[int]] = {}
    for index, task in enumerate(tasks):
        by_name.setdefault(task.name, []).append(index)
    resolved: list[list[str]] = []
    for index, task in enumerate(tasks):
        found: list[str] = []
        for position, reference in enumerate(task.depends_on):
            same = by_name.get(reference, [])
            if reference in by_id:
                found.append(by_id[reference])
            elif len(same) == 1:
                found.append(keys[same[0]])
            elif same:
                lines = " and ".join(str(tasks[one].line) for one in same)
                said = f"{reference!r} names the tasks of lines {lines}: give one an id"
                wrong.append((index, position, said))
            else:
                hint = did_you_mean(reference, [*by_id, *by_name])
                wrong.append((index, position, f"there is no task {reference!r}{hint}"))
        resolved.append(list(dict.fromkeys(found)))
    return resolved, wrong


def _repeated_ids(tasks: Sequence[Named]) -> Iterator[tuple[int, int, str]]:
    lines: dict[str, int] = {}
    for index, task in enumerate(tasks):
        if task.id in lines:
            said = f"the id {task.id!r} is taken by the task in line {lines[task.id]}"
            yield index, -1, f"{said}: ids must differ"
        elif task.id:
            lines[task.id] = task.line
