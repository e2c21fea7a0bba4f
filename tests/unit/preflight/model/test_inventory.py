from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from preflight.errors import ConfigError
from preflight.model.inventory import LOCALHOST, Host, Project, find_project, merge_vars, select

CONFIG = """\
project: signs
environment: prod
vars: {a: {x: 1, y: 2}}
inventory:
  vars: {a: {y: 3, z: 4}}
  groups: {web: {vars: {a: {z: 5}, g: web}}, db: {}, none: }
  hosts:
    - {name: h1, transport: local, groups: [web, db], vars: {a: {w: 9}}}
    - {name: h2, address: 10.0.0.2, groups: [web], username: op, timeout: 5s, jump: {address: j}}
    - {name: h3, transport: winrm, https: true}
"""


def project(tmp_path: Path, text: str) -> Project:
    (tmp_path / "preflight.yml").write_text(dedent(text), encoding="utf-8")
    return find_project(tmp_path)


def problems(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        project(tmp_path, text)
    return str(caught.value).replace(f"{tmp_path}/", "")


def names(hosts: list[Host]) -> list[str]:
    return [host.name for host in hosts]


def test_hosts_have_the_defaults_of_their_transport(tmp_path: Path) -> None:
    one, two, three = project(tmp_path, CONFIG).hosts
    assert (one.transport, one.address, one.port, one.timeout) == ("local", "localhost", 0, 30)
    assert (two.transport, two.address, two.port, two.timeout) == ("ssh", "10.0.0.2", 22, 5)
    assert two.jump is not None
    assert (two.jump.port, two.jump.host_key_policy) == (22, "accept-new")
    assert (three.address, three.port, three.timeout) == ("h3", 5986, 60)
    assert one.names()["name"] == "h1"


def test_the_nearest_project_folder_upwards_is_found(tmp_path: Path) -> None:
    deep = tmp_path / "playbooks" / "web"
    deep.mkdir(parents=True)
    (tmp_path / "preflight.yml").write_text("project: outer\n", encoding="utf-8")
    playbook = deep / "site.yml"
    playbook.touch()
    assert find_project(playbook).folder == tmp_path.resolve()
    (tmp_path / "playbooks" / ".git").mkdir()
    found = find_project(playbook)
    assert (found.folder, found.project) == ((tmp_path / "playbooks").resolve(), "")


@pytest.mark.parametrize("text", ["", "# empty\n", "vars:\n"])
def test_an_empty_configuration_is_fine(tmp_path: Path, text: str) -> None:
    found = project(tmp_path, text)
    assert (found.hosts, found.vars) == ([], {})


def test_variables_are_merged_from_low_to_high(tmp_path: Path) -> None:
    found = project(tmp_path, CONFIG)
    merged = merge_vars(
        found, found.hosts[0], {"a": {"q": 0}, "list": [1]}, ["b.c=v=w", "a.x=7", "list=t"]
    )
    assert merged == {
        "a": {"q": 0, "w": 9, "x": "7", "y": 3, "z": 5},
        "g": "web",
        "b": {"c": "v=w"},
        "list": "t",
        "preflight": {"project": "signs", "environment": "prod"},
    }
    assert found.vars == {"a": {"x": 1, "y": 2}}


@pytest.mark.parametrize("text", ["key", "=v", "a..b=c", ".a=b"])
def test_an_override_that_is_none_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ConfigError, match="write -e name=value"):
        merge_vars(Project(folder=Path()), LOCALHOST, {}, [text])


@pytest.mark.parametrize(
    ("selectors", "chosen"),
    [
        ([], ["h1", "h2", "h3"]),
        (["all"], ["h1", "h2", "h3"]),
        (["h2", "web"], ["h2", "h1"]),
        (["h2,h1", "h2"], ["h2", "h1"]),
        (["local"], ["localhost"]),
        (["LOCALHOST"], ["localhost"]),
    ],
)
def test_selectors_choose_in_their_order_and_once(
    tmp_path: Path, selectors: list[str], chosen: list[str]
) -> None:
    assert names(select(project(tmp_path, CONFIG), selectors)) == chosen


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("h9", "there is no target or group 'h9' in the inventory"),
        ("wb", "did you mean 'web'"),
        ("none", "the group 'none' has no targets"),
        ("local,h1", "no target or group 'local'"),
    ],
)
def test_a_selector_that_chooses_nothing_is_an_error(
    tmp_path: Path, selector: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        select(project(tmp_path, CONFIG), [selector])


def test_without_an_inventory_there_is_this_machine_alone(tmp_path: Path) -> None:
    found = find_project(tmp_path)
    assert select(found, []) == [LOCALHOST]
    with pytest.raises(ConfigError, match="no inventory"):
        select(found, ["h1"])


def test_all_problems_of_a_configuration_come_at_once(tmp_path: Path) -> None:
    said = problems(
        tmp_path,
        """\
        proyect: x
        inventory:
          hosts:
            - {name: a, transport: telnet}
            - {port: 99999, timeout: soon}
        """,
    )
    assert said.splitlines() == [
        "preflight.yml:1:1: at /proyect: unknown key 'proyect'; did you mean 'project'?",
        "preflight.yml:4:28: at /inventory/hosts/0/transport: "
        "must be one of local, ssh, winrm, is the text 'telnet'",
        "preflight.yml:5:7: at /inventory/hosts/1: the key 'name' is missing",
        "preflight.yml:5:14: at /inventory/hosts/1/port: must be a port from 1 to 65535, is 99999",
        "preflight.yml:5:30: at /inventory/hosts/1/timeout: "
        "must be a duration such as 90s, 5m or 1h30m, is the text 'soon'",
    ]


def test_names_and_groups_that_contradict_are_all_found(tmp_path: Path) -> None:
    said = problems(
        tmp_path,
        """\
        inventory:
          groups: {web: {}}
          hosts:
            - {name: a/b}
            - {name: a, groups: [wbe]}
            - {name: a}
            - {name: web}
        """,
    )
    assert "4:14: at /inventory/hosts/0/name: 'a/b' must be a name without '/'" in said
    assert "group 'wbe' of 'a' is not defined; did you mean 'web'?" in said
    assert "the target 'a' is already in line 5" in said
    assert "'web' is a group too" in said
