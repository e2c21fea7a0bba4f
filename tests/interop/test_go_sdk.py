"""The public Go SDK of Preflight 1.0.0 and ours, each with the other's other side.

Skipped, with the reason, where there is no Go or the module can't be had.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.headless import PLUGINS, Command, gone, wait_until

SOURCE = Path(__file__).parent / "go"
MODULE = "github.com/bluecadet/preflight@v1.0.0"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plugin and the host, built against the public module."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no go here to build the Go plugin with")
    folder = tmp_path_factory.mktemp("go")
    shutil.copytree(SOURCE, folder, dirs_exist_ok=True)
    fetched = subprocess.run(
        [go, "mod", "download", "-json", MODULE],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    if fetched.returncode != 0:
        said = json.loads(fetched.stdout or "{}").get("Error", fetched.stderr).splitlines()
        pytest.skip(f"the module {MODULE} can't be had: {said[-1] if said else 'no answer'}")
    for name, output in (("plugin", "preflight-plugin-go_probe"), ("host", "host")):
        subprocess.run(
            [go, "build", "-mod=mod", "-o", output, f"./{name}"],
            cwd=folder,
            check=True,
            timeout=600,
        )
    return folder


def playbook(folder: Path, *tasks: dict[str, object]) -> None:
    named = [
        {"name": f"T{number}", "module": "go_probe", **task} for number, task in enumerate(tasks)
    ]
    (folder / "site.yml").write_text(json.dumps({"tasks": named}))


def words(built: Path) -> list[str]:
    return ["apply", "site.yml", "--plugin-dir", str(built), "--plugin-dir-only"]


@pytest.mark.timeout(700)
def test_a_go_plugin_checks_applies_prints_and_uses_the_handle(built: Path, tmp_path: Path) -> None:
    params = {"path": str(tmp_path / "made" / "file"), "content": "hello"}
    playbook(tmp_path, {"params": params}, {"params": params})
    with Command(tmp_path, *words(built)) as command:
        assert command.finish() == 0
    assert (tmp_path / "made" / "file").read_text() == "hello"
    assert command.wait_for("task_finished", task="t0")["status"] == "changed"
    assert command.wait_for("task_finished", task="t1")["status"] == "ok"
    assert "ran out err 3" in command.lines()
    ready = command.wait_for("plugin_ready")
    capabilities = ready["capabilities"]
    assert isinstance(capabilities, dict)
    assert capabilities["plugin"] == ["example/own"]
    assert capabilities["negotiated"] == []
    assert command.types().count("plugin_spawned") == 1


@pytest.mark.timeout(700)
def test_a_cancel_reaches_through_a_go_plugin_to_the_target(built: Path, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    wait = f"echo $$ >{mark}; sleep 300 & wait"
    playbook(tmp_path, {"params": {"wait": wait}})
    with Command(tmp_path, *words(built)) as command:
        wait_until(lambda: mark.is_file() and mark.read_text().endswith("\n"))
        pid = int(mark.read_text())
        command.process.send_signal(signal.SIGINT)
        assert wait_until(lambda: gone([pid])) < 1
        assert command.finish() == 130
    assert command.wait_for("cancel_finished")["outcome"] == "answered"


@pytest.mark.timeout(700)
def test_our_marker_file_answers_a_go_host(built: Path, tmp_path: Path) -> None:
    plugin = PLUGINS / "preflight-plugin-marker_file"
    done = subprocess.run(
        [built / "host", plugin, tmp_path / "marker"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    seen = json.loads(done.stdout)
    assert (seen["Name"], seen["First"], seen["Second"]) == ("marker_file", True, False)
    assert (tmp_path / "marker").read_text() == "from go\n"
