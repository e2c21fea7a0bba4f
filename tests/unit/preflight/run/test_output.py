from __future__ import annotations

from preflight.bus import Bus
from preflight.events import TaskOutput
from preflight.run.output import TaskOutputBuffer
from tests.support.events import Recorder


def buffer() -> tuple[TaskOutputBuffer, Recorder]:
    bus = Bus("r")
    seen = Recorder(bus)
    return TaskOutputBuffer("one", "t", bus.emit), seen


async def test_lines_come_in_batches_and_in_order() -> None:
    output, seen = buffer()
    for number in range(1200):
        output.add("out", str(number))
    output.flush()
    batches = [len(event.lines) for event in seen.of(TaskOutput)]
    assert batches == [500, 500, 200]
    texts = [line.text for event in seen.of(TaskOutput) for line in event.lines]
    assert texts == [str(number) for number in range(1200)]


async def test_a_line_at_rest_is_shown_without_being_asked_for() -> None:
    output, seen = buffer()
    output.add("out", "alone")
    event = await seen.wait_for(TaskOutput)
    assert [line.text for line in event.lines] == ["alone"]


async def test_a_huge_line_is_whole_in_pieces_that_events_can_carry() -> None:
    output, seen = buffer()
    for size in (0, 1, 65536, 65537, 200_000):
        output.add("plugin", "x" * size)
    output.flush()
    sizes = [len(line.text) for event in seen.of(TaskOutput) for line in event.lines]
    assert sizes == [0, 1, 65536, 65536, 1, 65536, 65536, 65536, 3392]


async def test_an_items_lines_are_never_in_anothers_batch() -> None:
    output, seen = buffer()
    output.for_item(0)("out", "a")
    output.for_item(1)("out", "b")
    output.flush()
    assert [(event.item, event.lines[0].text) for event in seen.of(TaskOutput)] == [
        ("0", "a"),
        ("1", "b"),
    ]


async def test_the_tail_is_the_last_twenty_lines() -> None:
    output, _ = buffer()
    for number in range(50):
        output.add("err", str(number))
    assert output.tail == [str(number) for number in range(30, 50)]
    output.flush()
