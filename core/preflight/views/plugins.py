"""What every plugin's processes have come to, from discovered to stopped."""

from __future__ import annotations

from collections import deque
from typing import Literal, TypeAlias

import msgspec

from preflight.events import (
    Capabilities,
    PlanRefused,
    PluginFailed,
    PluginReady,
    PluginSpawned,
    PluginStderr,
    PluginStopped,
    PluginWarning,
    TargetStarted,
)
from preflight.views.clean import plain
from preflight.views.clock import seconds

KEPT_STDERR = 200
"""Lines of stderr that are kept of each process; all of them are in the record."""

PluginState: TypeAlias = Literal["discovered", "initializing", "ready", "failed", "stopped"]

SYMBOLS: dict[PluginState, tuple[str, str]] = {
    "discovered": ("◌", "muted"),
    "initializing": ("◔", "checking"),
    "ready": ("✓", "ok"),
    "failed": ("✗", "error"),
    "stopped": ("-", "muted"),
}
"""The symbol and the name of the style of each state."""

_RANK: list[PluginState] = ["failed", "initializing", "ready", "stopped", "discovered"]


class Moment(msgspec.Struct, frozen=True):
    """Something in the life of a plugin's process; ``at`` is the event's ``ts``."""

    ts: str
    text: str


class Instance(msgspec.Struct):
    """One plugin on one target: its process, or the last one it had."""

    plugin: str
    target: str
    state: PluginState = "discovered"
    pid: int = 0
    path: str = ""
    version: str = ""
    protocol_version: int = 0
    capabilities: Capabilities = Capabilities()
    max_message_bytes: int = 0
    spawned_at: float = 0.0
    ready_ms: float = 0.0
    reason: str = ""
    error: str = ""
    ended: str = ""
    processes: int = 0
    warnings: list[str] = []
    life: list[Moment] = []
    stderr: deque[str] = msgspec.field(default_factory=lambda: deque(maxlen=KEPT_STDERR))
    stderr_count: int = 0


class Plugins:
    """The fold behind the plugins pane and the capabilities screen."""

    def __init__(self) -> None:
        self.instances: dict[tuple[str, str], Instance] = {}
        self.changed = False

    @property
    def names(self) -> list[str]:
        """Give the plugins' names, sorted."""
        return sorted({plugin for plugin, _ in self.instances})

    def of(self, plugin: str) -> list[Instance]:
        """Give a plugin's instances, those with a target first, those in trouble before others."""
        found = [one for (name, _), one in self.instances.items() if name == plugin]
        return sorted(found, key=lambda one: (not one.target, _RANK.index(one.state)))

    def get(self, plugin: str, target: str) -> Instance:
        """Give the instance of a plugin on a target, made when it was unknown."""
        key = (plain(plugin), target)
        self.changed = True
        if key not in self.instances:
            self.instances[key] = Instance(key[0], target)
        return self.instances[key]

    def planned(self, event: TargetStarted, builtins: frozenset[str]) -> None:
        """Take the plan of a target: the plugins that it needs are known from now on."""
        for task in event.tasks:
            if task.module not in builtins:
                self.get(task.module, event.target)

    def refused(self, event: PlanRefused) -> None:
        """Take that a plan was refused: a plugin that is at fault, or is not there, has failed."""
        for violation in event.violations:
            one = self.instances.get((plain(violation.module), event.target))
            if one is not None:
                one.state, one.reason = "failed", plain(violation.reason)
                one.error = plain(violation.message)
                self.changed = True

    def spawned(self, event: PluginSpawned) -> None:
        """Take that a process was started; earlier ends of it no longer count."""
        one = self.get(event.plugin, event.target)
        one.state, one.pid, one.path = "initializing", event.pid, plain(event.path)
        one.spawned_at, one.processes = seconds(event.ts), one.processes + 1
        one.error = one.ended = one.reason = ""
        one.life.append(Moment(event.ts, f"spawned, pid {event.pid}"))

    def ready(self, event: PluginReady) -> None:
        """Take that the handshake is done."""
        one = self.get(event.plugin, event.target)
        one.state, one.version = "ready", plain(event.version)
        one.protocol_version, one.capabilities = event.protocol_version, event.capabilities
        one.max_message_bytes, one.ready_ms = event.max_message_bytes, event.elapsed_ms
        one.pid = event.pid or one.pid
        text = f"ready in {event.elapsed_ms:.0f} ms, protocol {event.protocol_version}"
        one.life.append(Moment(event.ts, text))

    def stderr(self, event: PluginStderr) -> None:
        """Take what a process wrote to its stderr."""
        one = self.get(event.plugin, event.target)
        one.stderr.extend(plain(line) for line in event.lines)
        one.stderr_count += len(event.lines)

    def warning(self, event: PluginWarning) -> None:
        """Take something that ends nothing."""
        one = self.get(event.plugin, event.target)
        text = f"{plain(event.kind)}: {plain(event.detail)}"
        one.warnings.append(text)
        one.life.append(Moment(event.ts, text))

    def failed(self, event: PluginFailed) -> None:
        """Take that a plugin never became ready."""
        one = self.get(event.plugin, event.target)
        one.state, one.reason, one.error = "failed", plain(event.reason), plain(event.error)
        one.path = plain(event.path) or one.path
        self._tail(one, event.stderr_tail)
        one.life.append(Moment(event.ts, f"failed: {one.error}"))

    def stopped(self, event: PluginStopped) -> None:
        """Take the end of a process; one that failed before stays failed."""
        one = self.get(event.plugin, event.target)
        code = event.signal or ("" if event.exit_code is None else f"exit {event.exit_code}")
        one.ended = f"{event.how} {code}".strip()
        if event.how == "crashed":
            one.state, one.reason = "failed", "plugin_crashed"
            one.error = f"the process ended by itself, {code}"
        elif one.state != "failed":
            one.state = "stopped"
        self._tail(one, event.stderr_tail)
        one.life.append(Moment(event.ts, f"process {event.pid} {one.ended}"))

    def _tail(self, one: Instance, lines: list[str]) -> None:
        if not one.stderr:
            one.stderr.extend(plain(line) for line in lines)
            one.stderr_count += len(lines)
