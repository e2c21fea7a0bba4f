"""Marks are cut out of a stream wherever they stand, and nothing else is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from preflight.targets.marks import MarkCutter

TOKEN = "0123456789abcdef01234567"
MARK = b"\x1e" + TOKEN.encode()


class Seen:
    def __init__(self) -> None:
        self.output = b""
        self.marks: list[list[str]] = []
        self.cutter = MarkCutter(TOKEN, self._add, self.marks.append)

    def _add(self, data: bytes) -> None:
        self.output += data


def test_a_mark_in_the_middle_of_a_line_is_cut_out() -> None:
    seen = Seen()
    seen.cutter.feed(b"a" + MARK + b" P 17\nb\n" + MARK + b"\n")
    assert (seen.output, seen.marks) == (b"ab\n", [["P", "17"], []])


def test_only_what_may_be_a_marks_beginning_is_held_back() -> None:
    seen = Seen()
    seen.cutter.feed(b"line\x1e")
    assert seen.output == b"line"
    seen.cutter.feed(b"no")
    assert seen.output == b"line\x1eno"
    seen.cutter.feed(MARK[:10])
    seen.cutter.close()
    assert seen.output == b"line\x1eno" + MARK[:10]


piece = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(
        [MARK[:1], MARK[:9], MARK[:-1], b"\n", b"\x1e\x1e", b"\x1e" + b"0" * 24 + b"\n"]
    ),
    st.sampled_from([("",), (" P 5",), (" E 0",)]),
)


@given(st.lists(piece, max_size=12), st.lists(st.integers(1, 9), min_size=1))
def test_any_chunks_give_the_same(pieces: list[bytes | tuple[str]], sizes: list[int]) -> None:
    wire, output = b"", b""
    marks: list[list[str]] = []
    for one in pieces:
        if isinstance(one, bytes):
            wire += one
            output += one
        elif not output or not _could_begin(wire):
            wire += MARK + one[0].encode() + b"\n"
            marks.append(one[0].split())
    seen = Seen()
    at = turn = 0
    while at < len(wire):
        size = sizes[turn % len(sizes)]
        seen.cutter.feed(wire[at : at + size])
        at, turn = at + size, turn + 1
    seen.cutter.close()
    if MARK not in output:  # pieces that happen to join into a mark are one
        assert (seen.output, seen.marks) == (output, marks)


def _could_begin(wire: bytes) -> bool:
    """Whether the end of the wire is a whole token without its newline."""
    return MARK in wire.rpartition(b"\n")[2]
