"""What the template language has: its filters, methods, operators and bounds.

Source: Jinja2's sandbox refuses private attributes only; here nothing is reachable unless listed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from jinja2 import pass_context
from jinja2.exceptions import TemplateError
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from preflight.model.values import MAX_TEXT, Missing, as_map, as_text, compare, plain, truth

_MAX_MADE = 100_000  # characters that one `*`, and numbers that one range, may make
_MAX_DIGITS = 15  # that a number may be rounded to
_MAX_BITS = 4096  # of an integer
BUDGET = "_loops_left"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FILTERS = _words(
    """
    abs capitalize count d default dictsort first float groupby int items join last length
    list lower map max min reject rejectattr reverse round select selectattr sort string sum
    title trim truncate unique upper urlencode wordcount
    """
)
_TEXT_METHODS = _words(
    """
    capitalize count endswith find isalnum isalpha isdigit islower isupper lower lstrip
    removeprefix removesuffix rsplit rstrip split splitlines startswith strip title upper
    """
)
_LOOP_ATTRIBUTES = _words(
    """
    first index index0 last length nextitem previtem revindex revindex0
    """
)
_METHODS: tuple[tuple[type, frozenset[str]], ...] = (
    (Mapping, frozenset(("get", "items", "keys", "values"))),
    (list, frozenset(("count", "index"))),
    (str, _TEXT_METHODS),
    (LoopContext, _LOOP_ATTRIBUTES),
)


class Dialect(ImmutableSandboxedEnvironment):
    """The language of values, or with ``blocks`` the one of whole files."""

    intercepted_binops = frozenset(("*", "**", "%", "//", "/"))

    def __init__(self, *, blocks: bool) -> None:
        # A shell's ${#name} and awk's {% are no template: in values only the braces count.
        off = {} if blocks else _OFF
        super().__init__(
            undefined=Missing,
            finalize=as_text,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
            cache_size=0,
            **off,
        )
        self.globals.clear()
        self.globals.update(cast("dict[str, type[range]]", {"range": _range}))
        filters = cast("dict[str, object]", self.filters)
        known = {name: filters[name] for name in _FILTERS}
        filters.clear()
        filters.update(known, tojson=_tojson, replace=_replace, bool=truth, string=as_text)
        filters.update(join=_join, sum=_sum, round=_round)
        filters.update(_truth=truth, _counted=_counted)
        cast("dict[str, object]", self.tests)["_compare"] = compare

    def getattr(self, obj: object, attribute: str) -> object:
        """Look into a map, or give one of the listed methods: never another attribute."""
        if isinstance(obj, Missing):
            return Missing(path=f"{obj.path}.{attribute}", near=obj.near)
        fields = as_map(obj)
        if fields is not None and attribute in fields:
            return fields[attribute]
        for kind, names in _METHODS:
            if isinstance(obj, kind) and attribute in names:
                return cast("object", getattr(obj, attribute))
        return _missing(obj, attribute)

    def getitem(self, obj: object, argument: object) -> object:
        """Look into a map or a list."""
        if isinstance(obj, Missing):
            return Missing(path=f"{obj.path}.{argument}", near=obj.near)
        fields = as_map(obj)
        if fields is not None:
            if isinstance(argument, str) and argument in fields:
                return fields[argument]
            return _missing(fields, argument)
        if isinstance(obj, list | tuple | str) and isinstance(argument, int | slice):
            items = cast("list[object]", obj)
            try:
                return items[cast("int", argument)]
            except IndexError:
                pass
        return _missing(cast("object", obj), cast("object", argument))

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        """Do arithmetic, within bounds."""
        if operator == "*":
            _bound_product(left, right)
        elif operator == "**":
            _bound_power(left, right)
        elif operator == "%" and isinstance(left, str):
            raise TemplateError("text can't be formatted with %: put values together with ~")
        return cast("object", super().call_binop(context, operator, left, right))


_OFF = {
    "block_start_string": "\ue000%",
    "block_end_string": "%\ue000",
    "comment_start_string": "\ue000#",
    "comment_end_string": "#\ue000",
}


def _missing(obj: object, key: object) -> Missing:
    fields = as_map(obj)
    if fields is not None:
        path = cast("str", getattr(fields, "path", "the map"))
        return Missing(path=f"{path}.{key}", near=list(fields))
    if isinstance(obj, list | tuple):
        return Missing(path=f"item {key} of a list of {len(cast('list[object]', obj))}")
    kind = {"str": "text", "int": "a number", "float": "a number"}
    return Missing(path=f"{key!r} of {kind.get(type(obj).__name__, 'a value')}")


def _range(*bounds: int) -> range:
    made = range(*bounds)
    if len(made) > _MAX_MADE:
        raise TemplateError(f"range makes more than {_MAX_MADE} numbers")
    return made


@pass_context
def _counted(context: Context, items: Iterable[object]) -> Iterator[object]:
    if isinstance(items, Undefined):
        bool(items)  # raises
    left = cast("list[int]", context.get(BUDGET))
    for item in items:
        left[0] -= 1
        if left[0] < 0:
            raise TemplateError("the loops run too often")
        yield item


def _tojson(value: object, indent: int | None = None) -> str:
    return json.dumps(plain(value), indent=indent, ensure_ascii=False)


def _replace(value: object, old: str, new: str) -> str:
    text = str(as_text(value))
    if text.count(old) * len(new) > MAX_TEXT:
        raise TemplateError(f"replace gives more than {MAX_TEXT} characters")
    return text.replace(old, new)


def _join(items: Iterable[object], separator: str = "") -> str:
    texts: list[str] = []
    left = MAX_TEXT
    for item in items:
        texts.append(str(as_text(item)))
        left -= len(texts[-1]) + len(separator)
        if left < 0:
            raise TemplateError(f"join gives more than {MAX_TEXT} characters")
    return separator.join(texts)


def _sum(items: Iterable[object], start: object = 0) -> float:
    total = 0.0 if isinstance(start, float) else 0
    for number in (start, *items):
        if not isinstance(number, int | float):
            raise TemplateError("sum adds numbers only")
        total += number
    return total


def _round(value: float, digits: int = 0, method: str = "common") -> float:
    if not 0 <= digits <= _MAX_DIGITS or method not in ("common", "ceil", "floor"):
        raise TemplateError(f"round takes 0 to {_MAX_DIGITS} digits, and common, ceil or floor")
    if method == "common":
        return round(value, digits)
    cut = math.ceil if method == "ceil" else math.floor
    return cut(value * 10**digits) / 10**digits


def _bound_product(left: object, right: object) -> None:
    for one, times in ((left, right), (right, left)):
        if isinstance(one, list | tuple):
            raise TemplateError("a list can't be multiplied")
        if isinstance(one, str) and isinstance(times, int) and len(one) * times > _MAX_MADE:
            raise TemplateError(f"* makes more than {_MAX_MADE} characters")
    if isinstance(left, int) and isinstance(right, int):
        _bound_bits(left.bit_length() + right.bit_length())


def _bound_power(left: object, right: object) -> None:
    if isinstance(left, int) and isinstance(right, int):
        _bound_bits(max(1, left.bit_length()) * abs(right))


def _bound_bits(bits: int) -> None:
    if bits > _MAX_BITS:
        raise TemplateError("the number is too large")
