"""The commands for authors of plugins: a proof, a beginning, a pin, and a trace played again."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import msgspec

from preflight.errors import ConfigError
from preflight.model.settings import Settings
from preflight.plugins.descriptors import digest
from preflight.plugins.discovery import PREFIX, Found
from preflight.plugins.pins import Pin, read_pins, write_pins
from preflight.plugins.wire import plugin_environment
from preflight.queries import PluginSearch, find_plugins, inspect_plugins
from preflight.verify.kit import Subject, Verdict
from preflight.verify.kit import verify as run_kit
from preflight.verify.replay import Difference, read_scripts
from preflight.verify.replay import replay as play
from preflight.verify.scenarios import SCENARIOS
from preflight.verify.score import as_data, as_junit, as_text, is_sound
from preflight.verify.targets import Answer, KitTarget, LocalTarget, MemoryTarget
from preflight.views.clean import plain
from preflight_tui.looks import project_folder
from preflight_tui.signals import run_until_signal

Search = Callable[[], PluginSearch]

_print: Callable[[str], None] = print


def verify(given: Namespace, search: Search) -> int:
    """Hold a plugin against the protocol; exit code 1 when something that applies failed."""
    path: Path = given.path.absolute()
    if not path.is_file():
        raise ConfigError(f"{given.path}: there is no such file")
    subject = Subject(
        command=[str(path)],
        name=path.name.removeprefix(PREFIX) if path.name.startswith(PREFIX) else "",
        environment=plugin_environment(os.environ),
        params=_params(given.params),
        target=_target(given),
    )
    _end_by_interrupt()
    watched = given.output is None and sys.stderr.isatty()
    verdicts = run_kit(subject, SCENARIOS, on_verdict=_show if watched else lambda verdict: None)
    match given.output:
        case "json":
            _print_json(as_data(verdicts))
        case "junit":
            _print(as_junit(verdicts, path.name))
        case _:
            for line in as_text(verdicts):
                _print(plain(line))
    return 0 if is_sound(verdicts) else 1


def _show(verdict: Verdict) -> None:
    _complain(f"{verdict.requirement.id} {verdict.status}")


def _params(said: str | None) -> Mapping[str, object] | None:
    if said is None:
        return None
    value = _json("--params", said)
    if not isinstance(value, dict):
        raise ConfigError('--params: an object is needed, such as \'{"path": "/etc/motd"}\'')
    return cast("Mapping[str, object]", value)


def _target(given: Namespace) -> KitTarget:
    if given.local:
        if given.answers is not None:
            raise ConfigError("--answers are for the target in memory, not for --local")
        return LocalTarget(given.reset or "")
    if given.reset is not None:
        raise ConfigError("--reset needs --local: the target in memory is new for every scenario")
    if given.answers is None:
        return MemoryTarget()
    try:
        said = _json("--answers", given.answers)
        return MemoryTarget(answers=msgspec.convert(said, list[Answer]))
    except msgspec.ValidationError as exc:
        raise ConfigError(f"--answers: {exc}") from exc


def _json(flag: str, said: str) -> object:
    """Read JSON as it is given, or from the file behind an ``@``."""
    try:
        text = Path(said[1:]).read_bytes() if said.startswith("@") else said.encode()
        return msgspec.json.decode(text)
    except OSError as exc:
        raise ConfigError(f"{flag} {said}: {exc.strerror}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{flag}: {exc}") from exc


def _end_by_interrupt() -> None:
    """Let SIGTERM and SIGHUP unwind as Ctrl-C does, so that no plugin is left behind."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)


def lock(given: Namespace, search: Search) -> int:
    """Pin plugins to the files that they are now; nothing is written unless all can be started."""
    folder = project_folder(Path.cwd())
    discovery = find_plugins(search())
    names = given.names or [found.name for found in discovery.plugins]
    known = {found.name: found for found in discovery.plugins}
    if missing := [name for name in names if name not in known]:
        have = ", ".join(known) or "none"
        raise ConfigError(f"there is no plugin {missing[0]!r}; found: {have}")
    try:
        chosen = {name: _as_it_is(known[name]) for name in names}
    except OSError as exc:
        raise ConfigError(f"{exc.filename}: {exc.strerror}") from exc
    asked = msgspec.structs.replace(discovery, plugins=list(chosen.values()))
    found = run_until_signal(inspect_plugins(asked, settings=Settings()))
    if failed := [one for one in found if one.handshake is None]:
        for one in failed:
            _complain(f"{one.found.name}: {one.reason}: {plain(one.error)}")
        _complain("nothing was pinned")
        return 1
    pins = read_pins(folder) if given.names else {}
    for one in found:
        version = one.handshake.version if one.handshake else ""
        pins[one.found.name] = Pin(name=one.found.name, version=version, sha256=one.found.pin)
    path = write_pins(folder, pins.values())
    if given.output == "json":
        _print_json({"path": str(path), "plugins": [pins[name] for name in names]})
        return 0
    for name in names:
        _print(f"{name} {plain(pins[name].version)} {pins[name].sha256}")
    _print(f"{len(names)} pinned in {path}")
    return 0


def _as_it_is(found: Found) -> Found:
    """Demand of a plugin that it is the file that lies there now."""
    return found if found.problem else msgspec.structs.replace(found, pin=digest(found.path))


def replay(given: Namespace, search: Search) -> int:
    """Play a wire trace against a plugin; exit code 1 at the first difference."""
    path = _plugin_path(given.plugin, search)
    scripts = read_scripts(given.file, path.name.removeprefix(PREFIX))
    _end_by_interrupt()
    for script in scripts:
        try:
            found = play([str(path)], plugin_environment(os.environ), script)
        except OSError as exc:
            raise ConfigError(f"{path}: can't be started: {exc.strerror}") from exc
        if found is not None:
            _show_difference(given, found)
            return 1
    count = sum(len(script.entries) for script in scripts)
    if given.output == "json":
        _print_json({"frames": count, "processes": len(scripts), "difference": None})
    else:
        _print(f"no difference: {count} frames of {len(scripts)} processes")
    return 0


def _show_difference(given: Namespace, found: Difference) -> None:
    if given.output == "json":
        _print_json({"difference": found})
        return
    _print(f"{given.file}:{found.line}: {found.words}")
    _print(f"  then: {plain(found.then) or '-'}")
    _print(f"  now:  {plain(found.now) or '-'}")


def _plugin_path(said: str, search: Search) -> Path:
    """Find a plugin by its path, or by its name where plugins are looked for."""
    if "/" in said or Path(said).is_file():
        if not Path(said).is_file():
            raise ConfigError(f"--plugin {said}: there is no such file")
        return Path(said).absolute()
    discovery = find_plugins(search())
    found = discovery.get(said)
    if found is None:
        have = ", ".join(one.name for one in discovery.plugins) or "none"
        raise ConfigError(f"there is no plugin {said!r}; found: {have}")
    return found.path


def new(given: Namespace, search: Search) -> int:
    """Write a plugin that works, and its test; says what to do next."""
    from preflight_tui import starter

    written = starter.write(given.name, given.dir)
    if given.output == "json":
        _print_json({"plugin": str(written.plugin), "test": str(written.test)})
        return 0
    for line in starter.next_steps(written):
        _print(line)
    return 0


def _print_json(value: object) -> None:
    _print(msgspec.json.format(msgspec.json.encode(value)).decode())


def _complain(words: str) -> None:
    print(words, file=sys.stderr)  # noqa: T201 what is wrong


COMMANDS: dict[str, Callable[[Namespace, Search], int]] = {
    "verify": verify,
    "new": new,
    "lock": lock,
    "replay": replay,
}
"""The actions of ``plugin`` that are served here; the second argument tells where to search."""
