"""What a headless run loads: nothing that takes long and that it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.headless import environment

DEAR = ("asyncssh", "winrm", "textual", "rich", "jsonschema", "jinja2", "requests")
LOADED = """
import sys
from preflight_tui.cli import run
code = run(["--no-ui", "apply", "site.yml", "--output", "json"])
print("\\nLOADED", code, *(name for name in {dear!r} if name in sys.modules))
"""


def test_a_headless_local_run_loads_nothing_dear(tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text("tasks: [{name: Hello, shell: {cmd: echo, args: [hi]}}]\n")
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(dear=DEAR)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "LOADED 0"
