"""What a check found different, as an operator reads it."""

from __future__ import annotations

import pytest

from preflight.events import Change
from preflight.views.diff import diff_lines


def _texts(*changes: Change) -> list[str]:
    return ["".join(text for text, _ in line) for line in diff_lines(list(changes))]


def test_a_check_that_found_nothing_says_so() -> None:
    assert _texts() == ["The check found nothing different here."]


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [(None, "a", "new"), ("a", None, "removed"), ("a", "b", "changed")],
)
def test_each_change_is_named_by_what_becomes_of_it(
    before: str | None, after: str | None, word: str
) -> None:
    assert _texts(Change(path="/etc/motd", before=before, after=after))[0] == f"/etc/motd  {word}"


def test_lines_that_go_and_come_differ_by_sign_and_by_style() -> None:
    lines = diff_lines([Change(path="f", before="same\nold", after="same\nnew")])
    assert [("-old", "error")] in lines
    assert [("+new", "ok")] in lines
    assert [(" same", "")] in lines


def test_changes_come_in_order_with_a_gap_between_them() -> None:
    assert _texts(Change(path="one"), Change(path="two")) == ["one  new", "", "two  new", ""]


def test_no_control_sequence_of_a_target_gets_into_a_diff() -> None:
    shown = _texts(Change(path="f\x1b[2J", before="a\x1b]52;c;eA==\x07", after="b\x9b2J\x00"))
    assert not any(char in line for line in shown for char in "\x1b\x07\x9b\x00")
