"""The engine's clock: events set it, it goes on between them, and never backwards."""

from __future__ import annotations

import pytest

from preflight.views.clock import EngineClock, seconds, span, time_of_day, watch


def test_a_broken_time_is_the_epoch() -> None:
    assert seconds("") == 0.0
    assert seconds("yesterday") == 0.0
    assert seconds("1970-01-01T00:00:01.500000Z") == 1.5
    assert seconds("1970-01-01T00:00:02") == 2.0


def test_between_events_the_time_goes_on_with_the_monotonic_clock() -> None:
    now = [10.0]
    clock = EngineClock(lambda: now[0])
    assert clock.now() == 0.0
    clock.observe(1000.0)
    now[0] = 12.0
    assert clock.now() == 1002.0


def test_an_event_that_was_delayed_on_its_way_does_not_turn_the_clock_back() -> None:
    now = [10.0]
    clock = EngineClock(lambda: now[0])
    clock.observe(1000.0)
    now[0] = 15.0
    clock.observe(1001.0)
    assert clock.now() == 1005.0


def test_a_clock_that_was_stopped_stands_at_the_last_event() -> None:
    now = [10.0]
    clock = EngineClock(lambda: now[0])
    clock.observe(1000.0)
    now[0] = 20.0
    clock.stop()
    assert clock.now() == 1000.0
    past = EngineClock()
    past.observe(5.0)
    past.observe(3.0)
    assert past.now() == 5.0


@pytest.mark.parametrize(
    ("elapsed_s", "words"),
    [
        (-1, "0 ms"),
        (0.412, "412 ms"),
        (0.9996, "1.0 s"),
        (2.64, "2.6 s"),
        (134, "02:14"),
        (3734, "1:02:14"),
    ],
)
def test_a_length_of_time_is_told_in_the_unit_that_fits(elapsed_s: float, words: str) -> None:
    assert span(elapsed_s) == words


def test_a_stop_watch_counts_minutes_and_hours() -> None:
    assert (watch(0), watch(59.9), watch(3600)) == ("00:00", "00:59", "1:00:00")


def test_the_time_of_day_is_told_where_the_operator_is() -> None:
    ts = "2026-03-02T12:03:41.201999Z"
    assert time_of_day(ts) == "12:03:41.201"
    assert time_of_day(ts, 3600) == "13:03:41.201"
    assert time_of_day("") == " " * 12
