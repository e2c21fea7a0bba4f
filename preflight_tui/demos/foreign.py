"""Scenes of what comes from elsewhere: output that attacks the terminal, frames on a wire."""

from __future__ import annotations

from typing import Literal

from preflight.events import CancelFinished, CancelRequested, CancelSent, PluginStderr, WireFrame
from preflight_tui.demos.scene import GRACE_MS, Scene


def hostile() -> Scene:
    """Output that tries to take the terminal over."""
    scene = Scene(playbook="hostile\x1b]0;owned\x07.yml")
    scene.start(["web-\x1b[2J001"], [("evil \x1b[31mtask\x9b2J", "shell")])
    scene.contact("web-\x1b[2J001", address="\x1b]52;c;aGk=\x07host")
    target = "web-\x1b[2J001"
    scene.begin(target, 0, "apply")
    scene.output(target, 0, *HOSTILE)
    scene.output(target, 0, "x" * 60_000 + " the end")
    scene.emit(
        PluginStderr(target=target, task="t01", plugin="evil", lines=["\x1b[?1049l[/red]left"])
    )
    scene.end(target, 0, "failed", message="[bold]no\x1b[2J", error="\x07bell [/]")
    scene.close(target, "failed", "\x1b[31mred")
    scene.finish("failed", 1, failed=1)
    return scene


HOSTILE = [
    "\x1b]0;a title of my own\x07after OSC 0",
    "\x1b]8;;http://example.org\x1b\\a link\x1b]8;;\x1b\\ after OSC 8",
    "\x1b]52;c;ZXZpbA==\x07after OSC 52",
    "\x1b[2J\x1b[Hafter clear screen",
    "\x9b2J\x9d0;x\x9cafter C1",
    "nul\x00, bell\x07, backspace abc\b\b\bxyz",
    "[red]brackets[/red] [/] [@click=app.quit]click[/]",
    "\x1b[1;31mbold red\x1b[0m \x1b[38;5;208mcolour 208\x1b[0m",
    "\x1b[48;2;0;60;120mtrue colour\x1b[0m and plain",
    "10%\r50%\r100% after carriage returns",
    "日本語の出力 한국어 中文 wide",
    "emoji 🚀 👩‍👩‍👧 ❤️ and e\u0301 combining",
    "right to left \u202edesrever\u202c, tab\tstop",
    "invalid \ufffd utf-8",
    "\x1b[not finished",
]


def wire() -> Scene:
    """A cancel on a plugin's wire, frame by frame, and the next request."""
    scene = Scene()
    scene.start(["web-003"], [("restart unit", "signage_sync"), ("check tls", "signage_sync")])
    scene.contact("web-003")
    scene.spawn("signage_sync", "web-003", 4121)
    scene.begin("web-003", 0)
    _frame(scene, "out", "check", 15, '{"jsonrpc":"2.0","id":15,"method":"check","params":{}}')
    _frame(scene, "in", "run_command", 11, _RUN, after_s=0.003)
    _frame(scene, "out", "result", 11, '{"jsonrpc":"2.0","id":11,"result":{"exit_code":0}}', 0.15)
    _frame(scene, "in", "result", 15, '{"jsonrpc":"2.0","id":15,"result":{"needs_change":true}}')
    scene.begin("web-003", 0, "apply", 0.001)
    _frame(scene, "out", "apply", 17, '{"jsonrpc":"2.0","id":17,"method":"apply","params":{}}')
    _frame(scene, "in", "run_command", 12, _RUN, after_s=0.003)
    path, target, task = "web-003/t01", "web-003", "t01"
    scene.emit(CancelRequested(path=path, by="operator", target=target, task=task), 2.2)
    sent = CancelSent(
        target=target,
        task=task,
        plugin="signage_sync",
        request_id=17,
        method="apply",
        grace_ms=GRACE_MS,
    )
    scene.emit(sent, 0.001)
    _frame(scene, "out", "cancel", None, '{"jsonrpc":"2.0","method":"cancel","params":{"id":17}}')
    _frame(scene, "in", "cancel", None, '{"jsonrpc":"2.0","method":"cancel","params":{"id":12}}')
    _frame(scene, "out", "error", 12, '{"jsonrpc":"2.0","id":12,"error":{"code":-32800}}', 0.03)
    _frame(scene, "in", "error", 17, '{"jsonrpc":"2.0","id":17,"error":{"code":-32800}}', 0.37)
    scene.end(target, 0, "cancelled", after_s=0.001, reason="cancelled")
    scene.emit(CancelFinished(path=path, outcome="answered", elapsed_ms=412))
    scene.begin("web-003", 1)
    _frame(scene, "out", "check", 18, '{"jsonrpc":"2.0","id":18,"method":"check","params":{}}')
    _frame(scene, "in", "invalid", None, "Traceback (most recent\x1b[2J call last):", after_s=0.4)
    return scene


_RUN = (
    '{"jsonrpc":"2.0","id":12,"method":"run_command",'
    '"params":{"script":"systemctl restart signage.service","timeout":30}}'
)


def _frame(
    scene: Scene,
    way: Literal["out", "in"],
    kind: str,
    number: int | None,
    preview: str,
    after_s: float = 0.007,
) -> None:
    task = scene.tasks[0].key
    event = WireFrame(
        target="web-003",
        task=task,
        plugin="signage_sync",
        dir=way,
        kind=kind,
        bytes=len(preview) + 1,
        id=number,
        preview=preview,
    )
    scene.emit(event, after_s)
