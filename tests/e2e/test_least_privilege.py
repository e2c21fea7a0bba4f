"""A plugin gets the args of its task and nothing else, whatever the playbook holds."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.headless import PLUGINS, run

# What the host writes goes into a file on its way to the real plugin.
TAP = """\
#!/bin/sh
tee {log} | {plugin}
"""


def wire(folder: Path, variables: dict[str, object]) -> bytes:
    """Run one plugin task and give every byte that the host wrote to it."""
    plugins = folder / "plugins"
    plugins.mkdir(parents=True)
    log = folder / "wire.log"
    tap = plugins / "preflight-plugin-marker_file"
    tap.write_text(TAP.format(log=log, plugin=PLUGINS / "preflight-plugin-marker_file"))
    tap.chmod(0o755)
    tasks = [
        {"name": "Other", "shell": {"cmd": "echo", "args": ["said by another task"]}},
        {
            "name": "Mark",
            "module": "marker_file",
            "params": {"path": str(folder.parent / "marker"), "content": "{{ vars.own }}"},
        },
    ]
    document = {"vars": {"own": "mine", **variables}, "tasks": tasks}
    (folder / "site.yml").write_text(json.dumps(document))
    done = run(folder, "apply", "site.yml", "--run-id", "same", "--plugin-dir", str(plugins))
    assert done.returncode == 0, done.stdout + done.stderr
    return log.read_bytes()


def test_a_hundred_vars_of_10_kb_change_no_byte_on_the_wire(tmp_path: Path) -> None:
    big: dict[str, object] = {f"var{number}": "x" * 10_000 for number in range(100)}
    (tmp_path / "marker").write_text("mine")
    alone = wire(tmp_path / "a", {})
    with_vars = wire(tmp_path / "b", big)
    assert b'"content":"mine"' in alone
    assert with_vars == alone
    assert b"another task" not in alone
