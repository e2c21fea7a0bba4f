from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.events import (
    CancelFinished,
    CancelRequested,
    Counts,
    Diagnostic,
    Event,
    Line,
    PlannedTask,
    PlanRefused,
    PluginStopped,
    RunFinished,
    RunStarted,
    TargetCounts,
    TargetFinished,
    TargetStarted,
    TargetUnreachableEvent,
    TaskFinished,
    TaskOutput,
    Violation,
)
from preflight_tui.text import TextView

TS = "2026-03-04T12:03:44.011222Z"


def lines(*events: Event, colour: bool = False, verbose: bool = False) -> list[str]:
    written: list[str] = []
    view = TextView(written.append, colour=colour, verbose=verbose)
    for event in events:
        view(event)
    return written


def started(mode: str = "apply") -> RunStarted:
    return RunStarted(
        ts=TS,
        run_id="r1",
        mode="check" if mode == "check" else "apply",
        playbook="Site",
        path="p.yml",
        targets=["web"],
        version="1",
    )


def target() -> TargetStarted:
    planned = [PlannedTask(key=str(n), name=f"t{n}", module="m") for n in range(3)]
    return TargetStarted(ts=TS, target="web", transport="local", tasks=planned)


def finished(status: str, **fields: object) -> TaskFinished:
    whole: dict[str, object] = {"status": status, "name": "restart unit", "index": 1, **fields}
    return TaskFinished(ts=TS, target="web", task="restart-unit", elapsed_ms=2811, **whole)  # pyright: ignore[reportArgumentType]  # a test's short cut


def recap(status: str, code: int, **tasks: int) -> RunFinished:
    return RunFinished(
        ts=TS,
        status=status,
        tasks=Counts(**tasks),
        targets=TargetCounts(ok=1),
        exit_code=code,
        elapsed_ms=1500,
    )


def test_a_state_change_is_one_line() -> None:
    assert lines(started(), target(), finished("ok", message="as wanted")) == [
        "12:03:44.011 Site: apply on 1 target, run r1",
        "12:03:44.011 web [2/3] restart unit ok 2.811s",
    ]


def test_a_failure_has_its_reason_and_its_output_indented_below() -> None:
    event = finished("failed", reason="module_error", error="exit code 1", output_tail=["a", "b"])
    assert lines(target(), event) == [
        "12:03:44.011 web [2/3] restart unit FAILED module_error 2.811s",
        "    exit code 1",
        "    | a",
        "    | b",
    ]


def test_an_ignored_failure_is_shown_as_one() -> None:
    shown = lines(target(), finished("ignored", reason="timeout", error="too slow"))
    assert shown == ["12:03:44.011 web [2/3] restart unit ignored timeout 2.811s", "    too slow"]


def test_a_dry_run_says_would_change() -> None:
    assert "would change" in lines(started("check"), target(), finished("changed"))[-1]
    assert "nothing is changed" in lines(started("check"))[0]


def test_output_is_shown_as_it_comes_where_it_is_asked_for() -> None:
    output = TaskOutput(ts=TS, target="web", task="t", lines=[Line("out", "a"), Line("err", "b")])
    assert lines(output) == []
    assert lines(output, verbose=True) == [
        "12:03:44.011 web out    a",
        "12:03:44.011 web err    b",
    ]
    failed = finished("failed", error="x", output_tail=["a"])
    assert "    | a" not in lines(target(), failed, verbose=True)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (TargetUnreachableEvent(ts=TS, target="web", reason="no route"), "UNREACHABLE no route"),
        (
            TargetFinished(ts=TS, target="web", status="not_started", counts=Counts(), message="m"),
            "not started: m",
        ),
        (
            TargetFinished(ts=TS, target="web", status="cancelled", counts=Counts(), message="m"),
            "cancelled: m",
        ),
        (CancelRequested(ts=TS, path="", by="signal"), "cancel requested by signal for the run"),
        (CancelRequested(ts=TS, path="web/t", by="operator", kill=True), "kill requested by"),
        (
            CancelFinished(ts=TS, path="web", outcome="nothing_running", elapsed_ms=3),
            "cancel of web: nothing running after 3 ms",
        ),
        (
            PluginStopped(ts=TS, plugin="p", pid=7, how="killed", signal="SIGKILL"),
            "plugin p killed: pid 7, SIGKILL",
        ),
        (
            PlanRefused(
                ts=TS,
                target="web",
                violations=[Violation(task="t", module="m", reason="r", message="why")],
            ),
            "REFUSED t: why (r)",
        ),
        (Diagnostic(ts=TS, level="error", summary="s", detail="d"), "error: s"),
    ],
)
def test_whatever_else_happens_is_said(event: Event, said: str) -> None:
    assert said in lines(event)[0]


def test_a_target_that_finished_well_needs_no_line() -> None:
    assert lines(TargetFinished(ts=TS, target="web", status="ok", counts=Counts())) == []


def test_an_unreachable_target_is_said_once() -> None:
    done = TargetFinished(
        ts=TS, target="web", status="unreachable", counts=Counts(), message="no route"
    )
    assert len(lines(TargetUnreachableEvent(ts=TS, target="web", reason="no route"), done)) == 1


@pytest.mark.parametrize(
    ("status", "code", "word"),
    [
        ("ok", 0, "OK"),
        ("ok", 4, "OK"),
        ("failed", 1, "FAILED"),
        ("refused", 3, "REFUSED"),
        ("cancelled", 130, "CANCELLED"),
        ("crashed", 70, "CRASHED"),
    ],
)
def test_the_recap_says_what_the_exit_code_says(status: str, code: int, word: str) -> None:
    last = lines(recap(status, code, changed=2))[-1]
    assert f" {word} in 1.5 s" in last
    assert last.endswith(f"tasks 2 changed; exit {code}")


def test_the_recap_lists_the_failures_but_not_a_thousand() -> None:
    failures = [finished("failed", error=f"e{n}\nmore") for n in range(15)]
    shown = lines(target(), *failures, recap("failed", 1, failed=15))[-12:]
    assert shown[0] == "failed  web: restart unit: e0"
    assert shown[-2] == "and 5 more failures"


def test_colour_is_only_added_never_needed() -> None:
    coloured = lines(target(), finished("failed", error="x"), colour=True)
    assert "\x1b[1;31mFAILED\x1b[0m" in coloured[0]
    assert [one.replace("\x1b[1;31m", "").replace("\x1b[0m", "") for one in coloured] == lines(
        target(), finished("failed", error="x")
    )


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_foreign_text_can_not_move_the_cursor(text: str) -> None:
    shown = lines(
        target(),
        finished("failed", name=text, error=text, output_tail=[text]),
        TaskOutput(ts=TS, target="web", task="t", lines=[Line("out", text)]),
        recap("failed", 1, failed=1),
        verbose=True,
    )
    assert not any(ord(sign) < 32 or 127 <= ord(sign) < 160 for line in shown for sign in line)
