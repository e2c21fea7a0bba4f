from __future__ import annotations

import pytest

from preflight_tui.options import parser, settings


def test_flags_are_settings_and_what_is_not_given_is_left_open() -> None:
    given = parser().parse_args(
        ["apply", "p.yml", "--timeout", "1m30s", "--concurrency", "3", "--fail-fast"]
    )
    assert settings(given) == {"timeout": 90, "concurrency": 3, "fail_fast": True}
    assert settings(parser().parse_args(["apply", "p.yml"])) == {}


def test_targets_and_vars_repeat_and_tags_are_comma_lists() -> None:
    given = parser().parse_args(
        ["check", "p.yml", "-t", "a,b", "-t", "c", "-e", "x=1", "-e", "y=2", "--tags", "s, t,"]
    )
    assert (given.target, given.var, given.tags) == (["a,b", "c"], ["x=1", "y=2"], ["s", "t"])


@pytest.mark.parametrize(
    "words",
    [["--no-ui", "apply", "p.yml"], ["apply", "p.yml", "--no-ui"], ["apply", "--no-ui", "p.yml"]],
)
def test_no_ui_may_stand_anywhere(words: list[str]) -> None:
    assert parser().parse_args(words).no_ui


def test_without_no_ui_a_command_wants_the_console() -> None:
    assert not parser().parse_args(["apply", "p.yml"]).no_ui


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["apply"], "playbook"),
        (["apply", "p.yml", "--timeout", "5"], "such as 90s"),
        (["apply", "p.yml", "--concurrency", "0"], "whole number from 1 on"),
        (["apply", "p.yml", "--concurrency", "-1"], "--concurrency"),
        (["apply", "p.yml", "--output", "xml"], "text"),
        (["apply", "p.yml", "--color", "mauve"], "always"),
        (["apply", "p.yml", "--nonsense"], "--nonsense"),
        (["frobnicate"], "frobnicate"),
        (["plugin"], "action"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_exit_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parser().parse_args(words)
    out, err = capsys.readouterr()
    assert (caught.value.code, out, err.count("\n")) == (2, "", 1)
    assert said in err
