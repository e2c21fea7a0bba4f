"""A plugin to begin with, and its test: both work as they are written."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from string import Template

import msgspec

from preflight.errors import ConfigError
from preflight.modules import BUILTINS
from preflight.plugins.discovery import PREFIX

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_PROBE_S = 20.0

_PLUGIN = Template('''\
#!$interpreter
"""Keeps one file on the target. Params: path (absolute), content (text)."""

from __future__ import annotations

from shlex import quote

from preflight_sdk import ApplyResult, CheckResult, Context, Handle, serve


class $class_name:
    name = "$name"  # must be the part of the file's name behind $prefix
    version = "0.1.0"

    def check(self, ctx: Context, args: dict[str, object], handle: Handle) -> CheckResult:
        path, content, error = read_params(args)
        if error:
            return CheckResult(False, error=error)
        if not handle.run_command(f"test -f {quote(path)}").ok:
            return CheckResult(True, f"{path} is missing")
        if handle.get_file(path) != content:
            return CheckResult(True, f"{path} differs")
        return CheckResult(False, f"{path} is as wanted")

    def apply(self, ctx: Context, args: dict[str, object], handle: Handle) -> ApplyResult:
        path, content, error = read_params(args)
        if error:
            return ApplyResult(error=error)
        handle.output(f"writing {len(content)} bytes to {path}")
        # A new file, then a rename: a cancel or a kill in between leaves the old one whole.
        handle.put_file(f"{path}.new", content)
        moved = handle.run_command(f"mv -f {quote(path + '.new')} {quote(path)}")
        if not moved.ok:
            return ApplyResult(error=f"{path}: {moved.stderr.strip() or moved.exit_code}")
        return ApplyResult(f"wrote {path}")


def read_params(args: dict[str, object]) -> tuple[str, bytes, str]:
    """The path, the content, and what is wrong with them."""
    path, content = args.get("path"), args.get("content", "")
    if not isinstance(path, str) or not path.startswith("/"):
        return "", b"", "path is required: the absolute path of the file on the target"
    if not isinstance(content, str):
        return "", b"", "content must be text"
    return path, content.encode(), ""


if __name__ == "__main__":
    serve($class_name)
''')

_TEST = Template("""\
from pathlib import Path
from shlex import split

import pytest
from preflight_sdk import RunResult
from preflight_sdk.testing import FakeTarget, Harness, load

plugin = load(Path(__file__).with_name("$prefix$name"))

ARGS = {"path": "/srv/file", "content": "new"}


def harness():
    target = FakeTarget({"/srv/file": b"old"})

    def exists(script):
        return RunResult(exit_code=0 if split(script)[-1] in target.files else 1)

    def move(script):
        old, new = split(script)[-2:]
        target.files[new] = target.files.pop(old)
        return RunResult()

    target.on_run("test -f", exists)
    target.on_run("mv -f", move)
    return Harness(plugin.$class_name, target)


def test_other_content_needs_change_until_it_is_written():
    one = harness()
    assert one.check(ARGS).needs_change
    assert one.apply(ARGS).result.message == "wrote /srv/file"
    assert one.target.files == {"/srv/file": b"new"}
    assert not one.check(ARGS).needs_change


def test_a_missing_file_needs_change():
    one = harness()
    one.target.files.clear()
    assert one.check(ARGS).needs_change


def test_a_relative_path_is_a_clear_error():
    assert "absolute" in harness().check({"path": "file"}).error


@pytest.mark.parametrize("stop", ["cancel_at", "kill_at"])
@pytest.mark.parametrize("op", [1, 2])
def test_stopped_at_any_op_it_leaves_the_old_file_and_the_next_apply_is_whole(stop, op):
    one = harness()
    outcome = one.apply(ARGS, **{stop: op})
    assert outcome.cancelled or outcome.killed
    assert one.target.files["/srv/file"] == b"old"
    one.apply(ARGS)
    assert one.target.files == {"/srv/file": b"new"}
""")


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What was written, and whether line 1 names a Python of this machine alone."""

    plugin: Path
    test: Path
    of_this_machine: bool


def write(name: str, folder: Path) -> Written:
    """Write both files; nothing that is there is touched. Raises :class:`ConfigError`."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no plugin name: letters, digits, _ and - are")
    if name in BUILTINS:
        raise ConfigError(f"{name} is a built-in module: a plugin needs another name")
    plugin = folder / f"{PREFIX}{name}"
    test = folder / f"test_{name.replace('-', '_')}.py"
    for path in (plugin, test):
        if path.exists():
            raise ConfigError(f"{path} is there already")
    interpreter, of_this_machine = _interpreter()
    class_name = "".join(part.capitalize() for part in re.split("[_-]", name)) or "Plugin"
    words = {
        "interpreter": interpreter,
        "class_name": class_name if class_name[0].isalpha() else f"Plugin{class_name}",
        "name": name,
        "prefix": PREFIX,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        plugin.write_text(_PLUGIN.safe_substitute(words), encoding="utf-8")
        plugin.chmod(0o755)
        test.write_text(_TEST.safe_substitute(words), encoding="utf-8")
    except OSError as exc:
        raise ConfigError(f"{exc.filename}: {exc.strerror}") from exc
    return Written(plugin=plugin, test=test, of_this_machine=of_this_machine)


def next_steps(written: Written) -> list[str]:
    """Say what was written and what to do with it."""
    lines = [f"wrote {written.plugin} and {written.test}", ""]
    if written.of_this_machine:
        lines += [
            "python3 has no preflight_sdk here, so the first line of the plugin names the Python",
            "that runs this command. For other machines: install the SDK there and use python3.",
            "",
        ]
    params = '{"path": "/srv/file", "content": "new"}'
    return [
        *lines,
        "next:",
        "  1. make check and apply yours; see docs/write-a-plugin.md",
        f"  2. python -m pytest {written.test}",
        f"  3. preflight-tui plugin verify {written.plugin} --params '{params}'",
        f"  4. use it: module: {written.plugin.name.removeprefix(PREFIX)}",
        "  5. pin it: preflight-tui plugin lock",
    ]


def _interpreter() -> tuple[str, bool]:
    """Give what can run the plugin: ``python3`` where it has the SDK, else this very Python."""
    usual = shutil.which("python3")
    if usual is not None:
        try:
            done = subprocess.run(
                [usual, "-c", "import preflight_sdk"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd="/",
                timeout=_PROBE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return sys.executable, True
        if done.returncode == 0:
            return "/usr/bin/env python3", False
    return sys.executable, True
