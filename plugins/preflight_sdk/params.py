"""Params as a dataclass: the JSON Schema that the host checks with, and an instance of it.

A plugin that uses none of this does not import it: ``dataclasses`` costs 10 ms of its start.
Types: str, int, float, bool, None, object, Literal, Enum, list, tuple[X, ...], dict[str, X],
unions, and dataclasses in any of them. A field's ``metadata`` may have the keywords of
``KEYWORDS``.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing

from preflight_sdk.errors import InvalidParams
from preflight_sdk.rules import KEYWORDS, broken_rules

if typing.TYPE_CHECKING:
    from collections.abc import Mapping

    T = typing.TypeVar("T")

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_NAMES: dict[object, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def schema_of(kind: type) -> dict[str, object]:
    """The JSON Schema 2020-12 of a dataclass; what it does not name is not allowed.

    Raises: TypeError for a field whose type has no form in JSON.
    """
    nested: dict[str, object] = {}
    schema = {"$schema": _DRAFT, **_object_schema(kind, nested)}
    return {**schema, "$defs": nested} if nested else schema


def load(kind: type[T], args: Mapping[str, object]) -> T:
    """An instance of a dataclass from a task's args, all of it checked.

    Raises: InvalidParams, with everything that is wrong.
    """
    wrong: list[str] = []
    loaded = _load_object(kind, args, "", wrong)
    if wrong:
        raise InvalidParams("; ".join(wrong))
    return typing.cast("T", loaded)


def _fields(kind: type) -> list[tuple[dataclasses.Field[object], object]]:
    """The fields that an instance is made with, each with its type."""
    try:
        hints = typing.get_type_hints(kind)
    except NameError as exc:
        raise TypeError(f"{kind.__name__}: {exc}; define its types at the top level") from exc
    return [(field, hints[field.name]) for field in dataclasses.fields(kind) if field.init]


def _is_required(field: dataclasses.Field[object]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _object_schema(kind: type, nested: dict[str, object]) -> dict[str, object]:
    fields = _fields(kind)
    schema: dict[str, object] = {"type": "object"}
    text = (kind.__doc__ or "").strip()
    if text and not text.startswith(f"{kind.__name__}("):  # what dataclass itself would say
        schema["description"] = " ".join(text.split())
    schema["properties"] = {
        field.name: _field_schema(field, hint, nested) for field, hint in fields
    }
    schema["required"] = [field.name for field, _ in fields if _is_required(field)]
    schema["additionalProperties"] = False
    return schema


def _field_schema(
    field: dataclasses.Field[object], hint: object, nested: dict[str, object]
) -> dict[str, object]:
    try:
        schema = _schema(hint, nested)
    except TypeError as exc:
        raise TypeError(f"{field.name}: {exc}") from exc
    schema |= {name: value for name, value in field.metadata.items() if name in KEYWORDS}
    default: object = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    if default is not dataclasses.MISSING:
        schema["default"] = _plain(default)
    return schema


def _schema(hint: object, nested: dict[str, object]) -> dict[str, object]:
    origin, of = typing.get_origin(hint), typing.get_args(hint)
    if hint is object or hint is typing.Any:
        return {}
    if hint in _NAMES:
        return {"type": _NAMES[hint]}
    if origin is typing.Literal:
        return {"enum": list(of)}
    if origin in (typing.Union, types.UnionType):
        return _union(of, nested)
    if hint is list or origin is list or (origin is tuple and of[1:] == (...,)):
        return {"type": "array", **({"items": _schema(of[0], nested)} if of else {})}
    if hint is dict or (origin is dict and of[0] is str):
        values = {"additionalProperties": _schema(of[1], nested)} if of else {}
        return {"type": "object", **values}
    if _is_enum(hint):
        return {"enum": [member.value for member in hint]}
    if _is_dataclass(hint):
        if hint.__name__ not in nested:
            nested[hint.__name__] = {}  # it may hold itself
            nested[hint.__name__] = _object_schema(hint, nested)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    raise TypeError(f"{hint} has no form in JSON Schema")


def _union(of: tuple[object, ...], nested: dict[str, object]) -> dict[str, object]:
    if all(one in _NAMES for one in of):
        return {"type": [_NAMES[one] for one in of]}
    return {"anyOf": [_schema(one, nested) for one in of]}


def _plain(value: object) -> object:
    """A default as JSON has it."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        members = typing.cast("list[object]", value)
        return [_plain(member) for member in members]
    if isinstance(value, dict):
        named = typing.cast("dict[str, object]", value)
        return {name: _plain(member) for name, member in named.items()}
    return value


def _load_object(kind: type, args: Mapping[str, object], path: str, wrong: list[str]) -> object:
    fields = _fields(kind)
    names = [field.name for field, _ in fields]
    if unknown := sorted(set(args) - set(names)):
        known = ", ".join(path + name for name in names) or "none"
        named = ", ".join(path + name for name in unknown)
        wrong.append(f"unknown params: {named}; known are {known}")
    values: dict[str, object] = {}
    before = len(wrong)
    for field, hint in fields:
        here = path + field.name
        if field.name not in args:
            if _is_required(field):
                wrong.append(f"{here} is required")
            continue
        seen = len(wrong)
        value = values[field.name] = _load(hint, args[field.name], here, wrong)
        if len(wrong) == seen:
            wrong += broken_rules(here, value, field.metadata)
    return kind(**values) if len(wrong) == before else None


def _load(hint: object, value: object, path: str, wrong: list[str]) -> object:
    origin, of = typing.get_origin(hint), typing.get_args(hint)
    if hint is object or hint is typing.Any:
        return value
    if origin in (typing.Union, types.UnionType):
        return _load_union(of, value, path, wrong)
    if origin is typing.Literal:
        return _one_of({one: one for one in of}, value, path, wrong)
    if _is_enum(hint):
        return _one_of({member.value: member for member in hint}, value, path, wrong)
    if list in (hint, origin) or origin is tuple:
        return _load_list(of, value, path, wrong, list if origin is not tuple else tuple)
    if dict in (hint, origin) or _is_dataclass(hint):
        return _load_named(hint, of, value, path, wrong)
    return _load_plain(hint, value, path, wrong)


def _load_plain(hint: object, value: object, path: str, wrong: list[str]) -> object:
    """Text, a number, true, false or null; some hosts send 3 as 3.0."""
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if hint is float and type(value) is int:
        return value
    if type(value) is not hint:
        words = next((text for kind, text in _WORDS.items() if kind is hint), "null")
        wrong.append(f"{path} must be {words}, not {_short(value)}")
    return value


def _load_union(of: tuple[object, ...], value: object, path: str, wrong: list[str]) -> object:
    every: list[list[str]] = []
    for one in of:
        failed: list[str] = []
        loaded = _load(one, value, path, failed)
        if not failed:
            return loaded
        every.append(failed)
    wrong += every[0] if value is not None else [f"{path} must not be null"]
    return value


def _one_of(known: dict[object, object], value: object, path: str, wrong: list[str]) -> object:
    for one, loaded in known.items():
        if one == value and isinstance(one, bool) is isinstance(value, bool):
            return loaded
    words = ", ".join(str(one) for one in known)
    wrong.append(f"{path} must be one of {words}, not {_short(value)}")
    return value


def _load_list(
    of: tuple[object, ...], value: object, path: str, wrong: list[str], kind: type
) -> object:
    if not isinstance(value, list):
        wrong.append(f"{path} must be a list, not {_short(value)}")
        return value
    members = typing.cast("list[object]", value)
    if of:
        members = [_load(of[0], one, f"{path}[{n}]", wrong) for n, one in enumerate(members)]
    return kind(members)


def _load_named(
    hint: object, of: tuple[object, ...], value: object, path: str, wrong: list[str]
) -> object:
    if not isinstance(value, dict):
        wrong.append(f"{path} must be a mapping, not {_short(value)}")
        return value
    members = typing.cast("dict[str, object]", value)
    if _is_dataclass(hint):
        return _load_object(hint, members, f"{path}.", wrong)
    if not of:
        return members
    return {name: _load(of[1], one, f"{path}.{name}", wrong) for name, one in members.items()}


def _is_enum(hint: object) -> typing.TypeGuard[type[enum.Enum]]:
    return isinstance(hint, type) and issubclass(hint, enum.Enum)


def _is_dataclass(hint: object) -> typing.TypeGuard[type]:
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def _short(value: object) -> str:
    return repr(value)[:80]
