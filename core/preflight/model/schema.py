"""Data held against a struct type: every violation at once, in words that name the cure.

The type is tried first, because it answers in microseconds; jsonschema is asked for the whole list
only where the type refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from preflight.model.suggest import did_you_mean

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_LONE_TEMPLATE = re.compile(r"\{\{(?:(?!\}\}).)*\}\}", re.DOTALL)
_YAML_BOOLEANS = {"yes", "no", "on", "off", "y", "n", "true", "false"}
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a map",
    "null": "null",
}


class Violation(NamedTuple):
    """One thing that does not fit; with ``key`` it is the last key of ``path`` that is wrong."""

    path: tuple[str | int, ...]
    message: str
    key: bool = False


def is_lone_template(value: object) -> bool:
    """Tell whether ``value`` is text that is one placeholder and nothing else."""
    return isinstance(value, str) and _LONE_TEMPLATE.fullmatch(value) is not None


def violations(
    data: object, kind: type, *, templates: bool, also: Iterable[str] = ()
) -> list[Violation]:
    """List what keeps ``data`` from being a ``kind``; nothing when it is one.

    With ``templates`` a lone template stands for a value of any type, until it is rendered.
    ``also`` are further keys that a suggestion may name.
    """
    try:
        msgspec.convert(data, kind)
    except msgspec.ValidationError as exc:
        said = re.sub(r" - at `[^`]*`$", "", str(exc))
    else:
        return []
    # jsonschema takes 0.1 s to import, and a file that is right never needs it.
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(msgspec.json.schema(kind, schema_hook=_anything))
    ask = cast("Callable[[object], Iterable[ValidationError]]", validator.iter_errors)  # pyright: ignore[reportUnknownMemberType]  # the stubs leave its second argument out
    errors = list(ask(data))
    kept = [error for error in errors if not (templates and is_lone_template(error.instance))]
    if not errors:
        return [Violation((), said[0].lower() + said[1:])]  # a rule between fields, in its words
    found = [one for error in kept for one in _explain(error, tuple(also), templates)]
    return sorted(found, key=lambda one: [str(step) for step in one.path])


def _explain(error: ValidationError, also: tuple[str, ...], templates: bool) -> Iterator[Violation]:
    path = tuple(error.absolute_path)
    schema = cast("dict[str, object]", error.schema)
    instance = cast("object", error.instance)
    match error.validator:
        case "additionalProperties" if schema.get("additionalProperties") is False:
            known = cast("dict[str, object]", schema.get("properties", {}))
            for key in cast("dict[str, object]", instance):
                if key not in known:
                    hint = did_you_mean(key, [*known, *also])
                    hint = hint or f"; known are {', '.join(sorted(known))}"
                    yield Violation((*path, key), f"unknown key {key!r}{hint}", True)
        case "required":
            name = str(error.message).split("'")[1]
            yield Violation(path, f"the key {name!r} is missing")
        case "enum":
            allowed = [str(one) for one in cast("list[object]", error.validator_value)]
            hint = did_you_mean(str(instance), allowed)
            wanted = ", ".join(allowed)
            yield Violation(path, f"must be one of {wanted}, is {_show(instance)}{hint}")
        case "anyOf" if inner := _inside(error):
            for one in inner:
                yield from _explain(one, also, templates)
        case "type" | "anyOf":
            yield Violation(path, _wrong_type(schema, instance, templates))
        case _:
            words = schema.get("description")
            message = f"must be {words}, is {_show(instance)}" if words else str(error.message)
            yield Violation(path, message)


def _inside(error: ValidationError) -> list[ValidationError]:
    """Give what is wrong within the one branch that is of the value's own kind."""
    depth = len(error.absolute_path)
    return [one for one in error.context or () if len(one.absolute_path) > depth]


def _wrong_type(schema: dict[str, object], instance: object, templates: bool) -> str:
    branches = cast("list[dict[str, object]]", schema.get("anyOf", [schema]))
    names = [str(branch.get("type", "")) for branch in branches]
    named = [branch.get("description") or _TYPES.get(kind, "") for branch, kind in _kinds(branches)]
    wanted = str(schema.get("description") or " or ".join(str(one) for one in named if one))
    message = f"must be {wanted}, is {_show(instance)}"
    if not templates and is_lone_template(instance):
        return f"{message}; no template is possible here"
    if "boolean" in names and str(instance).lower() in _YAML_BOOLEANS:
        return f"{message}; only true and false are booleans, all else is text"
    if "array" in names and isinstance(instance, str):
        return f"{message}; write [{instance}]"
    if ("integer" in names or "number" in names) and isinstance(instance, str):
        return message + _plain_number(instance)
    if instance is None:
        return f"{message}; give it a value, or remove the key"
    return message


def _kinds(branches: list[dict[str, object]]) -> list[tuple[dict[str, object], str]]:
    kinds = [(branch, str(branch.get("type", ""))) for branch in branches]
    return [one for one in kinds if one[1] != "null"] or kinds


def _plain_number(text: str) -> str:
    """Say how a number that was taken for text has to be written."""
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        return ""
    plain = int(number) if abs(number) < 1e15 and number == int(number) else number
    return f"; write {plain}, without quotes"


def _show(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        short = value if len(value) <= 60 else value[:57] + "…"
        return f"the text {short!r}"
    return str(value)


def _anything(_: type) -> dict[str, object]:
    return {"$comment": "anything"}  # the schema of `object`; an empty one is refused
