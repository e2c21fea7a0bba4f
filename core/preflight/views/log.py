"""The lines that events give to the output of a task, and where they lie in the record."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from typing import NamedTuple, Protocol

from preflight.events import (
    AnyEvent,
    CancelFinished,
    CancelRequested,
    CancelSent,
    Diagnostic,
    Event,
    ItemFinished,
    PlanRefused,
    PluginCancelReceived,
    PluginFailed,
    PluginSpawned,
    PluginStderr,
    PluginStopped,
    PluginWarning,
    TargetFinished,
    TargetOpCancelled,
    TargetReady,
    TargetStarted,
    TargetUnreachableEvent,
    TaskFinished,
    TaskOutput,
    TaskStarted,
    WireFrame,
    decode,
)
from preflight.views.clock import span

KEPT_EVENTS = 128
"""Decoded events that a reader keeps: several screens' worth of lines."""


_OUTPUT = b'{"type":"task_output"'
_ESCAPE = b"\\u00"  # what JSON makes of control characters: a colour may stand inside a word


class LogRow(NamedTuple):
    """One line of output: the event's ``ts``, what kind it is, its text, not yet harmless."""

    ts: str
    kind: str
    text: str


class Record(Protocol):
    """The bytes of a run's record, wherever they lie."""

    def read(self, offset: int, length: int) -> bytes:
        """Give the bytes at ``offset``; fewer where the record ends before."""
        ...


class LineIndex:
    """Where the lines of one (target, task) lie: 16 bytes of memory for each event."""

    def __init__(self) -> None:
        self._offsets = array("Q")
        self._lengths = array("I")
        self._ends = array("I")

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def append(self, offset: int, length: int, lines: int) -> None:
        """Note an event of ``lines`` lines that lies at ``offset`` of the record."""
        self._offsets.append(offset)
        self._lengths.append(length)
        self._ends.append(len(self) + lines)

    def locate(self, line: int) -> tuple[int, int]:
        """Give the event's number and the first line of it that ``line`` belongs to."""
        event = bisect_right(self._ends, line)
        return event, self.first(event)

    @property
    def events(self) -> int:
        """Tell how many events there are."""
        return len(self._ends)

    def first(self, event: int) -> int:
        """Give the first line of an event."""
        return self._ends[event - 1] if event else 0

    def place(self, event: int) -> tuple[int, int]:
        """Give offset and length of an event in the record."""
        return self._offsets[event], self._lengths[event]


class LogReader:
    """The lines of one (target, task), read from the record when they are wanted."""

    def __init__(self, record: Record, index: LineIndex) -> None:
        self._record = record
        self._index = index
        self._kept: OrderedDict[int, list[LogRow]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._index)

    def row(self, line: int) -> LogRow:
        """Give a line; one that can't be read from the record yet says so."""
        event, first = self._index.locate(line)
        rows = self._rows(event)
        if line - first < len(rows):
            return rows[line - first]
        return LogRow("", "missing", "(not in the record yet)")

    @property
    def events(self) -> int:
        """Tell how many events the lines come from."""
        return self._index.events

    def rows(self, event: int) -> tuple[int, list[LogRow]]:
        """Give the number of an event's first line, and its lines; they are not kept."""
        decoded = decode(self._record.read(*self._index.place(event)))
        return self._index.first(event), [] if decoded is None else log_rows(decoded)

    def lacks(self, event: int, needle: bytes, *, fold: bool) -> bool:
        """Tell whether an event is plain output whose bytes do not hold ``needle`` at all."""
        raw = self._record.read(*self._index.place(event))
        if not raw.startswith(_OUTPUT) or _ESCAPE in raw:
            return False
        return needle not in (raw.lower() if fold else raw)

    def _rows(self, event: int) -> list[LogRow]:
        rows = self._kept.get(event)
        if rows is None:
            decoded = decode(self._record.read(*self._index.place(event)))
            if decoded is None:
                return []
            rows = self._kept[event] = log_rows(decoded)
            if len(self._kept) > KEPT_EVENTS:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(event)
        return rows


def belongs_to(event: Event) -> tuple[str, str] | None:
    """Give the (target, task) whose output shows an event; ``("", "")`` is the run's own."""
    return (event.target, event.task)


def count_rows(event: AnyEvent) -> int:
    """Tell how many lines an event gives, without making them where they are many."""
    if isinstance(event, TaskOutput):
        return len(event.lines)
    return len(log_rows(event))


def log_rows(event: AnyEvent) -> list[LogRow]:
    """Give the lines that an event adds to the output of what it belongs to."""
    ts = event.ts
    match event:
        case TaskOutput():
            return [LogRow(ts, line.stream, line.text) for line in event.lines]
        case TaskStarted():
            return [LogRow(ts, event.phase, event.name)]
        case TaskFinished():
            return [LogRow(ts, "result", line) for line in _result(event)]
        case PluginStderr():
            return [LogRow(ts, "stderr", line) for line in event.lines]
        case WireFrame():
            return [LogRow(ts, "rpc", _frame(event))]
        case CancelRequested() | CancelSent() | PluginCancelReceived() | TargetOpCancelled():
            return [LogRow(ts, "cancel", _cancel(event))]
        case CancelFinished():
            took = span(event.elapsed_ms / 1000)
            return [LogRow(ts, "cancel", f"{event.outcome.replace('_', ' ')} in {took}")]
        case _:
            return _other(event)


def _other(event: AnyEvent) -> list[LogRow]:
    ts = event.ts
    match event:
        case TargetStarted():
            return [LogRow(ts, "target", f"{event.transport} {event.address}".strip())]
        case TargetReady():
            info = event.info
            words = (info.name, info.version, info.arch, info.runtime_kind)
            return [LogRow(ts, "target", " ".join(word for word in words if word) or "ready")]
        case TargetUnreachableEvent():
            return [LogRow(ts, "result", f"unreachable: {event.reason}")]
        case PlanRefused():
            return [
                LogRow(ts, "result", f"refused: {one.task}: {one.message}")
                for one in event.violations
            ]
        case ItemFinished():
            words = (event.status, event.label or f"item {event.index}", event.message, event.error)
            return [LogRow(ts, "item", "  ".join(word for word in words if word))]
        case TargetFinished():
            text = " ".join(word for word in (event.status, event.message) if word)
            return [LogRow(ts, "result", text)]
        case PluginSpawned():
            return [LogRow(ts, "plugin", f"{event.plugin} started, pid {event.pid}")]
        case PluginFailed():
            lines = [f"{event.plugin} failed: {event.error}", *event.stderr_tail]
            return [LogRow(ts, "plugin", line) for line in lines]
        case PluginWarning():
            return [LogRow(ts, "plugin", f"{event.plugin}: {event.kind}: {event.detail}")]
        case PluginStopped():
            return [LogRow(ts, "plugin", f"{event.plugin} {event.how}, pid {event.pid}")]
        case Diagnostic():
            return [
                LogRow(ts, event.level, line)
                for line in (event.summary, *event.detail.splitlines())
            ]
        case _:
            return []


def _result(event: TaskFinished) -> list[str]:
    took = f" after {span(event.elapsed_ms / 1000)}" if event.elapsed_ms else ""
    reason = f" ({event.reason})" if event.reason else ""
    lines = [f"{event.status}{reason}{took}"]
    for text in (event.message, event.error):
        lines += text.splitlines()
    for change in event.changes:
        lines.append(f"change {change.path}")
    return lines


def _frame(event: WireFrame) -> str:
    arrow = "⇢" if event.dir == "out" else "⇠"
    number = "" if event.id is None else f" id={event.id}"
    took = "" if event.took_ms is None else f" in {span(event.took_ms / 1000)}"
    return f"{arrow} {event.kind}{number}{took} {event.bytes} bytes"


def _cancel(
    event: CancelRequested | CancelSent | PluginCancelReceived | TargetOpCancelled,
) -> str:
    match event:
        case CancelRequested():
            return f"{'kill' if event.kill else 'cancel'} asked by {event.by}"
        case CancelSent():
            how = "SIGTERM, its pipe is full" if event.out_of_band else f"id {event.request_id}"
            return f"sent to {event.plugin} ({how}), {span(event.grace_ms / 1000)} to answer"
        case PluginCancelReceived():
            return f"{event.plugin} stops its {event.op} (op {event.op_id})"
        case TargetOpCancelled():
            took = span(event.elapsed_ms / 1000)
            left = f", still there: {event.survivors}" if event.survivors else ""
            return f"{event.op} pid {event.pid}: {event.how} in {took}{left}"
