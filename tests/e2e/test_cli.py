"""The installed command from outside: what it prints, and what it exits with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.command import HEADLESS, environment, preflight

PLUGINS = Path(__file__).parents[2] / "plugins"
PLAYBOOK = """\
    name: Site
    vars: {who: Bo}
    tasks:
      - name: greet {{ target.name }}
        id: greet
        file: {dest: "{{ vars.folder }}/{{ target.name }}.txt", content: "hi {{ vars.who }}\\n"}
        tags: [web]
      - name: after
        shell: {cmd: echo, args: ["{{ vars.who }}"], creates: "{{ vars.folder }}/done"}
        depends_on: [greet]
        when: facts.os.family == 'linux' or facts.os.family == 'darwin'
      - name: finish
        file: {dest: "{{ vars.folder }}/done", mode: 0600}
        when: target.name == 'b'
"""
CONFIG = """\
    inventory:
      groups: {web: {}}
      hosts:
        - {name: a, transport: local, groups: [web]}
        - {name: b, transport: local}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "p.yml").write_text(dedent(PLAYBOOK), encoding="utf-8")
    (tmp_path / "preflight.yml").write_text(dedent(CONFIG), encoding="utf-8")
    return tmp_path


def play(folder: Path, text: str) -> None:
    (folder / "x.yml").write_text(dedent(text), encoding="utf-8")


def test_a_run_is_repeated_without_changes_and_recorded(project: Path) -> None:
    words = ("apply", "p.yml", "-t", "b", "-e", f"folder={project}")
    first = preflight(project, *words, "--run-id", "one")
    assert (first.code, first.err) == (0, "")
    assert (project / "b.txt").read_text(encoding="utf-8") == "hi Bo\n"
    assert (project / "done").stat().st_mode & 0o777 == 0o600
    assert "tasks 3 changed; exit 0" in first.out.splitlines()[-1]
    second = preflight(project, *words, "--run-id", "two")
    assert "tasks 3 ok; exit 0" in second.out.splitlines()[-1]
    runs = preflight(project, "runs", "--output", "json")
    assert [run["run"] for run in json.loads(runs.out)] == ["two", "one"]
    again = preflight(project, "replay", "one")
    assert (again.code, again.out.splitlines()[-1]) == (0, first.out.splitlines()[-1])


def test_the_json_output_is_the_record(project: Path) -> None:
    words = ("apply", "p.yml", "-e", f"folder={project}", "--output", "json", "--run-id", "r")
    done = preflight(project, *words)
    record = project / ".preflight" / "runs" / "r" / "events.ndjson"
    assert done.out == record.read_text(encoding="utf-8")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["type"], events[-1]["type"]) == ("run_started", "run_finished")
    assert events[-1]["exit_code"] == done.code == 0
    assert preflight(project, "replay", "r", "--output", "json").out == done.out


def test_a_check_changes_nothing_and_can_say_so_by_its_exit_code(project: Path) -> None:
    words = ("check", "p.yml", "-t", "b", "-e", f"folder={project}")
    assert preflight(project, *words).code == 0
    pending = preflight(project, *words, "--exit-code")
    assert pending.code == 4
    assert "would change" in pending.out
    assert not (project / "b.txt").exists()
    preflight(project, "apply", *words[1:])
    assert preflight(project, *words, "--exit-code").code == 0


def test_a_failure_skips_the_rest_of_its_target_and_exits_1(project: Path) -> None:
    play(
        project,
        """\
        tasks:
          - name: first
            shell:
              cmd: sh
              args: [-c, "[ $T = b ] || { echo broken >&2; exit 3; }"]
              env: {T: "{{ target.name }}"}
          - {name: second, shell: {cmd: "true"}}
        """,
    )
    done = preflight(project, "apply", "x.yml")
    assert done.code == 1
    assert "a [1/2] first FAILED module_error" in done.out
    assert "exit code 3: broken" in done.out
    assert "a [2/2] second skipped dependency-failed" in done.out
    assert "b [2/2] second changed" in done.out
    assert "1 ok, 1 failed" in done.out.splitlines()[-1]


def test_an_undefined_var_of_one_target_fails_only_there_F56(project: Path) -> None:
    config = (project / "preflight.yml").read_text(encoding="utf-8")
    (project / "preflight.yml").write_text(
        config.replace("{name: b,", "{name: b, vars: {port: 8080},"), encoding="utf-8"
    )
    play(
        project,
        f"""\
        tasks:
          - name: use
            shell: {{cmd: touch, args: ["{project}/{{{{ target.name }}}}-{{{{ vars.port }}}}"]}}
        """,
    )
    done = preflight(project, "apply", "x.yml")
    assert done.code == 1
    assert "x.yml:2: {{" not in done.out
    assert "x.yml:2:" in done.out
    assert "vars.port is not defined" in done.out
    assert "b [1/1] use changed" in done.out
    assert [one.name for one in project.glob("*-*")] == ["b-8080"]
    told = preflight(project, "validate", "x.yml")
    assert told.code == 2
    assert "x.yml:2: task 'use': vars.port is not defined on a" in told.err


def test_all_that_is_wrong_with_a_playbook_is_on_stderr_with_exit_2(project: Path) -> None:
    play(project, "tasks:\n  - shel: {cmd: x}\n  - shell: {cmd: 5, arg: y}\n")
    for command in ("validate", "plan", "check", "apply"):
        done = preflight(project, command, "x.yml")
        assert (done.code, done.out) == (2, "")
        assert [line.split(": ")[0] for line in done.err.splitlines()] == [
            "x.yml:2:5",
            "x.yml:2:5",
            "x.yml:3:18",
            "x.yml:3:21",
        ]
    assert not (project / ".preflight").exists()


def test_a_plan_shows_the_order_without_contact(project: Path) -> None:
    done = preflight(project, "plan", "p.yml", "--tags", "web", "-e", "folder=/x")
    lines = done.out.splitlines()
    assert (done.code, lines[0]) == (0, "a (local)")
    assert "1  file" in lines[1]
    assert "left out by tags" in lines[2]
    data = json.loads(preflight(project, "plan", "p.yml", "--output", "json").out)
    assert [task["key"] for task in data[0]["tasks"]] == ["greet-target-name", "after", "finish"]
    assert data[0]["tasks"][1]["depends_on"] == ["greet-target-name"]


def test_facts_are_what_the_target_reports(project: Path) -> None:
    data = json.loads(preflight(project, "facts", "a", "--output", "json").out)
    assert data["facts"]["a"]["os"]["family"] in ("linux", "darwin")
    assert "hostname:" in preflight(project, "facts", "b").out


def test_a_target_without_an_answer_is_exit_1_and_hides_no_other(project: Path) -> None:
    with (project / "preflight.yml").open("a", encoding="utf-8") as config:
        config.write("    - {name: c, transport: ssh, address: 127.0.0.1, port: 1}\n")
    done = preflight(project, "facts", "a", "c", "--output", "json")
    data = json.loads(done.out)
    assert (done.code, list(data["facts"]), list(data["unreachable"])) == (1, ["a"], ["c"])
    assert done.err.startswith("c: ")


def test_plugins_are_listed_with_what_was_negotiated(project: Path) -> None:
    words = ("--plugin-dir", str(PLUGINS), "--plugin-dir-only", "--output", "json")
    listed = preflight(project, "plugin", "list", *words)
    found = {one["name"]: one for one in json.loads(listed.out)["plugins"]}
    assert (listed.code, listed.err) == (0, "")
    assert {"marker_file", "signage_sync", "slow_probe"} <= set(found)
    assert {one["status"] for one in found.values()} == {"ready"}
    one = preflight(project, "plugin", "info", "marker_file", *words[:3])
    assert one.code == 0
    for words_of_page in ("status           ready", "host offers      preflight", "negotiated"):
        assert words_of_page in one.out


def test_a_plugin_that_can_not_be_used_is_listed_with_its_reason(project: Path) -> None:
    folder = project / "plugins"
    folder.mkdir()
    broken = folder / "preflight-plugin-broken"
    broken.write_text("#!/bin/sh\necho no licence >&2\nexit 7\n", encoding="utf-8")
    broken.chmod(0o755)
    (folder / "preflight-plugin-plain").write_text("", encoding="utf-8")
    words = ("--plugin-dir", str(folder), "--plugin-dir-only")
    listed = preflight(project, "plugin", "list", *words)
    assert listed.code == 1
    assert "broken" in listed.out
    assert "failed" in listed.out
    assert "broken: plugin_start" in listed.err
    assert "preflight-plugin-plain" in listed.err
    info = preflight(project, "plugin", "info", "broken", *words)
    assert info.code == 1
    assert "no licence" in info.out


def test_the_inventory_is_listed(project: Path) -> None:
    done = preflight(project, "inventory", "list")
    assert [line.split()[0] for line in done.out.splitlines()] == ["NAME", "a", "b"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["apply", "none.yml"], "none.yml: can't be read"),
        (["apply", "p.yml", "-t", "zz"], "no target or group 'zz'"),
        (["apply", "p.yml", "--run-id", "../x"], "--run-id"),
        (["apply", "p.yml", "-e", "x"], "-e 'x' is not KEY=VALUE"),
        (["apply", "p.yml", "--plugin-dir", "/no/such"], "--plugin-dir /no/such"),
        (["replay", "zz"], "no run 'zz'"),
        (["plugin", "info", "zz"], "no plugin 'zz'"),
        (["attach"], "terminal"),
        (["apply"], "playbook"),
        ([], "usage"),
    ],
)
def test_what_can_not_be_done_is_said_on_stderr_with_exit_2(
    project: Path, words: list[str], said: str
) -> None:
    done = preflight(project, *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_run_id_can_not_be_used_twice(project: Path) -> None:
    words = ("apply", "p.yml", "-t", "a", "-e", f"folder={project}", "--run-id", "same")
    assert preflight(project, *words).code == 0
    again = preflight(project, *words)
    assert (again.code, again.out) == (2, "")


def test_only_so_many_finished_runs_are_kept(project: Path) -> None:
    play(project, "tasks: []\n")
    for number in range(4):
        preflight(project, "apply", "x.yml", "--keep-runs", "2", "--run-id", f"r{number}")
    runs = json.loads(preflight(project, "runs", "--output", "json").out)
    assert [run["run"] for run in runs] == ["r3", "r2"]


def test_the_demo_needs_nothing_and_changes_nothing_twice(tmp_path: Path) -> None:
    first = preflight(tmp_path, "demo")
    assert (first.code, first.err) == (0, "")
    assert "failed" not in first.out
    assert first.out.splitlines()[-1].endswith("exit 0")
    second = preflight(tmp_path, "demo", "--no-ui")
    assert "changed" not in second.out


def test_without_a_terminal_the_console_command_says_that_it_is_headless(project: Path) -> None:
    done = subprocess.run(
        [HEADLESS + "-tui", "apply", "p.yml", "-t", "a", "-e", f"folder={project}"],
        cwd=project,
        env=environment(project),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0
    assert "no terminal" in done.stderr
    assert "exit 0" in done.stdout


def test_an_encoding_without_the_character_ends_nothing(project: Path) -> None:
    play(project, 'tasks: [{name: "ü → ✓", shell: {cmd: "true"}}]\n')
    env = environment(project, PYTHONIOENCODING="ascii")
    done = preflight(project, "apply", "x.yml", "-t", "a", env=env)
    assert done.code == 0
    assert "\\u2713 changed" in done.out


def test_streams_that_are_closed_or_full_end_no_run(project: Path) -> None:
    play(project, f"tasks: [{{shell: {{cmd: touch, args: [{project}/made]}}}}]\n")
    made = project / "made"
    for redirection, said in ((">&-", ""), ("2>&- <&-", ""), (">/dev/full", "can't write")):
        done = subprocess.run(
            ["sh", "-c", f'"$0" apply x.yml -t a {redirection}', HEADLESS],
            cwd=project,
            env=environment(project),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done
        assert done.stderr.count("\n") <= 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr
        assert made.exists()
        made.unlink()


def test_a_result_that_can_not_be_written_is_not_exit_0(project: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" inventory list >/dev/full', HEADLESS],
        cwd=project,
        env=environment(project),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "can't write the result: No space left on device\n"


def test_a_headless_run_imports_nothing_dear(project: Path) -> None:
    play(project, "tasks: [{shell: {cmd: 'true'}}]\n")
    script = (
        "import sys\nfrom preflight_tui.cli import run\n"
        "code = run(['--no-ui', 'apply', 'x.yml', '-t', 'a'])\n"
        "dear = {'textual', 'rich', 'asyncssh', 'winrm', 'jinja2', 'jsonschema'}\n"
        "sys.exit(code or ' '.join(sorted(dear & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=project,
        env=environment(project),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
