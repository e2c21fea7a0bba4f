"""Everything that a console knows of a run: one fold over its events, in order."""

from __future__ import annotations

from typing import NamedTuple

from preflight.events import (
    AnyEvent,
    CancelFinished,
    CancelRequested,
    CancelSent,
    Diagnostic,
    PlanRefused,
    PluginCancelReceived,
    PluginFailed,
    PluginReady,
    PluginSpawned,
    PluginStderr,
    PluginStopped,
    PluginWarning,
    RunFinished,
    RunStarted,
    TargetFinished,
    TargetOpCancelled,
    TargetReady,
    TargetStarted,
    TargetUnreachableEvent,
    TaskFinished,
    TaskOutput,
    TaskProgress,
    TaskStarted,
    WireFrame,
    decode,
)
from preflight.views.cancels import Cancels
from preflight.views.clock import EngineClock, seconds
from preflight.views.grid import Grid
from preflight.views.log import LineIndex, belongs_to, count_rows
from preflight.views.plugins import Plugins
from preflight.views.wire import Wire

Key = tuple[str, str]


class Changes(NamedTuple):
    """What is different since it was last asked for."""

    rows: set[int]
    logs: set[Key]
    reshaped: bool
    plugins: bool
    cancels: bool
    wire: bool

    @property
    def any(self) -> bool:
        """Tell whether there is anything at all."""
        return any(self)


class Store:
    """The state of a run, and the index of its record; ``feed`` takes the record line by line.

    A planned module that is none of ``builtins`` is a plugin: it is known before it is started.
    """

    def __init__(self, clock: EngineClock, *, builtins: frozenset[str] | None = None) -> None:
        self.clock = clock
        self._builtins = builtins
        self.grid = Grid()
        self.cancels = Cancels(self.grid)
        self.plugins = Plugins()
        self.wire = Wire()
        self.index: dict[Key, LineIndex] = {}
        self.diagnostics: list[Diagnostic] = []
        self.last_ts = ""
        self.events = 0
        self.unknown = 0
        self.position = 0
        self._logs: set[Key] = set()

    def feed(self, line: bytes) -> None:
        """Take the next line of the record, without its newline; offsets are counted here."""
        offset, self.position = self.position, self.position + len(line) + 1
        event = decode(line)
        if event is None:
            self.unknown += 1
            return
        self.events += 1
        if event.ts:
            self.last_ts = event.ts
        self._index(event, offset, len(line))
        self.fold(event)

    def feed_all(self, lines: list[bytes]) -> None:
        """Take lines of the record, and set the clock by the last of them."""
        for line in lines:
            self.feed(line)
        if self.last_ts:
            self.clock.observe(seconds(self.last_ts))

    def log(self, key: Key) -> LineIndex:
        """Give the index of the output of a (target, task); an empty one where there is none."""
        return self.index.setdefault(key, LineIndex())

    def take_changes(self) -> Changes:
        """Give what changed since the last call."""
        grid, plugins, cancels, wire = self.grid, self.plugins, self.cancels, self.wire
        changes = Changes(
            grid.dirty, self._logs, grid.reshaped, plugins.changed, cancels.changed, wire.changed
        )
        grid.dirty, self._logs, grid.reshaped = set(), set(), False
        plugins.changed = cancels.changed = wire.changed = False
        return changes

    def _index(self, event: AnyEvent, offset: int, length: int) -> None:
        key = belongs_to(event)
        lines = count_rows(event)
        if key is not None and lines:
            self.log(key).append(offset, length, lines)
            self._logs.add(key)

    def fold(self, event: AnyEvent) -> None:
        """Change the state by one event."""
        match event:
            case TaskOutput():
                pass  # the index alone knows of it: it stays in the record
            case TaskStarted():
                self.grid.task_started(event)
            case TaskFinished():
                self.grid.task_finished(event)
                self.cancels.task_finished(event)
            case TaskProgress():
                self.grid.task_progress(event)
            case WireFrame():
                self.wire.frame(event)
            case Diagnostic():
                self.diagnostics.append(event)
            case RunStarted():
                self.grid.run_started(event)
            case RunFinished():
                self.grid.run_finished(event)
            case _:
                self._fold_other(event)

    def _fold_other(self, event: AnyEvent) -> None:
        match event:
            case TargetStarted():
                self.grid.target_started(event)
                if self._builtins is not None:
                    self.plugins.planned(event, self._builtins)
            case TargetReady():
                self.grid.target_ready(event)
            case TargetUnreachableEvent():
                self.grid.target_unreachable(event)
            case TargetFinished():
                self.grid.target_finished(event)
            case PlanRefused():
                self.grid.plan_refused(event)
                self.plugins.refused(event)
            case CancelRequested():
                self.cancels.requested(event)
            case CancelSent():
                self.cancels.sent(event)
            case PluginCancelReceived():
                self.cancels.plugin_received(event)
            case TargetOpCancelled():
                self.cancels.target_op(event)
            case CancelFinished():
                self.cancels.finished(event)
            case _:
                self._fold_plugin(event)

    def _fold_plugin(self, event: AnyEvent) -> None:
        match event:
            case PluginSpawned():
                self.plugins.spawned(event)
            case PluginReady():
                self.plugins.ready(event)
            case PluginFailed():
                self.plugins.failed(event)
            case PluginStderr():
                self.plugins.stderr(event)
            case PluginWarning():
                self.plugins.warning(event)
            case PluginStopped():
                self.plugins.stopped(event)
                self.cancels.plugin_stopped(event)
            case _:
                pass
