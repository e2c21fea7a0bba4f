"""Scenes of cancels: how they begin, and each way that they end."""

from __future__ import annotations

from preflight.events import (
    CancelFinished,
    CancelRequested,
    CancelSent,
    PluginCancelReceived,
    PluginStopped,
    TargetOpCancelled,
)
from preflight_tui.demos.scene import GRACE_MS, Scene
from preflight_tui.demos.site import TARGETS, TASKS, contact, upto


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


def _cancelled_run(scene: Scene) -> None:
    scene.start(TARGETS, TASKS)
    for number, target in enumerate(TARGETS[:5]):
        contact(scene, target, number)
    upto(scene, "web-001", 8)
    scene.close("web-001")
    for target, task in (("web-002", 4), ("web-003", 0), ("web-004", 5), ("db-01", 4)):
        upto(scene, target, task)
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
