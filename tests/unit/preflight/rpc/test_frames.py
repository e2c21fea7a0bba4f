"""Any chunking of a stream gives the same lines, and the same verdicts on their size."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from preflight.rpc.frames import HEAD_BYTES, Framer, Oversize

LIMIT = 20


def frames(chunks: list[bytes], limit: int = LIMIT) -> list[bytes | Oversize]:
    framer = Framer(limit)
    found = [frame for chunk in chunks for frame in framer.feed(chunk)]
    return found + framer.close()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


pieces = st.sampled_from([b"\n", b"\r", b"\r\n", b" ", b"a", b"x" * (LIMIT - 1), b"y" * LIMIT])
streams = st.lists(pieces | st.binary(max_size=30), max_size=12).map(b"".join)


@given(streams, st.lists(st.integers(0, 400), max_size=12))
def test_any_chunking_gives_the_same_frames(data: bytes, places: list[int]) -> None:
    assert frames(cut(data, places)) == frames([data])


@given(streams)
def test_byte_by_byte_gives_the_same_frames(data: bytes) -> None:
    assert frames([data[at : at + 1] for at in range(len(data))]) == frames([data])


@given(streams)
def test_no_line_over_the_limit_comes_through_and_none_within_is_lost(data: bytes) -> None:
    expected: list[int] = []
    for line in data.split(b"\n"):
        content = line.removesuffix(b"\r") if len(line) <= LIMIT + 1 else line
        if len(content) > LIMIT or (content and not content.isspace()):
            expected.append(len(content))
    found = [one.size if isinstance(one, Oversize) else len(one) for one in frames([data])]
    if b"\xef\xbb\xbf" not in data:
        assert found == expected
    for one in frames([data]):
        assert (one.size > LIMIT) if isinstance(one, Oversize) else (len(one) <= LIMIT)


def test_the_limit_does_not_count_the_line_end() -> None:
    exact = b"x" * LIMIT
    assert frames([exact + b"\n"]) == [exact]
    assert frames([exact + b"\r\n"]) == [exact]
    assert frames([exact, b"\r", b"\n"]) == [exact]
    assert frames([exact + b"\r", b"", b"\n"]) == [exact]
    assert frames([exact + b"x\n"]) == [Oversize(LIMIT + 1, exact + b"x")]
    assert frames([exact + b"\rx\n"]) == [Oversize(LIMIT + 2, exact + b"\rx")]


def test_of_an_oversize_line_only_the_beginning_is_kept() -> None:
    framer = Framer(10)
    for _ in range(1000):
        assert framer.feed(b"z" * 10_000) == []
    assert framer.pending
    (found,) = framer.feed(b"\nok\n")[:1]
    assert isinstance(found, Oversize)
    assert found.size == 10_000_000
    assert len(found.head) <= HEAD_BYTES
    assert not framer.pending


def test_a_byte_order_mark_is_taken_off_the_first_line_only() -> None:
    bom = b"\xef\xbb\xbf"
    assert frames([b"\n" + bom + b"a\n" + bom + b"b\n"]) == [b"a", bom + b"b"]


def test_the_last_line_needs_no_newline() -> None:
    assert frames([b"a\nb"]) == [b"a", b"b"]
    assert frames([b"a\n"]) == [b"a"]
    assert frames([b"x" * 30]) == [Oversize(30, b"x" * 30)]
    assert frames([]) == []
