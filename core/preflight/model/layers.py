"""Layers of variables laid over each other, and the layer that ``-e`` makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from preflight.errors import ConfigError


def parse_override(text: str) -> dict[str, object]:
    """Read one ``-e a.b=c`` as ``{"a": {"b": "c"}}``; the value is always text."""
    key, equals, value = text.partition("=")
    steps = key.strip().split(".")
    if not equals or not all(steps):
        raise ConfigError(f"-e {text!r} is not KEY=VALUE: write -e name=value, dots nest")
    inner: object = value
    for step in reversed(steps):
        inner = {step: inner}
    return cast("dict[str, object]", inner)


def merge_into(into: dict[str, object], layer: Mapping[str, object]) -> None:
    """Lay ``layer`` over ``into``; maps are merged key by key, and copied before they change."""
    for key, value in layer.items():
        if not isinstance(value, dict):
            into[key] = value
            continue
        below = into.get(key)
        fresh = dict(cast("dict[str, object]", below)) if isinstance(below, dict) else {}
        merge_into(fresh, cast("dict[str, object]", value))
        into[key] = fresh
