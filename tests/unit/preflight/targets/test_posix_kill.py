"""The kill walk can hit nothing else: proved over recorded process tables, in several shells."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.proc_tree import SHELLS, Entry, record, signalled, walk

OP = "0123456789abcdef"
ELSE = "fedcba9876543210"

# Pid 1 of a container has group 0, as have many that were started from outside.
MACHINE = [
    Entry(1, 0, 0, 1, name="init"),
    Entry(2, 0, 0, 1, name="kthreadd"),
    Entry(3, 0, 0, 900, name="from outside"),
    Entry(50, 1, 50, 10, name="sshd"),
    Entry(60, 50, 60, 400, name="work shell"),
    Entry(61, 50, 61, 400, name="control shell"),
    Entry(70, 1, 70, 450, name="somebody else's"),
    Entry(71, 70, 71, 700, name="started later"),
]
OPERATION = [
    Entry(100, 60, 100, 500, op=OP),
    Entry(101, 100, 100, 501, op=OP),
    Entry(102, 101, 102, 502, op=OP, name="setsid"),
    Entry(103, 101, 103, 503, name="setsid, env -i"),
    Entry(104, 1, 104, 504, op=OP, name="daemon"),
    Entry(105, 1, 100, 505, name="env -i, orphan"),
    Entry(106, 103, 106, 506, name="its child"),
]
ALL = {one.pid for one in OPERATION}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_walk_finds_the_whole_operation_and_nothing_else(
    shell: list[str], tmp_path: Path
) -> None:
    proc = record(tmp_path, MACHINE + OPERATION)
    lines = walk(shell, proc, f"pf_end {OP} 100 500 100")
    assert signalled(lines) == ALL
    assert all(" TERM " in line for line in lines if line.startswith("signal"))
    assert lines[-1] == f"D {OP} SIGTERM"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "leader", ["0", "1", "-1", "-", "00", "07", "", "x", "1;2", "-100", "99999999999"]
)
def test_a_leader_that_is_no_number_above_1_seeds_nothing(
    shell: list[str], leader: str, tmp_path: Path
) -> None:
    proc = record(tmp_path, MACHINE)
    lines = walk(shell, proc, f"pf_end {ELSE} '{leader}' 0 100")
    assert lines == [f"D {ELSE} none"]


def test_group_0_of_pid_1_is_never_a_group(tmp_path: Path) -> None:
    """The draft that reached a whole machine began with group 0."""
    odd = [Entry(200, 0, 0, 600, op=OP), Entry(201, 0, 0, 601), Entry(202, 200, 0, 602)]
    proc = record(tmp_path, MACHINE + odd)
    lines = walk(["sh"], proc, f"pf_end {OP} 0 500 100")
    assert signalled(lines) == {200, 202}  # the marked one and its child, not their group 0


def test_what_started_before_the_operation_is_never_signalled(tmp_path: Path) -> None:
    older = [Entry(110, 100, 100, 499), Entry(111, 100, 100, 499, op=OP), Entry(112, 111, 111, 500)]
    proc = record(tmp_path, MACHINE + OPERATION + older)
    lines = walk(["sh"], proc, f"pf_end {OP} 100 500 100", stubborn=" ".join(map(str, ALL)))
    assert signalled(lines) == ALL
    assert lines[-1].startswith(f"D {OP} SIGKILL ")


def test_the_control_shell_and_its_ancestors_are_never_signalled(tmp_path: Path) -> None:
    inside = [Entry(61, 100, 100, 600, op=OP), Entry(62, 61, 100, 601, op=OP)]
    proc = record(tmp_path, [*MACHINE[:5], *OPERATION, *inside])
    lines = walk(["sh"], proc, f"pf_end {OP} 100 500 100", setup="pf_safe=' 1 2 61 62 '")
    assert signalled(lines) == ALL


def test_a_pid_given_to_somebody_else_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """Between the look and the signal a pid changes hands: start or group are not as they were."""
    proc = record(tmp_path, [*MACHINE, Entry(100, 1, 100, 800)])
    for seen in ("100:500:100", "100:800:70"):
        assert walk(["sh"], proc, f"pf_floor=0; pf_send KILL {seen}") == []
    assert walk(["sh"], proc, "pf_floor=801; pf_send KILL 100:800:100") == []
    assert walk(["sh"], proc, "pf_floor=0; pf_send KILL 100:800:100") == ["signal KILL 100"]


@pytest.mark.parametrize(
    "name",
    [
        "\n70 (x",
        "x) S 1 100 100 0 -1",
        ")\n70 (y) S 100 100",
        "a b) R 100",
        "\n1 (",
        "((",
        "*",
        "$(id)",
    ],
)
def test_a_name_made_to_look_like_another_process_misleads_nothing(
    name: str, tmp_path: Path
) -> None:
    forged = [Entry(120, 100, 100, 520, op=OP, name=name)]
    proc = record(tmp_path, MACHINE + OPERATION + forged)
    lines = walk(["sh"], proc, f"pf_end {OP} 100 450 100")
    assert signalled(lines) <= ALL | {120}
    assert signalled(lines) >= ALL


def test_what_ignores_term_is_killed_after_the_grace_and_what_stays_is_said(tmp_path: Path) -> None:
    proc = record(tmp_path, MACHINE + OPERATION)
    lines = walk(["sh"], proc, f"pf_end {OP} 100 500 100", stubborn="101:TERM 104")
    assert {line for line in lines if " KILL " in line} == {"signal KILL 101", "signal KILL 104"}
    assert lines[-1] == f"D {OP} SIGKILL 104"


def test_without_a_grace_the_first_signal_is_kill(tmp_path: Path) -> None:
    proc = record(tmp_path, MACHINE + OPERATION)
    lines = walk(["sh"], proc, f"pf_end {OP} 100 500 0")
    assert signalled(lines) == ALL
    assert not [line for line in lines if " TERM " in line]


def test_a_zombie_is_no_survivor(tmp_path: Path) -> None:
    dead = [Entry(130, 60, 130, 500, op=OP, state="Z")]
    proc = record(tmp_path, MACHINE + dead)
    assert walk(["sh"], proc, f"pf_end {OP} 130 500 100") == [f"D {OP} none"]


def test_only_a_child_of_the_work_shell_or_a_marked_process_is_a_leader(tmp_path: Path) -> None:
    proc = record(tmp_path, MACHINE + OPERATION)
    setup = "pf_born=400 pf_shell=60 pf_shell_start=400"
    question = f"pf_ours %s {OP} && echo yes || echo no"
    answers = {
        pid: walk(["sh"], proc, question % pid, setup=setup) == ["yes"]
        for pid in (0, 1, 50, 60, 61, 70, 71, 100, 103, 104)
    }
    assert [pid for pid, yes in answers.items() if yes] == [100, 104]
    older = "pf_born=501 pf_shell=60 pf_shell_start=400"
    assert walk(["sh"], proc, f"pf_ours 100 {ELSE} && echo yes || echo no", setup=older) == ["no"]
    assert walk(["sh"], proc, f"pf_ours 100 {OP} && echo $pf_since", setup=older) == ["500"]
    reused = "pf_born=400 pf_shell=60 pf_shell_start=399"
    assert walk(["sh"], proc, f"pf_ours 100 {ELSE} && echo yes || echo no", setup=reused) == ["no"]


def test_an_op_is_as_old_as_the_oldest_that_carries_its_mark(tmp_path: Path) -> None:
    proc = record(tmp_path, MACHINE + OPERATION)
    for op, oldest in {OP: "500", ELSE: "900", OP[:8]: "900", "": "900", "-": "900"}.items():
        call = f"pf_oldest_carrier '{op}'; echo $pf_since"
        assert walk(["sh"], proc, call, setup="pf_born=900") == [oldest]


def _forests() -> st.SearchStrategy[list[Entry]]:
    pids = st.integers(2, 40)
    entry = st.builds(
        Entry,
        pid=pids,
        parent=st.integers(0, 40),
        group=st.integers(0, 40),
        start=st.integers(1, 9),
        op=st.sampled_from(["", OP, ELSE]),
        state=st.sampled_from(["S", "R", "Z"]),
    )
    return st.lists(entry, max_size=25, unique_by=lambda one: one.pid)


def _expected(entries: list[Entry], leader: int, oldest: int, safe: set[int]) -> set[int]:
    rows = [e for e in entries if e.start >= oldest and e.pid not in safe and e.state != "Z"]
    found: set[int] = set()
    while True:
        more = {
            e.pid
            for e in rows
            if e.op == OP
            or (leader > 1 and leader in (e.pid, e.group))
            or (e.parent > 1 and e.parent in found)
            or (e.group > 1 and e.group in found)
        }
        if more <= found:
            return found
        found |= more


@settings(max_examples=40, deadline=None)
@given(
    forest=_forests(), leader=st.integers(0, 40), oldest=st.integers(1, 9), own=st.integers(2, 40)
)
def test_any_process_table_is_walked_as_the_rules_say(
    forest: list[Entry], leader: int, oldest: int, own: int
) -> None:
    everything = [Entry(1, 0, 0, 1), *forest]
    with tempfile.TemporaryDirectory() as folder:
        proc = record(Path(folder), everything)
        call = f"pf_end {OP} {leader} {oldest} 0"
        lines = walk(["sh"], proc, call, setup=f"pf_safe=' 1 2 {own} '")
    assert signalled(lines) == _expected(everything, leader, oldest, {1, 2, own})
