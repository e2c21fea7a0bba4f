"""`marker_file` on a target in memory."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from preflight_sdk import CheckResult, RunResult, TargetInfo
from preflight_sdk.testing import FakeTarget, Harness, load

PLUGIN = load(Path(__file__).resolve().parents[3] / "plugins" / "preflight-plugin-marker_file")


def harness(files: dict[str, bytes] | None = None) -> Harness:
    target = FakeTarget(files)
    target.on_run(
        "test -f ",
        lambda script: RunResult(exit_code=int(shlex.split(script)[2] not in target.files)),
    )
    return Harness(PLUGIN.MarkerFile, target)


def test_a_missing_marker_is_written_once() -> None:
    args: dict[str, object] = {"path": "/etc/it's ours", "content": "é\n"}
    demo = harness()
    assert demo.check(args).needs_change
    assert demo.apply(args).error == ""
    assert demo.target.files == {"/etc/it's ours": "é\n".encode()}
    assert not demo.check(args).needs_change


def test_other_content_needs_change_and_empty_is_the_default() -> None:
    demo = harness({"/m": b"other"})
    assert demo.check({"path": "/m"}).needs_change
    demo.apply({"path": "/m"})
    assert demo.target.files == {"/m": b""}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "path is required"),
        ({"path": 7}, "path is required"),
        ({"path": "etc/x"}, "path must be absolute, not 'etc/x'"),
        ({"path": "/x\0"}, "path must be absolute"),
        ({"path": "/x", "content": 7}, "content must be text, not int"),
        ({"path": "/x", "mode": "0644"}, "unknown params: mode"),
    ],
)
def test_bad_params_are_said_clearly(args: dict[str, object], words: str) -> None:
    for outcome in (harness().check(args), harness().apply(args)):
        assert words in outcome.error
        assert outcome.result is not None
        assert outcome.ops == []


def test_a_windows_target_is_asked_in_powershell() -> None:
    target = FakeTarget({"C:\\it's": b""})
    target.on_run("Test-Path -LiteralPath 'C:\\it''s' -PathType Leaf", RunResult())
    windows = TargetInfo(runtime_kind="windows-powershell")
    outcome = Harness(PLUGIN.MarkerFile, target, info=windows).check({"path": "C:\\it's"})
    assert not outcome.needs_change


def test_a_check_says_what_would_change() -> None:
    def changes(there: dict[str, bytes], content: str) -> list[tuple[str, object, object]]:
        result = harness(there).check({"path": "/m", "content": content}).result
        assert isinstance(result, CheckResult)
        return [(one.path, one.before, one.after) for one in result.changes]

    assert changes({}, "new\n") == [("/m", None, "new\n")]
    assert changes({"/m": b"old\n"}, "new\n") == [("/m", "old\n", "new\n")]
    assert changes({"/m": b"\xff"}, "x" * 20_000) == [("/m", "1 bytes, not text", "20000 bytes")]
    assert changes({"/m": b"same"}, "same") == []


def test_many_markers_are_the_sum_of_each() -> None:
    demo = harness({"/a": b""})
    outcome = demo.check_batch({"path": "/a"}, {"path": "etc"}, {"path": "/b"})
    assert [outcome.results[n].get("needs_change") for n in range(3)] == [False, False, True]
    assert "path must be absolute" in str(outcome.results[1]["error"])
