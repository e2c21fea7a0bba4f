"""The keywords of JSON Schema that a field's ``metadata`` may have, held against a value."""

from __future__ import annotations

import operator
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Rule = tuple[type | tuple[type, ...], Callable[..., object], str]
    """What it applies to, whether a value keeps it, and what to say if not."""


def _is_longer(value: str, bound: int) -> bool:
    return len(value) >= bound


def _is_shorter(value: str, bound: int) -> bool:
    return len(value) <= bound


def _matches(value: str, pattern: str) -> bool:
    return re.search(pattern, value) is not None


_NUMBER = (int, float)
_RULES: dict[str, Rule] = {
    "minimum": (_NUMBER, operator.ge, "must be at least {}"),
    "maximum": (_NUMBER, operator.le, "must be at most {}"),
    "exclusiveMinimum": (_NUMBER, operator.gt, "must be more than {}"),
    "exclusiveMaximum": (_NUMBER, operator.lt, "must be less than {}"),
    "minLength": (str, _is_longer, "must have at least {} characters"),
    "maxLength": (str, _is_shorter, "must have at most {} characters"),
    "pattern": (str, _matches, "must match {}"),
    "minItems": ((list, tuple), _is_longer, "must have at least {} items"),
    "maxItems": ((list, tuple), _is_shorter, "must have at most {} items"),
}
KEYWORDS = frozenset({*_RULES, "description", "title", "examples", "format", "deprecated"})


def broken_rules(path: str, value: object, metadata: Mapping[str, object]) -> list[str]:
    """What is wrong with a value, in the operator's words."""
    broken: list[str] = []
    for name, bound in metadata.items():
        rule = _RULES.get(name)
        if rule is not None and isinstance(value, rule[0]) and not rule[1](value, bound):
            broken.append(f"{path} {rule[2].format(bound)}, not {repr(value)[:80]}")
    return broken
