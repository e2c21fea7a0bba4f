"""The one table of keys: bindings, the bar at the bottom, help, palette and docs come from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from textual.binding import Binding, BindingType


class Key(NamedTuple):
    """A key: its stable id, what it is bound to, and its words.

    ``where`` names the places it works in; ``hint`` is for the bar (empty: not shown there), and
    ``rank`` says how early it leaves a bar that is too narrow (0 last).
    """

    id: str
    keys: str
    action: str
    text: str
    where: str
    hint: str = ""
    show: str = ""
    rank: int = 5


TABLE: tuple[Key, ...] = (
    Key("nav.up", "up,k", "up", "move up", "matrix list log", "move", "↑↓←→", 1),
    Key("nav.down", "down,j", "down", "move down", "matrix list log"),
    Key("nav.left", "left,h", "left", "move left", "matrix log"),
    Key("nav.right", "right,l", "right", "move right", "matrix log"),
    Key("nav.page_up", "pageup,ctrl+u", "page(-1)", "a page up", "matrix list log"),
    Key("nav.page_down", "pagedown,ctrl+d", "page(1)", "a page down", "matrix list log"),
    Key("nav.top", "g,home", "edge(-1)", "to the top", "matrix list log"),
    Key("nav.bottom", "G,end", "edge(1)", "to the bottom", "matrix list log"),
    Key("nav.open", "enter", "open", "open, or go to the next pane", "matrix list", "open", "⏎", 2),
    Key("nav.back", "escape", "home", "back; never quits", "app"),
    Key("nav.next", "tab", "focus_next", "the next pane", "app", "pane", "⇥", 6),
    Key("nav.previous", "shift+tab", "focus_previous", "the previous pane", "app"),
    Key("find.open", "slash", "find", "find in the output", "output", "find", "/", 3),
    Key("find.next", "n", "hit(1)", "the next match; in the matrix the next failure", "log"),
    Key("find.previous", "N", "hit(-1)", "the match before", "log"),
    Key("run.next_failure", "n", "failure(1)", "the next failure", "matrix", "failure", "n", 3),
    Key("run.previous_failure", "N", "failure(-1)", "the failure before", "matrix"),
    Key(
        "log.follow",
        "f",
        "follow",
        "follow what runs, and the end of the output",
        "output",
        "follow",
        "f",
        3,
    ),
    Key("log.wrap", "w", "wrap", "wrap long lines", "output", "wrap", "w", 7),
    Key(
        "log.time",
        "t",
        "time",
        "time stamps: clock, since the start, off",
        "output",
        "time",
        "t",
        7,
    ),
    Key("run.diff", "d", "diff", "what the check found different", "app", "diff", "d", 6),
    Key("run.sort", "s", "sort", "order of the targets: inventory, worst first", "app"),
    Key("copy.line", "y", "copy", "copy the selection, or the lines that are in sight", "output"),
    Key("copy.all", "Y", "copy_all", "copy the whole output of the task", "output"),
    Key("out.export", "e", "export", "write the output of the task to a file", "output"),
    Key("out.pager", "o", "pager", "open the output of the task in $PAGER", "output"),
    Key(
        "palette",
        "colon,ctrl+p",
        "command_palette",
        "every command by its name",
        "app",
        "commands",
        ":",
        5,
    ),
    Key("run.task", "left_square_bracket", "task(-1)", "the task before", "app"),
    Key("run.next_task", "right_square_bracket", "task(1)", "the next task", "app"),
    Key(
        "run.cancel",
        "c",
        "cancel",
        "cancel this task, its target or the run (asks)",
        "app",
        "cancel",
        "c",
        1,
    ),
    Key("run.cancel_all", "C", "cancel_run", "cancel the run (asks)", "app", "cancel run", "C", 2),
    Key("run.cancelling", "K", "cancelling", "what is being cancelled, and kill it now", "app"),
    Key(
        "run.kill",
        "K",
        "kill",
        "kill now what is being cancelled",
        "cancelling",
        "kill now",
        "K",
        0,
    ),
    Key("pane.zoom", "z", "zoom", "this pane alone", "app", "zoom", "z", 6),
    Key("screen.run", "1", "go('run')", "the run", "app"),
    Key("screen.output", "2", "go('output')", "the output alone", "app"),
    Key("screen.plugins", "3", "go('plugins')", "the plugins", "app", "screens", "1-6", 4),
    Key("screen.capabilities", "4", "go('capabilities')", "the capabilities", "app"),
    Key("screen.wire", "5", "go('wire')", "the plugins' wire", "app"),
    Key("screen.summary", "6", "go('summary')", "the summary", "app"),
    Key("help", "question_mark,f1", "help", "the keys", "app", "help", "?", 1),
    Key(
        "app.quit", "q,ctrl+q", "leave", "quit (asks while the run goes on)", "app", "quit", "q", 2
    ),
)

PRIORITY = (
    Binding(
        "ctrl+c",
        "interrupt",
        "cancel the run; again: kill; again: leave",
        id="run.interrupt",
        priority=True,
    ),
    Binding("ctrl+q", "leave", "quit", id="app.quit_now", priority=True),
)
"""Keys that work in every dialog and text field as well."""


def bindings(where: str) -> list[BindingType]:
    """Give the bindings of a place: ``app``, ``matrix``, ``list``, ``log`` or ``cancelling``."""
    return [
        Binding(key.keys, key.action, key.text, id=f"{where}.{key.id}", show=False)
        for key in TABLE
        if where in _bound(key)
    ]


def _bound(key: Key) -> list[str]:
    # What needs output on the screen is bound everywhere: the action looks for it.
    return key.where.replace("output", "app").split()


def hints(places: Iterable[str]) -> list[Key]:
    """Give the keys for the bar where the focus is in ``places``, each action once."""
    wanted = set(places)
    return [key for key in TABLE if key.hint and wanted & set(key.where.split())]


def keymap(overrides: Mapping[str, str]) -> dict[str, str]:
    """Give Textual's keymap for a user's ``id = keys`` lines; unknown ids are passed over."""
    known = {key.id: key for key in TABLE}
    return {
        f"{where}.{name}": keys
        for name, keys in overrides.items()
        if name in known
        for where in _bound(known[name])
    }
