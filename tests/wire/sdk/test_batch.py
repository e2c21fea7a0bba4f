"""Many items in one request: each has its own outcome, and none of them is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from tests.support.fake_host import FakeHost, Frame, members
from tests.wire.sdk.test_extensions import extended
from tests.wire.sdk.test_handshake import error_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.wire.sdk.conftest import Spawn


def ask(
    host: FakeHost, *items: Mapping[str, object], method: str = "check_batch", **params: object
) -> None:
    numbered = [{"index": 10 + n, "args": args} for n, args in enumerate(items)]
    host.request(2, method, {"items": numbered, **params})


def entries(frame: Frame) -> list[Frame]:
    holder = members(frame["result"] if "result" in frame else frame["params"])
    return cast("list[Frame]", holder["results"])


def all_of(frames: list[Frame]) -> dict[int, Frame]:
    """Every entry by its index, which must come once."""
    said = [
        entry
        for frame in frames
        if frame.get("method") == "progress" or "result" in frame
        for entry in entries(frame)
    ]
    found = {cast("int", entry.pop("index")): entry for entry in said}
    assert len(found) == len(said)
    return found


def test_check_batch_loops_over_check_and_own_args_win(spawn: Spawn) -> None:
    host = extended(spawn, "return CheckResult(args['n'] > 1, args['a'] + str(args['n']))")
    ask(host, {"n": 1}, {"n": 2, "a": "own"}, common={"a": "common", "n": 0})
    assert all_of(host.until_answer(2)) == {
        10: {"needs_change": False, "message": "common1"},
        11: {"needs_change": True, "message": "own2"},
    }


def test_a_hundred_checks_are_a_frame_or_two(spawn: Spawn) -> None:
    host = extended(spawn)
    nothing: dict[str, object] = {}
    ask(host, *(nothing for _ in range(100)))
    frames = host.until_answer(2)
    assert len(frames) <= 3
    assert len(all_of(frames)) == 100


def test_a_checks_result_waits_no_longer_than_it_takes_to_gather_some(spawn: Spawn) -> None:
    host = extended(spawn, "gate() if args.get('wait') else None")
    ask(host, {}, {"wait": True})
    (entry,) = entries(host.frame())
    assert entry["index"] == 10
    host.open_gate()
    assert [entry["index"] for entry in entries(host.frame())] == [11]


def test_an_applied_item_is_reported_before_the_next_one_begins(spawn: Spawn) -> None:
    host = extended(spawn, apply="handle.run_command('x')")
    ask(host, {}, {}, {}, method="apply_batch")
    for index in (10, 11, 12):
        host.ran(host.frame())
        assert host.frame()["params"] == {
            "id": 2,
            "results": [{"index": index, "message": "applied"}],
        }
    assert host.frame()["result"] == {"results": []}


POISON = """
match args.get("do"):
    case "raise": raise OSError("disk")
    case "exit": sys.exit(3)
    case "kind": return 7
    case "mutate": args["list"].append("poison"); return CheckResult(False, str(args["list"]))
    case "fail": return CheckResult(False, error="no")
    case "huge": return CheckResult(True, "x" * 90000)
    case "stray":
        threading.Thread(target=handle.run_command, args=("stray",)).start()
        time.sleep(0.05)
return CheckResult(True, str(args["list"]))
"""


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_poisoned_item_spoils_no_other(spawn: Spawn, concurrency: int) -> None:
    poison = ["raise", "exit", "kind", "mutate", "fail", "huge", "stray"]
    host = extended(spawn, POISON, limit=65536)
    items: list[dict[str, object]] = [{"do": kind} for kind in poison]
    good: list[dict[str, object]] = [{}] * 3
    numbered = [{"index": n, "args": args} for n, args in enumerate([*items, *good])]
    numbered.append({"index": 99, "args": cast("dict[str, object]", [])})
    params = {"items": numbered, "common": {"list": [1]}, "concurrency": concurrency}
    host.request(2, "check_batch", params)
    found = all_of(host.until_answer(2))
    words = [
        "OSError: disk",
        "the handler called sys.exit(3)",
        "check returned int, not CheckResult",
        "",
        "no",
        "the item's result: a message of 900",
        "",
    ]
    for index, text in enumerate(words):
        assert str(found[index].get("error", "")).startswith(text), found[index]
    assert found[99]["error"] == "args is not an object"
    for index in (6, 7, 8, 9):
        assert found[index] == {"needs_change": True, "message": "[1]"}


def test_lines_carry_their_items_index_and_come_before_its_result(spawn: Spawn) -> None:
    host = extended(spawn, apply="handle.output(args['t'])")
    ask(host, {"t": "a"}, {"t": "b"}, method="apply_batch")
    frames = host.until_answer(2)
    assert [frame.get("method") for frame in frames] == [
        "output",
        "progress",
        "output",
        "progress",
        None,
    ]
    assert frames[2]["params"] == {"line": "b", "parent": 2, "index": 11}


def test_concurrency_is_honoured_and_ops_stay_one_in_flight(spawn: Spawn) -> None:
    body = """
    with lock:
        running.append(1); most[0] = max(most[0], len(running))
    barrier.wait(5)
    handle.run_command('x')
    with lock: running.pop()
    return CheckResult(False, str(most[0]))
    """
    top = "lock = threading.Lock(); running = []; most = [0]; barrier = threading.Barrier(3)"
    host = extended(spawn, body, top=top)
    ask(host, {}, {}, {}, concurrency=3)
    for _ in range(3):
        op = host.frame()
        assert op["method"] == "run_command"
        host.ran(op)
    assert {entry["message"] for entry in all_of(host.until_answer(2)).values()} == {"3"}


def test_a_plugin_may_bound_its_threads(spawn: Spawn) -> None:
    body = "return CheckResult(False, str(threading.get_ident() == threading.main_thread().ident))"
    options = "capabilities=[setattr(Demo, 'max_concurrency', 1) or 'x']"
    host = extended(spawn, body, options=options)
    ask(host, {}, {}, {}, concurrency=8)
    assert {entry["message"] for entry in all_of(host.until_answer(2)).values()} == {"True"}


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_cancel_in_the_middle_keeps_what_finished(spawn: Spawn, concurrency: int) -> None:
    host = extended(spawn, apply="handle.run_command('x') if args['n'] else None")
    items: list[dict[str, object]] = [{"n": n} for n in (0, 1, 1, 1)]
    ask(host, *items, method="apply_batch", concurrency=concurrency)
    seen = [host.frame(), host.frame()]
    (first,) = [frame for frame in seen if frame["method"] == "progress"]
    assert [entry["index"] for entry in entries(first)] == [10]
    host.cancel()
    rest = host.until_answer(2)
    assert error_of(rest[-1]) == (-32800, "apply_batch was cancelled")
    assert [frame.get("method") for frame in rest[:-1]] == ["cancel"]


def test_a_cancelled_check_batch_reports_what_finished_before_it_answers(spawn: Spawn) -> None:
    host = extended(spawn, "handle.run_command('x') if args['n'] else None")
    ask(host, {"n": 0}, {"n": 1}, {"n": 1})
    op = next(frame for frame in iter(host.frame, None) if frame["method"] == "run_command")
    host.cancel()
    frames = host.until_answer(2)
    assert error_of(frames[-1])[0] == -32800
    assert {"id": op["id"]} in [frame.get("params") for frame in frames]
    host.request(3, "check", {"args": {"n": 0}})
    assert host.frame()["id"] == 3


OWN = """
def check_batch(self, ctx, items, handle, report):
    handle.output('all'); handle.output('one', items[1])
    for item in items:
        kind = item.args['kind']
        if kind == 'twice': report(item, CheckResult(True)); report(item, CheckResult(True))
        if kind == 'kind': report(item, ApplyResult())
        if kind == 'raise': raise InvalidParams('no list there')
        if kind != 'left': report(item, CheckResult(True, changes=[Change('/x', None, kind)]))
"""
HAS_OWN = "capabilities=[setattr(Demo, 'check_batch', check_batch) or 'x']"


def own(spawn: Spawn, *kinds: str) -> tuple[list[Frame], Frame]:
    host = extended(spawn, top=OWN, options=HAS_OWN)
    ask(host, *({"kind": kind} for kind in kinds))
    frames = host.until_answer(2)
    return frames, members(frames[-1]["result"])


def test_a_plugins_own_batch_reports_by_item(spawn: Spawn) -> None:
    frames, _ = own(spawn, "a", "left", "b")
    lines = [frame["params"] for frame in frames if frame.get("method") == "output"]
    assert lines == [{"line": "all", "parent": 2}, {"line": "one", "parent": 2, "index": 11}]
    found = all_of(frames)
    assert set(found) == {10, 12}
    assert found[12] == {
        "needs_change": True,
        "changes": [{"path": "/x", "before": None, "after": "b"}],
    }


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("raise", "no list there"),
        ("twice", "ValueError: item 11 was reported before, or is none"),
        ("kind", "TypeError: check returned ApplyResult, not CheckResult"),
    ],
)
def test_an_own_batch_that_fails_keeps_what_it_reported(
    spawn: Spawn, kind: str, error: str
) -> None:
    frames, result = own(spawn, "a", kind, "b")
    assert result["error"] == error
    assert set(all_of(frames)) == ({10, 11} if kind == "twice" else {10})


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"items": {}}, "items is not an array"),
        ({}, "items is not an array"),
        ({"items": [], "common": []}, "common is not an object"),
        ({"items": [7]}, "an item has no index"),
        ({"items": [{"index": True}]}, "an item has no index"),
        ({"items": [{"index": 1}, {"index": 1}]}, "index 1 comes twice"),
    ],
)
def test_a_batch_that_is_none_is_refused(spawn: Spawn, params: Frame, words: str) -> None:
    host = extended(spawn)
    host.request(2, "check_batch", params)
    assert error_of(host.frame()) == (-32602, words)
    host.request(3, "apply_batch", {"items": []})
    assert host.frame()["result"] == {"results": []}
