"""Write a scene: events one after the other, each at its time, as lines of a record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from preflight.events import (
    Capabilities,
    Counts,
    Event,
    Line,
    Phase,
    PlannedTask,
    PluginReady,
    PluginSpawned,
    RunFinished,
    RunStarted,
    Status,
    Stream,
    TargetCounts,
    TargetFinished,
    TargetInfo,
    TargetReady,
    TargetStarted,
    TaskFinished,
    TaskOutput,
    TaskStarted,
    encode,
)

START = datetime(2026, 3, 2, 12, 3, 30, tzinfo=UTC)
GRACE_MS = 2000
HOST = ["cancel", "chunked", "output", "progress"]

DEBIAN = TargetInfo(
    family="debian",
    name="Debian GNU/Linux",
    version="12",
    arch="x86_64",
    hostname="web-003",
    package_manager="apt",
    init="systemd",
    runtime_kind="posix-shell",
)


class Scene:
    """A run that is written down event by event; ``now_s`` is the time of the next one."""

    def __init__(self, playbook: str = "site.yml", run_id: str = "7f3a") -> None:
        self.lines: list[bytes] = []
        self.now_s = 0.0
        self.playbook = playbook
        self.run_id = run_id
        self.tasks: list[PlannedTask] = []
        self._counts: dict[str, dict[str, int]] = {}

    def emit(self, event: Event, after_s: float = 0.0) -> None:
        """Write an event, ``after_s`` seconds after the one before."""
        self.now_s += after_s
        moment = START + timedelta(seconds=self.now_s)
        stamped = msgspec.structs.replace(
            event,
            seq=len(self.lines) + 1,
            ts=moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            run_id=self.run_id,
        )
        self.lines.append(encode(stamped).rstrip(b"\n"))

    def start(
        self, targets: list[str], tasks: list[tuple[str, str]], mode: Phase = "apply"
    ) -> None:
        """Begin the run; a task is its name and its module."""
        self.tasks = [
            PlannedTask(key=f"t{number:02}", name=name, module=module)
            for number, (name, module) in enumerate(tasks, 1)
        ]
        self._counts = {target: {} for target in targets}
        self.emit(
            RunStarted(
                mode=mode,
                playbook=self.playbook,
                path=f"/srv/{self.playbook}",
                targets=targets,
                version="0.1.0",
                concurrency=12,
                cancel_grace_ms=GRACE_MS,
            )
        )

    def contact(
        self, target: str, transport: str = "ssh", address: str = "deploy@10.0.4.3"
    ) -> None:
        """Reach a target."""
        self.emit(
            TargetStarted(target=target, transport=transport, address=address, tasks=self.tasks),
            0.04,
        )
        self.emit(TargetReady(target=target, info=DEBIAN), 0.09)

    def spawn(self, plugin: str, target: str, pid: int, version: str = "1.4.0") -> None:
        """Start a plugin and shake hands."""
        path = f"/opt/preflight/preflight-plugin-{plugin}"
        self.emit(PluginSpawned(target=target, plugin=plugin, pid=pid, path=path), 0.004)
        own = ["cancel", "diff", "output"]
        both = Capabilities(host=HOST, plugin=own, negotiated=["cancel", "output"])
        self.emit(
            PluginReady(
                target=target,
                plugin=plugin,
                version=version,
                protocol_version=2,
                capabilities=both,
                max_message_bytes=67108864,
                pid=pid,
                elapsed_ms=42,
            ),
            0.042,
        )

    def begin(self, target: str, task: int, phase: Phase = "check", after_s: float = 0.02) -> None:
        """Begin a phase of the task with the number ``task``, counted from 0."""
        plan = self.tasks[task]
        self.emit(
            TaskStarted(
                target=target,
                task=plan.key,
                name=plan.name,
                module=plan.module,
                index=task,
                phase=phase,
            ),
            after_s,
        )

    def output(self, target: str, task: int, *texts: str, stream: Stream = "out") -> None:
        """Let a task print."""
        lines = [Line(stream, text) for text in texts]
        self.emit(TaskOutput(target=target, task=self.tasks[task].key, lines=lines), 0.08)

    def end(
        self, target: str, task: int, status: Status, *, after_s: float = 0.12, **fields: object
    ) -> None:
        """End a task; ``fields`` are those of the event."""
        plan = self.tasks[task]
        count = self._counts[target]
        count[status] = count.get(status, 0) + 1
        event = TaskFinished(
            target=target,
            task=plan.key,
            status=status,
            name=plan.name,
            module=plan.module,
            index=task,
            elapsed_ms=after_s * 1000,
        )
        self.emit(msgspec.structs.replace(event, **fields), after_s)

    def run(
        self,
        target: str,
        task: int,
        status: Status = "ok",
        *,
        after_s: float = 0.12,
        **fields: object,
    ) -> None:
        """Let a task begin and end."""
        if status != "skipped":
            self.begin(target, task)
        if status == "changed":
            self.begin(target, task, "apply", 0.05)
        self.end(target, task, status, after_s=after_s, **fields)

    def close(self, target: str, status: str = "ok", message: str = "") -> None:
        """End a target."""
        counts = Counts(**self._counts[target])
        self.emit(
            TargetFinished(
                target=target, status=status, counts=counts, message=message, elapsed_ms=2300
            ),
            0.01,
        )

    def finish(self, status: str = "ok", exit_code: int = 0, **targets: int) -> None:
        """End the run."""
        total: dict[str, int] = {}
        for counts in self._counts.values():
            for name, count in counts.items():
                total[name] = total.get(name, 0) + count
        self.emit(
            RunFinished(
                status=status,
                tasks=Counts(**total),
                targets=TargetCounts(**targets),
                exit_code=exit_code,
                elapsed_ms=self.now_s * 1000,
            ),
            0.01,
        )
