"""Params held against the schema that the plugin gave, before anything is sent.

JSON Schema 2020-12. A plugin's schema is foreign: nothing outside it is ever loaded, and a pattern
that would take for ever is given up. Source: docs/protocol.md, params-schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, cast

from preflight.model.schema import is_lone_template

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_PATTERN_S = 0.5  # one pattern on one text; a sound one takes microseconds
_MOST_SHOWN = 50


class _Validator(Protocol):
    def iter_errors(self, instance: object) -> Iterable[ValidationError]: ...


class BadSchema(Exception):
    """The schema is none: it is not used, and params go unchecked."""


class Schema:
    """One schema, ready to check with; raises :class:`BadSchema`."""

    def __init__(self, schema: Mapping[str, object]) -> None:
        # jsonschema takes 0.1 s to import: a run without schemas does without it.
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType]  # half typed

        for ref in _references(schema):
            if not ref.startswith("#"):
                raise BadSchema(f"it refers to {ref!r}, outside itself")
        try:
            Draft202012Validator.check_schema(dict(schema))
        except SchemaError as exc:
            raise BadSchema(f"at {_pointer(exc.absolute_path)}: {exc.message}") from exc
        bounded = cast(
            "Callable[[object], _Validator]",
            extend(Draft202012Validator, {"pattern": _pattern}),
        )
        self.checks = schema.get("additionalProperties") is not True
        self._validator = bounded(dict(schema))

    def violations(self, args: Mapping[str, object], *, templates: bool = False) -> list[str]:
        """List what is wrong with args, each with its JSON Pointer and its rule.

        With ``templates`` a lone template stands for a value of any type.
        """
        if not self.checks:
            return []
        try:
            errors = list(self._validator.iter_errors(dict(args)))
        except Exception as exc:  # a reference that leads nowhere is found only when it is followed
            raise BadSchema(str(exc)) from exc
        if templates:
            errors = [one for one in errors if not is_lone_template(cast("object", one.instance))]
        words = [f"at {_pointer(one.absolute_path)}: {one.message}" for one in errors]
        hidden = len(words) - _MOST_SHOWN
        return words if hidden <= 0 else [*words[:_MOST_SHOWN], f"and {hidden} more"]


def _pattern(
    validator: object, pattern: str, instance: object, schema: object
) -> Iterator[ValidationError]:
    import regex  # as jsonschema: only where there are schemas
    from jsonschema.exceptions import ValidationError

    if not isinstance(instance, str):
        return
    try:
        if regex.search(pattern, instance, timeout=_PATTERN_S) is None:
            yield ValidationError(f"{instance!r:.80} does not match {pattern!r}")
    except TimeoutError:
        yield ValidationError(f"the pattern {pattern!r} takes more than {_PATTERN_S} s; mend it")
    except regex.error as exc:
        yield ValidationError(f"the pattern {pattern!r} is none: {exc}")


def _references(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, one in cast("Mapping[str, object]", value).items():
            if key in ("$ref", "$dynamicRef") and isinstance(one, str):
                yield one
            else:
                yield from _references(one)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _references(one)


def _pointer(path: Iterable[object]) -> str:
    """Write a JSON Pointer (RFC 6901); the whole document is ``/``."""
    steps = [str(step).replace("~", "~0").replace("/", "~1") for step in path]
    return "/" + "/".join(steps)
