"""The project and its targets: ``preflight.yml``, found by walking up from the playbook."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from preflight.errors import ConfigError, Problem
from preflight.model.layers import merge_into, parse_override
from preflight.model.schema import Violation, violations
from preflight.model.settings import (
    DURATION_PATTERN,
    DURATION_WORDS,
    ProjectSettings,
    parse_duration,
)
from preflight.model.source import Source, pause_collector, read_source
from preflight.model.suggest import did_you_mean

CONFIG_NAME = "preflight.yml"
_MARKS = (CONFIG_NAME, "preflight.lock", "actions", ".git")
_LOCAL_NAMES = ("local", "localhost")
_BAD_NAME = re.compile(r"[/\x00-\x1f\x7f,]|^\s|\s$|^$")

Transport = Literal["local", "ssh", "winrm"]
_Port = Annotated[int, Meta(ge=1, le=65535, description="a port from 1 to 65535")]
_Duration = Annotated[str, Meta(pattern=DURATION_PATTERN, description=DURATION_WORDS)]
_KeyPolicy = Literal["accept-new", "strict", "insecure"]


class Platform(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a target is declared to be, for staging without contact."""

    os: Literal["windows", "linux", "darwin"]
    arch: Literal["amd64", "arm64"]


class Jump(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The machine that an SSH target is reached through."""

    address: str
    port: _Port = 22
    username: str = ""
    password: str = ""
    private_key: str = ""
    private_key_passphrase: str = ""
    known_hosts_file: str = ""
    host_key_policy: _KeyPolicy = "accept-new"


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A target of the inventory; ``port`` 0 where the transport has none. *Units*: seconds."""

    name: str
    address: str = ""
    transport: Transport = "ssh"
    platform: Platform | None = None
    port: int = 0
    username: str = ""
    password: str = ""
    private_key: str = ""
    private_key_passphrase: str = ""
    known_hosts_file: str = ""
    host_key_policy: _KeyPolicy = "accept-new"
    host_key_algorithms: list[str] = []
    timeout: float = 30.0
    https: bool = False
    groups: list[str] = []
    vars: dict[str, object] = {}
    jump: Jump | None = None
    ssh_config: bool = True

    def names(self) -> dict[str, object]:
        """Give what templates see under ``target``."""
        return {
            "name": self.name,
            "hostname": self.name,
            "address": self.address,
            "transport": self.transport,
            "port": self.port,
        }


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """The project folder and what its ``preflight.yml`` says; ``groups`` maps names to vars."""

    folder: Path
    project: str = ""
    environment: str = ""
    vars: dict[str, object] = {}
    inventory_vars: dict[str, object] = {}
    groups: dict[str, dict[str, object]] = {}
    hosts: list[Host] = []
    has_inventory: bool = False
    settings: ProjectSettings = ProjectSettings()


class _HostEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    address: str = ""
    transport: Transport = "ssh"
    platform: Platform | None = None
    port: _Port | None = None
    username: str = ""
    password: str = ""
    private_key: str = ""
    private_key_passphrase: str = ""
    known_hosts_file: str = ""
    host_key_policy: _KeyPolicy = "accept-new"
    host_key_algorithms: list[str] = []
    timeout: _Duration | None = None
    https: bool = False
    groups: list[str] = []
    vars: dict[str, object] = {}
    jump: Jump | None = None
    ssh_config: bool = True


class _Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    vars: dict[str, object] = {}


class _Inventory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    vars: dict[str, object] = {}
    groups: dict[str, _Group | None] = {}
    hosts: list[_HostEntry] = []


class _Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    project: str = ""
    environment: str = ""
    vars: dict[str, object] | None = None
    secrets: dict[str, object] | None = None
    settings: ProjectSettings = ProjectSettings()
    inventory: _Inventory | None = None


LOCALHOST = Host(name="localhost", address="localhost", transport="local")
"""The machine that the engine runs on, where no inventory names another."""


def find_project(start: Path) -> Project:
    """Find the project that ``start``, a file or a folder, belongs to, and read its configuration.

    The nearest folder upwards that holds ``preflight.yml``, ``preflight.lock``, ``actions`` or
    ``.git`` is the project; else the folder of ``start``. Raises :class:`ConfigError` with every
    problem of ``preflight.yml``.
    """
    first = start if start.is_dir() else start.parent
    resolved = first.resolve()
    folder = next((one for one in (resolved, *resolved.parents) if _is_project(one)), resolved)
    path = folder / CONFIG_NAME
    if not path.is_file():
        return Project(folder=folder)
    with pause_collector():
        return _read_project(folder, read_source(path))


def _read_project(folder: Path, source: Source) -> Project:
    config = _read_config(source)
    inventory = config.inventory or _Inventory()
    wrong = _contradictions(source, inventory)
    if wrong:
        raise ConfigError(wrong)
    return Project(
        folder=folder,
        project=config.project,
        environment=config.environment,
        vars=config.vars or {},
        inventory_vars=inventory.vars,
        groups={name: group.vars if group else {} for name, group in inventory.groups.items()},
        hosts=[_host(entry) for entry in inventory.hosts],
        has_inventory=config.inventory is not None,
        settings=config.settings,
    )


def _read_config(source: Source) -> _Config:
    document: object = {} if source.data is None else source.data
    try:
        return msgspec.convert(document, _Config)
    except msgspec.ValidationError as exc:
        found = violations(document, _Config, templates=False)
        problems = [source.problem(one.message, one.path, key=one.key) for one in found]
        raise ConfigError(sorted(problems, key=lambda one: (one.line, one.column))) from exc


def select(project: Project, selectors: Sequence[str]) -> list[Host]:
    """Give the targets that ``-t`` names, in its order, each once; all where it names none.

    A selector may be a comma list of groups, targets and ``all``. Only ``local`` or ``localhost``
    is this machine, inventory or not; so is no selector without an inventory.
    """
    names = [name.strip() for text in selectors for name in text.split(",") if name.strip()]
    if names and all(name.lower() in _LOCAL_NAMES for name in names):
        own = [host for host in project.hosts if host.name in names]
        return own or [LOCALHOST]
    if not project.has_inventory:
        if names:
            raise ConfigError(
                f"target {names[0]!r} is not known: there is no inventory in {CONFIG_NAME}"
            )
        return [LOCALHOST]
    chosen: dict[str, Host] = {}
    problems: list[Problem] = []
    for name in names or ["all"]:
        hosts = _named(project, name)
        if not hosts:
            problems.append(Problem(_nothing_named(project, name)))
        chosen.update({host.name: host for host in hosts if host.name not in chosen})
    if problems:
        raise ConfigError(problems)
    return list(chosen.values())


def _is_project(folder: Path) -> bool:
    return any((folder / mark).exists() for mark in _MARKS)


def _named(project: Project, name: str) -> list[Host]:
    if name == "all":
        return project.hosts
    if name in project.groups:
        return [host for host in project.hosts if name in host.groups]
    return [host for host in project.hosts if host.name == name]


def _nothing_named(project: Project, name: str) -> str:
    if name == "all":
        return f"the inventory in {CONFIG_NAME} has no hosts"
    if name in project.groups:
        return f"the group {name!r} has no targets: no host lists it under groups"
    known = [*project.groups, *(host.name for host in project.hosts)]
    return f"there is no target or group {name!r} in the inventory{did_you_mean(name, known)}"


def _contradictions(source: Source, inventory: _Inventory) -> list[Problem]:
    found: list[Violation] = []
    seen: dict[str, int] = {}
    for index, host in enumerate(inventory.hosts):
        path = ("inventory", "hosts", index)
        if _BAD_NAME.search(host.name):
            said = "must be a name without '/', ',', control characters or blanks around it"
            found.append(Violation((*path, "name"), f"{host.name!r} {said}"))
        if host.name in inventory.groups or host.name == "all":
            found.append(Violation((*path, "name"), f"{host.name!r} is a group too: rename one"))
        if host.name in seen:
            line = source.place(("inventory", "hosts", seen[host.name]))[0]
            said = f"the target {host.name!r} is already in line {line}: names must differ"
            found.append(Violation((*path, "name"), said))
        seen.setdefault(host.name, index)
        for position, group in enumerate(host.groups):
            if group not in inventory.groups:
                hint = did_you_mean(group, inventory.groups) or "; add it under inventory.groups"
                said = f"the group {group!r} of {host.name!r} is not defined{hint}"
                found.append(Violation((*path, "groups", position), said))
    return [source.problem(one.message, one.path) for one in found]


def _host(entry: _HostEntry) -> Host:
    usual = {"ssh": 22, "winrm": 5986 if entry.https else 5985, "local": 0}[entry.transport]
    seconds = parse_duration(entry.timeout) if entry.timeout else _usual_timeout(entry.transport)
    fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
    address = "localhost" if entry.transport == "local" else entry.name
    fields.update(address=entry.address or address, port=entry.port or usual, timeout=seconds)
    return Host(**fields)


def _usual_timeout(transport: Transport) -> float:
    return 60.0 if transport == "winrm" else 30.0


def merge_vars(
    project: Project,
    host: Host,
    playbook: Mapping[str, object],
    overrides: Sequence[str],
) -> dict[str, object]:
    """Lay the variables over each other, maps merged key by key, all else replaced.

    From low to high: project, inventory, the target's groups in its order, the target,
    ``preflight.project`` and ``preflight.environment``, the playbook's, ``-e``.
    """
    own = {"project": project.project, "environment": project.environment}
    layers: list[Mapping[str, object]] = [
        project.vars,
        project.inventory_vars,
        *(project.groups.get(name, {}) for name in host.groups),
        host.vars,
        {"preflight": own},
        playbook,
        *(parse_override(text) for text in overrides),
    ]
    merged: dict[str, object] = {}
    for layer in layers:
        merge_into(merged, layer)
    return merged
