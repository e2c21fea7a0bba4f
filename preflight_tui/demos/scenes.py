"""The scenes, by name: what a console must be able to show, each with the same clock."""

from __future__ import annotations

from collections.abc import Callable

from preflight.events import (
    PlanRefused,
    PluginFailed,
    PluginSpawned,
    PluginStderr,
    PluginWarning,
    Status,
    TargetUnreachableEvent,
    TaskProgress,
    Violation,
)
from preflight_tui.demos.foreign import hostile, wire
from preflight_tui.demos.scene import Scene
from preflight_tui.demos.site import TARGETS, TASKS, contact, failed, upto
from preflight_tui.demos.stopping import finished_first, killed, lost, unwinding


def green() -> Scene:
    """Everything is as it should be, or was made so."""
    scene = Scene()
    scene.start(TARGETS, TASKS)
    for number, target in enumerate(TARGETS):
        contact(scene, target, number)
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
        contact(scene, target, number)
    upto(scene, "web-001", 8)
    scene.close("web-001")
    upto(scene, "web-002", 4)
    scene.begin("web-002", 4)
    scene.begin("web-002", 4, "apply", 0.2)
    scene.output("web-002", 4, "412 files in the source, 31 differ", "copied img/hall-a/0001.png")
    scene.emit(TaskProgress(target="web-002", task="t05", done=14, total=31), 0.4)
    scene.output("web-002", 4, "copied img/hall-a/0002.png", "copied img/hall-a/0003.png")
    failed(scene, "web-003")
    upto(scene, "web-004", 5)
    scene.begin("web-004", 5)
    scene.output("web-004", 5, "connecting to web-004:443", "certificate of *.example.org")
    upto(scene, "db-01", 2)
    scene.begin("db-01", 2, "check", 0.01)
    scene.emit(TaskProgress(target="web-002", task="t05", done=15, total=31), 1.1)
    return scene


def failures() -> Scene:
    """A finished run that needs somebody: failed, unreachable, refused, ignored."""
    scene = Scene()
    scene.start(TARGETS, TASKS)
    for number, target in enumerate(TARGETS[:4]):
        contact(scene, target, number)
    upto(scene, "web-001", 8)
    scene.close("web-001")
    upto(scene, "web-002", 5)
    scene.run("web-002", 5, "ignored", reason="module_error", message="expires in 9 days")
    for task in (6, 7):
        scene.run("web-002", task)
    scene.close("web-002")
    failed(scene, "web-003")
    failed(scene, "web-004")
    scene.emit(TargetUnreachableEvent(target="db-01", reason="no route to host (2 tries)"), 3.0)
    scene.close("db-01", "unreachable")
    message = "signage_sync needs become, and plugins can't use it"
    refusal = Violation(task="t05", module="signage_sync", reason="plugin_become", message=message)
    scene.emit(PlanRefused(target="kiosk-17", violations=[refusal]), 0.1)
    scene.close("kiosk-17", "refused")
    scene.finish("failed", 1, ok=2, failed=2, unreachable=1, refused=1)
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
