"""Every block of docs/write-a-plugin.md is run as it stands."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.fake_host import FakeHost
from tests.wire.sdk.conftest import PLUGINS

DOC = PLUGINS.parent / "docs" / "write-a-plugin.md"
BLOCKS = re.findall(r"^```(\w*)(?: (\w+)=(\S+))?\n(.*?)^```$", DOC.read_text("utf-8"), re.M | re.S)


def blocks(language: str) -> list[tuple[str, str]]:
    """What stands behind the language, and the text."""
    return [(value, text) for kind, _, value, text in BLOCKS if kind == language]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The page's files, with the SDK beside them and nothing installed."""
    shutil.copytree(PLUGINS / "preflight_sdk", tmp_path / "preflight_sdk")
    for name, text in blocks("python"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_every_block_has_a_language_that_is_run_here() -> None:
    languages = [kind for kind, _, _, _ in BLOCKS]
    assert sorted(languages) == ["python"] * 6 + ["sh", "wire", "yaml"]
    assert len(languages) * 2 == DOC.read_text("utf-8").count("```")
    assert all(name for name, _ in blocks("python"))


def test_the_shell_commands_succeed(folder: Path, plugin_env: dict[str, str]) -> None:
    ((_, script),) = blocks("sh")
    (folder / "preflight-plugin-motd").chmod(0o644)
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=folder, env=plugin_env, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(("name", "count"), [("test_motd.py", 4), ("test_more.py", 2)])
def test_the_tests_on_the_page_pass(
    folder: Path, plugin_env: dict[str, str], name: str, count: int
) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name]
    env = {**plugin_env, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout
    assert f"{count} passed" in done.stdout


def test_the_task_names_the_plugin_on_the_page() -> None:
    ((_, text),) = blocks("yaml")
    (task,) = yaml.safe_load(text)["tasks"]
    assert f"preflight-plugin-{task['module']}" in [name for name, _ in blocks("python")]
    assert set(task["params"]) == {"text"}


def test_the_conversation_is_byte_for_byte_what_happens(
    folder: Path, plugin_env: dict[str, str]
) -> None:
    ((plugin, text),) = blocks("wire")
    with FakeHost([str(folder / plugin)], cwd=folder, env=plugin_env) as host:
        for line in text.splitlines():
            if line.startswith("> "):
                host.send(line[2:].encode() + b"\n")
            else:
                assert line.startswith("< ")
                assert host.out.line().decode() == line[2:]
        assert host.fence() == []
