"""The playbook and the targets that most scenes are about."""

from __future__ import annotations

from preflight.events import Change
from preflight_tui.demos.scene import Scene

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


def contact(scene: Scene, target: str, number: int) -> None:
    """Reach a target and start its plugins."""
    scene.contact(target, address=f"deploy@10.0.4.{number + 1}")
    scene.spawn("signage_sync", target, 4121 + number * 10)
    if number < 4:
        scene.spawn("tls_audit", target, 4123 + number * 10, "0.9.2")


def upto(scene: Scene, target: str, tasks: int) -> None:
    """Run the first tasks of a target."""
    for task in range(tasks):
        scene.run(target, task, "changed" if task in (2, 3) else "ok")


def failed(scene: Scene, target: str) -> None:
    """Run a target up to a unit that does not start."""
    upto(scene, target, 6)
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
