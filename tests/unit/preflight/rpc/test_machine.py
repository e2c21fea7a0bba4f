"""Ids, whose they are, and what each line means for them."""

from __future__ import annotations

import itertools
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.rpc.machine import (
    Incoming,
    Large,
    Machine,
    MessageTooLarge,
    Reply,
    TooLarge,
    Violation,
    too_large_words,
)
from preflight.rpc.messages import PARSE_ERROR, TOO_LARGE, Notification, Request, Response

LIMIT = 200


def said(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


def plain(messages: list[Incoming]) -> list[object]:
    """Messages as values that can be compared."""
    return [
        (type(message), *(bytes(one) if isinstance(one, msgspec.Raw) else one for one in fields))
        for message in messages
        for fields in [msgspec.structs.astuple(message)]
    ]


def asking(count: int = 3, *, limit: int = LIMIT) -> Machine:
    machine = Machine(limit=limit)
    for _ in range(count):
        machine.request("check", b"{}")
    return machine


def error_in(message: Incoming) -> tuple[object, int]:
    assert isinstance(message, Reply)
    answer = json.loads(message.frame)
    return answer["id"], answer["error"]["code"]


LINES = [
    said(id=1, result={}),
    said(id=2, result={"a": "\ud800"}),
    said(id=3, error={"code": 1, "message": "no"}),
    said(id=9, result={}),
    said(id=7, method="run_command", params={}),
    said(id=7, method="put_file"),
    said(id="7", method="put_file"),
    said(id=1.5, method="put_file"),
    said(method="output", params={"line": "é"}),
    said(method="output", params={"line": "x" * LIMIT}),
    said(id=1, result="x" * LIMIT),
    said(id=8, method="put_file", params="x" * LIMIT),
    b"hello\n",
    b"[]\n",
    b'{"id":2,\n',
    b"\n",
]


@given(st.lists(st.sampled_from(LINES), max_size=6), st.lists(st.integers(0, 2000), max_size=8))
def test_verdicts_do_not_depend_on_the_chunks(lines: list[bytes], places: list[int]) -> None:
    data = b"".join(lines)
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    machine, whole = asking(), asking()
    found: list[Incoming] = []
    for start, end in itertools.pairwise(edges):
        found += machine.receive(data[start:end])
    assert plain(found) == plain(whole.receive(data))
    assert (machine.pending, machine.serving) == (whole.pending, whole.serving)


def test_a_stream_cut_at_every_byte_ends_every_time() -> None:
    data = b"".join(LINES)
    for end in range(len(data)):
        machine = asking()
        found = machine.receive(data[:end]) + machine.receive_end()
        whole = asking().receive(data[: data.rfind(b"\n", 0, end) + 1])
        assert plain(found)[: len(whole)] == plain(whole)


def test_ids_count_from_one_and_the_two_sides_are_apart() -> None:
    machine = Machine()
    id, frame = machine.request("check", b"{}")
    assert (id, json.loads(frame)["id"]) == (1, 1)
    (request,) = machine.receive(said(id=1, method="run_command"))
    assert isinstance(request, Request)
    assert (machine.pending, machine.serving) == ((1,), (1,))
    (response,) = machine.receive(said(id=1, result=5))
    assert isinstance(response, Response)
    assert (machine.pending, machine.serving) == ((), (1,))


def test_a_request_is_answered_at_most_once() -> None:
    machine = Machine()
    machine.receive(said(id=7, method="m"))
    assert machine.result(7, b"{}") == b'{"jsonrpc":"2.0","id":7,"result":{}}\n'
    assert machine.result(7, b"{}") is None
    assert machine.error(7, 1, "no") is None
    assert machine.error("7", 1, "no") is None


def test_a_duplicate_in_flight_is_refused_and_the_id_is_free_afterwards() -> None:
    machine = Machine()
    machine.receive(said(id=7, method="m"))
    violation, reply = machine.receive(said(id=7, method="m"))
    assert isinstance(violation, Violation)
    assert error_in(reply) == (7, -32600)
    assert machine.error(7, 1, "no") is not None
    assert isinstance(machine.receive(said(id=7, method="m"))[0], Request)


def test_an_answer_that_nobody_waits_for_is_a_violation_but_a_late_one_is_not() -> None:
    machine = asking(2)
    machine.abandon(1)
    machine.abandon(1)
    machine.abandon(99)
    assert machine.receive(said(id=1, result={})) == []
    for line in (said(id=1, result={}), said(id="2", result={}), said(id=50, result={})):
        (found,) = machine.receive(line)
        assert isinstance(found, Violation)
    assert machine.pending == (2,)


def test_a_thousand_calls_that_nobody_waits_for_are_forgotten() -> None:
    # P87
    machine = Machine()
    for _ in range(3000):
        id, _frame = machine.request("check", b"{}")
        machine.abandon(id)
    assert machine.pending == ()
    (old,) = machine.receive(said(id=1, result={}))
    assert isinstance(old, Violation)
    assert machine.receive(said(id=3000, result={})) == []


def test_a_broken_answer_fails_its_call() -> None:
    machine = asking(1)
    violation, response = machine.receive(b'{"jsonrpc":"2.0","id":1,"result":{\n')
    assert isinstance(violation, Violation)
    assert isinstance(response, Response)
    assert response.error is not None
    assert response.error[0] == PARSE_ERROR
    assert isinstance(machine.receive(b'{"id":1,\n')[0], Violation)


@pytest.mark.parametrize(
    ("line", "kinds", "pending"),
    [
        (said(id=2, result="x" * LIMIT), [Violation, TooLarge], (1, 3)),
        (
            b'{"result":{"id":2,"m":"' + b"x" * LIMIT + b'"},"id":2}\n',
            [Violation, TooLarge],
            (1, 3),
        ),
        (said(id=77, result="x" * LIMIT), [Violation], (1, 2, 3)),
        (said(id="2", result="x" * LIMIT), [Violation], (1, 2, 3)),
        (said(id=5, method="put_file", params="x" * LIMIT), [Violation, Reply], (1, 2, 3)),
        (said(method="output", params="x" * LIMIT), [Violation], (1, 2, 3)),
    ],
)
def test_an_oversize_line_fails_what_it_answers(
    line: bytes, kinds: list[type], pending: tuple[int, ...]
) -> None:
    machine = asking()
    found = machine.receive(line)
    assert [type(one) for one in found] == kinds
    assert machine.pending == pending


def test_an_oversize_line_that_answers_an_abandoned_call_fails_nobody() -> None:
    machine = asking()
    machine.abandon(2)
    assert [type(one) for one in machine.receive(said(id=2, result="x" * LIMIT))] == [Violation]
    assert machine.pending == (1, 3)


def test_an_oversize_line_without_an_id_fails_no_call_that_is_younger_than_its_beginning() -> None:
    machine = Machine(limit=LIMIT)
    machine.receive(b'{"x":"')
    machine.request("check", b"{}")
    found = machine.receive(b"x" * LIMIT + b'"}\n')
    assert [type(one) for one in found] == [Violation]
    assert machine.pending == (1,)
    found = machine.receive(b'{"x":"' + b"x" * LIMIT + b'"}\n')
    assert [type(one) for one in found] == [Violation, TooLarge]


def test_what_is_over_the_peers_limit_is_not_sent_and_takes_no_id() -> None:
    machine = Machine()
    machine.peer_limit = LIMIT
    with pytest.raises(MessageTooLarge, match="check of") as caught:
        machine.request("check", b"x" * LIMIT)
    assert (caught.value.method, caught.value.limit) == ("check", LIMIT)
    with pytest.raises(MessageTooLarge):
        machine.notification("output", b"x" * LIMIT)
    assert machine.request("check", b"{}")[0] == 1
    assert machine.notification("cancel", b"{}").endswith(b"}\n")
    machine.receive(said(id=7, method="get_file"))
    answer = json.loads(machine.result(7, b"x" * LIMIT) or b"")
    assert answer["error"]["code"] == TOO_LARGE
    assert "raise max_message_bytes" in answer["error"]["message"]


@pytest.mark.parametrize("outgoing", [True, False])
def test_large_is_from_eighty_percent_on(outgoing: bool) -> None:
    machine = Machine(limit=1000)
    machine.peer_limit = 1000
    assert [machine.is_large(size, outgoing=outgoing) for size in (799, 800, 1000)] == [
        False,
        True,
        True,
    ]


def test_a_large_message_is_told_by_its_method() -> None:
    machine = asking(1)
    found = machine.receive(said(method="output", params="x" * 140))
    assert [type(one) for one in found] == [Notification, Large]
    found = machine.receive(said(id=1, result="x" * 150))
    assert isinstance(found[1], Large)
    assert (found[1].method, found[1].outgoing) == ("answer", False)


def test_the_words_name_the_file_that_would_fit() -> None:
    words = too_large_words("put_file", 70_000_000, 67_108_864)
    for part in ("put_file", "70000000", "67108864", "50331648", "max_message_bytes"):
        assert part in words
