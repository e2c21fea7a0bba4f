"""All that leaves the engine: one flat, tagged union of frozen structs.

An event is complete in itself. NDJSON is ``encode(event)``; the text of a headless run, the
console, the record and a replay are folds over the same events. Empty optional fields are left
out of the JSON; fields without a default are always there.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Status: TypeAlias = Literal["ok", "changed", "skipped", "failed", "ignored", "cancelled"]
Stream: TypeAlias = Literal["out", "err", "plugin"]
Phase: TypeAlias = Literal["check", "apply"]
By: TypeAlias = Literal["operator", "timeout", "fail_fast", "signal"]


class Line(msgspec.Struct, frozen=True):
    """One whole line, without its newline, control characters made harmless by the reader."""

    stream: Stream
    text: str


class TargetInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a target says of itself: the eight keys of ``initialize``; an absent signal is ``""``.

    ``runtime_kind`` is ``posix-shell`` or ``windows-powershell``.
    Source: seed 1, section TargetInfo.
    """

    family: str = ""
    name: str = ""
    version: str = ""
    arch: str = ""
    hostname: str = ""
    package_manager: str = ""
    init: str = ""
    runtime_kind: str = ""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks ended in which status."""

    ok: int = 0
    changed: int = 0
    skipped: int = 0
    failed: int = 0
    ignored: int = 0
    cancelled: int = 0


class TargetCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many targets ended in which status."""

    ok: int = 0
    failed: int = 0
    unreachable: int = 0
    refused: int = 0
    cancelled: int = 0
    not_started: int = 0


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a check found different; text is shown as a diff, ``None`` means absent."""

    path: str
    before: str | None = None
    after: str | None = None


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One reason why a plan can't run on a target."""

    task: str
    module: str
    reason: str
    message: str


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """The names that each side lists, and those that both list; sorted."""

    host: list[str] = []
    plugin: list[str] = []
    negotiated: list[str] = []


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a console must know of a task before it starts; ``key`` is the stable task key."""

    key: str
    name: str
    module: str


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """The fields that every event may carry; the bus fills ``seq``, ``ts`` and ``run_id``.

    ``seq`` counts from 1 without gaps; ``ts`` is RFC 3339 UTC with microseconds and never runs
    backwards within a run: it is the start's wall clock plus a monotonic difference.
    """

    seq: int = 0
    ts: str = ""
    run_id: str = ""
    target: str = ""
    task: str = ""


class RunStarted(Event, frozen=True, kw_only=True, tag="run_started"):
    """The first event of a run."""

    mode: Phase
    playbook: str
    path: str
    targets: list[str]
    version: str
    concurrency: int = 0
    cancel_grace_ms: int = 0
    retry_of: str = ""


class TargetStarted(Event, frozen=True, kw_only=True, tag="target_started"):
    """The target's turn came; it is being contacted."""

    transport: str
    address: str = ""
    tasks: list[PlannedTask] = []


class TargetReady(Event, frozen=True, kw_only=True, tag="target_ready"):
    """The target answered its probe."""

    info: TargetInfo


class TargetUnreachableEvent(Event, frozen=True, kw_only=True, tag="target_unreachable"):
    """The target could not be talked to; none of its tasks ran."""

    reason: str


class PlanRefused(Event, frozen=True, kw_only=True, tag="plan_refused"):
    """The plan can't run on this target; nothing was changed there."""

    violations: list[Violation]


class TaskStarted(Event, frozen=True, kw_only=True, tag="task_started"):
    """A phase of a task begins: ``check`` first, then ``apply`` where it is needed."""

    name: str
    module: str
    index: int
    phase: Phase


class TaskOutput(Event, frozen=True, kw_only=True, tag="task_output"):
    """Lines that a task printed, in order, at most some hundreds at once.

    ``item`` is the index of the item that they belong to, for a task with ``for_each``.
    """

    lines: list[Line]
    item: str = ""


class ItemFinished(Event, frozen=True, kw_only=True, tag="item_finished"):
    """The one last word about one item of a task with ``for_each``; ``index`` counts from 0.

    ``label`` is the item itself where it is short text or a number, else empty.
    """

    index: int
    status: Status
    label: str = ""
    reason: str = ""
    message: str = ""
    error: str = ""
    changes: list[Change] = []


class TaskProgress(Event, frozen=True, kw_only=True, tag="task_progress"):
    """How far a task with many items has come."""

    done: int
    total: int


class TaskFinished(Event, frozen=True, kw_only=True, tag="task_finished"):
    """The one last word about a task on a target."""

    status: Status
    name: str = ""
    module: str = ""
    index: int = -1
    reason: str = ""
    message: str = ""
    error: str = ""
    output_tail: list[str] = []
    elapsed_ms: float = 0
    changes: list[Change] = []


class TargetFinished(Event, frozen=True, kw_only=True, tag="target_finished"):
    """The last word about a target.

    ``status``: ok, failed, unreachable, refused, cancelled or not_started.
    """

    status: str
    counts: Counts
    reason: str = ""
    message: str = ""
    elapsed_ms: float = 0


class RunFinished(Event, frozen=True, kw_only=True, tag="run_finished"):
    """The last event of a run; ``exit_code`` is the command's.

    ``status``: ok, failed, refused, cancelled or crashed.
    """

    status: str
    tasks: Counts
    targets: TargetCounts
    exit_code: int
    elapsed_ms: float = 0


class PluginSpawned(Event, frozen=True, kw_only=True, tag="plugin_spawned"):
    """A plugin's process was started, for one target."""

    plugin: str
    pid: int
    path: str


class PluginReady(Event, frozen=True, kw_only=True, tag="plugin_ready"):
    """The handshake is done."""

    plugin: str
    version: str
    protocol_version: int
    capabilities: Capabilities
    max_message_bytes: int
    pid: int = 0
    elapsed_ms: float = 0


class PluginStderr(Event, frozen=True, kw_only=True, tag="plugin_stderr"):
    """What a plugin wrote to its stderr."""

    plugin: str
    lines: list[str]


class PluginWarning(Event, frozen=True, kw_only=True, tag="plugin_warning"):
    """Something about a plugin that a person should know and that ends nothing.

    ``kind``: protocol_violation, large_message, stdout_noise, slow_start, world_writable.
    """

    plugin: str
    kind: str
    detail: str


class PluginFailed(Event, frozen=True, kw_only=True, tag="plugin_failed"):
    """A plugin could not be used: it never became ready."""

    plugin: str
    path: str
    reason: str
    error: str
    stderr_tail: list[str] = []


class PluginStopped(Event, frozen=True, kw_only=True, tag="plugin_stopped"):
    """A plugin's process was reaped; ``signal`` is a name such as ``SIGKILL``."""

    plugin: str
    pid: int
    how: Literal["closed", "killed", "crashed"]
    exit_code: int | None = None
    signal: str = ""
    stderr_tail: list[str] = []


class WireFrame(Event, frozen=True, kw_only=True, tag="wire_frame"):
    """One frame on a plugin's wire; ``dir`` is seen from the host."""

    plugin: str
    dir: Literal["out", "in"]
    kind: str
    bytes: int
    id: int | str | None = None
    took_ms: float | None = None
    preview: str = ""


class CancelRequested(Event, frozen=True, kw_only=True, tag="cancel_requested"):
    """The engine has a cancel in hand; ``path`` is ``""`` (the run), a target or target/task."""

    path: str
    by: By
    kill: bool = False


class CancelSent(Event, frozen=True, kw_only=True, tag="cancel_sent"):
    """The plugin was told; ``out_of_band`` when its pipe was full and it got a SIGTERM instead."""

    plugin: str
    request_id: int
    method: str
    grace_ms: int
    out_of_band: bool = False


class PluginCancelReceived(Event, frozen=True, kw_only=True, tag="plugin_cancel_received"):
    """The plugin abandons a handle operation of its own; ``op_id`` is the plugin's id for it."""

    plugin: str
    op_id: int | str
    op: str


class TargetOpCancelled(Event, frozen=True, kw_only=True, tag="target_op_cancelled"):
    """A process on the target was stopped.

    ``how`` is the last signal that was needed, or what is true where nothing could be confirmed.
    ``survivors`` are pids that are still there.
    """

    op: str
    pid: int
    how: str
    elapsed_ms: float
    survivors: list[int] = []


class CancelFinished(Event, frozen=True, kw_only=True, tag="cancel_finished"):
    """A cancel has come to its end; ``path`` is as it was requested.

    ``outcome``: answered, killed, nothing_running, finished_first or lost.
    """

    path: str
    outcome: Literal["answered", "killed", "nothing_running", "finished_first", "lost"]
    elapsed_ms: float
    detail: str = ""


class Diagnostic(Event, frozen=True, kw_only=True, tag="diagnostic"):
    """Something worth knowing that belongs to no other event."""

    level: Literal["info", "warning", "error"]
    summary: str
    detail: str = ""


AnyEvent: TypeAlias = (
    RunStarted
    | TargetStarted
    | TargetReady
    | TargetUnreachableEvent
    | PlanRefused
    | TaskStarted
    | TaskOutput
    | ItemFinished
    | TaskProgress
    | TaskFinished
    | TargetFinished
    | RunFinished
    | PluginSpawned
    | PluginReady
    | PluginStderr
    | PluginWarning
    | PluginFailed
    | PluginStopped
    | WireFrame
    | CancelRequested
    | CancelSent
    | PluginCancelReceived
    | TargetOpCancelled
    | CancelFinished
    | Diagnostic
)

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyEvent)


def encode(event: Event) -> bytes:
    """Give the event as one line of JSON, newline included."""
    return _encoder.encode(event) + b"\n"


def decode(line: bytes) -> AnyEvent | None:
    """Give the event that a line of a record holds; ``None`` for one that is cut off or unknown.

    A newer engine may write event types that this one does not know: they are passed over.
    """
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
