"""The reading side without a process: any cut, any bytes, any order; one answer each."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from preflight_sdk import ApplyResult, CheckResult, Context, Handle
from preflight_sdk.served import Served
from preflight_sdk.session import Session

if TYPE_CHECKING:
    from preflight_sdk.wire import Writer

I1 = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol_version":2}}\n'
Args = dict[str, object]


class Demo:
    """Answers at once."""

    name = "demo"
    version = "1"

    def check(self, ctx: Context, args: Args, handle: Handle) -> CheckResult:
        handle.output("line")
        return CheckResult(False, str(args.get("text", "")))

    def apply(self, ctx: Context, args: Args, handle: Handle) -> ApplyResult:
        raise ValueError("no")


class Recorder:
    """Stands for the writer: keeps every frame."""

    def __init__(self) -> None:
        self.limit = 1 << 20
        self.frames: list[dict[str, object]] = []

    def post(self, frame: bytes) -> None:
        self.frames.append(json.loads(frame))

    def send(self, method: str, frame: bytes) -> None:
        self.post(frame)


class Bench:
    """A session whose jobs are run when the test says so."""

    def __init__(self, limit: int = 1 << 20, *, ready: bool = True) -> None:
        self.writer = Recorder()
        self.jobs: list[object] = []
        served = Served(Demo, capabilities=(), limit=limit)
        writer = cast("Writer", self.writer)
        served.writer = writer
        self.session = Session(served, writer, self.jobs.append)
        if ready:
            self.session.feed(I1)
            self.writer.frames.clear()

    def run_one(self) -> None:
        if self.jobs:
            job = self.jobs.pop(0)
            assert callable(job)
            job()

    def run_all(self) -> None:
        while self.jobs:
            self.run_one()

    def answers(self) -> Counter[str]:
        return Counter(json.dumps(f["id"]) for f in self.writer.frames if "method" not in f)


def line(key: object, method: str = "check", **args: object) -> bytes:
    frame = {"jsonrpc": "2.0", "id": key, "method": method, "params": {"args": args}}
    return json.dumps(frame, ensure_ascii=False).encode() + b"\n"


def cancel(key: object) -> bytes:
    return (
        json.dumps({"jsonrpc": "2.0", "method": "cancel", "params": {"id": key}}).encode() + b"\n"
    )


TRANSCRIPT = (
    line(2, text="é€😀")
    + b"\r\n"
    + line("a", "apply")
    + b"nonsense\n"
    + line("", "nope")
    + b'{"jsonrpc":"2.0","id":1.5,"method":"check"}\n'
    + line(3, text="x" * 2000)
    + b'{"jsonrpc":"2.0","id":9,"result":{}}\n'
    + cancel(77)
    + line(4, text="last")
)


def replay(cut: int, limit: int = 1500) -> list[dict[str, object]]:
    bench = Bench(limit)
    bench.session.feed(TRANSCRIPT[:cut])
    bench.session.feed(TRANSCRIPT[cut:])
    bench.run_all()
    return bench.writer.frames


def test_a_transcript_cut_at_every_byte_gives_the_same_frames() -> None:  # P27 P38 P44
    whole = replay(0)
    by_id = {json.dumps(f.get("id")): f for f in whole if "method" not in f}
    codes = {key: cast("Args", f["error"])["code"] for key, f in by_id.items() if "error" in f}
    assert codes == {"null": -32600, '""': -32601, "3": -32020}
    assert cast("Args", by_id["2"]["result"])["message"] == "é€😀"
    for cut in range(1, len(TRANSCRIPT)):
        assert replay(cut) == whole, cut


def test_a_stream_that_ends_at_every_byte_leaves_no_call_unanswered() -> None:  # P52 P93
    for end in range(len(TRANSCRIPT)):
        bench = Bench(1500)
        bench.session.feed(TRANSCRIPT[:end])
        bench.session.end()
        bench.run_all()
        answers = bench.answers()
        assert all(count == 1 for key, count in answers.items() if key != "null")
        for key, whole in (("2", line(2, text="é€😀")), ('"a"', line("a", "apply"))):
            assert (key in answers) or whole.rstrip(b"\n") not in TRANSCRIPT[:end]


@given(st.lists(st.tuples(st.sampled_from(["call", "cancel", "run", "stop"]), st.integers(1, 4))))
@settings(max_examples=200)
def test_every_call_is_answered_exactly_once_whatever_is_cancelled_when(
    steps: list[tuple[str, int]],
) -> None:  # P73 P77 P81
    bench = Bench()
    asked: Counter[str] = Counter()
    for step, key in steps:
        match step:
            case "call":
                asked[str(key)] += 1
                bench.session.feed(line(key))
            case "cancel":
                bench.session.feed(cancel(key))
            case "run":
                bench.run_one()
            case _:
                bench.session.interrupt()
    bench.run_all()
    assert bench.answers() == asked


@given(st.lists(st.binary(max_size=40)), st.booleans())
@settings(max_examples=300)
def test_no_bytes_end_the_session(pieces: list[bytes], ready: bool) -> None:  # P30 P33 P34 P37
    bench = Bench(60, ready=ready)
    for piece in pieces:
        bench.session.feed(piece)
    bench.session.feed(b"\n")
    lines = b"".join(pieces).count(b"\n") + 1
    assert len(bench.writer.frames) <= lines
    bench.writer.frames.clear()
    bench.session.feed(b'{"jsonrpc":"2.0","id":5,"method":"x"}\n')
    assert bench.answers() == {"5": 1}


def one_of(*values: object) -> st.SearchStrategy[object]:
    return st.sampled_from(values)


MEMBERS: st.SearchStrategy[Args] = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": one_of("2.0", "1.0", None),
        "id": one_of(0, "", "x", 2, -1, None, True, 1.5, [], {}),
        "method": one_of("check", "apply", "cancel", "initialize", "nope", "", 7, None),
        "params": one_of(None, {}, [], {"args": {}}, {"args": 7}, {"id": 2}, {"id": "x"}),
        "result": one_of(None, {}, 7),
        "error": one_of(None, {}, {"code": 1, "message": "m"}, "x"),
    },
)


@given(st.lists(MEMBERS, max_size=8))
@settings(max_examples=300)
def test_any_mix_of_members_gets_at_most_one_answer_a_frame(frames: list[Args]) -> None:
    # P36 P80 P86
    bench = Bench()
    for frame in frames:
        bench.writer.frames.clear()
        bench.session.feed(json.dumps(frame).encode() + b"\n")
        bench.run_all()
        answers = bench.answers()
        assert answers.total() <= 1
        if frame.get("method") == "check" and "id" in frame:
            assert answers.total() == 1
        if "id" not in frame and "method" in frame:
            assert answers.total() == 0
