"""Foreign text: nothing that could move a cursor gets through, colours stay as data."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.views.clean import PLAIN, Sgr, plain, runs


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==\x07after", "after"),
        ("\x1b[2J\x1b[Hafter", "after"),
        ("\x9b2J\x9d0;x\x9cafter", "after"),
        ("a\x00b\x07c", "abc"),
        ("\x1bcreset", "reset"),
        ("\x1b(0line", "line"),
        ("\x1b[31", "[31"),
        ("\x1b]0;never ended", "]0;never ended"),
        ("50%\r100%", "100%"),
        ("abcdef\rxy", "xycdef"),
        ("abc\b\bxy", "axy"),
        ("\bstart", "start"),
        ("a\tb", "a   b"),
        ("abcd\te", "abcd    e"),
        ("\u202edesrever\u202c", "desrever"),
        ("a\u2028b\u00a0c", "a b c"),
        ("\ud800x\ue000", "�x�"),
        ("❤\ufe0f", "❤"),
        ("[red]x[/] [@click=app.quit]", "[red]x[/] [@click=app.quit]"),
        ("two\nlines", "two lines"),
        ("", ""),
    ],
)
def test_control_sequences_are_taken_out_and_the_text_stays(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("codes", "look"),
    [
        ("1;31", Sgr(bold=True, fore=1)),
        ("2;3;4;7;9", Sgr(dim=True, italic=True, underline=True, reverse=True, strike=True)),
        ("97;104", Sgr(fore=15, back=12)),
        ("44", Sgr(back=4)),
        ("38;5;208", Sgr(fore=208)),
        ("38:5:208", Sgr(fore=208)),
        ("48;2;1;2;300", Sgr(back=(1, 2, 255))),
        ("38;5", Sgr()),
        ("38;2;1", Sgr(bold=True)),
        ("38", Sgr()),
        ("58", Sgr()),
        ("", Sgr()),
        ("1;22", Sgr()),
        ("31;39;41;49", Sgr()),
        ("4;24;3;23;7;27;9;29", Sgr()),
    ],
)
def test_colours_and_weights_are_kept_as_data(codes: str, look: Sgr) -> None:
    assert runs(f"\x1b[{codes}mx") == [("x", look)]


def test_a_reset_ends_the_look_and_neighbours_of_one_look_are_one_run() -> None:
    assert runs("\x1b[31mred\x1b[0m and \x1b[0mplain") == [
        ("red", Sgr(fore=1)),
        (" and plain", PLAIN),
    ]
    assert runs("") == []


_HOSTILE = st.text(
    st.one_of(st.characters(), st.sampled_from("\x1b\x9b\x9d[]0;mJ\x07\x9c\\\r\b\t?"))
)


@given(_HOSTILE)
def test_no_control_character_ever_gets_through(text: str) -> None:
    for shown in (plain(text), "".join(part for part, _ in runs(text))):
        bad = [char for char in shown if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")]
        assert bad == []
