from __future__ import annotations

import contextlib
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.errors import ConfigError
from preflight.model.playbook import Playbook, load_playbook


class RunParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cmd: str
    args: list[str | int] = []
    count: int = 0
    loud: bool = False

    def __post_init__(self) -> None:
        if self.loud and self.count:
            raise ValueError("loud and count can't both be given")


class MakeParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str


BUILTINS: dict[str, type[msgspec.Struct]] = {"run": RunParams, "make": MakeParams}


def load(tmp_path: Path, text: str) -> Playbook:
    path = tmp_path / "play.yml"
    path.write_text(dedent(text), encoding="utf-8")
    return load_playbook(path, builtins=BUILTINS)


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    return [str(one).replace(f"{tmp_path}/", "") for one in caught.value.problems]


def test_a_task_is_read_with_all_its_keys(tmp_path: Path) -> None:
    playbook = load(
        tmp_path,
        """\
        name: whole
        vars: {a: 1}
        plugins: {sync: {config: {k: v}}}
        tasks:
          - name: First {{ vars.a }}
            id: one
            run: {cmd: x, args: [1, "{{ vars.a }}"], count: "{{ vars.a }}"}
            when: vars.a == 1
            tags: [t]
            ignore_errors: true
            become: true
            timeout: 1m30s
          - module: sync
            params: {anything: {goes: [1]}}
            depends_on: [one]
        """,
    )
    first, second = playbook.tasks
    assert (playbook.name, playbook.vars) == ("whole", {"a": 1})
    assert playbook.plugins == {"sync": {"k": "v"}}
    assert (first.key, first.id, first.module) == ("first-vars-a", "one", "run")
    assert first.params == {"cmd": "x", "args": [1, "{{ vars.a }}"], "count": "{{ vars.a }}"}
    assert (first.when, first.tags, first.ignore_errors) == ("vars.a == 1", ["t"], True)
    assert (first.become, first.timeout, first.line) == ({}, 90.0, 5)
    assert (second.name, second.key, second.depends_on) == ("sync", "sync", ["first-vars-a"])
    assert second.become is None


@pytest.mark.parametrize("text", ["", "# nothing\n", "tasks:\n", "name: x\n"])
def test_an_empty_playbook_has_no_tasks(tmp_path: Path, text: str) -> None:
    playbook = load(tmp_path, text)
    assert playbook.tasks == []
    assert playbook.name in ("play", "x")


def test_all_problems_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    *others, unknown, when = problems(
        tmp_path,
        """\
        nam: x
        tasks:
          - run: {cmd: 5, loud: yes, cout: 1}
          - name: B
            depends_on: [A]
            make: {}
          - shel: {cmd: x}
            run: {cmd: x}
            when: "{{ nope }}"
        """,
    )
    assert others == [
        "play.yml:1:1: at /nam: unknown key 'nam'; did you mean 'name'?",
        "play.yml:3:16: at /tasks/0/run/cmd: must be text, is 5",
        "play.yml:3:25: at /tasks/0/run/loud: must be true or false, is the text 'yes'; "
        "only true and false are booleans, all else is text",
        "play.yml:3:30: at /tasks/0/run/cout: unknown key 'cout'; did you mean 'count'?",
        "play.yml:5:18: at /tasks/1/depends_on/0: there is no task 'A'",
        "play.yml:6:11: at /tasks/1/make: the key 'path' is missing",
    ]
    assert unknown.startswith("play.yml:7:5: at /tasks/2/shel: unknown key 'shel'; known are ")
    assert when == (
        "play.yml:9:11: at /tasks/2/when: {{ nope }}: nope is not a name here: "
        "names begin with vars., facts., env. or target"
    )


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("{name: x}", "names no module: write one of make, run"),
        ("{run: {cmd: x}, make: {path: x}}", "has several modules (run, make)"),
        ("{module: run, run: {cmd: x}}", "has both 'module' and 'run'"),
        ("{run: {cmd: x}, params: {a: 1}}", "put them under 'run'"),
        ("{params: {a: 1}}", "names no module"),
        ("{run: }", "must be a map, is empty"),
        ("{module: run, params: {cmdd: x}}", "unknown key 'cmdd'; did you mean 'cmd'?"),
        ("{run: {cmd: x, count: 1e3}}", "write 1000, without quotes"),
        ("{run: {cmd: x, count: 007}}", "write 7, without quotes"),
        ("{run: {cmd: x, loud: true, count: 1}}", "loud and count can't both be given"),
        ("{run: {cmd: x}, timeout: 5}", "must be a duration such as 90s"),
        ("{run: {cmd: x}, tags: web}", "write [web]"),
        ("{run: {cmd: x}, ignore_errors: '{{ vars.x }}'}", "no template is possible here"),
        ("{run: {cmd: x}, depends_on: [x], name: x}", ""),
        ("{run: {cmd: x}, become: {usr: x}}", "unknown key 'usr'; did you mean 'user'?"),
        ("{run: {cmd: x}, when: [a]}", "must be text or true or false"),
        ("5", "must be a map, is 5"),
        ("{run: {cmd: '{{ vars.x + }}'}}", "unexpected"),
    ],
)
def test_a_task_that_makes_no_sense_says_so(tmp_path: Path, task: str, said: str) -> None:
    if said:
        assert said in "\n".join(problems(tmp_path, f"tasks: [{task}]"))
    else:
        assert load(tmp_path, f"tasks: [{task}]").tasks[0].depends_on == ["x"]


def test_a_reference_that_fits_two_tasks_names_their_lines(tmp_path: Path) -> None:
    said = problems(
        tmp_path,
        """\
        tasks:
          - {name: a, run: {cmd: x}}
          - {name: a, run: {cmd: x}}
          - {name: b, run: {cmd: x}, depends_on: [a]}
        """,
    )
    assert said == [
        "play.yml:4:43: at /tasks/2/depends_on/0: "
        "'a' names the tasks of lines 2 and 3: give one an id"
    ]


def test_two_tasks_with_one_id_are_refused(tmp_path: Path) -> None:
    text = "tasks:\n  - {id: a, run: {cmd: x}}\n  - {id: a, run: {cmd: x}}\n"
    assert "is taken by the task in line 2" in problems(tmp_path, text)[0]


def test_two_tasks_may_share_a_name(tmp_path: Path) -> None:
    text = "tasks:\n  - {name: a, run: {cmd: x}}\n  - {name: a, run: {cmd: x}}\n"
    assert [task.key for task in load(tmp_path, text).tasks] == ["a", "a-2"]


def test_become_is_inherited_overridden_and_switched_off(tmp_path: Path) -> None:
    playbook = load(
        tmp_path,
        """\
        defaults: {become: {user: alice, load_profile: true}}
        tasks:
          - {run: {cmd: x}}
          - {run: {cmd: x}, become: {user: bob, enabled: true}}
          - {run: {cmd: x}, become: {enabled: false, user: x}}
          - {run: {cmd: x}, become: false}
          - {run: {cmd: x}, become: {}}
        """,
    )
    assert [task.become for task in playbook.tasks] == [
        {"user": "alice", "load_profile": True},
        {"user": "bob", "load_profile": True},
        None,
        None,
        {"user": "alice", "load_profile": True},
    ]


def test_a_document_that_is_no_map_is_refused(tmp_path: Path) -> None:
    assert problems(tmp_path, "- run: {cmd: x}\n") == ["play.yml:1:1: must be a map, is a list"]


@settings(max_examples=50, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.sampled_from(["x", "{{ vars.a }}", "{{"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["tasks", "name", "run", "cmd", "when", "become", "id", "vars"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_document_is_a_playbook_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, document: object
) -> None:
    path = tmp_path_factory.mktemp("any") / "play.yml"
    path.write_bytes(msgspec.json.encode(document))
    with contextlib.suppress(ConfigError):
        assert load_playbook(path, builtins=BUILTINS).path == path
