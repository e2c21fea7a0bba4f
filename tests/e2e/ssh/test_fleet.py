"""The command over SSH: many names, one server of the tests' own; fleet scenarios by their rows."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.support.headless import PLUGINS, Command, gone, wait_until
from tests.support.ssh_places import Servers
from tests.support.sshd import Sshd

TREE = 'sleep 300 & sh -c "sleep 300 & sleep 300" & setsid sleep 300 & echo up; wait'


def inventory(server: Sshd, names: list[str], **extra: dict[str, object]) -> dict[str, object]:
    """Describe the server as many targets; ``extra`` changes some of them."""
    usual: dict[str, object] = {
        "address": server.address,
        "port": server.port,
        "username": server.me,
        "private_key": str(server.key_file),
        "known_hosts_file": str(server.known_hosts()),
        "host_key_policy": "strict",
        "timeout": "10s",
        "ssh_config": False,
    }
    hosts = [{**usual, "name": name, **extra.get(name, {})} for name in names]
    return {"inventory": {"hosts": hosts}}


def lay_out(folder: Path, config: dict[str, object], *tasks: dict[str, object]) -> list[str]:
    (folder / "preflight.yml").write_text(json.dumps(config))
    (folder / "site.yml").write_text(json.dumps({"tasks": tasks}))
    return ["apply", "site.yml", "--plugin-dir", str(PLUGINS), "--plugin-dir-only"]


def shell(name: str, script: str, **fields: object) -> dict[str, object]:
    return {"name": name, "shell": {"cmd": "sh", "args": ["-c", script]}, **fields}


def ends(command: Command) -> dict[object, object]:
    return {
        event["target"]: event["status"]
        for event in command.events
        if event["type"] == "target_finished"
    }


def names(count: int) -> list[str]:
    return [f"web-{number:03}" for number in range(count)]


def test_a_second_run_changes_nothing_on_many_targets(
    servers: Servers, folder: Path, tmp_path: Path
) -> None:  # F1, smaller: the full size is tests/bench/fleet.py
    config = inventory(servers.get(), names(8))
    tasks: list[dict[str, object]] = [
        {"name": f"F{n}", "file": {"dest": f"{folder}/{{{{ target.name }}}}/{n}", "content": "x"}}
        for n in range(5)
    ]
    words = lay_out(tmp_path, config, *tasks)
    with Command(tmp_path, *words) as command:
        assert command.finish() == 0, command.stderr()
    with Command(tmp_path, *words) as command:
        assert command.finish() == 0
    counts = command.wait_for("run_finished")["tasks"]
    assert counts == {
        **{"ok": 40, "changed": 0, "skipped": 0},
        **{"failed": 0, "ignored": 0, "cancelled": 0},
    }


def test_a_dead_target_is_told_apart_and_delays_no_other(
    servers: Servers, tmp_path: Path
) -> None:  # F6, F7
    config = inventory(servers.get(), ["a", "dead", "b"], dead={"port": 1})
    words = lay_out(tmp_path, config, shell("Hello", "echo hello"))
    with Command(tmp_path, *words) as command:
        assert command.finish() == 1
    assert ends(command) == {"a": "ok", "dead": "unreachable", "b": "ok"}
    reason = str(command.wait_for("target_unreachable")["reason"])
    assert f"{servers.get().address}:1" in reason
    counts = command.wait_for("run_finished")["targets"]
    assert isinstance(counts, dict)
    assert (counts["ok"], counts["unreachable"], counts["failed"]) == (2, 1, 0)


def test_a_slow_target_holds_no_other_back(servers: Servers, tmp_path: Path) -> None:  # F7
    config = inventory(servers.get(), ["slow", "quick"])
    wait = shell("Wait", "sleep 3", when="target.name == 'slow'")
    words = lay_out(tmp_path, config, wait, *(shell(f"T{n}", "echo x") for n in range(5)))
    with Command(tmp_path, *words) as command:
        assert command.finish() == 0
    order = [event["target"] for event in command.events if event["type"] == "target_finished"]
    assert order == ["quick", "slow"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything_on_every_target(
    servers: Servers, tmp_path: Path, number: signal.Signals
) -> None:  # F23, F24, F38
    server = servers.get()
    words = lay_out(tmp_path, inventory(server, names(6)), shell("Hang", TREE))
    with Command(tmp_path, *words) as command:
        for name in names(6):
            command.wait_for("task_output", target=name)
        pids = [seen.pid for seen in server.ops()]
        assert len(pids) >= 6 * 5
        command.process.send_signal(number)
        took = wait_until(lambda: gone(pids))
        assert command.finish() == 130
    assert took <= 1.0, f"{took:.3f} s"
    assert set(ends(command).values()) == {"cancelled"}
    assert server.ops() == []


def test_one_target_is_cancelled_and_the_others_go_on(
    servers: Servers, tmp_path: Path
) -> None:  # F32: its own timeout, then the next task of that target
    config = inventory(servers.get(), ["a", "b"])
    hang = shell("Hang", "sleep 300", when="target.name == 'a'", timeout="1s", ignore_errors=True)
    words = lay_out(tmp_path, config, hang, shell("After", "echo after"))
    with Command(tmp_path, *words) as command:
        assert command.finish() == 0
    assert command.wait_for("task_finished", target="a", task="hang")["reason"] == "timeout"
    assert command.wait_for("task_finished", target="a", task="after")["status"] == "changed"
    assert servers.get().ops() == []


def test_the_run_s_deadline_ends_what_is_left(servers: Servers, tmp_path: Path) -> None:  # F33
    words = lay_out(tmp_path, inventory(servers.get(), ["a", "b"]), shell("Hang", "sleep 300"))
    with Command(tmp_path, *words, "--timeout", "2s") as command:
        assert command.finish() == 1
    assert command.wait_for("task_finished", target="a")["reason"] == "timeout"
    assert servers.get().ops() == []


def test_sigkill_of_the_controller_leaves_nothing_on_the_targets(
    servers: Servers, tmp_path: Path
) -> None:  # F30
    server = servers.get()
    words = lay_out(tmp_path, inventory(server, names(3)), shell("Hang", TREE))
    with Command(tmp_path, *words) as command:
        for name in names(3):
            command.wait_for("task_output", target=name)
        command.process.kill()
        command.finish()
        assert wait_until(lambda: server.ops() == []) <= 2.0


def test_the_spine_s_plugins_run_over_ssh_with_the_same_outcomes_as_here(
    servers: Servers, folder: Path, tmp_path: Path
) -> None:
    slides = tmp_path / "slides"
    (slides / "deep").mkdir(parents=True)
    (slides / "a.txt").write_text("a")
    (slides / "deep" / "b.txt").write_text("b")
    config = inventory(servers.get(), ["far", "near"], near={"transport": "local"})
    home = f"{folder}/{{{{ target.name }}}}"
    tasks: list[dict[str, object]] = [
        {
            "name": "Sync",
            "module": "signage_sync",
            "params": {"source": str(slides), "dest": f"{home}/slides"},
        },
        {
            "name": "Mark",
            "module": "marker_file",
            "params": {"path": f"{home}/ready", "content": "x"},
        },
    ]
    words = lay_out(tmp_path, config, *tasks)
    seen: dict[str, list[object]] = {}
    for _ in range(2):
        with Command(tmp_path, *words) as command:
            assert command.finish() == 0, command.stderr()
        for name in ("far", "near"):
            seen.setdefault(name, []).extend(
                (event["type"], event.get("task"), event.get("status"), event.get("phase"))
                for event in command.events
                if event.get("target") == name
                and str(event["type"]).startswith("task_")
                # how output falls into batches is a matter of time
                and event["type"] != "task_output"
            )
    assert seen["far"] == seen["near"]
    assert ("task_finished", "sync", "ok", None) in seen["far"]
    assert (folder / "far" / "slides" / "deep" / "b.txt").read_text() == "b"


def test_a_cancel_goes_through_a_plugin_to_the_far_side_within_500_ms(
    servers: Servers, tmp_path: Path
) -> None:
    server = servers.get()
    probe: dict[str, object] = {
        "name": "P",
        "module": "slow_probe",
        "params": {"mode": "polite", "seconds": 300},
    }
    words = lay_out(tmp_path, inventory(server, ["far"]), probe)
    with Command(tmp_path, *words) as command:
        command.wait_for("task_output")
        wait_until(lambda: len(server.ops()) >= 2)
        pids = [seen.pid for seen in server.ops()]
        start = time.monotonic()
        command.process.send_signal(signal.SIGINT)
        wait_until(lambda: gone(pids))
        took = time.monotonic() - start
        assert command.finish() == 130
    assert took <= 0.6, f"{took:.3f} s"
    assert command.wait_for("plugin_cancel_received")["op"] == "run_command"
    assert command.wait_for("target_op_cancelled")["target"] == "far"


def test_an_undefined_variable_fails_its_own_target_alone(
    servers: Servers, tmp_path: Path
) -> None:  # F56
    config = inventory(servers.get(), ["a", "b"], b={"vars": {"greeting": "hi"}})
    words = lay_out(tmp_path, config, shell("Say", "echo {{ vars.greeting }}"))
    with Command(tmp_path, *words) as command:
        assert command.finish() == 1
    assert ends(command) == {"a": "failed", "b": "ok"}
    assert command.wait_for("task_finished", target="a")["reason"] == "template_error"


def test_an_insecure_policy_is_said_once_a_run(servers: Servers, tmp_path: Path) -> None:
    server = servers.get()
    names_ = names(3)
    changed: dict[str, dict[str, object]] = {
        name: {"host_key_policy": "insecure"} for name in names_
    }
    words = lay_out(tmp_path, inventory(server, names_, **changed), shell("Hello", "echo hello"))
    with Command(tmp_path, *words) as command:
        assert command.finish() == 0
    said = [event for event in command.events if event["type"] == "diagnostic"]
    assert [event["level"] for event in said if "insecure" in str(event["summary"])] == ["warning"]
