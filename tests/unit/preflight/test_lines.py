"""Lines come whole, whatever the chunks, and cost a bounded memory."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from preflight.lines import MAX_LINE_BYTES, LineReader


def read(chunks: list[bytes], keep_bytes: int = 100) -> tuple[list[str], LineReader]:
    """The lines of these chunks, and what read them."""
    lines: list[str] = []
    reader = LineReader("out", lambda _, line: lines.append(line), keep_bytes)
    for chunk in chunks:
        reader.feed(chunk)
    reader.close()
    reader.close()
    return lines, reader


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The data, cut at these places."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@given(st.text().map(lambda text: text.encode("utf-8", "replace")), st.lists(st.integers(0, 500)))
def test_any_chunking_gives_the_same_lines(data: bytes, places: list[int]) -> None:
    whole, _ = read([data])
    assert read(cut(data, places))[0] == whole
    text = data.decode().removesuffix("\n")
    assert whole == ([line.removesuffix("\r") for line in text.split("\n")] if data else [])


@given(st.lists(st.integers(0, 4 * MAX_LINE_BYTES)))
def test_a_long_line_comes_in_the_same_pieces_whatever_the_chunks(places: list[int]) -> None:
    data = "é".encode() * MAX_LINE_BYTES + b"x\nshort\n"
    lines, _ = read(cut(data, places))
    assert [len(line.encode()) for line in lines] == [MAX_LINE_BYTES, MAX_LINE_BYTES, 1, 5]
    assert "\ufffd" not in "".join(lines)


def test_bytes_that_are_no_characters_are_cut_anyway() -> None:
    lines, _ = read([b"\x80" * (MAX_LINE_BYTES + 10)])
    assert [len(line) for line in lines] == [MAX_LINE_BYTES, 10]


def test_crlf_and_empty_lines() -> None:
    assert read([b"a\r\n\r\n\nb"])[0] == ["a", "", "", "b"]


def test_the_beginning_is_kept_as_it_is_and_the_rest_only_streamed() -> None:
    lines, reader = read([b"\xff" * 60 + b"\n", b"y" * 100], keep_bytes=100)
    assert reader.kept == b"\xff" * 60 + b"\n" + b"y" * 39
    assert reader.truncated
    assert lines[1] == "y" * 100


def test_without_a_listener_only_the_beginning_is_kept() -> None:
    reader = LineReader("out", None, 3)
    reader.feed(b"ab")
    assert not reader.truncated
    reader.feed(b"c")
    assert not reader.truncated
    reader.feed(b"d")
    assert (reader.kept, reader.truncated) == (b"abc", True)
    reader.close()
