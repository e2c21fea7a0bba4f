"""The harness that authors get must itself tell a good plugin from a bad one."""

from __future__ import annotations

import pytest

from preflight_sdk import (
    ApplyResult,
    Cancelled,
    CheckResult,
    Context,
    Handle,
    HandleError,
    RunResult,
    TargetInfo,
)
from preflight_sdk.testing import FakeTarget, Harness

Args = dict[str, object]


class Copy:
    """Copies /a to /b in three ops, and cleans up a lock."""

    name = "copy"
    version = "1"

    def check(self, ctx: Context, args: Args, handle: Handle) -> CheckResult:
        handle.output("looking")
        return CheckResult(not handle.run_command("cmp /a /b").ok, handle.info.family)

    def apply(self, ctx: Context, args: Args, handle: Handle) -> ApplyResult:
        try:
            data = handle.get_file("/a")
            handle.put_file("/b", data)
            handle.run_command("cmp /a /b")
        except Cancelled:
            handle.output("unlocking" if handle.run_cleanup("rm lock") else "still locked")
            raise
        return ApplyResult("copied")


def target() -> FakeTarget:
    fake = FakeTarget({"/a": b"1"})
    fake.on_run("", RunResult(exit_code=1))
    fake.on_run("rm lock", RunResult())
    fake.on_run("cmp", lambda script: RunResult(exit_code=int("/b" not in fake.files)))
    return fake


def test_check_and_apply_act_on_the_target_in_memory() -> None:
    harness = Harness(Copy, target())
    assert harness.check().needs_change
    outcome = harness.apply()
    assert outcome.result == ApplyResult("copied")
    assert [op.method for op in outcome.ops] == ["get_file", "put_file", "run_command"]
    assert harness.target.files["/b"] == b"1"
    assert not harness.check().needs_change
    assert harness.check().lines == ["looking"]


def test_the_target_info_can_be_chosen() -> None:
    outcome = Harness(Copy, target(), info=TargetInfo(family="bsd")).check()
    assert outcome.result == CheckResult(True, "bsd")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_cancel_at_an_op_ends_the_call_and_the_op_has_no_effect(number: int) -> None:
    harness = Harness(Copy, target())
    outcome = harness.apply(cancel_at=number)
    assert outcome.cancelled
    assert outcome.result is None
    assert len(outcome.ops) == number
    assert ("/b" in harness.target.files) is (number == 3)
    assert outcome.lines == ["still locked"]


def test_a_cancel_after_an_op_leaves_its_effect() -> None:
    harness = Harness(Copy, target())
    outcome = harness.apply(cancel_after=2)
    assert outcome.cancelled
    assert len(outcome.ops) == 2
    assert harness.target.files["/b"] == b"1"


def test_a_host_that_allows_it_runs_the_clean_up() -> None:
    outcome = Harness(Copy, target(), allow_cleanup=True).apply(cancel_at=1)
    assert outcome.lines == ["unlocking"]
    assert [op.script for op in outcome.ops] == ["", "rm lock"]


def test_a_kill_ends_everything_clean_up_included() -> None:
    outcome = Harness(Copy, target(), allow_cleanup=True).apply(kill_at=2)
    assert outcome.killed
    assert not outcome.cancelled
    assert outcome.result is None
    assert outcome.lines == []
    assert len(outcome.ops) == 2


def test_what_the_test_did_not_foresee_is_the_tasks_error() -> None:
    outcome = Harness(Copy).apply()
    assert isinstance(outcome.exception, HandleError)
    assert outcome.error == "/a: no such file"
    outcome = Harness(Copy).check()
    assert "no answer for this script: 'cmp /a /b'" in outcome.error
    with pytest.raises(AssertionError, match="no check result"):
        _ = outcome.needs_change


def test_args_that_are_no_json_are_refused() -> None:
    with pytest.raises(TypeError, match="no form in JSON"):
        Harness(Copy, target()).check({"path": object()})
