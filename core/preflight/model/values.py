"""How values of templates are judged, compared and written as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NoReturn, cast

from jinja2.exceptions import TemplateError, UndefinedError
from jinja2.runtime import StrictUndefined, Undefined

from preflight.model.suggest import did_you_mean

MAX_TEXT = 16 * 1024 * 1024
"""Characters that one text may render to."""

_ITEM_COST = 64  # characters that an item counts for: so some 260,000 items at most

_FALSE_WORDS = {"", "false", "no", "off", "0"}


class Missing(StrictUndefined):
    """A name that is not there; it remembers its path, so that the error can say it."""

    __slots__ = ("near", "path")

    def __init__(
        self,
        hint: str | None = None,
        obj: object = None,
        name: str | None = None,
        exc: type[Exception] = UndefinedError,
        *,
        path: str = "",
        near: Iterable[str] = (),
    ) -> None:
        self.path = path or str(name)
        self.near = near
        super().__init__(hint, obj, name, cast("type[UndefinedError]", exc))

    @property
    def _undefined_message(self) -> str:
        return f"{self.path} is not defined{did_you_mean(self.path.rpartition('.')[2], self.near)}"

    def refuse(self) -> NoReturn:
        """Raise the error that says what is missing."""
        raise UndefinedError(self._undefined_message)


def truth(value: object) -> bool:
    """Judge a value; text is false when it is empty, ``false``, ``no``, ``off`` or ``0``."""
    if isinstance(value, Undefined):
        return bool(value)  # raises
    if isinstance(value, str):
        return value.strip().lower() not in _FALSE_WORDS
    return bool(value)


def compare(left: object, operator: str, right: object) -> bool:
    """Compare; where one side is text and the other a number or a boolean, by its text form."""
    if isinstance(left, str) is not isinstance(right, str):
        left, right = _alike(left, right), _alike(right, left)
    match operator:
        case "eq":
            return left == right
        case "ne":
            return left != right
        case "lt":
            return left < right  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]  # a TypeError is the answer
        case "lteq":
            return left <= right  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]  # idem
        case "gt":
            return left > right  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]  # idem
        case _:
            return left >= right  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]  # idem


def _alike(value: object, other: object) -> object:
    """Turn a text into the number or boolean that it is the text of, where ``other`` is one."""
    if not isinstance(value, str):
        return value
    if isinstance(other, bool):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    if isinstance(other, int | float):
        try:
            return float(value) if not value.strip().lstrip("-").isdigit() else int(value)
        except ValueError:
            return value
    return value


def as_text(value: object) -> str | Undefined:
    """Give a value as text inside longer text: JSON for what is not text, null is empty."""
    if isinstance(value, str | Undefined):
        return value
    if value is None:
        return ""
    return json.dumps(plain(value), ensure_ascii=False)


def plain(value: object) -> object:
    """Give a value made of plain maps and lists; a missing one, or one that is huge, is an error.

    Lists may share their items: what is small in memory can be endless when it is written out.
    """
    return _Plain().of(value)


class _Plain:
    def __init__(self) -> None:
        self._left = MAX_TEXT

    def of(self, value: object) -> object:
        self._left -= _ITEM_COST + (len(value) if isinstance(value, str) else 0)
        if self._left < 0:
            raise TemplateError(f"gives more than {MAX_TEXT} characters, or as many items")
        if isinstance(value, Missing):
            value.refuse()
        if value is None or isinstance(value, str | bool | int | float):
            return value
        fields = as_map(value)
        if fields is not None:
            return {str(key): self.of(item) for key, item in fields.items()}
        if hasattr(value, "__iter__"):
            return [self.of(item) for item in cast("Iterable[object]", value)]
        raise TemplateError(f"gives a {type(value).__name__}, which is no value: is () missing?")


def as_map(value: object) -> Mapping[str, object] | None:
    """Give ``value`` if it is a map."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None
