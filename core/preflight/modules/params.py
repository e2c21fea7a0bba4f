"""Rendered params as a module takes them: converted, with the words of a person where they fail."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from preflight.errors import ModuleError, Reason
from preflight.model.schema import violations
from preflight.model.source import json_pointer

Scalar = str | int | float | bool
"""What is text in the end, however it was written: ``8080``, ``"8080"`` or ``true``."""
Path_ = Annotated[
    str, Meta(min_length=1, pattern=r"^[^\x00]*$", description="a path that is not empty")
]
Mode = Annotated[str, Meta(pattern=r"^(0o?)?[0-7]{3,4}$", description="an octal mode such as 0644")]

T = TypeVar("T", bound=msgspec.Struct)


def bind(args: Mapping[str, object], kind: type[T]) -> T:
    """Make a ``kind`` of rendered params; text that names a number or a boolean is taken for one.

    Raises :class:`ModuleError` with ``Reason.INVALID_PARAMS``.
    """
    try:
        return msgspec.convert(dict(args), kind, strict=False)
    except msgspec.ValidationError as exc:
        wrong = violations(dict(args), kind, templates=False)
        said = [f"{json_pointer(one.path)[1:]} {one.message}".strip() for one in wrong]
        raise invalid("; ".join(said) or str(exc)) from exc


def invalid(message: str) -> ModuleError:
    """Make the error for params that make no sense."""
    return ModuleError(message, Reason.INVALID_PARAMS)


def as_text(value: Scalar) -> str:
    """Give a scalar as YAML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def check_path(path: str, name: str) -> str:
    """Give ``path`` back; ``~`` is refused, because nothing would expand it."""
    if path.startswith("~"):
        raise invalid(f"{name}: {path!r} begins with ~, which no shell expands here: write it out")
    return path


def parse_mode(mode: str | int | None) -> int | None:
    """Give a mode's bits; the digits are octal as they are written, ``644`` as well as ``0644``."""
    if mode is None:
        return None
    digits = str(mode).lower().removeprefix("0o")
    if not re.fullmatch(r"[0-7]{3,5}", digits) or int(digits, 8) > 0o7777:
        raise invalid(f"mode {mode} is not octal: write it as 0644")
    return int(digits, 8)
