"""``plugin new``, ``plugin lock`` and ``plugin replay`` as an author runs them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from preflight_tui.starter import next_steps, write
from tests.support.command import environment, preflight
from tests.support.headless import PLUGINS

pytestmark = pytest.mark.timeout(180)

PARAMS = '{"path": "/srv/file", "content": "new"}'


def pytest_in(folder: Path, test: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)],
        cwd=folder,
        env={**environment(folder), "PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_new_plugin_passes_its_own_test_and_the_kit(tmp_path: Path) -> None:
    made = preflight(tmp_path, "plugin", "new", "my-thing")
    assert made.code == 0, made.err
    assert "plugin verify plugins/preflight-plugin-my-thing" in made.out
    tested = pytest_in(tmp_path, tmp_path / "plugins" / "test_my_thing.py")
    assert (tested.returncode, "7 passed" in tested.stdout) == (0, True), tested.stdout
    path = "plugins/preflight-plugin-my-thing"
    words = ("plugin", "verify", path, "--params", PARAMS, "--output", "json")
    proved = preflight(tmp_path, *words)
    said = json.loads(proved.out)
    assert (proved.code, said["failed"]) == (0, 0)
    assert said["groups"]["kill at every operation"]["passed"] == 1


@pytest.mark.parametrize(
    ("name", "said"), [("a/b", "no plugin name"), ("shell", "built-in"), ("there", "there already")]
)
def test_a_name_that_can_not_be_is_refused_and_nothing_is_written(
    name: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "preflight-plugin-there").write_text("mine")
    outcome = preflight(tmp_path, "plugin", "new", name)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
    assert [one.read_text() for one in (tmp_path / "plugins").iterdir()] == ["mine"]


def test_a_name_that_begins_with_a_digit_makes_a_class_all_the_same(tmp_path: Path) -> None:
    written = write("7zip", tmp_path)
    compile(written.plugin.read_text(), "plugin", "exec")
    assert "class Plugin7zip" in written.plugin.read_text()
    assert any("module: 7zip" in line for line in next_steps(written))


def project(folder: Path) -> Path:
    """A project with a copy of an example plugin, the SDK beside it; gives the plugin."""
    (folder / "plugins").mkdir()
    shutil.copytree(PLUGINS / "preflight_sdk", folder / "plugins" / "preflight_sdk")
    plugin = folder / "plugins" / "preflight-plugin-marker_file"
    shutil.copy(PLUGINS / plugin.name, plugin)
    (folder / "preflight.yml").write_text("project: pinned\n")
    task = {
        "name": "Mark",
        "module": "marker_file",
        "params": {"path": str(folder / "marker"), "content": "here"},
    }
    (folder / "site.yml").write_text(json.dumps({"tasks": [task]}))
    return plugin


def test_a_locked_plugin_runs_until_its_file_differs_and_then_is_refused(tmp_path: Path) -> None:
    plugin = project(tmp_path)
    assert preflight(tmp_path, "plugin", "list").out.split("\n")[1].split()[4] == "-"
    locked = preflight(tmp_path, "plugin", "lock")
    digest = sha256(plugin.read_bytes()).hexdigest()
    assert (locked.code, digest in locked.out) == (0, True), locked.err
    assert json.loads((tmp_path / "plugins.lock").read_text())["plugins"] == [
        {"name": "marker_file", "version": "1.0.0", "sha256": digest}
    ]
    assert preflight(tmp_path, "plugin", "list").out.split("\n")[1].split()[4] == "pinned"
    assert preflight(tmp_path, "apply", "site.yml").code == 0
    (tmp_path / "marker").unlink()
    plugin.write_text(plugin.read_text() + "\n# changed\n")
    refused = preflight(tmp_path, "apply", "site.yml")
    assert refused.code == 1
    assert digest in refused.out
    assert sha256(plugin.read_bytes()).hexdigest() in refused.out
    assert not (tmp_path / "marker").exists()
    assert preflight(tmp_path, "plugin", "lock", "marker_file").code == 0
    assert preflight(tmp_path, "apply", "site.yml").code == 0


def test_a_plugin_that_can_not_start_is_not_pinned(tmp_path: Path) -> None:
    project(tmp_path).write_text("#!/bin/sh\nexit 3\n")
    outcome = preflight(tmp_path, "plugin", "lock")
    assert (outcome.code, "nothing was pinned" in outcome.err) == (1, True)
    assert not (tmp_path / "plugins.lock").exists()


def test_a_trace_played_again_shows_no_difference_until_the_plugin_differs(tmp_path: Path) -> None:
    plugin = project(tmp_path)
    run = preflight(tmp_path, "apply", "site.yml", "--trace-wire", "wire.ndjson")
    assert run.code == 0
    (tmp_path / "marker").unlink()
    same = preflight(tmp_path, "plugin", "replay", "wire.ndjson", "--plugin", "marker_file")
    count = len((tmp_path / "wire.ndjson").read_text().splitlines()) - 1
    assert count > 10
    assert (same.code, same.out) == (0, f"no difference: {count} frames of 1 processes\n"), same.err
    assert not (tmp_path / "marker").exists()
    text = plugin.read_text().replace('version = "1.0.0"', 'version = "2.0.0"')
    plugin.write_text(text)
    path = str(plugin)
    assert preflight(tmp_path, "plugin", "replay", "wire.ndjson", "--plugin", path).code == 0
    plugin.write_text(text.replace("is missing", "is not there"))
    other = preflight(tmp_path, "plugin", "replay", "wire.ndjson", "--plugin", path)
    assert other.code == 1
    assert other.out.startswith("wire.ndjson:")
    assert ": it differs at /result/message\n" in other.out
    assert "is missing" in other.out
    assert "is not there" in other.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gone.ndjson", "--plugin", "marker_file"], "gone.ndjson"),
        (["site.yml", "--plugin", "marker_file"], "no wire trace"),
        (["wire.ndjson", "--plugin", "nobody"], "there is no plugin"),
        (["wire.ndjson", "--plugin", "marker_file"], "it has those of: other"),
    ],
)
def test_a_replay_that_makes_no_sense_is_refused_with_2(
    words: list[str], said: str, tmp_path: Path
) -> None:
    project(tmp_path)
    entry = {"t_ms": 0, "dir": "in", "plugin": "other", "pid": 1, "text": "x"}
    (tmp_path / "wire.ndjson").write_text('{"trace": 1}\n' + json.dumps(entry) + "\n")
    outcome = preflight(tmp_path, "plugin", "replay", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
