from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.errors import ConfigError
from preflight.model.playbook import TaskSpec
from preflight.plan.graph import order


def task(key: str, *needs: str, line: int = 0) -> TaskSpec:
    return TaskSpec(
        key=key, name=key.upper(), module="m", params={}, depends_on=list(needs), line=line
    )


def keys(*tasks: TaskSpec) -> str:
    return "".join(one.key for one in order(tasks))


def test_the_order_is_the_documents() -> None:
    assert keys(task("a"), task("b", "a"), task("c")) == "abc"
    assert keys(task("c"), task("a"), task("b")) == "cab"


def test_a_task_brings_what_it_needs_forward() -> None:
    assert keys(task("a", "c"), task("b"), task("c")) == "cab"
    assert keys(task("a"), task("b", "d"), task("c"), task("d", "c")) == "acdb"


@pytest.mark.parametrize(
    ("tasks", "names"),
    [
        ([task("a", "a")], "A -> A"),
        ([task("x"), task("a", "b"), task("b", "c"), task("c", "a")], "A -> B -> C -> A"),
        ([task("d", "a"), task("a", "b"), task("b", "a")], "A -> B -> A"),
    ],
)
def test_a_cycle_names_its_members(tasks: list[TaskSpec], names: str) -> None:
    with pytest.raises(ConfigError) as caught:
        order(tasks)
    assert f"circle: {names};" in str(caught.value)


def test_a_chain_of_thousands_is_no_recursion() -> None:
    tasks = [task(f"t{n}", f"t{n + 1}") for n in range(3000)] + [task("t3000")]
    assert order(tasks)[0].key == "t3000"


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_every_task_comes_once_and_after_its_needs(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 8))
    shuffled = data.draw(st.permutations(range(count)))
    tasks = [
        task(
            str(number),
            *(
                str(other)
                for other in range(count)
                if shuffled[other] < shuffled[number] and data.draw(st.booleans())
            ),
            line=number,
        )
        for number in range(count)
    ]
    ordered = order(tasks)
    assert sorted(one.key for one in ordered) == sorted(one.key for one in tasks)
    seen: set[str] = set()
    for one in ordered:
        assert seen.issuperset(one.depends_on)
        seen.add(one.key)
    if not any(one.depends_on for one in tasks):
        assert ordered == tasks
