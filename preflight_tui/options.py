"""The words of the command line."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from pathlib import Path

from preflight.model.settings import Settings, parse_duration

USAGE_EXIT = 2


class _Parser(ArgumentParser):
    """Says in one line on stderr what is wrong, and where help is."""

    def error(self, message: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # never returns
        """End with exit code 2."""
        self.exit(USAGE_EXIT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> ArgumentParser:
    """Build the parser of the whole command line."""
    top = _Parser(
        prog="preflight-tui",
        description="Bring machines into a desired state, and stop what must stop.",
        epilog="Without a command it opens the newest run of this folder in the console.",
    )
    top.add_argument("--no-ui", action="store_true", help="no console: print and exit")
    top.add_argument("--version", action="store_true", help="print the version")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    _run_commands(commands)
    _look_commands(commands)
    _plugin_commands(commands)
    return top


def settings(given: Namespace) -> dict[str, object]:
    """Give the engine's settings that the command line names."""
    names = Settings.__struct_fields__
    return {name: getattr(given, name) for name in names if getattr(given, name, None) is not None}


def _run_commands(commands: argparse._SubParsersAction[_Parser]) -> None:  # pyright: ignore[reportPrivateUsage]  # argparse has no public name for it
    for name, words in (
        ("apply", "run a playbook: check every task, apply where it is needed"),
        ("check", "dry run of a playbook: check every task, change nothing"),
    ):
        command = commands.add_parser(name, help=words, description=words)
        command.add_argument("playbook", type=Path)
        _target_flags(command)
        _run_flags(command)
        if name == "check":
            command.add_argument(
                "--exit-code", action="store_true", help="exit with 4 when changes are pending"
            )
    demo = commands.add_parser("demo", help="run the built-in playbook on this machine")
    demo.add_argument("scenario", nargs="?", default="", help="play a recorded scenario instead")
    demo.add_argument("--probe", type=float, metavar="SECONDS", help="end with a slow probe")
    demo.add_argument(
        "--probe-mode", choices=("polite", "late", "stubborn"), help="how it takes a cancel"
    )
    _run_flags(demo)


def _look_commands(commands: argparse._SubParsersAction[_Parser]) -> None:  # pyright: ignore[reportPrivateUsage]
    for name, words in (
        ("validate", "say all that is wrong with a playbook, without contacting anything"),
        ("plan", "show the ordered tasks of each target, without contacting any"),
    ):
        command = commands.add_parser(name, help=words, description=words)
        command.add_argument("playbook", type=Path)
        _target_flags(command)
        _common_flags(command)
    facts = commands.add_parser("facts", help="show what targets report")
    facts.add_argument("targets", nargs="*", metavar="TARGET")
    facts.add_argument("-t", "--target", action="append", default=[], metavar="NAMES")
    facts.add_argument("--concurrency", type=_count)
    _common_flags(facts)
    inventory = commands.add_parser("inventory", help="the targets of preflight.yml")
    inside = inventory.add_subparsers(dest="action", required=True, parser_class=_Parser)
    _common_flags(inside.add_parser("list", help="list the targets"))
    _common_flags(commands.add_parser("runs", help="list past runs, the newest first"))
    replay = commands.add_parser("replay", help="show a past run again")
    replay.add_argument("run", help="its id, or the path of its folder")
    replay.add_argument("--speed", type=_speed, default=None, help="in the console: times as fast")
    _console_flags(replay)
    _common_flags(replay)
    attach = commands.add_parser("attach", help="open the console on a run that goes on")
    attach.add_argument("run", nargs="?", default="", help="its id; without, the newest")
    _console_flags(attach)
    _common_flags(attach)


def _plugin_commands(commands: argparse._SubParsersAction[_Parser]) -> None:  # pyright: ignore[reportPrivateUsage]
    plugin = commands.add_parser("plugin", help="look at plugins")
    inside = plugin.add_subparsers(dest="action", required=True, parser_class=_Parser)
    for name, words in (("list", "start every plugin and show it"), ("info", "show one plugin")):
        command = inside.add_parser(name, help=words)
        if name == "info":
            command.add_argument("name")
        _plugin_flags(command)
        _common_flags(command)
    _author_commands(inside)


def _author_commands(inside: argparse._SubParsersAction[_Parser]) -> None:  # pyright: ignore[reportPrivateUsage]
    verify = inside.add_parser(
        "verify",
        help="prove a plugin against the protocol",
        description="Start the plugin again and again, and hold what it does against the protocol.",
    )
    verify.add_argument("path", type=Path, metavar="PATH", help="the executable")
    verify.add_argument(
        "--params", metavar="JSON", help="params that need a change, as JSON or @FILE"
    )
    verify.add_argument(
        "--answers", metavar="JSON", help="what scripts are answered in memory, as JSON or @FILE"
    )
    verify.add_argument(
        "--local", action="store_true", help="let it work on this machine, for real"
    )
    verify.add_argument(
        "--reset", metavar="SCRIPT", help="with --local: brings this machine back before each run"
    )
    _common_flags(verify, outputs=("text", "json", "junit"))
    new = inside.add_parser("new", help="write a plugin that works, and its test")
    new.add_argument("name", help="what a playbook calls it: letters, digits, _ and -")
    new.add_argument("--dir", type=Path, default=Path("plugins"), help="where (default: plugins)")
    _common_flags(new)
    lock = inside.add_parser("lock", help="pin plugins to their files of now, in plugins.lock")
    lock.add_argument("names", nargs="*", metavar="NAME", help="only these; else all, and no other")
    _plugin_flags(lock)
    _common_flags(lock)
    replay = inside.add_parser(
        "replay", help="play a wire trace against a plugin, and show the first difference"
    )
    replay.add_argument("file", type=Path, metavar="FILE", help="what --trace-wire has written")
    replay.add_argument("--plugin", required=True, metavar="NAME|PATH", help="which plugin")
    _plugin_flags(replay)
    _common_flags(replay)


def _target_flags(command: ArgumentParser) -> None:
    command.add_argument(
        "-t", "--target", action="append", default=[], metavar="NAMES", help="targets or groups"
    )
    command.add_argument(
        "-e", "--var", action="append", default=[], metavar="K=V", help="set a var; dots nest"
    )
    command.add_argument("--tags", type=_names, default=[], help="only tasks with one of these")
    command.add_argument("--skip-tags", type=_names, default=[], help="no task with one of these")
    _plugin_flags(command)


def _run_flags(command: ArgumentParser) -> None:
    command.add_argument("--concurrency", type=_count, help="targets at a time")
    command.add_argument("--timeout", type=_duration, help="the whole run's, such as 30m")
    command.add_argument(
        "--fail-fast", action="store_true", default=None, help="one failed target stops all"
    )
    command.add_argument("--run-id", default="", help="the run's name")
    command.add_argument("--keep-runs", type=_count, metavar="N", help="finished runs to keep")
    command.add_argument("--max-message-bytes", type=_count, help="of one plugin message")
    command.add_argument(
        "--trace-wire", type=Path, metavar="FILE", help="write every frame of plugins there"
    )
    command.add_argument("--engine-ready-fd", type=int, default=-1, help=argparse.SUPPRESS)
    command.add_argument("-v", "--verbose", action="store_true", help="print output as it comes")
    _console_flags(command)
    _common_flags(command)


def _console_flags(command: ArgumentParser) -> None:
    command.add_argument("--ascii", action="store_true", help="the console without symbols")
    themes = ("dark", "light", "contrast", "ansi")
    command.add_argument("--theme", choices=themes, default="", help="the console's colours")


def _plugin_flags(command: ArgumentParser) -> None:
    command.add_argument(
        "--plugin-dir", type=Path, action="append", default=[], help="searched first"
    )
    command.add_argument(
        "--plugin-dir-only", action="store_true", help="search no other folder than these"
    )


def _common_flags(command: ArgumentParser, *, outputs: tuple[str, ...] = ("text", "json")) -> None:
    command.add_argument("--no-ui", action="store_true", default=argparse.SUPPRESS)
    command.add_argument("--output", choices=outputs, default=None)
    command.add_argument("--color", choices=("auto", "always", "never"), default="auto")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not how many times as fast, such as 2")
    return speed


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
