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
from preflight.plugins.discovery import PREFIX
from preflight.plugins.wire import plugin_environment
from preflight.verify.kit import Subject, Verdict
from preflight.verify.kit import verify as run_kit
from preflight.verify.scenarios import SCENARIOS
from preflight.verify.score import as_data, as_junit, as_text, is_sound
from preflight.verify.targets import Answer, KitTarget, LocalTarget, MemoryTarget
from preflight.views.clean import plain

_print: Callable[[str], None] = print


def verify(given: Namespace) -> int:
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
            _print(msgspec.json.format(msgspec.json.encode(as_data(verdicts))).decode())
        case "junit":
            _print(as_junit(verdicts, path.name))
        case _:
            for line in as_text(verdicts):
                _print(plain(line))
    return 0 if is_sound(verdicts) else 1


def _show(verdict: Verdict) -> None:
    words = f"{verdict.requirement.id} {verdict.status}"
    print(words, file=sys.stderr)  # noqa: T201 how far it has come


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


COMMANDS: dict[str, Callable[[Namespace], int]] = {"verify": verify}
"""The actions of ``plugin`` that are served here."""
