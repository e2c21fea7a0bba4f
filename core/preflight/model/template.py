"""Templates in what the author wrote: ``{{ vars.x }}`` and its kin, each text rendered once.

What came from a target is data: it is put in, and never looked at for placeholders.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import cast

import msgspec

from preflight.errors import PreflightError, Reason

_REMEMBERED = 4096  # texts whose looks are kept: a large playbook says the same thing often


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What a template can name.

    ``vars`` is the author's and may hold templates; ``facts``, ``env`` and ``target`` are data, and
    so is ``item``: the names that a ``for_each`` adds, such as ``item`` and ``index``.
    """

    vars: dict[str, object] = {}
    facts: dict[str, object] = {}
    env: dict[str, object] = {}
    target: dict[str, object] = {}
    item: dict[str, object] = {}


def has_template(value: object) -> bool:
    """Tell whether there is a placeholder anywhere in ``value``."""
    if isinstance(value, str):
        return "{{" in value
    if isinstance(value, dict):
        return any(has_template(item) for item in cast("dict[str, object]", value).values())
    if isinstance(value, list):
        return any(has_template(item) for item in cast("list[object]", value))
    return False


def render(value: object, scope: Scope) -> object:
    """Render every text in ``value``, through lists and the values of maps.

    A text that is one placeholder and nothing else becomes what the placeholder names, with its
    type. Inside longer text a boolean is ``true`` or ``false``, null is empty, and a list or a map
    is JSON. Raises :class:`PreflightError` with ``Reason.TEMPLATE_ERROR``.
    """
    if not has_template(value):
        return value
    return _sandbox().Renderer(scope).value(value)


def render_text(text: str, scope: Scope) -> str:
    """Render a whole file's text, in which ``{% if %}``, ``{% for %}`` and comments work too."""
    return cast("str", _sandbox().Renderer(scope).text(text))


def holds(when: str | bool | None, scope: Scope) -> bool:
    """Judge a condition: an expression with or without braces, or a boolean; ``None`` holds.

    Text is false when it is empty, ``false``, ``no``, ``off`` or ``0``.
    """
    if when is None or isinstance(when, bool):
        return when is not False
    return cast("bool", _sandbox().Renderer(scope).truth(when))


@lru_cache(maxsize=_REMEMBERED)
def check_template(text: str, *, condition: bool = False, names: tuple[str, ...] = ()) -> str:
    """Say what is wrong with a template that can be seen without values; nothing when it is fine.

    With ``condition`` the text is a ``when``; ``names`` may be used besides the usual ones.
    """
    if not condition and "{{" not in text:
        return ""
    try:
        _sandbox().parse(text, condition=condition, names=names)
    except PreflightError as exc:
        return exc.message
    return ""


@lru_cache(maxsize=_REMEMBERED)
def named_vars(
    text: str, *, condition: bool = False, names: tuple[str, ...] = ()
) -> frozenset[tuple[str, ...]]:
    """List the vars that a template can't do without, each as the keys from ``vars`` down."""
    if not condition and "{{" not in text:
        return frozenset()
    found = _sandbox().named_vars(text, condition=condition, names=names)
    return frozenset(cast("set[tuple[str, ...]]", found))


def template_error(message: str) -> PreflightError:
    """Make the error that a template raises."""
    return PreflightError(Reason.TEMPLATE_ERROR, message)


def _sandbox() -> ModuleType:
    # jinja2 takes 0.1 s to import: a playbook without templates does without it.
    from preflight.model import sandbox

    return sandbox
