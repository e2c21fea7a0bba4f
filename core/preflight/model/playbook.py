"""A playbook: what is to be done, read from YAML and checked as far as it can be without a target.

Everything that is wrong with the file is found at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, cast

import msgspec
from msgspec import Meta

from preflight.errors import ConfigError, Problem
from preflight.model.become import BecomeFields, merge_become
from preflight.model.identity import Named, resolve_dependencies, task_keys
from preflight.model.schema import Violation, violations
from preflight.model.settings import DURATION_PATTERN, DURATION_WORDS, parse_duration
from preflight.model.source import Source, read_source
from preflight.model.template import check_template

_Path = tuple[str | int, ...]
_LoopVar = Annotated[
    str,
    Meta(
        pattern=r"^(?!(vars|facts|env|target|index|range)$)[a-z_][a-z0-9_]*$",
        description="a name of small letters, digits and _, not one that templates have",
    ),
]
_Concurrency = Annotated[int, Meta(ge=1, le=1000, description="a whole number from 1 to 1000")]
_Duration = Annotated[str, Meta(pattern=DURATION_PATTERN, description=DURATION_WORDS)]


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One task, for any target; its texts may hold templates.

    ``key`` is the stable task key: unique in the playbook, without ``/``. ``depends_on`` holds
    keys. ``become`` is ``None`` where it is off. *Units*: ``timeout`` in seconds.

    ``for_each`` is a list, or a template that gives one; templates of the task then know each
    entry by the name ``loop_var``, and its place, from 0, as ``index``. ``concurrency`` is how many
    items may be worked on at once, where the module can.
    """

    key: str
    name: str
    module: str
    params: dict[str, object]
    id: str = ""
    when: str | bool | None = None
    depends_on: list[str] = []
    tags: list[str] = []
    ignore_errors: bool = False
    become: dict[str, object] | None = None
    timeout: float | None = None
    for_each: list[object] | str | None = None
    loop_var: str = "item"
    concurrency: int = 1
    line: int = 0

    @property
    def item_names(self) -> tuple[str, ...]:
        """The names that a template of this task knows besides the usual ones."""
        return () if self.for_each is None else (self.loop_var, "index")


class Playbook(msgspec.Struct, frozen=True, kw_only=True):
    """A playbook; ``tasks`` are in the order of the file, ``path`` is as it was given."""

    name: str
    path: Path
    vars: dict[str, object]
    tasks: list[TaskSpec]
    become: dict[str, object] | None = None
    plugins: dict[str, dict[str, object]] = {}


class _Defaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    become: bool | dict[str, object] | None = None


class _Plugin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    config: dict[str, object] = {}


class _Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""
    description: str = ""
    defaults: _Defaults = _Defaults()
    become: bool | dict[str, object] | None = None
    vars: dict[str, object] | None = None
    plugins: dict[str, _Plugin] = {}
    tasks: list[dict[str, object]] | None = None


class _Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""
    id: str = ""
    module: str = ""
    params: dict[str, object] = {}
    when: str | bool | None = None
    depends_on: list[str] = []
    tags: list[str] = []
    ignore_errors: bool = False
    become: bool | dict[str, object] | None = None
    timeout: _Duration | None = None
    for_each: list[object] | str | None = None
    loop_var: _LoopVar = "item"
    concurrency: _Concurrency = 1


def load_playbook(path: Path, *, builtins: Mapping[str, type[msgspec.Struct]]) -> Playbook:
    """Read a playbook; ``builtins`` are the modules that a task may name as a key of its own.

    Raises :class:`ConfigError` with every problem of the file: place, JSON Pointer and cure.
    """
    source = read_source(path)
    document: object = {} if source.data is None else source.data
    reader = _Reader(source, builtins)
    reader.note((), violations(document, _Document, templates=False))
    if not isinstance(document, dict):
        raise ConfigError(reader.problems)
    playbook = reader.playbook(path, cast("dict[str, object]", document))
    if reader.problems:
        raise ConfigError(sorted(reader.problems, key=lambda one: (one.line, one.column)))
    return playbook


class _Reader:
    """Makes a playbook of a document; what does not fit is noted, and its default used."""

    def __init__(self, source: Source, builtins: Mapping[str, type[msgspec.Struct]]) -> None:
        self.problems: list[Problem] = []
        self._source = source
        self._builtins = builtins

    def playbook(self, path: Path, document: dict[str, object]) -> Playbook:
        """Read the whole document."""
        defaults = _map(document.get("defaults"))
        become = merge_become(None, self._become(("defaults", "become"), defaults.get("become")))
        become = merge_become(become, self._become(("become",), document.get("become")))
        self.templates(("vars",), document.get("vars"))
        entries = document.get("tasks")
        raws = cast("list[object]", entries) if isinstance(entries, list) else []
        maps = {index: _map(raw) for index, raw in enumerate(raws) if _is_map(raw)}
        tasks = {index: self._task(index, raw, become) for index, raw in maps.items()}
        plugins = _map(document.get("plugins"))
        return Playbook(
            name=_text(document.get("name")) or path.stem,
            path=path,
            vars=_map(document.get("vars")),
            tasks=self._with_keys(tasks),
            become=become,
            plugins={name: _map(_map(entry).get("config")) for name, entry in plugins.items()},
        )

    def note(self, base: _Path, found: Iterable[Violation]) -> None:
        """Keep violations that were found below ``base``."""
        for one in found:
            path = (*base, *one.path)
            self.problems.append(self._source.problem(one.message, path, key=one.key))

    def templates(self, path: _Path, value: object, names: tuple[str, ...] = ()) -> None:
        """Check every text below ``path`` for what is wrong with its templates."""
        for place, text in _texts(path, value):
            said = check_template(text, names=names)
            if said:
                self.problems.append(self._source.problem(said, place))

    def _task(
        self, index: int, raw: dict[str, object], inherited: dict[str, object] | None
    ) -> TaskSpec:
        base: _Path = ("tasks", index)
        inline = [key for key in raw if key in self._builtins]
        fields = {key: value for key, value in raw.items() if key not in inline}
        found = violations(fields, _Task, templates=False, also=self._builtins)
        self.note(base, found)
        module = self._module(base, fields, inline)
        place: _Path = (*base, inline[0] if inline else "params")
        params = raw.get(str(place[-1]), {})
        if module in self._builtins and (inline or "module" in fields):
            self.note(place, violations(params, self._builtins[module], templates=True))
        sound = _Task() if found else msgspec.convert(fields, _Task)
        looping = fields.get("for_each") is not None
        names = (sound.loop_var, "index") if looping else ()
        self.templates(place, params, names)
        self._texts_of(base, fields, names)
        become = self._become((*base, "become"), fields.get("become"))
        return TaskSpec(
            key="",
            name=_text(fields.get("name")) or module,
            module=module,
            params=_map(params),
            id=_text(fields.get("id")),
            when=sound.when,
            depends_on=sound.depends_on,
            tags=sound.tags,
            ignore_errors=sound.ignore_errors,
            become=merge_become(inherited, become),
            timeout=parse_duration(sound.timeout) if sound.timeout else None,
            for_each=sound.for_each,
            loop_var=sound.loop_var,
            concurrency=sound.concurrency,
            line=self._source.place(base)[0],
        )

    def _module(self, base: _Path, fields: dict[str, object], inline: list[str]) -> str:
        said = ""
        at = base
        if "module" in fields and inline:
            said = f"has both 'module' and {inline[0]!r}: a task has one module"
        elif len(inline) > 1:
            said = f"has several modules ({', '.join(inline)}): make one task of each"
        elif inline and "params" in fields:
            said = f"'params' goes with 'module': put them under {inline[0]!r}"
            at = (*base, "params")
        elif not inline and not _text(fields.get("module")):
            known = ", ".join(sorted(self._builtins))
            said = f"names no module: write one of {known}, or 'module: NAME' and 'params: …'"
        if said:
            self.problems.append(self._source.problem(said, at))
        return inline[0] if inline else _text(fields.get("module"))

    def _texts_of(self, base: _Path, fields: dict[str, object], names: tuple[str, ...]) -> None:
        self.templates((*base, "name"), fields.get("name"))
        self.templates((*base, "for_each"), fields.get("for_each"))
        when = fields.get("when")
        if isinstance(when, str):
            said = check_template(when, condition=True, names=names)
            if said:
                self.problems.append(self._source.problem(said, (*base, "when")))

    def _become(self, path: _Path, value: object) -> object:
        if _is_map(value):
            self.note(path, violations(value, BecomeFields, templates=True))
            self.templates(path, value)
        return value

    def _with_keys(self, numbered: dict[int, TaskSpec]) -> list[TaskSpec]:
        tasks, places = list(numbered.values()), list(numbered)
        keys = task_keys([task.name for task in tasks])
        named = [Named(task.name, task.id, task.depends_on, task.line) for task in tasks]
        resolved, wrong = resolve_dependencies(named, keys)
        for index, position, said in wrong:
            at = ("depends_on", position) if position >= 0 else ("id",)
            self.problems.append(self._source.problem(said, ("tasks", places[index], *at)))
        return [
            msgspec.structs.replace(task, key=key, depends_on=needs)
            for task, key, needs in zip(tasks, keys, resolved, strict=True)
        ]


def _texts(path: _Path, value: object) -> Iterator[tuple[_Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _texts((*path, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _texts((*path, index), item)


def _is_map(value: object) -> bool:
    return isinstance(value, dict)


def _map(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
