"""The scenes, by name: what a console must be able to show, each with the same clock."""

from __future__ import annotations

from collections.abc import Callable

from preflight.events import (
    CancelFinished,
    CancelRequested,
    CancelSent,
    Change,
    PlanRefused,
    PluginCancelReceived,
    PluginFailed,
    PluginSpawned,
    PluginStderr,
    PluginStopped,
    PluginWarning,
    Status,
    TargetOpCancelled,
    TargetUnreachableEvent,
    TaskProgress,
    Violation,
)
from preflight_tui.demos.foreign import hostile, wire
from preflight_tui.demos.scene import GRACE_MS, Scene

TASKS = [
    ("create deploy user", "shell"),
    ("create folders", "directory"),
    ("marker of this release", "marker_file"),
    ("write vhost", "file"),
    ("sync content", "signage_sync"),
    ("check tls", "tls_audit"),
    ("restart unit", "shell"),
    ("wait for port 443", "wait"),
]
TARGETS = ["web-001", "web-002", "web-003", "web-004", "db-01", "kiosk-17"]


def green() -> Scene:
    """Everything is as it should be, or was made so."""
    scene = Scene()
    scene.start(TARGETS, TASKS)
    for number, target in enumerate(TARGETS):
        _contact(scene, target, number)
        for task in range(len(TASKS)):
            changed = (number + task) % 3 == 1
            scene.run(target, task, "changed" if changed else "ok")
        scene.close(target)
    scene.finish(ok=len(TARGETS))
    return scene


def running() -> Scene:
    """In the middle of a run: some are done, one has failed, two are at work."""
    scene = Scene()
    scene.start(TARGETS, TASKS)
    for number, target in enumerate(TARGETS[:5]):
        _contact(scene, target, number)
    _upto(scene, "web-001", 8)
    scene.close("web-001")
    _upto(scene, "web-002", 4)
    scene.begin("web-002", 4)
    scene.begin("web-002", 4, "apply", 0.2)
    scene.output("web-002", 4, "412 files in the source, 31 differ", "copied img/hall-a/0001.png")
    scene.emit(TaskProgress(target="web-002", task="t05", done=14, total=31), 0.4)
    scene.output("web-002", 4, "copied img/hall-a/0002.png", "copied img/hall-a/0003.png")
    _failed(scene, "web-003")
    _upto(scene, "web-004", 5)
    scene.begin("web-004", 5)
    scene.output("web-004", 5, "connecting to web-004:443", "certificate of *.example.org")
    _upto(scene, "db-01", 2)
    scene.begin("db-01", 2, "check", 0.01)
    scene.emit(TaskProgress(target="web-002", task="t05", done=15, total=31), 1.1)
    return scene


def failures() -> Scene:
    """A finished run that needs somebody: failed, unreachable, refused, ignored."""
    scene = Scene()
    scene.start(TARGETS, TASKS)
    for number, target in enumerate(TARGETS[:4]):
        _contact(scene, target, number)
    _upto(scene, "web-001", 8)
    scene.close("web-001")
    _upto(scene, "web-002", 5)
    scene.run("web-002", 5, "ignored", reason="module_error", message="expires in 9 days")
    for task in (6, 7):
        scene.run("web-002", task)
    scene.close("web-002")
    _failed(scene, "web-003")
    _failed(scene, "web-004")
    scene.emit(TargetUnreachableEvent(target="db-01", reason="no route to host (2 tries)"), 3.0)
    scene.close("db-01", "unreachable")
    message = "signage_sync needs become, and plugins can't use it"
    refusal = Violation(task="t05", module="signage_sync", reason="plugin_become", message=message)
    scene.emit(PlanRefused(target="kiosk-17", violations=[refusal]), 0.1)
    scene.close("kiosk-17", "refused")
    scene.finish("failed", 1, ok=2, failed=2, unreachable=1, refused=1)
    return scene


def unwinding() -> Scene:
    """A run that is being cancelled: some have answered, two are unwinding."""
    scene = Scene()
    _cancelled_run(scene)
    return scene


def killed() -> Scene:
    """The same cancel at its end: one plugin did not answer and was killed."""
    scene = Scene()
    _cancelled_run(scene)
    scene.end("web-002", 4, "cancelled", after_s=0.112, reason="cancelled")
    scene.emit(
        TargetOpCancelled(
            target="web-004", op="run_command", pid=9120, how="SIGKILL", elapsed_ms=31
        ),
        1.2,
    )
    scene.emit(
        PluginStopped(
            target="web-004",
            plugin="tls_audit",
            pid=4133,
            how="killed",
            signal="SIGKILL",
            stderr_tail=["still waiting for the handshake"],
        ),
        0.02,
    )
    scene.end("web-004", 5, "cancelled", after_s=0.01, reason="cancelled", message="killed")
    for target in TARGETS:
        if target != "web-001":
            scene.close(target, "cancelled" if target != "kiosk-17" else "not_started")
    scene.emit(CancelFinished(path="", outcome="killed", elapsed_ms=2012), 0.01)
    scene.finish("cancelled", 130, ok=1, cancelled=4, not_started=1)
    return scene


def finished_first() -> Scene:
    """A task ended before its cancel was read."""
    scene = _one_task("sync content")
    scene.emit(
        CancelRequested(path="web-001/t01", by="operator", target="web-001", task="t01"), 0.6
    )
    _sent(scene, "web-001", "t01", "signage_sync", 17)
    scene.end("web-001", 0, "changed", after_s=0.004)
    outcome = CancelFinished(path="web-001/t01", outcome="finished_first", elapsed_ms=4.2)
    scene.emit(outcome)
    return scene


def lost() -> Scene:
    """A plugin's process ended by itself while it was unwinding."""
    scene = _one_task("sync content")
    scene.emit(
        CancelRequested(path="web-001/t01", by="operator", target="web-001", task="t01"), 0.6
    )
    _sent(scene, "web-001", "t01", "signage_sync", 17)
    tail = ["Traceback (most recent call last):", "KeyError: 'manifest'"]
    scene.emit(
        PluginStopped(
            target="web-001",
            plugin="signage_sync",
            pid=4121,
            how="crashed",
            exit_code=1,
            stderr_tail=tail,
        ),
        0.2,
    )
    scene.end("web-001", 0, "cancelled", after_s=0.01, reason="plugin_crashed", error=tail[-1])
    scene.emit(CancelFinished(path="web-001/t01", outcome="lost", elapsed_ms=214))
    return scene


def plugins() -> Scene:
    """Plugins in every state, with every way to fail before the first task."""
    scene = Scene()
    names = [
        "signage_sync",
        "tls_audit",
        "kiosk_shell",
        "nas_mount",
        "printer_queue",
        "slow_probe",
    ]
    scene.start(["web-001"], [(f"use {name}", name) for name in names])
    scene.contact("web-001")
    scene.spawn("signage_sync", "web-001", 4121)
    scene.run("web-001", 0, "changed")
    scene.emit(PluginStderr(target="web-001", plugin="signage_sync", lines=["412 files hashed"]))
    scene.spawn("tls_audit", "web-001", 4130, "0.9.2")
    warning = "wrote 14 bytes to its stdout that are no message"
    scene.emit(
        PluginWarning(target="web-001", plugin="tls_audit", kind="stdout_noise", detail=warning)
    )
    for pid, plugin, reason, error, tail in _PLUGIN_FAILURES:
        path = f"/home/op/.preflight/plugins/preflight-plugin-{plugin}"
        scene.emit(PluginSpawned(target="web-001", plugin=plugin, pid=pid, path=path), 0.1)
        scene.emit(
            PluginFailed(
                target="web-001",
                plugin=plugin,
                path=path,
                reason=reason,
                error=error,
                stderr_tail=tail,
            ),
            0.2,
        )
    path = "/srv/plugins/preflight-plugin-slow_probe"
    scene.emit(PluginSpawned(target="web-001", plugin="slow_probe", pid=4151, path=path), 0.1)
    return scene


_PLUGIN_FAILURES: list[tuple[int, str, str, str, list[str]]] = [
    (4140, "kiosk_shell", "plugin_init_timeout", "no answer to initialize in 10 s", []),
    (
        4141,
        "nas_mount",
        "plugin_protocol",
        "no common protocol: host 2 to 2, plugin 1 to 1",
        ["panic: handshake refused", "exit status 2"],
    ),
    (
        4142,
        "printer_queue",
        "plugin_name_mismatch",
        'says its name is "printers", its file says "printer_queue"',
        [],
    ),
]


def fleet() -> Scene:
    """Two hundred targets and fifty tasks, in the middle."""
    scene = Scene(run_id="9c1e")
    targets = [f"web-{number:03}" for number in range(1, 201)]
    names = [name for name, _ in TASKS]
    tasks = [
        (f"{names[number % 8]} {number // 8 + 1}", TASKS[number % 8][1]) for number in range(50)
    ]
    scene.start(targets, tasks)
    for number, target in enumerate(targets[:160]):
        scene.contact(target)
        if number % 37 == 14:
            scene.emit(TargetUnreachableEvent(target=target, reason="connection timed out"), 0.01)
            scene.close(target, "unreachable")
            continue
        ended = 50 if number % 11 == 5 else 12 + (number * 7) % 31
        failing = number % 23 == 2
        for task in range(ended):
            if failing and task == ended - 1:
                scene.run(target, task, "failed", after_s=0.001, message="exit 1")
                continue
            status: Status = "changed" if (number * 3 + task * 5) % 7 == 0 else "ok"
            scene.run(target, task, status, after_s=0.001)
        if failing or ended == 50:
            scene.close(target, "failed" if failing else "ok")
        elif number % 2:
            scene.begin(target, ended, "check", 0.001)
        else:
            scene.begin(target, ended, "apply", 0.001)
    return scene


SCENES: dict[str, Callable[[], Scene]] = {
    "green": green,
    "running": running,
    "failures": failures,
    "unwinding": unwinding,
    "killed": killed,
    "finished-first": finished_first,
    "lost": lost,
    "plugins": plugins,
    "hostile": hostile,
    "fleet": fleet,
    "wire": wire,
}
"""Every scene by its name on the command line."""


def _contact(scene: Scene, target: str, number: int) -> None:
    scene.contact(target, address=f"deploy@10.0.4.{number + 1}")
    scene.spawn("signage_sync", target, 4121 + number * 10)
    if number < 4:
        scene.spawn("tls_audit", target, 4123 + number * 10, "0.9.2")


def _upto(scene: Scene, target: str, tasks: int) -> None:
    for task in range(tasks):
        scene.run(target, task, "changed" if task in (2, 3) else "ok")


def _failed(scene: Scene, target: str) -> None:
    _upto(scene, target, 6)
    scene.begin(target, 6)
    scene.output(target, 6, "unit signage.service is inactive")
    scene.begin(target, 6, "apply", 0.17)
    scene.output(target, 6, "systemctl restart signage.service")
    scene.output(
        target,
        6,
        "Job for signage.service failed because the control process exited with error code.",
        'See "systemctl status signage.service" and "journalctl -xeu signage.service".',
        stream="err",
    )
    error = "Job for signage.service failed"
    change = Change(path="signage.service", before="inactive", after="active")
    scene.end(
        target,
        6,
        "failed",
        after_s=2.5,
        reason="module_error",
        message="restart returned 1",
        error=error,
        changes=[change],
    )
    scene.end(target, 7, "skipped", after_s=0.001, reason="dependency-failed")
    scene.close(target, "failed", "1 task failed")


def _cancelled_run(scene: Scene) -> None:
    scene.start(TARGETS, TASKS)
    for number, target in enumerate(TARGETS[:5]):
        _contact(scene, target, number)
    _upto(scene, "web-001", 8)
    scene.close("web-001")
    for target, task in (("web-002", 4), ("web-003", 0), ("web-004", 5), ("db-01", 4)):
        _upto(scene, target, task)
        scene.begin(target, task, "apply" if task != 5 else "check")
    scene.emit(CancelRequested(path="", by="operator"), 1.4)
    _sent(scene, "web-002", "t05", "signage_sync", 31)
    _sent(scene, "web-004", "t06", "tls_audit", 18, "check")
    _sent(scene, "db-01", "t05", "signage_sync", 29)
    scene.emit(
        TargetOpCancelled(
            target="web-003", task="t01", op="exec", pid=8812, how="SIGTERM", elapsed_ms=11
        ),
        0.01,
    )
    scene.end("web-003", 0, "cancelled", after_s=0.001, reason="cancelled")
    received = PluginCancelReceived(
        target="db-01", task="t05", plugin="signage_sync", op_id=12, op="run_command"
    )
    scene.emit(received, 0.007)
    scene.emit(
        TargetOpCancelled(
            target="db-01", task="t05", op="run_command", pid=9011, how="SIGTERM", elapsed_ms=140
        ),
        0.14,
    )
    scene.end("db-01", 4, "cancelled", after_s=0.25, reason="cancelled")
    received = PluginCancelReceived(
        target="web-002", task="t05", plugin="signage_sync", op_id=20, op="put_file"
    )
    scene.emit(received, 0.3)


def _one_task(name: str) -> Scene:
    scene = Scene()
    scene.start(["web-001"], [(name, "signage_sync"), ("restart unit", "shell")])
    scene.contact("web-001")
    scene.spawn("signage_sync", "web-001", 4121)
    scene.begin("web-001", 0)
    scene.begin("web-001", 0, "apply", 0.1)
    scene.output("web-001", 0, "412 files in the source, 31 differ")
    return scene


def _sent(
    scene: Scene, target: str, task: str, plugin: str, number: int, method: str = "apply"
) -> None:
    event = CancelSent(
        target=target,
        task=task,
        plugin=plugin,
        request_id=number,
        method=method,
        grace_ms=GRACE_MS,
    )
    scene.emit(event, 0.002)
