"""``plugin verify`` as an author runs it."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.command import HEADLESS, environment, preflight
from tests.support.faulty_plugin import PARAMS, lay_faulty
from tests.support.headless import PLUGINS, gone, wait_until

pytestmark = pytest.mark.timeout(180)


def params_of(plugin: str, folder: Path) -> list[str]:
    """Words that let each example plugin do all it can, on files of this test alone."""
    source, dest = folder / "source", folder / "dest"
    match plugin:
        case "marker_file":
            return ["--params", json.dumps({"path": "/srv/marker", "content": "here\n"})]
        case "signage_sync":
            source.mkdir()
            (source / "one").write_text("1")
            (source / "two").write_text("2")
            params = {"source": str(source), "dest": str(dest)}
            return ["--local", "--reset", f"rm -rf {dest}", "--params", json.dumps(params)]
        case _:
            return ["--local", "--params", json.dumps({"seconds": 0.01})]


@pytest.mark.parametrize("plugin", ["marker_file", "signage_sync", "slow_probe"])
def test_the_example_plugins_have_full_marks_in_all_that_applies(
    plugin: str, tmp_path: Path
) -> None:
    words = ["--output", "json", *params_of(plugin, tmp_path)]
    done = verify(tmp_path, PLUGINS / f"preflight-plugin-{plugin}", *words)
    said = json.loads(done.stdout)
    failed = [one for one in said["requirements"] if one["status"] == "failed"]
    assert (done.returncode, failed) == (0, [])
    passed = {one["id"] for one in said["requirements"] if one["status"] == "passed"}
    assert passed >= {"V2-IM-01", "V2-GR-01", "V2-CA-02", "V2-CO-02", "V2-KO-01", "V2-EO-03"}
    assert passed >= {"V2-SC-01", "V2-SC-02", "V2-BA-01"}


def verify(folder: Path, path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HEADLESS, "plugin", "verify", str(path), *words],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_a_fault_is_shown_with_its_requirement_what_was_seen_and_the_frames(tmp_path: Path) -> None:
    path = lay_faulty(tmp_path, "another name")
    done = verify(tmp_path, path, "--params", json.dumps(PARAMS))
    assert done.returncode == 1
    assert "FAILED handshake" in done.stdout
    assert "FAILED V2-HS-03  the name in the result is the file's [3]" in done.stdout
    assert 'it says "other", the file says "demo"' in done.stdout
    assert done.stdout.endswith("46 of 47 requirements that apply are held, 0 do not apply\n")


def test_junit_has_a_case_for_each_and_skips_what_does_not_apply(tmp_path: Path) -> None:
    done = verify(tmp_path, lay_faulty(tmp_path, "echoes ids as text"), "--output", "junit")
    suite = ElementTree.fromstring(done.stdout)
    assert (suite.get("tests"), suite.get("failures")) == ("47", "1")
    assert len(suite.findall("testcase/skipped")) == int(suite.get("skipped") or 0) > 0
    (failure,) = suite.findall("testcase/failure")
    assert failure.get("message") == 'the id 1 was echoed as "1"'
    assert '< {"id": "1"' in (failure.text or "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "there is no such file"),
        (["demo", "--params", "{"], "--params"),
        (["demo", "--params", "[1]"], "an object is needed"),
        (["demo", "--params", "@gone.json"], "gone.json"),
        (["demo", "--answers", '[{"no": 1}]'], "--answers"),
        (["demo", "--reset", "true"], "--local"),
        (["demo", "--local", "--answers", "[]"], "--local"),
    ],
)
def test_what_makes_no_sense_is_refused_with_2(words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("")
    outcome = preflight(tmp_path, "plugin", "verify", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_the_plugin_with_it(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "preflight-plugin-demo"
    path.write_text("#!/bin/sh\necho $$ >pid.new && mv pid.new pid\nexec sleep 300\n")
    path.chmod(0o755)
    fifo = tmp_path / "pid"
    with subprocess.Popen(
        [HEADLESS, "plugin", "verify", str(path)],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as command:
        try:
            wait_until(fifo.is_file)
            command.send_signal(number)
            assert command.wait(20) == 130
            wait_until(lambda: gone([int(fifo.read_text())]))
        finally:
            command.kill()
