"""The gate over targets that only say what they are."""

from __future__ import annotations

from typing import cast

import pytest

from preflight.events import TargetInfo
from preflight.model.inventory import Host
from preflight.model.playbook import TaskSpec
from preflight.model.template import Scope
from preflight.plan.planner import TargetPlan
from preflight.ports.module import Requirements
from preflight.ports.target import Account, Target
from preflight.run.gate import Gate

NEEDS = {"rooted": Requirements(root=True), "reboot": Requirements(root=True, remote=True)}


class Somewhere:
    """What the gate looks at of a target."""

    def __init__(self, uid: int, *, sudo: bool, runtime: str) -> None:
        self.account = Account(uid=uid, sudo=sudo)
        self.info = TargetInfo(runtime_kind=runtime)


def gate(
    uid: int = 1000, *, sudo: bool = True, runtime: str = "posix-shell", transport: str = "ssh"
) -> Gate:
    target = Somewhere(uid, sudo=sudo, runtime=runtime)
    names = Scope(vars={"who": "Bo", "boss": "root"}, target={"transport": transport})
    return Gate(
        cast("Target", target),
        names,
        requires=lambda name: NEEDS.get(name, Requirements()),
        is_plugin=lambda name: name == "plugin",
    )


def task(module: str = "rooted", key: str = "a", **fields: object) -> TaskSpec:
    known: dict[str, object] = {"key": key, "name": key, "module": module, "params": {}}
    return TaskSpec(**{**known, **fields})  # pyright: ignore[reportArgumentType]  # tests name real fields


def reason(judge: Gate, spec: TaskSpec) -> str:
    found = judge.refusal(spec)
    return "" if found is None else found.reason


def refused(judge: Gate, *tasks: TaskSpec, skipped: frozenset[str] = frozenset()) -> list[str]:
    host = Host(name="one", transport="ssh")
    plan = TargetPlan(host=host, vars={}, tasks=list(tasks), skipped_by_tag=skipped)
    return [one.task for one in judge.violations(plan)]


@pytest.mark.parametrize(
    ("become", "uid", "expected"),
    [
        (None, 1000, "requires-root-violation"),
        (None, 0, ""),
        (None, -1, ""),
        ({}, 1000, ""),
        ({"user": "root"}, 1000, ""),
        ({"user": "{{ vars.boss }}"}, 1000, ""),
        ({"user": 0}, 1000, ""),
        ({"user": "web"}, 1000, "requires-root-violation"),
        ({"user": "web"}, 0, "requires-root-violation"),
        ({"user": "{{ vars.no }}"}, 1000, ""),
    ],
)
def test_a_module_that_needs_root_gets_it_by_login_or_by_become(
    become: dict[str, object] | None, uid: int, expected: str
) -> None:
    assert reason(gate(uid), task(become=become)) == expected


@pytest.mark.parametrize(
    ("become", "uid", "expected"),
    [
        (None, 1000, ""),
        ({}, 1000, "sudo-missing"),
        ({}, 0, ""),
        ({"user": "web"}, 0, "sudo-missing"),
    ],
)
def test_become_needs_sudo_unless_the_rights_are_there(
    become: dict[str, object] | None, uid: int, expected: str
) -> None:
    assert reason(gate(uid, sudo=False), task("shell", become=become)) == expected


def test_a_runtime_that_a_module_does_not_know_is_named_with_those_it_knows() -> None:
    judge = gate(runtime="windows-powershell")
    for module in ("shell", "plugin"):
        found = judge.refusal(task(module))
        assert found is not None
        assert found.reason == "unsupported_on_runtime"
        assert "windows-powershell" in found.message
        assert "posix-shell" in found.message
    assert reason(gate(runtime=""), task("shell")) == ""


def test_what_would_end_the_engine_works_only_elsewhere() -> None:
    assert reason(gate(0, transport="local"), task("reboot")) == "unsupported_on_runtime"
    assert reason(gate(0), task("reboot")) == ""


def test_a_plugin_s_become_is_the_task_s_own_matter() -> None:
    assert reason(gate(sudo=False), task("plugin", become={})) == ""


def test_every_violation_is_listed_and_nothing_else() -> None:
    tasks = [
        task(key="first"),
        task("shell", key="fine"),
        task(key="ignored", ignore_errors=True),
        task(key="filtered"),
        task(key="false", when="vars.who == 'Al'"),
        task(key="never", when=False),
        task(key="true", when="vars.who == 'Bo'"),
        task(key="unclear", when="vars.no == 1"),
        task(key="last"),
    ]
    found = refused(gate(), *tasks, skipped=frozenset({"filtered"}))
    assert found == ["first", "true", "unclear", "last"]


@pytest.mark.parametrize(
    ("items", "when", "expected"),
    [
        (["a", "b"], "item == 'b'", True),
        (["a", "b"], "item == 'c'", False),
        ([], None, False),
        (["a"], None, True),
        (["a"], "item.no == 1", True),
        ("{{ vars.no }}", "item == 'c'", True),
        ("{{ vars.who }}", "item == 'c'", True),
    ],
)
def test_a_task_with_items_runs_where_one_of_them_does(
    items: list[object] | str, when: str | None, expected: bool
) -> None:
    found = refused(gate(), task(for_each=items, when=when))
    assert bool(found) is expected
