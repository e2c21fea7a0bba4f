"""Events as lines: flat, tagged, complete, and read back as they were."""

from __future__ import annotations

import json
import typing

import msgspec
import pytest

from preflight.events import AnyEvent, Event, PluginStopped, TaskFinished, decode, encode

KINDS: tuple[type[Event], ...] = typing.get_args(AnyEvent)


def tag_of(kind: type[Event]) -> object:
    return kind.__struct_config__.tag


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_tag_in_snake_case_that_nobody_else_has(kind: type[Event]) -> None:
    tag = tag_of(kind)
    assert isinstance(tag, str)
    assert tag.replace("_", "").islower()
    assert [tag_of(other) for other in KINDS].count(tag) == 1


def test_no_kind_of_event_is_left_out_of_the_union() -> None:
    assert set(Event.__subclasses__()) == set(KINDS)


def test_empty_fields_are_left_out_and_needed_ones_are_there() -> None:
    line = encode(PluginStopped(plugin="demo", pid=2, how="closed"))
    assert line.endswith(b"}\n")
    assert json.loads(line) == {
        "type": "plugin_stopped",
        "plugin": "demo",
        "pid": 2,
        "how": "closed",
    }


def test_a_line_is_read_back_as_it_was() -> None:
    event = TaskFinished(seq=3, ts="t", target="a", task="b", status="ok", elapsed_ms=1.5)
    assert decode(encode(event)) == event


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"\xff",
        b'{"type":"from_the_future","seq":1}',
        b'{"type":"task_finished"}',
        b"[1]",
    ],
)
def test_a_line_that_is_cut_off_or_unknown_is_none(line: bytes) -> None:
    assert decode(line) is None


def test_members_from_a_newer_engine_are_passed_over() -> None:
    line = encode(TaskFinished(status="ok"))
    assert decode(line.replace(b"{", b'{"new":1,', 1)) == TaskFinished(status="ok")


def test_an_event_can_not_be_changed() -> None:
    event = TaskFinished(status="ok")
    with pytest.raises(AttributeError):
        event.status = "failed"  # pyright: ignore[reportAttributeAccessIssue]  # which is the point
    assert msgspec.structs.replace(event, status="failed").status == "failed"
