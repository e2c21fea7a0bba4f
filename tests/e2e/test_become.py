"""``become`` on this machine: the installed command as an ordinary account, and the real sudo."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import cast

import pytest

from tests.support.become_place import BecomePlace, owner_of, why_no_become
from tests.support.running import odd_seconds, sleepers
from tests.support.sshd import PASSWORD

pytestmark = [
    pytest.mark.skipif(bool(why_no_become()), reason=why_no_become() or "-"),
    pytest.mark.timeout(120),
]

WORK = """\
vars: {{secret: {secret}}}
{become}
tasks:
  - name: who
    shell: {{cmd: id, args: [-un]}}
  - name: processes
    shell: {{cmd: sh, args: [-c, "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ >{out}; true"]}}
  - name: folder
    directory: {{path: {place}, mode: "0700"}}
  - name: file
    file: {{dest: {place}/f, content: "a\\nb", mode: "0600", owner: root}}
  - name: read
    shell: {{cmd: cat, args: [{place}/f]}}
  - name: account
    user: {{name: made, system: true}}
"""

Fields = dict[str, object]


def events(out: str) -> list[Fields]:
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def ended(out: str) -> dict[str, Fields]:
    done = [event for event in events(out) if event["type"] == "task_finished"]
    return {str(event["name"]): event for event in done}


def playbook(place: BecomePlace, become: str, *, secret: str = PASSWORD) -> str:
    return WORK.format(
        become=become,
        secret=json.dumps(secret, ensure_ascii=False),
        place=place.folder / "kept",
        out=place.folder / "processes",
    )


@pytest.mark.parametrize(
    ("account", "become"),
    [
        ("asks", "become: {password: '{{ vars.secret }}'}"),
        ("free", "become: {password: '{{ vars.secret }}'}"),
        ("free", "become: true"),
    ],
    ids=["it is asked for", "nobody asks", "none is given"],
)
def test_every_built_in_works_as_root_and_the_password_is_nowhere(
    tmp_path: Path, account: str, become: str
) -> None:
    """F50: with a password that holds all that a shell could trip over."""
    place = BecomePlace(tmp_path, account)
    place.write(playbook(place, become))
    first = place.run("apply", "site.yml", "--output", "json")
    assert first.code == 0, first.out
    done = ended(first.out)
    assert {str(one["status"]) for one in done.values()} == {"changed"}
    assert done["who"]["message"] == "root"
    made = place.folder / "kept" / "f"
    assert (made.read_text(encoding="utf-8"), owner_of(made)) == ("a\nb", "root")
    assert "made" in place.accounts()
    second = ended(place.run("apply", "site.yml", "--output", "json").out)
    assert [second[name]["status"] for name in ("folder", "file", "account")] == ["ok"] * 3
    seen = (place.folder / "processes").read_text(encoding="utf-8", errors="replace")
    assert "sudo" in seen
    for text in (seen, first.out, first.err, place.everything_written()):
        assert PASSWORD not in text
        assert json.dumps(PASSWORD) not in text


@pytest.mark.parametrize(
    ("secret", "become", "reason"),
    [
        ("wrong", "become: {password: '{{ vars.secret }}'}", "sudo-auth-failed"),
        (PASSWORD, "become: true", "sudo-password-required"),
    ],
)
def test_what_sudo_refuses_is_typed_and_quick(
    tmp_path: Path, secret: str, become: str, reason: str
) -> None:
    place = BecomePlace(tmp_path, "asks")
    place.write(playbook(place, become, secret=secret))
    outcome = place.run("apply", "site.yml", "--output", "json")
    assert outcome.code == 1
    failed = [one for one in ended(outcome.out).values() if one["status"] == "failed"]
    assert [one["reason"] for one in failed] == [reason]
    assert cast("float", failed[0]["elapsed_ms"]) < 8000  # sudo itself waits two seconds
    assert not (place.folder / "kept").exists()


def test_another_account_than_root_is_possible_too(tmp_path: Path) -> None:
    place = BecomePlace(tmp_path, "free")
    become = "become: {user: plain}"
    place.write(f"{become}\ntasks:\n  - shell: {{cmd: id, args: [-un]}}\n")
    outcome = place.run("apply", "site.yml", "--output", "json")
    assert [one["message"] for one in ended(outcome.out).values()] == ["plain"]


def test_without_become_what_needs_root_is_refused_before_the_first_task(tmp_path: Path) -> None:
    place = BecomePlace(tmp_path, "free")
    place.write(
        "tasks:\n"
        f"  - shell: {{cmd: touch, args: [{place.folder}/touched]}}\n"
        "  - name: first\n    user: {name: made}\n"
        "  - name: second\n    service: {name: cron}\n    become: {user: plain}\n"
        "  - name: third\n    reboot: {}\n    become: true\n"
        "  - name: never\n    user: {name: made}\n    when: facts.os.family == 'windows'\n"
    )
    outcome = place.run("apply", "site.yml", "--output", "json")
    assert outcome.code == 3
    (refused,) = [one for one in events(outcome.out) if one["type"] == "plan_refused"]
    listed = cast("list[Fields]", refused["violations"])
    assert [(one["task"], one["reason"]) for one in listed] == [
        ("first", "requires-root-violation"),
        ("second", "requires-root-violation"),
        ("third", "unsupported_on_runtime"),
    ]
    assert not (place.folder / "touched").exists()


@pytest.mark.parametrize("trap", ["", "trap '' TERM INT HUP; "], ids=["obeys", "ignores"])
@pytest.mark.parametrize("account", ["free", "asks"])
def test_a_cancelled_process_of_root_is_gone(tmp_path: Path, account: str, trap: str) -> None:
    place = BecomePlace(tmp_path, account)
    seconds = odd_seconds()
    script = json.dumps(f"{trap}sleep {seconds} & sleep {seconds} & echo up; wait; sleep {seconds}")
    secret = json.dumps(PASSWORD, ensure_ascii=False)
    place.write(
        f"vars: {{secret: {secret}}}\n"
        "become: {password: '{{ vars.secret }}'}\n"
        f"tasks:\n  - shell: {{cmd: sh, args: [-c, {script}]}}\n"
    )
    with place.start("apply", "site.yml", "--output", "json") as running:
        running.until('"up"')
        assert len(sleepers(seconds)) >= 2
        running.send(signal.SIGINT)
        outcome = running.end()
    assert outcome.code == 130
    assert sleepers(seconds) == []
    (stopped,) = [one for one in events(outcome.out) if one["type"] == "target_op_cancelled"]
    assert stopped.get("survivors", []) == []
