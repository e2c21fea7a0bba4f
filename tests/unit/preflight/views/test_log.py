"""Lines of the record by number, and finding text among them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.events import Line, TaskOutput, TaskStarted, encode
from preflight.views.clock import EngineClock
from preflight.views.find import Find
from preflight.views.log import KEPT_EVENTS, LineIndex, LogReader, count_rows, log_rows
from preflight.views.store import Store
from preflight_tui.demos.scenes import SCENES
from preflight_tui.feeds import MemoryRecord

KEY = ("web", "t1")


def recorded(*batches: list[str]) -> tuple[Store, LogReader]:
    """Record output in batches, with output of another task between them."""
    record, store = MemoryRecord(), Store(EngineClock())
    for batch in batches:
        for task, texts in (("t1", batch), ("t2", ["other"])):
            lines = [Line("out", text) for text in texts]
            line = encode(TaskOutput(target="web", task=task, lines=lines, ts="t")).rstrip(b"\n")
            record.add(line)
            store.feed(line)
    return store, LogReader(record, store.log(KEY))


@given(st.lists(st.lists(st.text(max_size=5), max_size=4), max_size=20))
def test_every_line_is_found_by_its_number(batches: list[list[str]]) -> None:
    _, reader = recorded(*batches)
    expected = [text for batch in batches for text in batch]
    assert len(reader) == len(expected)
    assert [reader.row(line).text for line in range(len(reader))] == expected


def test_an_event_costs_sixteen_bytes_however_many_lines_it_has() -> None:
    index = LineIndex()
    for number in range(1000):
        index.append(number * 100, 100, 300)
    assert len(index) == 300_000
    assert index.locate(299_999) == (999, 299_700)
    assert index.place(999) == (99_900, 100)
    arrays = [index._offsets, index._lengths, index._ends]  # pyright: ignore[reportPrivateUsage]  # what they cost has no public name
    assert sum(one.itemsize for one in arrays) == 16


def test_a_reader_keeps_a_bounded_number_of_events() -> None:
    _, reader = recorded(*[[str(number)] for number in range(KEPT_EVENTS * 2)])
    assert [reader.row(line).text for line in range(len(reader))][-1] == str(KEPT_EVENTS * 2 - 1)
    assert reader.row(0).text == "0"
    kept = reader._kept  # pyright: ignore[reportPrivateUsage]  # what it keeps has no public name
    assert len(kept) <= KEPT_EVENTS


def test_a_line_that_is_not_in_the_record_yet_says_so() -> None:
    store, _ = recorded(["one"])
    reader = LogReader(MemoryRecord(), store.log(KEY))
    assert reader.row(0).kind == "missing"
    assert reader.rows(0) == (0, [])


@pytest.mark.parametrize("name", sorted(SCENES))
def test_the_lines_that_are_counted_are_those_that_are_shown(name: str) -> None:
    from preflight.events import decode

    for line in SCENES[name]().lines:
        event = decode(line)
        assert event is not None
        assert count_rows(event) == len(log_rows(event))


def find_all(reader: LogReader, needle: str) -> Find:
    find = Find(reader, needle)
    find.step(lambda: True)
    return find


@pytest.mark.parametrize(
    ("needle", "lines"),
    [("fox", [0, 3]), ("Fox", [3]), ("a fox", [0, 3]), ("jump", [1]), ("ö", [2]), ("none", [])],
)
def test_find_heeds_capitals_only_where_the_needle_has_some(needle: str, lines: list[int]) -> None:
    _, reader = recorded(["a fox", "ju\x1b[31mmp"], ["öl"], ["a Fox"])
    if needle == "Fox":
        needle = "Fox"
    find = find_all(reader, needle)
    hits = [line for line in range(len(reader)) if find.number(line)]
    assert hits == lines
    assert find.count == len(lines)
    assert find.done


def test_the_newest_hit_comes_first_and_both_ways_lead_around_the_end() -> None:
    _, reader = recorded(["x1", "no"], ["x2"], ["x3"])
    find = find_all(reader, "x")
    assert find.beyond(4, newer=False) == 3
    assert find.beyond(3, newer=False) == 2
    assert find.beyond(0, newer=False) == 3
    assert find.beyond(3, newer=True) == 0
    assert [find.number(line) for line in (0, 1, 2, 3)] == [1, 0, 2, 3]
    assert find_all(reader, "absent").beyond(0, newer=True) is None


def test_find_goes_on_with_lines_that_come_later_and_works_in_slices() -> None:
    record, store = MemoryRecord(), Store(EngineClock())

    def add(text: str) -> None:
        event = TaskOutput(target="web", task="t1", lines=[Line("out", text)])
        line = encode(event).rstrip(b"\n")
        record.add(line)
        store.feed(line)

    for text in ("needle 0", "hay", "needle 2"):
        add(text)
    find = Find(LogReader(record, store.log(KEY)), "needle")
    left = [1]

    def once() -> bool:
        left[0] -= 1
        return left[0] >= 0

    find.step(once)
    assert (find.count, find.done) == (1, False)
    add("needle 3")
    find.step(lambda: True)
    assert (find.count, find.done) == (3, True)
    assert find.span("a needle, a needle") == [(2, 8), (12, 18)]


def test_words_that_are_no_output_are_found_as_well() -> None:
    record, store = MemoryRecord(), Store(EngineClock())
    event = TaskStarted(
        target="web", task="t1", name="write vhost", module="file", index=0, phase="check"
    )
    line = encode(event).rstrip(b"\n")
    record.add(line)
    store.feed(line)
    assert find_all(LogReader(record, store.log(KEY)), "vhost").count == 1
