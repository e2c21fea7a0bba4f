"""The kit names exactly the fault that was planted, in a plugin that is right in all else."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.verify.kit import Subject, Verdict, verify
from preflight.verify.requirements import BY_ID, REQUIREMENTS
from preflight.verify.scenarios import SCENARIOS
from tests.support.faulty_plugin import FAULTS, PARAMS, lay_faulty

pytestmark = pytest.mark.timeout(180)


def judge(path: Path, params: dict[str, object] | None = PARAMS) -> dict[str, Verdict]:
    subject = Subject(command=[str(path)], name="demo", environment={}, params=params)
    return {one.requirement.id: one for one in verify(subject, SCENARIOS)}


def of(verdicts: dict[str, Verdict], status: str) -> list[str]:
    return [id for id, one in verdicts.items() if one.status == status]


def test_a_plugin_without_a_fault_holds_everything(tmp_path: Path) -> None:
    verdicts = judge(lay_faulty(tmp_path))
    assert of(verdicts, "passed") == list(verdicts)


@pytest.mark.parametrize("fault", FAULTS)
def test_exactly_the_planted_fault_is_named(fault: str, tmp_path: Path) -> None:
    verdicts = judge(lay_faulty(tmp_path, fault))
    assert of(verdicts, "failed") == [FAULTS[fault]]
    named = verdicts[FAULTS[fault]]
    assert named.seen
    looked_at_the_answer_alone = FAULTS[fault] in ("V2-HS-02", "V2-HS-03", "V2-HS-04", "V2-SC-01")
    assert named.frames or looked_at_the_answer_alone or FAULTS[fault] == "V2-SC-02"


def test_what_the_base_protocol_leaves_open_is_no_fault(tmp_path: Path) -> None:
    verdicts = judge(lay_faulty(tmp_path, "of the base protocol"))
    assert of(verdicts, "failed") == []
    assert verdicts["V2-ID-02"].status == verdicts["V2-FR-05"].status == "n/a"
    assert verdicts["V2-CO-02"].status == verdicts["V2-KO-01"].status == "passed"


def test_without_params_nothing_that_needs_work_is_judged(tmp_path: Path) -> None:
    verdicts = judge(lay_faulty(tmp_path), None)
    left_out = [one for one in verdicts.values() if one.status == "n/a"]
    assert {one.requirement.id for one in left_out} >= {"V2-IM-01", "V2-GR-01", "V2-KO-01"}
    assert {one.seen for one in left_out} == {"give --params", "it sent no output"}
    assert of(verdicts, "failed") == []


def test_params_that_the_plugin_refuses_are_named_once(tmp_path: Path) -> None:
    verdicts = judge(lay_faulty(tmp_path), {"wrong": 1})
    assert of(verdicts, "failed") == ["V2-SC-02", "V2-IM-01"]
    assert "folder is needed" in verdicts["V2-IM-01"].seen


def test_a_file_that_is_no_plugin_fails_at_the_first_and_nothing_else_is_judged(
    tmp_path: Path,
) -> None:
    path = tmp_path / "preflight-plugin-demo"
    path.write_text("#!/bin/sh\necho boom >&2\nexit 3\n", encoding="ascii")
    path.chmod(0o755)
    verdicts = judge(path)
    assert of(verdicts, "failed") == ["V2-HS-01"]
    assert "status 3" in verdicts["V2-HS-01"].seen
    assert "boom" in verdicts["V2-HS-01"].seen
    assert of(verdicts, "passed") == []


def test_every_scenario_judges_a_requirement_that_is_there() -> None:
    assert set(SCENARIOS) <= set(BY_ID)
    watched = {"V2-OR-03", "V2-FR-01", "V2-ID-03", "V2-SO-01"}
    assert {one.id for one in REQUIREMENTS} - set(SCENARIOS) == watched
    assert len(BY_ID) == len(REQUIREMENTS)
    assert {id for one in REQUIREMENTS for id in one.after} <= set(BY_ID)
