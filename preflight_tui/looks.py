"""The commands that only look: plans, facts, plugins, inventories and past runs."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

import msgspec
import yaml

from preflight.engine import Prepared
from preflight.errors import ConfigError, PreflightError, Problem
from preflight.events import decode
from preflight.model.inventory import find_project
from preflight.model.settings import Settings
from preflight.plan.planner import undefined_vars
from preflight.plugins.discovery import Discovery
from preflight.plugins.inspect import Inspection
from preflight.queries import (
    PluginSearch,
    find_plugins,
    gather_facts,
    hosts_for,
    inspect_plugins,
    known_param_problems,
)
from preflight.sinks.history import PastRun, list_runs, read_run
from preflight.views.clean import plain
from preflight_tui.headless import json_sink, text_sink, wants_colour
from preflight_tui.signals import run_until_signal

_FACTS_AT_ONCE = 32


def validate(prepared: Prepared, given: Namespace) -> int:
    """Say what is wrong, or that nothing is."""
    _refuse(
        [
            *undefined_vars(prepared.playbook, prepared.plans),
            *known_param_problems(prepared.playbook, prepared.discovery),
        ]
    )
    count, targets = len(prepared.playbook.tasks), len(prepared.plans)
    if given.output == "json":
        _json({"playbook": prepared.playbook.name, "tasks": count, "targets": targets})
    else:
        _print(f"{prepared.playbook.path}: ok, {count} tasks for {targets} targets")
    return 0


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise ConfigError(sorted(problems, key=lambda one: one.line))


def plan(prepared: Prepared, given: Namespace) -> int:
    """Show each target's tasks in the order in which they would run."""
    _refuse(known_param_problems(prepared.playbook, prepared.discovery))
    if given.output == "json":
        _json(
            [
                {
                    "target": one.host.name,
                    "tasks": [
                        {
                            "key": task.key,
                            "name": task.name,
                            "module": task.module,
                            "when": task.when,
                            "depends_on": task.depends_on,
                            "tags": task.tags,
                            "skipped": task.key in one.skipped_by_tag,
                        }
                        for task in one.tasks
                    ],
                }
                for one in prepared.plans
            ]
        )
        return 0
    for one in prepared.plans:
        _print(f"{one.host.name} ({one.host.transport})")
        for number, task in enumerate(one.tasks, 1):
            notes = [f"when {task.when}"] if task.when is not None else []
            notes += [f"after {', '.join(task.depends_on)}"] if task.depends_on else []
            notes += [f"tags {', '.join(task.tags)}"] if task.tags else []
            notes += ["left out by tags"] if task.key in one.skipped_by_tag else []
            tail = f"  ({'; '.join(notes)})" if notes else ""
            _print(f"  {number:>3}  {task.module:<14} {plain(task.name)}{tail}")
    return 0


def facts(given: Namespace) -> int:
    """Show what targets report; exit code 1 when one can't be reached."""
    hosts = hosts_for(Path.cwd(), [*given.targets, *given.target])
    found = run_until_signal(gather_facts(hosts, concurrency=given.concurrency or _FACTS_AT_ONCE))
    failed = [(host.name, said) for host, said in found if isinstance(said, PreflightError)]
    trees = {host.name: said for host, said in found if not isinstance(said, PreflightError)}
    if given.output == "json":
        errors = {name: {"reason": exc.reason, "error": exc.message} for name, exc in failed}
        _json({"facts": trees, "unreachable": errors})
    elif trees:
        dump = cast("Callable[..., str]", yaml.safe_dump)  # pyright: ignore[reportUnknownMemberType]  # half typed
        _print(dump(trees, sort_keys=False, allow_unicode=True).rstrip())
    for name, exc in failed:
        print(f"{name}: {plain(exc.message)}", file=sys.stderr)  # noqa: T201 what went wrong
    return 1 if failed else 0


def inventory(given: Namespace) -> int:
    """List the targets of the project."""
    project = find_project(Path.cwd())
    if not project.has_inventory:
        raise ConfigError(f"{project.folder}: preflight.yml has no inventory")
    rows = [
        [host.name, host.address, host.transport, str(host.port or ""), ", ".join(host.groups)]
        for host in project.hosts
    ]
    names = ["name", "address", "transport", "port", "groups"]
    if given.output == "json":
        _json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        _table(names, rows)
    return 0


def plugins(search: PluginSearch, given: Namespace) -> int:
    """List all plugins, or show one; exit code 1 when one that was asked about can't be used."""
    discovery = find_plugins(search, project=project_folder(Path.cwd()))
    if given.action == "info":
        named = [found for found in discovery.plugins if found.name == given.name]
        if not named:
            have = ", ".join(found.name for found in discovery.plugins) or "none"
            raise ConfigError(f"there is no plugin {given.name!r}; found: {have}")
        discovery = msgspec.structs.replace(discovery, plugins=named)
    found = run_until_signal(inspect_plugins(discovery, settings=Settings()))
    if given.output == "json":
        _json({"plugins": [_plugin_data(one) for one in found], "skipped": _skipped(discovery)})
    elif given.action == "info":
        for one in found:
            _plugin_page(one)
    else:
        _plugin_table(discovery, found)
    return 1 if any(one.error for one in found) else 0


def runs(given: Namespace) -> int:
    """List the runs of this folder's project, the newest first."""
    known = list_runs(project_folder(Path.cwd()))
    rows = [_run_row(run) for run in known]
    names = ["run", "started", "mode", "playbook", "targets", "status", "exit"]
    if given.output == "json":
        _json([dict(zip(names, row, strict=True)) for row in rows])
    elif rows:
        _table(names, rows)
    else:
        print("no runs here yet", file=sys.stderr)  # noqa: T201 there is no result
    return 0


def replay(run: PastRun, given: Namespace) -> int:
    """Print a past run as it was printed then; gives its exit code."""
    with run.record.open("rb") as file:
        play(file, given)
    if run.finished is None:
        print("the record ends here: the run goes on, or was cut off", file=sys.stderr)  # noqa: T201
        return 1
    return run.finished.exit_code


def play(lines: Iterable[bytes], given: Namespace) -> int:
    """Print the events of a record's lines; what is no event is passed over."""
    if given.output == "json":
        sink = json_sink(sys.stdout)
    else:
        colour = wants_colour(sys.stdout, given.color)
        sink = text_sink(sys.stdout, colour=colour, verbose=True)
    for line in lines:
        event = decode(line)
        if event is not None:
            sink(event)
    return 0


def find_run(name: str, folders: Sequence[Path]) -> PastRun:
    """Find a run by id, by folder, or the newest for ``""``, in the projects of ``folders``.

    Raises :class:`ConfigError`.
    """
    as_path = Path(name)
    if name and (as_path / "events.ndjson").is_file():
        return read_run(as_path)
    known = [run for folder in folders for run in list_runs(project_folder(folder))]
    for run in known:
        if name in ("", run.run_id):
            return run
    raise ConfigError(
        f"there is no run {name!r} here; list them with: preflight-tui runs"
        if name
        else "no runs here yet; try: preflight-tui demo"
    )


def project_folder(start: Path) -> Path:
    """Give the project that a folder belongs to."""
    return find_project(start).folder if start.is_dir() else start


def _run_row(run: PastRun) -> list[str]:
    started, finished = run.started, run.finished
    return [
        run.run_id,
        started.ts[:19].replace("T", " ") if started else "",
        started.mode if started else "",
        plain(started.playbook) if started else "",
        str(len(started.targets)) if started else "",
        finished.status if finished else "unfinished",
        str(finished.exit_code) if finished else "",
    ]


def _plugin_data(one: Inspection) -> dict[str, object]:
    shaken = one.handshake
    return {
        "name": one.found.name,
        "path": str(one.found.path),
        "source": one.found.source,
        "status": "ready" if shaken else "failed",
        "pinned": bool(one.found.pin),
        "version": shaken.version if shaken else "",
        "protocol_version": shaken.protocol_version if shaken else None,
        "capabilities": msgspec.to_builtins(shaken.capabilities) if shaken else None,
        "max_message_bytes": shaken.max_message_bytes if shaken else None,
        "reason": one.reason,
        "error": one.error,
        "stderr_tail": one.stderr_tail[-20:],
    }


def _skipped(discovery: Discovery) -> list[dict[str, str]]:
    return [{"path": str(one.path), "why": one.why} for one in discovery.skipped]


def _plugin_table(discovery: Discovery, found: Sequence[Inspection]) -> None:
    if not found:
        places = ", ".join(str(place.folder) for place in discovery.places)
        _print(f"no plugins found in {places}; files are named preflight-plugin-<name>")
    else:
        rows = [
            [
                one.found.name,
                one.handshake.version if one.handshake else "-",
                "ready" if one.handshake else "failed",
                str(one.handshake.protocol_version) if one.handshake else "-",
                "pinned" if one.found.pin else "-",
                str(one.found.path),
            ]
            for one in found
        ]
        _table(["name", "version", "status", "protocol", "pin", "path"], rows)
    for one in found:
        if one.error:
            words = f"{one.found.name}: {one.reason}: {plain(one.error)}"
            print(words, file=sys.stderr)  # noqa: T201 what is wrong
    for skipped in discovery.skipped:
        print(f"passed over {skipped.path}: {skipped.why}", file=sys.stderr)  # noqa: T201


def _plugin_page(one: Inspection) -> None:
    shaken = one.handshake
    lines: list[tuple[str, str]] = [
        ("name", one.found.name),
        ("path", str(one.found.path)),
        ("found", one.found.source),
        ("status", "ready" if shaken else f"failed: {one.reason}"),
        ("pinned", f"to SHA-256 {one.found.pin}" if one.found.pin else "no"),
    ]
    if shaken is not None:
        both = shaken.capabilities
        lines += [
            ("version", shaken.version),
            ("protocol", str(shaken.protocol_version)),
            ("host offers", ", ".join(both.host) or "none"),
            ("plugin offers", ", ".join(both.plugin) or "none"),
            ("negotiated", ", ".join(both.negotiated) or "none"),
            ("largest message", f"{shaken.max_message_bytes} bytes"),
        ]
    else:
        lines.append(("error", one.error))
    lines += [("stderr", line) for line in one.stderr_tail[-20:]]
    for name, value in lines:
        _print(f"{name:<16} {plain(value)}")


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    lines = [[name.upper() for name in names], *([plain(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        _print("  ".join(cells).rstrip())


def _json(value: object) -> None:
    _print(msgspec.json.format(msgspec.json.encode(value)).decode())


_print: Callable[[str], None] = print
