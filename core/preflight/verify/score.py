"""Verdicts for people, for programs and for CI servers; all three say the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from preflight.verify.kit import Status, Verdict
from preflight.verify.requirements import GROUPS

_MARKS: dict[Status, str] = {"passed": "ok", "failed": "FAILED", "n/a": "n/a"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def count(verdicts: Sequence[Verdict], status: Status, group: str = "") -> int:
    """Count the verdicts of a status, of one group or of all."""
    return sum(one.status == status for one in verdicts if group in ("", one.requirement.group))


def is_sound(verdicts: Sequence[Verdict]) -> bool:
    """Tell whether all that applies passed."""
    return not count(verdicts, "failed")


def as_text(verdicts: Sequence[Verdict]) -> list[str]:
    """Give a score by group, then every fault with its frames, then what does not apply."""
    lines: list[str] = []
    for group in GROUPS.values():
        passed, failed = count(verdicts, "passed", group), count(verdicts, "failed", group)
        out = count(verdicts, "n/a", group)
        score = f"{passed}/{passed + failed}" if passed + failed else "n/a"
        note = f"  ({out} not applicable)" if out and passed + failed else ""
        lines.append(f"{_MARKS['failed'] if failed else '':<7}{group:<26}{score:>6}{note}".rstrip())
    for one in verdicts:
        if one.status == "failed":
            lines += ["", f"FAILED {_title(one)}", f"       seen: {one.seen}"]
            lines += [f"       {frame}" for frame in one.frames]
    left_out = [one for one in verdicts if one.status == "n/a"]
    if left_out:
        lines += ["", "not applicable:"]
        lines += [f"  {one.requirement.id}  {one.seen}" for one in left_out]
    return [*lines, "", summary(verdicts)]


def summary(verdicts: Sequence[Verdict]) -> str:
    """Say the whole result in one line."""
    passed, failed = count(verdicts, "passed"), count(verdicts, "failed")
    words = f"{passed} of {passed + failed} requirements that apply are held"
    return f"{words}, {count(verdicts, 'n/a')} do not apply"


def as_data(verdicts: Sequence[Verdict]) -> dict[str, object]:
    """Give everything as JSON can hold it."""
    return {
        "passed": count(verdicts, "passed"),
        "failed": count(verdicts, "failed"),
        "not_applicable": count(verdicts, "n/a"),
        "groups": {
            group: {
                "passed": count(verdicts, "passed", group),
                "failed": count(verdicts, "failed", group),
                "not_applicable": count(verdicts, "n/a", group),
            }
            for group in GROUPS.values()
        },
        "requirements": [
            {
                "id": one.requirement.id,
                "group": one.requirement.group,
                "text": one.requirement.text,
                "source": f"docs/protocol.md section {one.requirement.source}",
                "status": one.status,
                "seen": one.seen,
                "frames": one.frames,
            }
            for one in verdicts
        ],
    }


def as_junit(verdicts: Sequence[Verdict], name: str) -> str:
    """Give JUnit's XML: one case for each requirement, skipped where it does not apply."""
    failed, skipped = count(verdicts, "failed"), count(verdicts, "n/a")
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuite name={_attribute(f'plugin verify {name}')} tests={_attribute(len(verdicts))} "
        f"failures={_attribute(failed)} skipped={_attribute(skipped)}>",
    ]
    for one in verdicts:
        case = f"name={_attribute(_title(one))} classname={_attribute(one.requirement.group)}"
        match one.status:
            case "passed":
                lines.append(f"  <testcase {case}/>")
            case "n/a":
                skip = f"<skipped message={_attribute(one.seen)}/>"
                lines.append(f"  <testcase {case}>{skip}</testcase>")
            case "failed":
                frames = escape(_NOT_XML.sub("\ufffd", "\n".join(one.frames)))
                failure = f"<failure message={_attribute(one.seen)}>{frames}</failure>"
                lines.append(f"  <testcase {case}>{failure}</testcase>")
    return "\n".join([*lines, "</testsuite>"])


def _title(one: Verdict) -> str:
    return f"{one.requirement.id}  {one.requirement.text} [{one.requirement.source}]"


def _attribute(value: object) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", str(value)))
