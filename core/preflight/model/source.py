"""YAML read without its traps: what is not plainly a number, a boolean or null stays text.

Every value keeps its place in the file, so that each problem has a line and a column.
"""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TypeAlias, cast

import yaml

from preflight.errors import ConfigError, Problem

Path_: TypeAlias = Sequence[str | int]
"""Where a value is in a document: keys and indexes from the top."""

MAX_FILE_BYTES = 16 * 1024 * 1024
_MAX_VALUES = 500_000  # what aliases may blow a file up to; 10,000 targets with vars are 200,000

# A number is one only if it is written as it would be printed again: 0644, 1e3, 1.10, +1 and 1_000
# are text, so that no value ever changes its looks on the way to a target.
_INT = re.compile(r"0|-?[1-9][0-9]*")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")
_WORDS: dict[str, object] = {
    "": None,
    **dict.fromkeys(("~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_TAG = "tag:yaml.org,2002:"
_PLAIN = "plain"  # the tag of a scalar without quotes and without a tag: :func:`scalar` decides


def _resolve(_loader: object, kind: type, value: str, implicit: tuple[bool, bool] | bool) -> str:
    """Say which tag a node has that was written without one."""
    if kind is yaml.ScalarNode:
        return _PLAIN if isinstance(implicit, tuple) and implicit[0] else f"{_TAG}str"
    return f"{_TAG}seq" if kind is yaml.SequenceNode else f"{_TAG}map"


# libyaml is ten times as fast, but not everywhere. Its own guesses at types are left out.
_BASE: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LOADER = cast("type[yaml.SafeLoader]", type("_Loader", (_BASE,), {"resolve": _resolve}))

# What libyaml says, what the line looks like, and the cure. The first that fits is used.
_CURES: tuple[tuple[str, str, str], ...] = (
    ("cannot start any token", r"^\s*\t", "a tab can't indent: use spaces"),
    ("cannot start any token", r"", 'a value can\'t begin with @, ` or %: put it in quotes, "…"'),
    ("", r":\s+\{\{|^\s*-\s+\{\{", 'a template must be in quotes, "{{ … }}"'),
    ("alias", r"", "a value that begins with * must be in quotes"),
    ("anchor", r"", "a value that begins with & must be in quotes"),
    ("mapping values are not allowed", r"", "a value that holds ': ' must be in quotes"),
    ("unknown escape", r"", "write \\\\ for a backslash in double quotes, or use single quotes"),
    ("expected a single document", r"", "one document a file: remove the line ---"),
    ("did not find expected key", r"", "check the indentation and the quotes here"),
)


@contextlib.contextmanager
def pause_collector() -> Generator[None]:
    """Keep the cyclic collector from walking a growing document again and again.

    It took two thirds of the time that 10,000 targets need to be read.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Source:
    """A document and where it came from."""

    def __init__(self, file: str, data: object, root: yaml.Node | None) -> None:
        self.file = file
        self.data = data
        self._root = root

    def place(self, path: Path_, *, key: bool = False) -> tuple[int, int]:
        """Give line and column, from 1, of what ``path`` names, or of the nearest that exists.

        With ``key`` the place is the last key's instead of its value's.
        """
        node = self._root
        mark = node.start_mark if node is not None else None
        for index, step in enumerate(path):
            last = index == len(path) - 1
            if isinstance(node, yaml.MappingNode):
                found = [(k, v) for k, v in node.value if k.value == step]
                if not found:
                    break
                at, node = found[-1]
                mark = at.start_mark if (key and last) else node.start_mark
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
                if step >= len(node.value):
                    break
                node = node.value[step]
                mark = node.start_mark
        return (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)

    def problem(self, message: str, path: Path_ = (), *, key: bool = False) -> Problem:
        """Make a problem with the file, the line, the column and the JSON Pointer of ``path``."""
        line, column = self.place(path, key=key)
        return Problem(
            message, file=self.file, line=line, column=column, pointer=json_pointer(path)
        )


def json_pointer(path: Path_) -> str:
    """Write a path as a JSON Pointer (RFC 6901)."""
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return "".join(f"/{step}" for step in steps)


def read_source(path: Path) -> Source:
    """Read a YAML file; raises :class:`ConfigError` with everything that is wrong with its YAML."""
    name = str(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as exc:
        raise ConfigError(
            [Problem(f"can't be read: {exc.strerror or exc}; check the path", file=name)]
        ) from exc
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError([Problem(f"is larger than {MAX_FILE_BYTES} bytes: split it", file=name)])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        said = "is not UTF-8: save it as UTF-8"
        raise ConfigError([Problem(said, file=name, line=line)]) from exc
    return parse_source(name, text)


def parse_source(file: str, text: str) -> Source:
    """Parse YAML text; ``file`` is the name that problems carry."""
    with pause_collector():
        return _parse(file, text)


def _parse(file: str, text: str) -> Source:
    try:
        root: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as exc:
        raise ConfigError([_syntax_problem(file, text, exc)]) from exc
    except (yaml.YAMLError, RecursionError) as exc:
        reason = str(exc).splitlines()[0] or "nested too deeply"
        raise ConfigError([Problem(f"is not YAML: {reason}", file=file)]) from exc
    builder = _Builder(file)
    try:
        data = builder.build(root, ()) if root is not None else None
    except RecursionError:
        raise ConfigError([Problem("is nested too deeply", file=file)]) from None
    if builder.problems:
        raise ConfigError(builder.problems)
    return Source(file, data, root)


def scalar(text: str) -> object:
    """Give the value of a plain scalar: null, a boolean, a number or, for all else, the text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text) and len(text) <= 18:  # longer ones don't fit 64 bits: text
        return int(text)
    if _FLOAT.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    return text


class _Builder:
    """Turns nodes into plain values, and notes what can't be one."""

    def __init__(self, file: str) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._open: set[int] = set()
        self._left = _MAX_VALUES

    def build(self, node: yaml.Node, path: tuple[str | int, ...]) -> object:
        self._left -= 1
        if self._left < 0:
            if self._left == -1:
                self._note("aliases make this file too large: use fewer", node, path)
            return None
        if id(node) in self._open:
            return self._note("an alias refers to a value that holds it", node, path)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if not node.tag.startswith(_TAG):
            return self._note(f"the tag {node.tag} is not supported: remove it", node, path)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
            return self._mapping(node, path)
        finally:
            self._open.discard(id(node))

    def _scalar(self, node: yaml.ScalarNode, path: tuple[str | int, ...]) -> object:
        if node.tag == _PLAIN:
            return scalar(node.value)
        if node.tag == f"{_TAG}str":
            return node.value
        return self._note(f"the tag {node.tag.removeprefix(_TAG)} is not supported", node, path)

    def _mapping(self, node: yaml.Node, path: tuple[str | int, ...]) -> dict[str, object]:
        result: dict[str, object] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in lines:
                self._note(
                    f"the key {key!r} was already given in line {lines[key]}: remove one",
                    key_node,
                    (*path, key),
                )
                continue
            lines[key] = key_node.start_mark.line + 1
            result[key] = self.build(value_node, (*path, key))
        return result

    def _key(self, node: yaml.Node, path: tuple[str | int, ...]) -> str | None:
        if isinstance(node, yaml.MappingNode):
            self._note('a template must be in quotes, "{{ … }}"', node, path)
        elif not isinstance(node, yaml.ScalarNode):
            self._note("a key must be text", node, path)
        elif node.tag == _PLAIN and node.value == "<<":
            self._note("merge keys (<<) are not supported: write the keys out", node, path)
        else:
            value = self._scalar(node, path)
            if isinstance(value, str):
                return value
            self._note(f'a key must be text: write "{node.value}" in quotes', node, path)
        return None

    def _note(self, message: str, node: yaml.Node, path: Path_) -> None:
        mark = node.start_mark
        self.problems.append(
            Problem(
                message,
                file=self._file,
                line=mark.line + 1,
                column=mark.column + 1,
                pointer=json_pointer(path),
            )
        )


def _syntax_problem(file: str, text: str, exc: yaml.MarkedYAMLError) -> Problem:
    mark = exc.problem_mark or exc.context_mark
    said = " ".join(part for part in (exc.context, exc.problem) if part)
    if mark is None:
        return Problem(f"is not YAML: {said}", file=file)
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    for words, looks, cure in _CURES:
        if words in said and re.search(looks, line):
            said = f"{exc.problem or said}: {cure}" if words != "cannot start any token" else cure
            break
    return Problem(f"is not YAML: {said}", file=file, line=mark.line + 1, column=mark.column + 1)
