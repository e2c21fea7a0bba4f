"""Maps that templates look into: vars that are rendered when they are named, and plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from preflight.model.template import template_error

_MAX_DEPTH = 50  # vars that lead to vars; each level costs about ten frames of Python's stack

RenderText = Callable[[str], object]


class Vars:
    """The author's vars, each rendered at most once, and the chain that is being rendered now."""

    def __init__(self, render: RenderText) -> None:
        self._render = render
        self._chain: list[str] = []

    def resolve(self, raw: object, path: str) -> object:
        """Give the value of the var at ``path``; a var that needs itself is an error."""
        if isinstance(raw, dict):
            return Lazy(cast("dict[str, object]", raw), path, self)
        if not isinstance(raw, str | list):
            return raw
        if path in self._chain:
            circle = [*self._chain[self._chain.index(path) :], path]
            raise template_error(f"vars need each other in a circle: {' -> '.join(circle)}")
        if len(self._chain) >= _MAX_DEPTH:
            raise template_error(f"{path}: vars refer to vars more than {_MAX_DEPTH} deep")
        self._chain.append(path)
        try:
            return self._value(cast("object", raw), path)
        finally:
            self._chain.pop()

    def _value(self, raw: object, path: str) -> object:
        if isinstance(raw, str):
            return self._render(raw)
        if isinstance(raw, list):
            items = cast("list[object]", raw)
            return [self._value(item, f"{path}[{index}]") for index, item in enumerate(items)]
        return self.resolve(raw, path)


class Lazy(Mapping[str, object]):
    """A map that knows its own name; with ``author`` its values are the author's, and rendered."""

    __slots__ = ("_author", "_data", "_done", "path")

    def __init__(self, data: Mapping[str, object], path: str, author: Vars | None = None) -> None:
        self.path = path
        self._data = data
        self._author = author
        self._done: dict[str, object] = {}

    def __getitem__(self, key: str) -> object:
        if key not in self._done:
            raw = self._data[key]
            path = f"{self.path}.{key}"
            if self._author is not None:
                self._done[key] = self._author.resolve(raw, path)
            else:
                inner = isinstance(raw, dict)
                self._done[key] = Lazy(cast("dict[str, object]", raw), path) if inner else raw
        return self._done[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data
