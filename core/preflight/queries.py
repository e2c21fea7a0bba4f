"""Questions that are answered without a run: which plugins, what they take, what targets report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from preflight.errors import PreflightError, Problem
from preflight.events import Event
from preflight.model.inventory import Host, find_project, select
from preflight.model.playbook import Playbook
from preflight.model.settings import Settings
from preflight.modules import BUILTINS
from preflight.plugins.descriptors import DescriptorCache
from preflight.plugins.discovery import Discovery, default_places, discover
from preflight.plugins.inspect import Inspection, inspect
from preflight.plugins.pins import pin, read_pins
from preflight.plugins.schema import BadSchema, Schema
from preflight.ports.target import Target
from preflight.targets import make_target


class PluginSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Where plugins are looked for: ``extra`` folders first, then the three default places."""

    extra: Sequence[Path] = ()
    only_extra: bool = False


def find_plugins(search: PluginSearch, *, project: Path | None = None) -> Discovery:
    """Search for plugins; nothing is started. The project's folder may hold pins for them.

    Raises :class:`ConfigError` for pins that can't be read.
    """
    places = default_places(search.extra, only_extra=search.only_extra)
    discovery = discover(places, builtins=BUILTINS)
    return discovery if project is None else pin(discovery, read_pins(project))


async def inspect_plugins(
    discovery: Discovery, *, settings: Settings, emit: Callable[[Event], None] = lambda event: None
) -> list[Inspection]:
    """Start, ask and end every plugin that was found, all at once."""
    return await inspect(
        discovery.plugins, emit=emit, settings=settings, descriptors=DescriptorCache()
    )


def known_param_problems(playbook: Playbook, discovery: Discovery) -> list[Problem]:
    """Hold the params of plugin tasks against what is known of the plugins; nothing is started.

    A template stands for a value of any type, and a plugin that never ran here is not judged.
    """
    cache = DescriptorCache()
    schemas: dict[str, Schema | None] = {}
    problems: list[Problem] = []
    for task in playbook.tasks:
        if task.module in BUILTINS:
            continue
        if task.module not in schemas:
            schemas[task.module] = _known_schema(discovery, task.module, cache)
        schema = schemas[task.module]
        wrong = schema.violations(task.params, templates=True) if schema is not None else []
        problems += [
            Problem(
                f"task {task.name!r}: {task.module}: {words}",
                file=str(playbook.path),
                line=task.line,
            )
            for words in wrong
        ]
    return problems


def _known_schema(discovery: Discovery, name: str, cache: DescriptorCache) -> Schema | None:
    found = discovery.get(name)
    known = cache.get(found) if found is not None else None
    if known is None or known.params_schema is None:
        return None
    try:
        return Schema(known.params_schema)
    except BadSchema:
        return None  # the run warns of it


async def gather_facts(
    hosts: Sequence[Host], *, concurrency: int
) -> list[tuple[Host, dict[str, object] | PreflightError]]:
    """Ask every target for its facts; an unreachable one gives its error, in the same order."""
    places = asyncio.Semaphore(max(1, concurrency))

    async def one(host: Host) -> dict[str, object] | PreflightError:
        async with places:
            try:
                target: Target = make_target(host)
                async with target:
                    return await target.facts()
            except PreflightError as exc:
                return exc

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(host)) for host in hosts]
    return [(host, task.result()) for host, task in zip(hosts, tasks, strict=True)]


def hosts_for(folder: Path, selectors: Sequence[str]) -> list[Host]:
    """Give the targets that the selectors name in the project of ``folder``.

    Raises :class:`ConfigError`.
    """
    return select(find_project(folder), selectors)
