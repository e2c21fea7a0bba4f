"""The fold as a whole: every scene, cut anywhere, gives a state that can be shown."""

from __future__ import annotations

import pytest

from preflight.events import PluginStopped, TaskFinished, TaskOutput, TaskStarted, encode
from preflight.views import cancelling, capabilities, detail, header, plugin_text, summary, wire
from preflight.views.clock import EngineClock
from preflight.views.farewell import farewell
from preflight.views.parts import text_of
from preflight.views.states import LOOKS, State, in_ascii
from preflight.views.store import Store
from preflight_tui.demos.scenes import SCENES


def folded(lines: list[bytes]) -> Store:
    store = Store(EngineClock())
    store.feed_all(lines)
    return store


def everything(store: Store) -> list[str]:
    """Make every word that any screen could show."""
    rows, columns = range(len(store.grid.rows)), range(-1, len(store.grid.columns))
    plugins = store.plugins
    lines = [header.counts(store), header.small(store), *header.progress(store)[1:]]
    for side in header.title(store, live=True):
        lines += [item.parts for item in side]
    for row in rows:
        lines.append([detail.now_text(store, row)])
        for column in columns:
            lines += detail.cell_lines(store, row, column)
            lines.append([(detail.cell_title(store, row, column), "")])
            if column >= 0:
                lines.append(detail.task_line(store, row, column))
                lines += cancelling.ask_lines(store, row, column)
    for name in plugins.names:
        lines += [plugin_text.plugin_line(plugins, name), *capabilities.explain(plugins, name)]
        for one in plugins.of(name):
            lines += plugin_text.instance_lines(one, zone_s=0, host=[])
    lines += [*capabilities.table(plugins), *cancelling.lines(store), cancelling.heading(store)]
    lines += [*cancelling.notes(store), *cancelling.ask_run_lines(store)]
    lines += summary.result_lines(store, live=False, record="somewhere")
    lines += [need.parts for need in summary.needs(store)]
    lines += summary.same(summary.needs(store))
    for frame in store.wire.frames:
        lines += [wire.line(store.wire, frame, zone_s=0), *wire.detail(store.wire, frame, zone_s=0)]
    return [*map(text_of, lines), *farewell(store, "somewhere", "7f3a")]


@pytest.mark.parametrize("name", sorted(set(SCENES) - {"fleet"}))
def test_a_scene_cut_after_any_event_can_be_shown(name: str) -> None:
    lines = SCENES[name]().lines
    for end in range(0, len(lines) + 1, max(1, len(lines) // 12)):
        everything(folded(lines[:end]))


@pytest.mark.parametrize("name", sorted(set(SCENES) - {"fleet"}))
def test_no_word_of_any_screen_holds_a_control_character(name: str) -> None:
    for text in everything(folded(SCENES[name]().lines)):
        assert text.isprintable(), repr(text)


@pytest.mark.parametrize("name", sorted(set(SCENES) - {"fleet"}))
def test_the_counts_of_the_header_agree_with_the_cells(name: str) -> None:
    store = folded(SCENES[name]().lines)
    for state in State:
        assert store.grid.counts[state] == sum(row.count(state) for row in store.grid.cells)


@pytest.mark.parametrize("name", ["green", "failures", "killed"])
def test_the_cells_agree_with_the_recap_of_the_run(name: str) -> None:
    store = folded(SCENES[name]().lines)
    finished = store.grid.finished
    assert finished is not None
    assert store.grid.done == store.grid.total
    assert finished.tasks.ok == store.grid.counts[State.OK]
    assert finished.tasks.changed == store.grid.counts[State.CHANGED]


def test_a_dry_run_tells_what_would_change() -> None:
    from preflight_tui.demos.scene import Scene

    scene = Scene()
    scene.start(["web"], [("one", "file")], mode="check")
    scene.contact("web")
    scene.run("web", 0, "changed")
    assert folded(scene.lines).grid.state(0, 0) is State.WOULD_CHANGE


def test_lines_that_are_no_event_are_counted_and_change_nothing() -> None:
    store = folded([b"", b'{"type":"from_the_future"}', b"not json", b'{"type":"run_st'])
    assert (store.events, store.unknown) == (0, 4)
    assert (
        store.position
        == sum(map(len, [b"", b'{"type":"from_the_future"}', b"not json"])) + 3 + 15 + 1
    )


def test_events_of_targets_and_tasks_that_nobody_announced_are_shown() -> None:
    started = TaskStarted(target="new", task="k", name="n", module="m", index=0, phase="apply")
    store = folded([encode(started).rstrip(b"\n")])
    assert store.grid.rows[0].name == "new"
    assert store.grid.columns[0].name == "n"
    assert store.grid.state(0, 0) is State.APPLYING


def test_changes_are_told_once() -> None:
    store = folded(SCENES["running"]().lines)
    first = store.take_changes()
    assert first.reshaped
    assert first.plugins
    assert ("web-002", "t05") in first.logs
    assert not store.take_changes().any
    event = TaskOutput(target="web-002", task="t05", lines=[])
    store.feed(encode(event).rstrip(b"\n"))
    assert not store.take_changes().any


def test_the_grace_counts_down_on_the_clock_of_the_engine() -> None:
    now = [0.0]
    store = Store(EngineClock(lambda: now[0]))
    store.feed_all(SCENES["unwinding"]().lines)
    row = store.cancels.rows["web-002", "t05"]
    left = row.left_s(store.clock.now())
    now[0] += 1.0
    assert abs(left - 1.0 - row.left_s(store.clock.now())) < 0.01
    now[0] += 5.0
    assert row.left_s(store.clock.now()) == 0.0


def test_a_process_that_ended_elsewhere_kills_no_cancel_here() -> None:
    store = folded(SCENES["unwinding"]().lines)
    event = PluginStopped(target="web-999", plugin="signage_sync", pid=1, how="killed")
    store.feed(encode(event).rstrip(b"\n"))
    assert store.cancels.rows["web-002", "t05"].state == "sent"


def test_an_answer_after_the_kill_does_not_hide_the_kill() -> None:
    store = folded(SCENES["killed"]().lines)
    late = TaskFinished(target="web-004", task="t06", status="ok")
    store.feed(encode(late).rstrip(b"\n"))
    assert store.grid.state(3, 5) is State.KILLED


def test_every_symbol_has_a_likeness_in_ascii_of_its_own() -> None:
    shown = [in_ascii(look.symbol) for look in LOOKS.values()]
    assert all(len(text) == 1 and text.isascii() for text in shown)
    assert len(set(shown)) == len(shown)
    assert in_ascii("日本") == "??"


def test_the_wire_keeps_a_bounded_number_of_frames_and_counts_the_rest() -> None:
    from preflight.events import WireFrame

    store = wire.Wire()
    for number in range(wire.KEPT_FRAMES + 10):
        store.frame(WireFrame(plugin="p", dir="out", kind="check", bytes=10, id=number))
    assert (store.count, store.dropped, len(store.frames)) == (
        wire.KEPT_FRAMES + 10,
        10,
        wire.KEPT_FRAMES,
    )
    assert store.get(3) is None
    store.frame(WireFrame(plugin="p", dir="in", kind="result", bytes=5, id=wire.KEPT_FRAMES))
    answer = store.frames[-1]
    request = store.get(answer.pair)
    assert request is not None
    assert request.event.id == wire.KEPT_FRAMES
    assert request.pair == answer.number
    assert [one.event.kind for one in store.matching(["result", "!out"])] == ["result"]


def test_a_cancel_that_ends_before_the_last_word_of_its_task_loses_nothing() -> None:
    from preflight.events import CancelFinished

    lines = SCENES["finished-first"]().lines[:-2]
    store = folded(lines)
    ended = CancelFinished(path="web-001/t01", outcome="answered", elapsed_ms=40)
    word = TaskFinished(target="web-001", task="t01", status="cancelled", reason="cancelled")
    for event in (ended, word):
        store.feed(encode(event).rstrip(b"\n"))
    assert store.grid.state(0, 0) is State.CANCELLED
    assert store.cancels.rows["web-001", "t01"].state == "cancelled"


def test_a_plugin_that_the_plan_names_is_known_before_it_is_started() -> None:
    scene = SCENES["plugins"]()
    store = Store(EngineClock(), builtins=frozenset({"shell"}))
    store.feed_all(scene.lines[:2])
    assert store.plugins.names == sorted(task.module for task in scene.tasks)
    assert {one.state for one in store.plugins.instances.values()} == {"discovered"}


def test_a_plugin_that_a_plan_was_refused_for_has_failed_with_the_reason() -> None:
    store = Store(EngineClock(), builtins=frozenset())
    store.feed_all(SCENES["plugins"]().lines[:2])
    from preflight.events import PlanRefused, Violation

    violation = Violation(
        task="t01", module="nas_mount", reason="unknown_module", message="there is no such plugin"
    )
    refused = PlanRefused(target="web-001", violations=[violation])
    store.feed(encode(refused).rstrip(b"\n"))
    one = store.plugins.instances["nas_mount", "web-001"]
    assert (one.state, one.reason) == ("failed", "unknown_module")
