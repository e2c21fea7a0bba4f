"""The framer: the same lines for any cut, and exact limits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from preflight_sdk.framing import HEAD_BYTES, Framer, Oversize

LIMIT = 20


def described(lines: list[bytes | Oversize]) -> list[bytes | tuple[bytes, int]]:
    return [line if isinstance(line, bytes) else (line.head, line.size) for line in lines]


def expected(stream: bytes) -> list[bytes | tuple[bytes, int]]:
    *whole, rest = stream.split(b"\n")
    return [
        line if len(line) <= LIMIT else (b"", len(line))
        for line in [*whole, *([rest] if rest else [])]
    ]


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(1, 7), min_size=1))
def test_any_cut_of_a_stream_gives_the_same_lines(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"\n".join(lines)
    framer = Framer(LIMIT)
    got: list[bytes | Oversize] = []
    start = turn = 0
    while start < len(stream):
        step = cuts[turn % len(cuts)]
        got += framer.feed(stream[start : start + step])
        start, turn = start + step, turn + 1
    got += framer.end()
    heads_gone = [line if isinstance(line, bytes) else (b"", line.size) for line in got]
    assert heads_gone == expected(stream)


def test_the_start_of_an_oversize_line_is_kept_and_the_rest_is_not() -> None:
    framer = Framer(10_000)
    line = bytes(range(65, 91)) * 1000
    assert framer.feed(line) == []
    held = sum(len(part) for part in framer._parts)  # pyright: ignore[reportPrivateUsage]
    assert held == 0
    assert described(framer.feed(b"more\nnext\n")) == [(line[:HEAD_BYTES], 26_004), b"next"]


def test_the_newline_does_not_count() -> None:
    framer = Framer(3)
    assert described(framer.feed(b"abc\nabcd\n")) == [b"abc", (b"abcd", 4)]


def test_the_end_gives_what_is_left_once() -> None:
    framer = Framer(LIMIT)
    framer.feed(b"whole\nrest")
    assert framer.end() == [b"rest"]
    assert framer.end() == []
