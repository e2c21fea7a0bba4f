from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.model.identity import slug, task_keys


def test_a_slug_keeps_letters_and_digits() -> None:
    assert slug("Dépôt  Ünï—2") == "dépôt-ünï-2"
    assert slug("!!!") == "task"
    assert slug("Use {{ vars.pv }}/x") == "use-vars-pv-x"


def test_a_suffix_never_takes_another_slug() -> None:
    assert task_keys(["a", "a", "a 2"]) == ["a", "a-3", "a-2"]
    assert task_keys(["a", "a", "a"]) == ["a", "a-2", "a-3"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["a", "a 2", "a-2", "A", "", "b/c", "a 3"]) | st.text(max_size=6)))
def test_keys_are_unique_and_without_slashes(names: list[str]) -> None:
    keys = task_keys(names)
    assert len(set(keys)) == len(names)
    assert not any("/" in key or not key for key in keys)
