"""Real runs on real terminals: every screen, every cancel, every way out."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.tui.terminal import (
    PYTHON,
    console_pid,
    engine_pid,
    kinds,
    on_pty,
    project,
    record,
    tmux,
    until,
)

pytestmark = [
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("terminal"),
]


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_every_screen_of_a_run_is_reached_by_keys_alone(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    command = project(tmp_path)
    with tmux(tmp_path, size) as terminal:
        terminal.start(command)
        terminal.sees("Probes", "APPLY", "Targets × tasks", "probe starts: 300 s")
        terminal.keys("2")
        terminal.sees("alpha · 02 probe", "probe starts")
        terminal.keys("3")
        terminal.sees("slow_probe", "ready in", "host has", "plugin has", "agreed")
        terminal.keys("4")
        terminal.sees("Plugin × capability")
        terminal.keys("5")
        terminal.sees("No frame yet")
        terminal.keys("6")
        terminal.sees("Needs you (0)", "RUNNING")
        terminal.keys("?")
        terminal.sees("everywhere")
        terminal.keys("Escape")
        terminal.lacks("everywhere")
        terminal.keys("1")
        terminal.sees("Targets × tasks")
        terminal.keys("q")
        terminal.sees("The run is going on.")
        terminal.keys("C")
        terminal.sees("exit code 130", "cancelled in")
        terminal.is_clean()
    assert kinds(tmp_path)[-1] == "run_finished"


def test_a_task_a_target_and_the_run_are_cancelled_each_by_its_keys(tmp_path: Path) -> None:
    command = project(tmp_path)
    with tmux(tmp_path) as terminal:
        terminal.start(command)
        terminal.sees("probe starts: 300 s", "2 running")
        terminal.keys("c")
        terminal.sees("Cancel 02 probe on alpha?", "slow_probe (pid")
        terminal.keys("c")
        terminal.sees("cancelled in", "cancel sent to slow_probe (id")
        terminal.keys("Down")
        terminal.sees("beta · 02 probe")
        terminal.keys("c")
        terminal.sees("Cancel all of beta")
        terminal.keys("t")
        terminal.sees("Cancelled", "2 answered")
        terminal.keys("Escape")
        terminal.lacks("2 answered")
        terminal.sees("100%")
        terminal.keys("q")
        terminal.sees("exit code")
        terminal.is_clean()
    paths = [event["path"] for event in record(tmp_path) if event["type"] == "cancel_requested"]
    assert len(paths) == 2
    assert str(paths[0]).startswith("alpha/")
    assert paths[1] == "beta"


def test_ctrl_c_twice_cancels_the_run_and_a_stubborn_plugin_is_killed(tmp_path: Path) -> None:
    command = project(tmp_path, "stubborn")
    with tmux(tmp_path) as terminal:
        terminal.start(command)
        terminal.sees("probe starts: 300 s", "2 running")
        terminal.keys("C-c")
        terminal.sees("Cancel the whole run?")
        terminal.keys("C-c")
        terminal.sees("unwinding", "s left")
        terminal.sees("2 killed", "the state there is unknown")
        terminal.keys("C-c")
        terminal.sees("exit code 130", "⊗ alpha  probe")
        terminal.is_clean()


def test_a_third_ctrl_c_ends_the_grace(tmp_path: Path) -> None:
    command = project(tmp_path, "stubborn")
    with tmux(tmp_path) as terminal:
        terminal.start(command)
        terminal.sees("probe starts: 300 s", "2 running")
        terminal.keys("C-c")
        terminal.sees("Cancel the whole run?")
        terminal.keys("C-c", "C-c")
        terminal.sees("2 killed")
    requests = [event for event in record(tmp_path) if event["type"] == "cancel_requested"]
    assert [request.get("kill", False) for request in requests] == [False, True]


def test_a_detached_run_goes_on_and_attach_comes_back_to_it(tmp_path: Path) -> None:
    command = project(tmp_path)
    with tmux(tmp_path) as terminal:
        terminal.start(command)
        terminal.sees("probe starts: 300 s")
        terminal.keys("q")
        terminal.sees("Detach")
        terminal.keys("d")
        terminal.sees("exit code 0", "the run goes on: preflight-tui attach")
        terminal.is_clean()
        terminal.start([*PYTHON, "attach"])
        terminal.sees("probe starts: 300 s", "2 running")
        terminal.keys("C")
        terminal.sees("Cancel the whole run?")
        terminal.keys("C")
        terminal.sees("Cancelled", "2 answered")
        terminal.keys("C-c")
        terminal.sees("exit code 130")
        terminal.start([*PYTHON, "attach"])
        terminal.sees("CANCELLED", "100%")
        terminal.keys("q")
        terminal.sees("exit code 130")
        terminal.is_clean()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_console_that_is_ended_leaves_a_clean_terminal_and_a_running_run(
    tmp_path: Path, number: signal.Signals
) -> None:
    command = project(tmp_path)
    with tmux(tmp_path) as terminal:
        terminal.start(command)
        terminal.sees("probe starts: 300 s")
        os.kill(console_pid(tmp_path), number)
        terminal.sees(f"exit code {128 + number}", "the run goes on: preflight-tui attach")
        terminal.is_clean()
        assert "run_finished" not in kinds(tmp_path)
        terminal.start([*PYTHON, "attach"])
        terminal.sees("probe starts: 300 s", "2 running")
        terminal.keys("q")
        terminal.sees("The run is going on.")
        terminal.keys("C")
        terminal.sees("exit code 130")


def test_a_command_that_can_not_start_opens_no_console(tmp_path: Path) -> None:
    with tmux(tmp_path) as terminal:
        terminal.start([*PYTHON, "apply", "nothing.yml"])
        terminal.sees("nothing.yml", "exit code 2")
        terminal.is_clean()


def test_a_terminal_that_is_closed_takes_the_console_with_it_and_not_the_run(
    tmp_path: Path,
) -> None:
    command = project(tmp_path)
    with tmux(tmp_path) as terminal:
        terminal.start(command)
        terminal.sees("probe starts: 300 s")
        console = console_pid(tmp_path)
        terminal.close()
        until(lambda: not Path(f"/proc/{console}").exists(), lambda: f"{console} is still there")
        assert "run_finished" not in kinds(tmp_path)
        assert Path(f"/proc/{engine_pid(tmp_path)}").exists()


def test_a_console_whose_launcher_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    command = project(tmp_path)
    with on_pty(command, tmp_path) as terminal:
        terminal.sees("probe starts: 300 s")
        console = console_pid(tmp_path)
        terminal.close()
        until(lambda: not Path(f"/proc/{console}").exists(), lambda: f"{console} is still there")
        assert Path(f"/proc/{engine_pid(tmp_path)}").exists()


def test_an_engine_that_is_killed_is_reported_and_no_run_is_said_to_go_on(tmp_path: Path) -> None:
    command = project(tmp_path)
    with tmux(tmp_path, (80, 24)) as terminal:
        terminal.start(command)
        terminal.sees("probe starts: 300 s")
        os.kill(engine_pid(tmp_path), signal.SIGKILL)
        terminal.sees("engine is gone, last event", "INCOMPLETE")
        terminal.keys("q")
        terminal.sees("Probes: the record ends at", "exit code 70")
        terminal.is_clean()


def test_no_byte_of_hostile_output_reaches_the_terminal_raw(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "preflight_tui.console", "--scene", "hostile"]
    with on_pty(command, tmp_path, (120, 36)) as terminal:
        terminal.sees("Targets")
        for key, shown in (
            ("2", "+55"),
            ("g", "colour 208"),
            ("3", "discovered"),
            ("4", "Capabilities"),
            ("5", "trace-wire"),
            ("6", "Needs you"),
            ("?", "everywhere"),
        ):
            terminal.type(key)
            terminal.sees(shown)
        terminal.type("\x03")
        assert terminal.wait() == 1
    # Textual itself sets the shape of the pointer.
    data = re.sub(rb"\x1b\]22;[a-z]+\x07", b"", terminal.data)
    assert b"hostile.yml: finished with failures" in data
    for raw in (b"\x1b]", b"\x07", b"\xc2\x9b", b"\xc2\x9d", b"\x00", b"\x1b[2J", b"\xe2\x80\xae"):
        assert raw not in data, raw


def test_a_terminal_that_stops_reading_delays_neither_cancel_nor_kill(tmp_path: Path) -> None:
    command = project(tmp_path, "stubborn")
    with on_pty(command, tmp_path, (120, 36)) as terminal:
        terminal.sees("probe starts: 300 s")
        terminal.type("C")
        terminal.sees("Cancel the whole run?")
        terminal.type("C")
        # From here on nobody reads: the console may stand still, the engine must not.
        until(lambda: "run_finished" in kinds(tmp_path), lambda: str(kinds(tmp_path)))
        events = record(tmp_path)
        ends = [event for event in events if event["type"] == "cancel_finished"]
        assert [end["outcome"] for end in ends] == ["killed"]
        assert 1900 <= float(str(ends[0]["elapsed_ms"])) <= 10_000
        terminal.sees("CANCELLED")
        terminal.type("\x03")
        assert terminal.wait() == 130
