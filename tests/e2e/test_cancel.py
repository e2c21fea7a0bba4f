"""A cancel that arrives: real processes, real signals, from the command line down."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.support.headless import PLUGINS, Command, gone, wait_until

PLAYBOOK = """\
tasks:
  - name: Probe
    module: slow_probe
    params: {{mode: {mode}, seconds: 300}}
  - name: After
    module: slow_probe
    params: {{mode: polite, seconds: 0}}
"""

# Its own script tells both pids, then waits for a child that sleeps.
PIDS = re.compile(r"shell (\d+), child (\d+)")


def lay_out(folder: Path, mode: str) -> list[str]:
    (folder / "site.yml").write_text(PLAYBOOK.format(mode=mode))
    return ["apply", "site.yml", "--plugin-dir", str(PLUGINS), "--plugin-dir-only"]


def target_pids(plugin_pid: int, controller_pid: int) -> list[int]:
    """What the engine runs on the target: its children but for the plugin, and theirs."""
    children = [pid for pid in _children(controller_pid) if pid != plugin_pid]
    return children + [pid for child in children for pid in _children(child)]


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(word) for word in (task / "children").read_text().split()]
    return found


def wait_for_target(command: Command, plugin_pid: int) -> list[int]:
    pids: list[int] = []

    def both_there() -> bool:
        pids[:] = target_pids(plugin_pid, command.process.pid)
        return len(pids) >= 2

    wait_until(both_there)
    return pids


def spawned(command: Command) -> int:
    command.wait_for("task_output")
    pid = command.wait_for("plugin_spawned")["pid"]
    assert isinstance(pid, int)
    return pid


def test_sigint_reaches_the_process_on_the_target_and_its_child_within_300_ms(
    tmp_path: Path,
) -> None:
    with Command(tmp_path, *lay_out(tmp_path, "polite")) as command:
        plugin = spawned(command)
        pids = wait_for_target(command, plugin)
        command.process.send_signal(signal.SIGINT)
        took = wait_until(lambda: gone(pids))
        assert command.finish() == 130
    assert took <= 0.3, f"{took:.3f} s"
    steps = [
        "cancel_requested",
        "cancel_sent",
        "plugin_cancel_received",
        "target_op_cancelled",
        "cancel_finished",
    ]
    assert [kind for kind in command.types() if kind in steps] == steps
    assert "cleaned up" in command.lines(), "the plugin's clean-up did not run"
    assert command.types()[-1] == "run_finished"
    assert gone([plugin])


def test_a_stubborn_plugin_is_dead_after_its_grace_and_so_is_its_process_on_the_target(
    tmp_path: Path,
) -> None:
    with Command(tmp_path, *lay_out(tmp_path, "stubborn")) as command:
        plugin = spawned(command)
        pids = wait_for_target(command, plugin)
        command.process.send_signal(signal.SIGINT)
        took = wait_until(lambda: gone([plugin, *pids]))
        assert command.finish() == 130
    assert 1.9 <= took <= 2.4, f"{took:.3f} s"
    stopped = command.wait_for("plugin_stopped")
    assert (stopped["how"], stopped["signal"]) == ("killed", "SIGKILL")
    assert command.wait_for("cancel_finished")["outcome"] == "killed"


def test_a_second_sigint_ends_the_grace(tmp_path: Path) -> None:  # P91
    with Command(tmp_path, *lay_out(tmp_path, "stubborn")) as command:
        plugin = spawned(command)
        pids = wait_for_target(command, plugin)
        command.process.send_signal(signal.SIGINT)
        command.wait_for("cancel_sent")
        start = time.monotonic()
        command.process.send_signal(signal.SIGINT)
        wait_until(lambda: gone([plugin, *pids]))
        assert time.monotonic() - start < 1.0
        assert command.finish() == 130
    assert command.wait_for("cancel_requested", kill=True)["by"] == "signal"


def test_a_third_sigint_leaves_at_once_and_leaves_nothing_behind(tmp_path: Path) -> None:  # P91
    script = "trap '' TERM; echo up $$; while :; do sleep 1; done"
    task = {"name": "Deaf", "shell": {"cmd": "sh", "args": ["-c", script]}}
    (tmp_path / "site.yml").write_text(json.dumps({"tasks": [task]}))
    with Command(tmp_path, "apply", "site.yml") as command:
        command.wait_for("task_output")
        pid = int(command.lines()[0].split()[1])
        command.process.send_signal(signal.SIGINT)
        command.wait_for("cancel_requested")
        command.process.send_signal(signal.SIGINT)
        command.wait_for("cancel_requested", kill=True)
        command.process.send_signal(signal.SIGINT)
        start = time.monotonic()
        assert command.finish() == 130
        assert time.monotonic() - start < 0.5
        wait_until(lambda: gone([pid]))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_cancel_in_the_ordinary_way(tmp_path: Path, number: int) -> None:  # P92
    with Command(tmp_path, *lay_out(tmp_path, "polite")) as command:
        plugin = spawned(command)
        pids = wait_for_target(command, plugin)
        command.process.send_signal(number)
        assert command.finish() == 130
        wait_until(lambda: gone([plugin, *pids]))
    assert command.types()[-1] == "run_finished"


def test_the_same_process_serves_the_next_task_after_a_cancel(tmp_path: Path) -> None:
    limited = "- name: Probe\n    timeout: 1s\n    ignore_errors: true"
    playbook = PLAYBOOK.format(mode="polite").replace("- name: Probe", limited)
    (tmp_path / "site.yml").write_text(playbook)
    words = ["apply", "site.yml", "--plugin-dir", str(PLUGINS), "--plugin-dir-only"]
    with Command(tmp_path, *words) as command:
        assert command.finish() == 0
    assert command.types().count("plugin_spawned") == 1
    assert command.wait_for("task_finished", task="probe")["reason"] == "timeout"
    assert command.wait_for("task_finished", task="after")["status"] == "changed"
    assert command.wait_for("plugin_stopped")["how"] == "closed"


def test_sigkill_of_the_engine_leaves_no_plugin_behind(tmp_path: Path) -> None:  # P93, P94
    with Command(tmp_path, *lay_out(tmp_path, "stubborn")) as command:
        plugin = spawned(command)
        command.process.kill()
        command.finish()
        assert wait_until(lambda: gone([plugin])) <= 3.5
    record = next((tmp_path / ".preflight" / "runs").glob("*/events.ndjson"))
    assert record.read_bytes().count(b"\n") >= len(command.events) > 3


def test_nothing_of_the_run_is_in_the_terminals_group(tmp_path: Path) -> None:  # P90
    with Command(tmp_path, *lay_out(tmp_path, "polite")) as command:
        plugin = spawned(command)
        pids = wait_for_target(command, plugin)
        groups = {os.getpgid(pid) for pid in [plugin, pids[0]]}
        assert os.getpgid(command.process.pid) not in groups
        assert len(groups) == 2
        command.process.send_signal(signal.SIGINT)
        assert command.finish() == 130
