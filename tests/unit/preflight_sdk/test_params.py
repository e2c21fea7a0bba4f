"""A dataclass's schema says what `load` takes: the two agree, whatever the args."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from preflight_sdk import InvalidParams
from preflight_sdk.params import load, schema_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Node:
    """A part."""

    name: str
    parts: list[Node] = field(default_factory=list["Node"])


@dataclass
class Params:
    count: int = field(metadata={"minimum": 1, "maximum": 9, "unit": "pieces"})
    text: str = field(default="a", metadata={"minLength": 1, "pattern": "^[a-z]+$"})
    mode: Literal["a", 1] = "a"
    colour: Colour = Colour.RED
    ratio: float | None = None
    tags: list[str] = field(default_factory=list[str], metadata={"maxItems": 2})
    pair: tuple[int, ...] = ()
    numbers: dict[str, float] = field(default_factory=dict[str, float])
    node: Node | None = None
    either: list[int] | str = ""
    anything: object = None
    made: int = field(default=0, init=False)


SCHEMA = schema_of(Params)
VALIDATOR = Draft202012Validator(SCHEMA)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 11)
    | st.sampled_from([1.0, 2.5, -0.0, "", "a", "A", "red", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "parts", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = [*cast("dict[str, object]", SCHEMA["properties"]), "unknown", "made"]


def test_the_schema_is_one_and_says_what_the_dataclass_says() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    properties = cast("dict[str, object]", SCHEMA["properties"])
    assert properties["count"] == {"type": "integer", "minimum": 1, "maximum": 9}
    assert properties["ratio"] == {"type": ["number", "null"], "default": None}
    assert properties["colour"] == {"enum": ["red", "blue"], "default": "red"}
    assert properties["anything"] == {"default": None}
    assert "made" not in properties
    assert SCHEMA["required"] == ["count"]
    assert SCHEMA["additionalProperties"] is False
    node = cast("dict[str, dict[str, object]]", SCHEMA["$defs"])["Node"]
    assert node["description"] == "A part."
    assert node["additionalProperties"] is False


@given(st.dictionaries(st.sampled_from(NAMES), VALUES), st.none() | st.integers(1, 9))
def test_load_takes_what_the_schema_takes_and_nothing_else(
    args: dict[str, object], count: int | None
) -> None:
    if count is not None:
        args["count"] = count
    json = cast("dict[str, str]", args)  # of any values, which its types can't say
    if VALIDATOR.is_valid(json):  # pyright: ignore[reportUnknownMemberType]
        assert type(load(Params, args).count) is int
    else:
        with pytest.raises(InvalidParams):
            load(Params, args)


def test_what_is_loaded_is_made_of_the_dataclasses() -> None:
    args = {
        "count": 3.0,
        "colour": "blue",
        "pair": [1],
        "node": {"name": "n", "parts": [{"name": "m"}]},
    }
    loaded = load(Params, args)
    assert loaded == Params(count=3, colour=Colour.BLUE, pair=(1,), node=Node("n", [Node("m")]))


def test_everything_that_is_wrong_is_said_at_once_with_its_place() -> None:
    with pytest.raises(InvalidParams) as failed:
        load(Params, {"text": "", "node": {"parts": [{"nam": 1}]}, "tags": ["a", 2], "zz": 1})
    for words in (
        "unknown params: zz; known are count, text,",
        "count is required",
        "text must have at least 1 characters, not ''",
        "unknown params: node.parts[0].nam",
        "node.parts[0].name is required",
        "tags[1] must be text, not 2",
    ):
        assert words in str(failed.value)


@dataclass
class Odd:
    good: int
    bad: set[int]


def test_a_type_without_a_form_in_json_names_its_field() -> None:
    with pytest.raises(TypeError, match=r"bad: set\[int\] has no form"):
        schema_of(Odd)
