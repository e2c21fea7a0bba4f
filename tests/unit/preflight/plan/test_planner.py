from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from preflight.errors import ConfigError
from preflight.model.inventory import Host, Project
from preflight.model.playbook import Playbook, TaskSpec
from preflight.plan.planner import TargetPlan, plan, undefined_vars

HOSTS = [Host(name="h1", vars={"only": 1}), Host(name="h2")]


def task(key: str, **fields: object) -> TaskSpec:
    whole: dict[str, object] = {"key": key, "name": key, "module": "shell", "params": {}}
    return msgspec.convert({**whole, **fields}, TaskSpec)


def playbook(*tasks: TaskSpec, **names: object) -> Playbook:
    return Playbook(name="p", path=Path("p.yml"), vars=names, tasks=list(tasks))


def known(module: str) -> str | None:
    return {"shell": "builtin", "file": "builtin", "sync": "plugin"}.get(module)


def plans(
    book: Playbook, *, tags: list[str] | None = None, skip: list[str] | None = None
) -> list[TargetPlan]:
    return plan(
        book,
        Project(folder=Path()),
        HOSTS,
        overrides=["x=1"],
        tags=tags or [],
        skip_tags=skip or [],
        known=known,
    )


def test_every_target_gets_its_own_plan() -> None:
    one, two = plans(playbook(task("a"), task("b", module="sync"), v=2))
    assert [one.host.name, two.host.name] == ["h1", "h2"]
    assert (one.vars["only"], one.vars["v"], one.vars["x"]) == (1, 2, "1")
    assert "only" not in two.vars
    assert one.modules == {"shell": "builtin", "sync": "plugin"}
    assert [each.key for each in one.tasks] == ["a", "b"]


@pytest.mark.parametrize(
    ("tags", "skip", "skipped"),
    [
        ([], [], set[str]()),
        (["web"], [], {"none", "db"}),
        ([], ["web"], {"both", "web"}),
        (["web", "db"], ["db"], {"none", "both", "db"}),
    ],
)
def test_tags_leave_tasks_out(tags: list[str], skip: list[str], skipped: set[str]) -> None:
    book = playbook(
        task("none"),
        task("both", tags=["web", "db"]),
        task("web", tags=["web"]),
        task("db", tags=["db"]),
    )
    assert plans(book, tags=tags, skip=skip)[0].skipped_by_tag == skipped


def test_all_that_can_not_be_planned_is_reported_at_once() -> None:
    book = playbook(
        task("a", depends_on=["b"], line=2),
        task("b", depends_on=["a"], line=4),
        task("c", module="shel", line=6),
        task("d", module="frobnicate", line=8),
    )
    with pytest.raises(ConfigError) as caught:
        plan(book, Project(folder=Path()), HOSTS, overrides=["x"], known=known)
    said = str(caught.value)
    assert "p.yml:6: task 'c': there is no module 'shel'; did you mean 'shell'?" in said
    assert "preflight-plugin-frobnicate" in said
    assert "a -> b -> a" in said
    assert "-e 'x'" in said


@pytest.mark.parametrize(
    ("fields", "needs"),
    [
        ({"params": {"cmd": "facts"}}, False),
        ({"params": {"cmd": "{{ facts.hostname }}"}}, True),
        ({"params": {"cmd": ["{{ env.HOME }}"]}}, True),
        ({"when": "facts.os.name == 'linux'"}, True),
        ({"when": True}, False),
        ({"params": {"cmd": "{{ vars.fact }}"}}, False),
        ({"params": {"content_template": "x"}}, True),
    ],
)
def test_facts_are_gathered_only_where_a_template_names_them(
    fields: dict[str, object], needs: bool
) -> None:
    assert plans(playbook(task("a", **fields)))[0].needs_facts is needs


def test_facts_that_a_var_names_are_needed() -> None:
    assert plans(playbook(task("a"), v="{{ facts.hostname }}"))[0].needs_facts


def test_undefined_vars_are_named_with_the_targets_that_lack_them() -> None:
    book = playbook(
        task("a", params={"x": "{{ vars.only }} {{ vars.v.k }} {{ vars.v.no }}"}, line=3),
        task("b", params={"x": "{{ vars.nope | default(1) }}"}),
        task("c", params={"x": "{{ vars.gone }}"}, when="vars.nope is defined"),
        task("d", params={"x": "{{ vars.text.upper() }} {{ vars.v.items() }}"}),
        task("left-out", params={"x": "{{ vars.gone }}"}, tags=["no"]),
        text="a",
        v={"k": 1},
    )
    assert [str(one) for one in undefined_vars(book, plans(book, skip=["no"]))] == [
        "p.yml:3: task 'a': vars.only is not defined on h2: add it to vars, or give -e only=…",
        "p.yml:3: task 'a': vars.v.no is not defined: add it to vars, or give -e v.no=…",
    ]
