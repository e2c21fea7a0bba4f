"""What signals, and a reader that goes away, do to a headless run."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.command import Running, is_running

# Each shell writes its pid, so that the test can prove that it is gone.
WAITING = """\
tasks:
  - name: wait
    shell:
      cmd: sh
      args: [-c, "sleep 300 & echo $$ $! >pids.new; mv pids.new pids; echo ready; wait"]
      working_dir: {folder}
  - name: after
    shell: {{cmd: "true"}}
"""
STUBBORN = """\
tasks:
  - name: stay
    shell:
      cmd: sh
      args:
        - -c
        - |
          trap '' TERM INT HUP
          echo $$ >pids.new; mv pids.new pids; echo ready
          while :; do sleep 0.1; done
      working_dir: {folder}
"""


def pids(folder: Path) -> list[int]:
    return [int(word) for word in (folder / "pids").read_text(encoding="utf-8").split()]


def start(folder: Path, playbook: str, *words: str) -> Running:
    (folder / "x.yml").write_text(playbook.format(folder=folder), encoding="utf-8")
    return Running(folder, ["apply", "x.yml", "-v", "--run-id", "r", *words])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_cancels_and_the_record_is_complete_F38(
    tmp_path: Path, number: signal.Signals
) -> None:
    with start(tmp_path, WAITING) as run:
        run.until("ready")
        begin = time.monotonic()
        run.send(number)
        outcome = run.end()
        elapsed_s = time.monotonic() - begin
    assert outcome.code == 130
    assert not any(is_running(pid) for pid in pids(tmp_path))
    assert "cancel requested by signal for the run" in outcome.out
    assert "wait CANCELLED" in outcome.out
    assert "after CANCELLED" in outcome.out
    assert outcome.out.splitlines()[-1].endswith("tasks 2 cancelled; exit 130")
    record = (tmp_path / ".preflight" / "runs" / "r" / "events.ndjson").read_text(encoding="utf-8")
    last = json.loads(record.splitlines()[-1])
    assert (last["type"], last["exit_code"]) == ("run_finished", 130)
    assert elapsed_s < 5  # far above what it takes, far below the sleep


def test_a_run_under_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    playbook = (
        "tasks:\n"
        "  - shell: {{cmd: sh, args: [-c, 'echo ready; while [ ! -e go ]; do sleep 0.05; done'], "
        "working_dir: {folder}}}\n"
    )
    (tmp_path / "x.yml").write_text(playbook.format(folder=tmp_path), encoding="utf-8")
    with Running(tmp_path, ["apply", "x.yml", "-v"], before=["nohup"]) as run:
        run.until("ready")
        run.send(signal.SIGHUP)
        (tmp_path / "go").touch()
        outcome = run.end()
    assert outcome.code == 0
    assert "cancel" not in outcome.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_only_looks_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    os.mkfifo(tmp_path / "told")
    plugin = folder / "preflight-plugin-stuck"
    plugin.write_text(
        f"#!/bin/sh\ntrap '' TERM INT HUP\necho $$ >{tmp_path}/told\nwhile :; do sleep 0.1; done\n",
        encoding="utf-8",
    )
    plugin.chmod(0o755)
    words = ["plugin", "list", "--plugin-dir", str(folder), "--plugin-dir-only"]
    with Running(tmp_path, words) as run:
        pid = int((tmp_path / "told").read_text(encoding="utf-8"))
        run.send(number)
        outcome = run.end()
    assert outcome.code == 130
    assert outcome.err == ""
    assert not is_running(pid)


def test_the_third_signal_leaves_at_once_and_nothing_is_left(tmp_path: Path) -> None:
    with start(tmp_path, STUBBORN) as run:
        run.until("ready")
        run.send(signal.SIGINT)
        run.until("cancel requested")
        run.send(signal.SIGINT)
        run.until("kill requested")
        run.send(signal.SIGINT)
        outcome = run.end()
    assert outcome.code == 130
    deadline = time.monotonic() + 5
    while any(is_running(pid) for pid in pids(tmp_path)) and time.monotonic() < deadline:
        os.sched_yield()
    assert not any(is_running(pid) for pid in pids(tmp_path))


def test_a_stubborn_command_is_killed_after_its_grace(tmp_path: Path) -> None:
    with start(tmp_path, STUBBORN) as run:
        run.until("ready")
        run.send(signal.SIGINT)
        outcome = run.end()
    assert outcome.code == 130
    assert "by SIGKILL" in outcome.out
    assert not any(is_running(pid) for pid in pids(tmp_path))


def test_a_reader_that_goes_away_ends_no_run(tmp_path: Path) -> None:
    playbook = (
        "tasks:\n"
        "  - shell: {{cmd: sh, args: [-c, 'echo ready; while [ ! -e go ]; do sleep 0.05; done; "
        "seq 1 20000; touch done'], working_dir: {folder}}}\n"
    )
    with start(tmp_path, playbook) as run:
        run.until("ready")
        run.close_stdout()
        (tmp_path / "go").touch()
        outcome = run.end()
    assert outcome.code == 0
    assert outcome.err == ""
    assert (tmp_path / "done").exists()


def test_the_runs_own_deadline_cancels_what_is_left_F33(tmp_path: Path) -> None:
    with start(tmp_path, WAITING, "--timeout", "1s") as run:
        outcome = run.end()
    assert outcome.code == 1
    assert "deadline passed" in outcome.out
    assert not any(is_running(pid) for pid in pids(tmp_path))
