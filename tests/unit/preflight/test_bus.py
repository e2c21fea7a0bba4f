"""The one way out: numbered, timed, masked, in order, and never an exception."""

from __future__ import annotations

from preflight.bus import Bus
from preflight.events import (
    Change,
    Diagnostic,
    Event,
    Line,
    PluginStopped,
    RunStarted,
    TargetInfo,
    TargetReady,
    TaskFinished,
    TaskOutput,
    decode,
    encode,
)


def note(summary: str) -> Diagnostic:
    return Diagnostic(level="info", summary=summary)


def collecting(bus: Bus) -> list[Event]:
    events: list[Event] = []
    bus.add_sink(events.append)
    return events


def test_events_are_numbered_without_gaps_and_time_never_runs_backwards() -> None:
    now = [100.0]
    bus = Bus("run", clock=lambda: now[0])
    events = collecting(bus)
    for step in range(3):
        now[0] += step
        bus.emit(note(str(step)))
    assert [event.seq for event in events] == [1, 2, 3]
    assert [event.run_id for event in events] == ["run"] * 3
    assert [event.ts for event in events] == sorted(event.ts for event in events)
    assert bus.elapsed_ms() == 3000.0


def test_a_sink_that_raises_is_taken_off_and_told_to_the_others() -> None:
    bus = Bus()

    def full_disk(_: Event) -> None:
        raise OSError("no space left")

    bus.add_sink(full_disk)
    events = collecting(bus)
    bus.emit(note("a"))
    bus.emit(note("b"))
    assert [event.summary for event in events if isinstance(event, Diagnostic)][0::2] == ["a", "b"]
    (told,) = [
        event for event in events if isinstance(event, Diagnostic) and event.level == "error"
    ]
    assert "full_disk" in told.summary
    assert "no space left" in told.summary


def test_what_a_sink_emits_comes_after_what_it_was_given_for_every_sink() -> None:
    bus = Bus()

    def echo(event: Event) -> None:
        if isinstance(event, Diagnostic) and event.summary == "first":
            bus.emit(note("second"))

    bus.add_sink(echo)
    events = collecting(bus)
    bus.emit(note("first"))
    assert [event.seq for event in events] == [1, 2]


def test_a_sink_that_was_removed_gets_nothing_more() -> None:
    bus = Bus()
    events = collecting(bus)
    other = collecting(bus)
    bus.remove_sink(other.append)
    bus.remove_sink(print)
    bus.emit(note("a"))
    assert len(events) == 1


def test_a_secret_is_masked_wherever_text_is() -> None:
    bus = Bus()
    bus.hide("hunter2")
    bus.hide("hunter2")
    bus.hide("hunter2-long")
    events = collecting(bus)
    bus.emit(TaskOutput(target="box", lines=[Line("out", "pw hunter2-long, hunter2!")]))
    bus.emit(
        TaskFinished(
            status="failed",
            error="hunter2",
            output_tail=["hunter2"],
            changes=[Change(path="/hunter2", before=None, after="x=hunter2")],
        )
    )
    bus.emit(TargetReady(info=TargetInfo(hostname="hunter2")))
    text = b"".join(encode(event) for event in events)
    assert b"hunter2" not in text
    assert b"pw ******, ******!" in text
    assert all(decode(encode(event)) == event for event in events)


def test_a_secret_that_is_also_a_closed_word_breaks_no_event() -> None:
    bus = Bus("failed-run")
    for word in ("failed", "task_finished", "killed", "check", "2026", "error"):
        bus.hide(word)
    events = collecting(bus)
    bus.emit(TaskFinished(status="failed", error="it failed"))
    bus.emit(PluginStopped(plugin="demo", pid=2, how="killed", stderr_tail=["killed"]))
    bus.emit(RunStarted(mode="check", playbook="p", path="p", targets=["check"], version="1"))
    assert [decode(encode(event)) for event in events] == events
    assert [event.run_id for event in events] == ["failed-run"] * 3
    assert events[0].ts.startswith("20")
    assert isinstance(events[0], TaskFinished)
    assert events[0].error == "it ******"


def test_a_very_short_secret_is_not_masked() -> None:
    bus = Bus()
    bus.hide("abc")
    events = collecting(bus)
    bus.emit(note("abc"))
    assert events[0] == decode(encode(events[0]))
    assert isinstance(events[0], Diagnostic)
    assert events[0].summary == "abc"
