"""What crosses the wire as plain values."""

from __future__ import annotations

from preflight_sdk import ApplyResult, CheckResult, RunResult, TargetInfo


def test_empty_members_are_left_out_of_the_wire_form() -> None:
    assert CheckResult(True).to_wire() == {"needs_change": True}
    assert ApplyResult().to_wire() == {}
    assert CheckResult(False, "m", error="e").to_wire() == {
        "needs_change": False,
        "message": "m",
        "error": "e",
    }
    assert ApplyResult("m", error="e").to_wire() == {"message": "m", "error": "e"}


def test_target_info_has_eight_strings_whatever_the_host_sent() -> None:
    info = TargetInfo.from_wire({"family": "linux", "arch": None, "init": 7, "other": "x"})
    assert info == TargetInfo(family="linux")
    assert len(info.__slots__) == 8
    assert all(isinstance(getattr(info, name), str) for name in info.__slots__)


def test_results_compare_by_value_and_show_it() -> None:
    assert RunResult("out") == RunResult("out")
    assert RunResult("out") != RunResult("other")
    assert CheckResult(True) != ApplyResult()
    assert len({RunResult("a"), RunResult("a")}) == 1
    assert repr(ApplyResult("m")) == "ApplyResult(error='', message='m')"
    assert RunResult().ok
    assert not RunResult(exit_code=1).ok
