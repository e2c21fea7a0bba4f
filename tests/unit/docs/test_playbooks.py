"""The page on playbooks says what the code has, and nothing that it has not."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from preflight.model.dialect import Dialect
from preflight.model.inventory import Host
from preflight.model.playbook import TaskSpec
from preflight.modules import BUILTINS

PAGE = (Path(__file__).parents[3] / "docs" / "playbooks.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"there is no section {title}"
    return found[1]


def rows(title: str) -> set[str]:
    cells = re.findall(r"^\| (`[^|]*) \|", section(title), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize("name", BUILTINS)
def test_every_param_of_a_built_in_is_explained_and_none_that_is_not_there(name: str) -> None:
    assert rows(name) == {field.name for field in msgspec.structs.fields(BUILTINS[name].params)}


def test_every_built_in_has_a_section_and_nothing_else_has() -> None:
    part = PAGE.partition("\n## Built-in modules\n")[2]
    assert set(re.findall(r"^### (\w+)$", part, re.MULTILINE)) == set(BUILTINS)


def test_what_needs_root_is_named() -> None:
    needy = {name for name, builtin in BUILTINS.items() if builtin.requires.root}
    said = section("Built-in modules").partition("need root")[0]
    assert set(re.findall(r"`(\w+)`", said)) == needy


def test_every_key_of_a_task_is_explained() -> None:
    assert rows("Tasks") == set(TaskSpec.__struct_fields__) - {"key", "line"}


def test_every_filter_is_listed() -> None:
    said = section("Templates").partition("Filters:")[2].partition("\n\n")[0]
    known = {name for name in Dialect(blocks=False).filters if not name.startswith("_")}
    assert set(re.findall(r"`(\w+)`", said)) == known


def test_what_templates_know_of_a_target_is_there() -> None:
    (line,) = (line for line in section("Templates").splitlines() if line.startswith("| `target`"))
    assert set(re.findall(r"`(\w+)`", line)) <= {"target", *Host(name="x").names()}
