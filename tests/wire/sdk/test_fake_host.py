"""The raw fake host takes no other plugin's bytes: descriptors' numbers are given out again."""

from __future__ import annotations

import os

from tests.support.fake_host import Stream


def test_a_reader_that_is_late_never_reads_what_got_its_number() -> None:
    first, first_end = os.pipe()
    late = Stream(first, start=False)
    os.close(first)
    os.close(first_end)
    second, second_end = os.pipe()
    if second != first:  # take the very number that the late reader once had
        os.dup2(second, first)
        os.close(second)
    os.write(second_end, b"for somebody else\n")
    late.start()
    assert late.wait_end() == b""
    assert os.read(first, 100) == b"for somebody else\n"
    os.close(first)
    os.close(second_end)
