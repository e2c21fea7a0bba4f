"""Which tasks run on which target, in which order: one plan per target, nothing contacted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import msgspec

from preflight.errors import ConfigError, Problem
from preflight.model.inventory import Host, Project, merge_vars
from preflight.model.layers import parse_override
from preflight.model.playbook import Playbook, TaskSpec
from preflight.model.suggest import did_you_mean
from preflight.model.template import named_vars
from preflight.plan.graph import cycle_message, find_cycle, order

_FACTS = re.compile(r"\b(facts|env)\b")

_USUAL = (
    *("directory", "file", "powershell", "reboot", "service"),
    *("shell", "system_package", "user", "wait"),
)

Known = Callable[[str], str | None]


class TargetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What one target is to do: ``tasks`` in the order in which they run.

    ``skipped_by_tag`` holds the keys of tasks that the tags leave out; those that depend on one
    run all the same. ``modules`` says of each module whether it is ``builtin`` or ``plugin``.
    ``needs_facts`` when a template may name ``facts`` or ``env``.
    """

    host: Host
    vars: dict[str, object]
    tasks: list[TaskSpec]
    skipped_by_tag: frozenset[str] = frozenset()
    modules: dict[str, str] = {}
    needs_facts: bool = True


def plan(
    playbook: Playbook,
    project: Project,
    hosts: Sequence[Host],
    *,
    overrides: Sequence[str] = (),
    tags: Sequence[str] = (),
    skip_tags: Sequence[str] = (),
    known: Known,
) -> list[TargetPlan]:
    """Plan ``playbook`` for each of ``hosts``; pure, so that the same input gives the same plans.

    ``known`` says of a module whether it is ``builtin`` or ``plugin``, or ``None``. Raises
    :class:`ConfigError` with every cycle, unknown module and override that makes no sense.
    """
    kinds = {task.module: known(task.module) for task in playbook.tasks}
    problems = [*_unknown_modules(playbook, kinds, known), *_impossible(playbook, overrides)]
    if problems:
        raise ConfigError(problems)
    tasks = order(playbook.tasks)
    skipped = frozenset(task.key for task in tasks if not _chosen(task, tags, skip_tags))
    running = [task for task in tasks if task.key not in skipped]
    plans: list[TargetPlan] = []
    for host in hosts:
        scope = merge_vars(project, host, playbook.vars, overrides)
        plans.append(
            TargetPlan(
                host=host,
                vars=scope,
                tasks=tasks,
                skipped_by_tag=skipped,
                modules={name: kind for name, kind in kinds.items() if kind},
                needs_facts=_needs_facts(running, scope),
            )
        )
    return plans


def undefined_vars(playbook: Playbook, plans: Sequence[TargetPlan]) -> list[Problem]:
    """List the vars that a task names for certain and that a target does not have.

    Behind a condition nothing is certain, and a task left out by tags needs nothing.
    """
    missing: dict[tuple[str, str], list[str]] = {}
    for one in plans:
        for task in one.tasks:
            if task.key in one.skipped_by_tag:
                continue
            for chain in _needed(task):
                if not _exists(one.vars, chain):
                    missing.setdefault((task.key, ".".join(chain)), []).append(one.host.name)
    tasks = {task.key: task for task in playbook.tasks}
    every = len(plans)
    problems: list[Problem] = []
    for (key, name), hosts in missing.items():
        where = "" if len(hosts) == every else f" on {', '.join(hosts[:5])}"
        said = f"vars.{name} is not defined{where}: add it to vars, or give -e {name}=…"
        problems.append(_at(playbook, tasks[key], said))
    return sorted(problems, key=lambda one: (one.line, one.message))


def _chosen(task: TaskSpec, tags: Sequence[str], skip_tags: Sequence[str]) -> bool:
    own = set(task.tags)
    return not own.intersection(skip_tags) and (not tags or bool(own.intersection(tags)))


def _needs_facts(tasks: Sequence[TaskSpec], scope: dict[str, object]) -> bool:
    """Tell whether a template names facts or env; of a file's template that is not known."""
    texts = [text for task in tasks for text in (*_texts(task.params), task.name)]
    templates = [text for text in (*texts, *_texts(scope)) if "{{" in text]
    templates += [task.when for task in tasks if isinstance(task.when, str)]
    templates += [text for task in tasks for text in _texts(task.for_each) if "{{" in text]
    from_files = any("content_template" in task.params for task in tasks)
    return from_files or any(_FACTS.search(text) for text in templates)


def _impossible(playbook: Playbook, overrides: Sequence[str]) -> Iterator[Problem]:
    cycle = find_cycle(playbook.tasks)
    if cycle:
        yield _at(playbook, cycle[0], cycle_message(cycle))
    for text in overrides:
        try:
            parse_override(text)
        except ConfigError as exc:
            yield from exc.problems


def _unknown_modules(
    playbook: Playbook, kinds: dict[str, str | None], known: Known
) -> list[Problem]:
    problems: list[Problem] = []
    for task in playbook.tasks:
        if kinds[task.module] is None:
            others = [name for name, kind in kinds.items() if kind]
            hint = did_you_mean(task.module, [*_usual(known), *others])
            hint = hint or f"; put preflight-plugin-{task.module} into a plugin folder"
            problems.append(_at(playbook, task, f"there is no module {task.module!r}{hint}"))
    return problems


def _usual(known: Known) -> list[str]:
    return [name for name in _USUAL if known(name)]


def _at(playbook: Playbook, task: TaskSpec, message: str) -> Problem:
    return Problem(f"task {task.name!r}: {message}", file=str(playbook.path), line=task.line)


def _needed(task: TaskSpec) -> frozenset[tuple[str, ...]]:
    if isinstance(task.when, str):  # it may be there to keep the task from needing them
        return named_vars(task.when, condition=True, names=task.item_names)
    found = named_vars(task.name)
    for text in [*_texts(task.params), *_texts(task.for_each)]:
        found |= named_vars(text, names=task.item_names)
    return found


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(cast("dict[str, object]", value).values())
    if isinstance(value, list):
        return [text for item in cast("list[object]", value) for text in _texts(item)]
    return []


def _exists(scope: dict[str, object], chain: tuple[str, ...]) -> bool:
    value: object = scope
    for step in chain:
        if not isinstance(value, dict):
            return True  # a method, or what a template gives: not known here
        if step not in value:
            return step in ("items", "keys", "values", "get")
        value = value[step]  # pyright: ignore[reportUnknownVariableType]  # JSON
    return True
