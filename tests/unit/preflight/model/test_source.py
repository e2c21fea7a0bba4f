from __future__ import annotations

import contextlib
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.errors import ConfigError
from preflight.model.source import json_pointer, parse_source, read_source


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("NO", "NO"),
        ("yes", "yes"),
        ("off", "off"),
        ("0644", "0644"),
        ("755", 755),
        ("12:30", "12:30"),
        ("1e3", "1e3"),
        ("1.10", "1.10"),
        ("1.5", 1.5),
        ("-7", -7),
        ("+7", "+7"),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        (".5", ".5"),
        ("2026-01-02", "2026-01-02"),
        ("=", "="),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ('"5"', "5"),
        ("!!str 5", "5"),
        ("99999999999999999999", "99999999999999999999"),
        ("|\n  a\n  b", "a\nb"),
    ],
)
def test_a_scalar_has_its_literal_value_F53(written: str, value: object) -> None:
    data = cast("dict[str, object]", parse_source("p.yml", f"a: {written}").data)
    assert data == {"a": value}
    assert type(data["a"]) is type(value)


@pytest.mark.parametrize(
    ("text", "line", "column", "cure"),
    [
        ("a: 1\nb: 2\na: 3", 3, 1, "already given in line 1"),
        ("a:\n\t- b", 2, 1, "use spaces"),
        ("x: 1\na: *.txt", 2, 5, "begins with * must be in quotes"),
        ("a: *anchor", 1, 4, "begins with * must be in quotes"),
        ("a: @x", 1, 4, "in quotes"),
        ("a: %x", 1, 4, "in quotes"),
        ("a: `x`", 1, 4, "in quotes"),
        ("a: {{ vars.x }}", 1, 5, "a template must be in quotes"),
        ("a: {{ vars.x }} y", 1, 17, "a template must be in quotes"),
        ("a: b: c", 1, 5, "in quotes"),
        ("80: x", 1, 1, 'write "80" in quotes'),
        ("true: x", 1, 1, 'write "true" in quotes'),
        ("[a]: x", 1, 1, "a key must be text"),
        ("<<: {a: 1}", 1, 1, "merge keys"),
        ("a: !thing x", 1, 4, "tag"),
        ("a: 1\n---\nb: 2", 2, 1, "one document"),
        ("a: &x [*x]", 1, 4, "alias"),
        ('a: "\\d"', 1, 5, "single quotes"),
    ],
)
def test_a_trap_is_an_error_with_its_place_and_cure_F53(
    text: str, line: int, column: int, cure: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_source("p.yml", text)
    problem = caught.value.problems[0]
    assert (problem.file, problem.line, problem.column) == ("p.yml", line, column)
    assert cure in problem.message


def test_all_problems_of_a_document_come_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_source("p.yml", "a: 1\na: 2\n5: x\nb: !t x\n")
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4]


def test_an_alias_stands_for_its_value() -> None:
    data = parse_source("p.yml", "a: &x [1, 2]\nb: *x").data
    assert data == {"a": [1, 2], "b": [1, 2]}


def test_aliases_that_multiply_are_stopped() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 9):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    with pytest.raises(ConfigError, match="too large"):
        parse_source("p.yml", "\n".join(lines))


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    with pytest.raises(ConfigError, match=r"^p\.yml:.*nest"):
        parse_source("p.yml", "[" * 5000 + "]" * 5000)


def test_places_name_keys_and_values() -> None:
    source = parse_source("p.yml", "tasks:\n  - shell:\n      cmd: x\n")
    assert source.place(("tasks", 0, "shell", "cmd")) == (3, 12)
    assert source.place(("tasks", 0, "shell", "cmd"), key=True) == (3, 7)
    assert source.place(("tasks", 0, "missing")) == (2, 5)


def test_a_pointer_escapes_what_it_must() -> None:
    assert json_pointer(("a/b", 0, "c~d")) == "/a~1b/0/c~0d"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yml: can't be read: No such file"):
        read_source(tmp_path / "none.yml")


def test_a_file_that_is_not_utf8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigError, match=r"p\.yml:2: is not UTF-8"):
        read_source(path)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_document_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert parse_source("p.yml", text).file == "p.yml"


@settings(max_examples=50, deadline=None)
@given(st.integers(-(10**17), 10**17) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_printed_as_it_was_written(number: float) -> None:
    data = cast("list[object]", parse_source("p.yml", f"[{number}]").data)
    assert str(data[0]) == str(number)
