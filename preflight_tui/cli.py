"""From a command line to an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from preflight.engine import Prepared, Request, new_run_id, prepare, version
from preflight.errors import ConfigError, PreflightError
from preflight.queries import PluginSearch
from preflight.sinks.history import PastRun, list_runs
from preflight_tui import demo, looks
from preflight_tui.headless import json_sink, run_headless, text_sink, wants_colour
from preflight_tui.options import USAGE_EXIT, parser, settings
from preflight_tui.signals import CANCELLED
from preflight_tui.streams import with_streams

_FAILED = 1
_BUG = 70
_WITH_CONSOLE = ("", "apply", "check", "demo", "attach", "replay")


def run(argv: list[str]) -> int:
    """Do what the command line says; gives the exit code.

    stdout carries the result, stderr everything else. 0 done, 1 failed, 2 usage or configuration,
    3 refused, 4 changes are pending, 70 a bug of ours, 130 cancelled.
    """
    return with_streams(lambda: _guarded(argv))


def _guarded(argv: list[str]) -> int:
    """Turn what was raised into words on stderr and an exit code."""
    given = parser().parse_args(argv)
    if given.version:
        print(version())  # noqa: T201 the result
        return 0
    try:
        return _dispatch(given, [word for word in argv if word != "--no-ui"])
    except ConfigError as exc:
        for problem in exc.problems:
            _complain(str(problem))
        return USAGE_EXIT
    except PreflightError as exc:
        _complain(exc.message)
        return _FAILED
    except KeyboardInterrupt:
        return CANCELLED
    except OSError:
        raise  # stdout's: anything else is wrapped where it happens
    except Exception as exc:  # the top of the command: whatever comes here is a bug of ours
        traceback.print_exc()
        _complain(
            f"a bug of preflight: {type(exc).__name__}: {exc}; please report it with the above"
        )
        return _BUG


def _dispatch(given: Namespace, argv: list[str]) -> int:
    command = given.command or ""
    if command in _WITH_CONSOLE and _wants_console(given):
        return _with_console(given, argv)
    match command:
        case "demo" if given.scenario:
            return looks.play(scenario_lines(given.scenario), given)
        case "apply" | "check" | "demo":
            return _run(given)
        case "":
            parser().print_help(sys.stderr)
            return USAGE_EXIT
        case "attach":
            raise ConfigError("attach needs a terminal; follow a run here with: replay RUN")
        case _:
            return _LOOKS[command](given)


_LOOKS: dict[str, Callable[[Namespace], int]] = {
    "validate": lambda given: looks.validate(_prepared(given), given),
    "plan": lambda given: looks.plan(_prepared(given), given),
    "facts": looks.facts,
    "inventory": looks.inventory,
    "plugin": lambda given: _plugin(given),
    "runs": looks.runs,
    "replay": lambda given: looks.replay(find_run(given.run), given),
}


def _plugin(given: Namespace) -> int:
    if given.action in ("list", "info"):
        return looks.plugins(_search(given), given)
    from preflight_tui import kit  # what proves plugins is loaded where it is asked for

    return kit.COMMANDS[given.action](given, lambda: _search(given))


def _run(given: Namespace) -> int:
    prepared = _prepared(given)
    verbose = bool(given.verbose)
    if given.output == "json":
        sink = json_sink(sys.stdout)
    else:
        colour = wants_colour(sys.stdout, given.color)
        sink = text_sink(sys.stdout, colour=colour, verbose=verbose)
    return run_headless(
        prepared,
        dry_run=given.command == "check",
        pending_is_4=bool(getattr(given, "exit_code", False)),
        sink=sink,
        ready_fd=given.engine_ready_fd,
    )


def _prepared(given: Namespace) -> Prepared:
    if given.command == "demo":
        return prepare(_demo_request(given))
    return prepare(
        Request(
            playbook=given.playbook,
            targets=given.target,
            overrides=given.var,
            tags=given.tags,
            skip_tags=given.skip_tags,
            plugins=_search(given),
            settings=settings(given),
            run_id=getattr(given, "run_id", "") or new_run_id(),
            trace_wire=getattr(given, "trace_wire", None),
        )
    )


def _demo_request(given: Namespace) -> Request:
    playbook = demo.lay_down()
    overrides = demo.overrides(playbook)
    if given.probe is not None:
        overrides.append(f"probe_seconds={given.probe:g}")
    if given.probe_mode:
        overrides.append(f"probe_mode={given.probe_mode}")
    return Request(
        playbook=playbook,
        overrides=overrides,
        plugins=PluginSearch(extra=[demo.plugin_folder()], only_extra=True),
        settings=settings(given),
        run_id=given.run_id or new_run_id(),
        trace_wire=given.trace_wire,
    )


def _search(given: Namespace) -> PluginSearch:
    for folder in given.plugin_dir:
        if not folder.is_dir():
            raise ConfigError(f"--plugin-dir {folder}: there is no such folder")
    return PluginSearch(extra=given.plugin_dir, only_extra=given.plugin_dir_only)


def find_run(name: str) -> PastRun:
    """Find a run by its id, by its folder, or the newest for ``""``.

    Raises :class:`ConfigError`.
    """
    return looks.find_run(name, [Path.cwd(), demo.demo_folder()])


def _wants_console(given: Namespace) -> bool:
    if given.no_ui or getattr(given, "output", None):
        return False
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    usable = os.environ.get("TERM", "") not in ("", "dumb") and not os.environ.get("CI")
    if not terminal or not usable:
        _complain("no terminal for the console: running as with --no-ui")
    return terminal and usable


def _with_console(given: Namespace, argv: list[str]) -> int:
    # Starting a console loads its toolkit: a headless run never does.
    from preflight_tui import launcher

    look = ["--ascii"] if getattr(given, "ascii", False) else []
    if getattr(given, "theme", ""):
        look += ["--theme", f"preflight-{given.theme}"]
    match given.command or "":
        case "":
            known = list_runs(looks.project_folder(Path.cwd()))
            if not known:
                _complain("no runs here yet; try: preflight-tui demo, or preflight-tui --help")
                return USAGE_EXIT
            return launcher.attach(known[0].folder, look)
        case "replay" if given.speed is not None:
            return launcher.replay(find_run(given.run).folder, given.speed, look)
        case "attach" | "replay":
            return launcher.attach(find_run(given.run).folder, look)
        case "demo" if given.scenario:
            scenario_lines(given.scenario)
            return launcher.scene(given.scenario, look)
        case _:
            return launcher.run(argv, look)


def scenario_lines(name: str) -> list[bytes]:
    """Give the events of a recorded scenario, as lines of a record.

    Raises :class:`ConfigError` for a name that there is not.
    """
    from preflight_tui.demos.scenes import SCENES  # they are many, and seldom wanted

    if name not in SCENES:
        raise ConfigError(f"demo {name}: there is no such scenario, only {', '.join(SCENES)}")
    return SCENES[name]().lines


def _complain(words: str) -> None:
    print(words, file=sys.stderr)  # noqa: T201 what the user must know


__all__ = ["find_run", "run"]
