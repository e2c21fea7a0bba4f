"""The order of tasks: the file's, except where a task needs another one first."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.errors import ConfigError
from preflight.model.playbook import TaskSpec


def order(tasks: Sequence[TaskSpec]) -> list[TaskSpec]:
    """Give the tasks in document order, each after all that it depends on.

    A task that stands too early brings what it needs forward, no more. Raises
    :class:`ConfigError` that names the members of a cycle.
    """
    by_key = {task.key: task for task in tasks}
    done: dict[str, TaskSpec] = {}
    for task in tasks:
        _place(task, by_key, done)
    return list(done.values())


def find_cycle(tasks: Sequence[TaskSpec]) -> list[TaskSpec]:
    """Give the members of a cycle in the order in which they need each other, or nothing."""
    by_key = {task.key: task for task in tasks}
    done: dict[str, TaskSpec] = {}
    for task in tasks:
        cycle = _visit(task, by_key, done)
        if cycle:
            return cycle
    return []


def cycle_message(cycle: Sequence[TaskSpec]) -> str:
    """Say who needs whom, and what to do."""
    names = " -> ".join(task.id or task.name for task in (*cycle, cycle[0]))
    return f"tasks depend on each other in a circle: {names}; remove one depends_on"


def _place(task: TaskSpec, by_key: dict[str, TaskSpec], done: dict[str, TaskSpec]) -> None:
    cycle = _visit(task, by_key, done)
    if cycle:
        raise ConfigError(cycle_message(cycle))


def _visit(
    first: TaskSpec, by_key: dict[str, TaskSpec], done: dict[str, TaskSpec]
) -> list[TaskSpec]:
    """Put ``first`` and what it needs into ``done``; without recursion: chains may be long."""
    path: dict[str, TaskSpec] = {}
    stack = [first]
    while stack:
        task = stack[-1]
        if task.key in done:
            stack.pop()
            continue
        path[task.key] = task
        open_needs = [by_key[key] for key in task.depends_on if key in by_key and key not in done]
        if not open_needs:
            done[task.key] = task
            del path[task.key]
            stack.pop()
            continue
        need = min(open_needs, key=lambda one: one.line)
        if need.key in path:
            members = list(path.values())
            return members[list(path).index(need.key) :]
        stack.append(need)
    return []
