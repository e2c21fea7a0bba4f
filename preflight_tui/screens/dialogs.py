"""The dialogs: questions whose first answer changes nothing, cancels, a text field, the keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from preflight.views import cancelling
from preflight.views.parts import Parts
from preflight.views.states import in_ascii
from preflight.views.store import Changes
from preflight_tui.keys import TABLE, bindings
from preflight_tui.panes.sheet import Sheet
from preflight_tui.screens.base import console


class Answer(NamedTuple):
    """An answer: the key that gives it, its words, its value."""

    key: str
    words: str
    value: str


class Ask(ModalScreen[str]):
    """A question; the first answer is the harmless one, and escape gives it too."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "stay", show=False)]

    DEFAULT_CSS = """
    Ask { align: center middle; background: $background 50%; }
    Ask #box { width: 64; max-width: 96%; height: auto; max-height: 96%; border: heavy $accent;
        background: $panel; padding: 0 1; border-title-color: $accent; border-title-style: bold; }
    Ask Sheet, Ask Sheet:focus { border: none; background: $panel; }
    Ask #answers { margin-top: 1; }
    """

    def __init__(self, title: str, lines: list[Parts], answers: list[Answer]) -> None:
        super().__init__()
        self.heading = title
        self._lines = lines
        self._answers = answers

    def compose(self) -> ComposeResult:
        """Make the box."""
        with Vertical(id="box") as box:
            box.border_title = self.heading
            yield Sheet(id="words")
            yield Sheet(choose=True, wrap=False, id="answers")

    def on_mount(self) -> None:
        """Show the words and the answers, the first one chosen."""
        self.set_class(console(self).options.ascii, "-ascii")
        answers = self.query_one("#answers", Sheet)
        answers.styles.height = len(self._answers)
        answers.show(
            [[(answer.words, "bold"), (f"  {answer.key}", "key")] for answer in self._answers], 0
        )
        answers.focus()
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        words = self.query_one("#words", Sheet)
        words.show(self._lines)
        words.styles.height = max(1, words.height_wanted)
        words.can_focus = False

    def on_resize(self) -> None:
        """Fit the words to the new width."""
        self.call_after_refresh(self._fit)

    def on_key(self, event: events.Key) -> None:
        """Take the key of an answer."""
        for answer in self._answers:
            if event.key == answer.key or event.character == answer.key:
                event.stop()
                self.dismiss(answer.value)
                return

    def on_sheet_opened(self, message: Sheet.Opened) -> None:
        """Take the chosen answer."""
        message.stop()
        self.dismiss(self._answers[message.line].value)

    def action_stay(self) -> None:
        """Change nothing."""
        self.dismiss(self._answers[0].value)

    def confirm(self, value: str) -> bool:
        """Give the answer ``value`` if there is one; True if there was."""
        if any(answer.value == value for answer in self._answers):
            self.dismiss(value)
            return True
        return False


class Cancelling(ModalScreen[None]):
    """Every cancel with its steps, as the events tell them; K kills what is left."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "hide", show=False),
        *bindings("cancelling"),
    ]

    DEFAULT_CSS = """
    Cancelling { align: center middle; background: $background 50%; }
    Cancelling Sheet { width: 1fr; border: none; }
    Cancelling Sheet:focus { border: none; }
    Cancelling #box { width: 96%; max-width: 120; height: auto; border: heavy $accent;
        background: $background; border-title-color: $accent; border-title-style: bold;
        border-subtitle-color: $foreground; padding: 0 1; }
    Cancelling #head { height: 2; }
    """

    def compose(self) -> ComposeResult:
        """Make the box."""
        with Vertical(id="box") as box:
            box.border_title = "Cancelling"
            yield Sheet(id="head")
            yield Sheet(wrap=False, id="rows")

    def on_mount(self) -> None:
        """Show how far it is."""
        self.set_class(console(self).options.ascii, "-ascii")
        self.query_one("#head", Sheet).can_focus = False
        self.query_one("#rows", Sheet).focus()
        self.call_after_refresh(self.show, None)

    def show(self, changes: Changes | None) -> None:
        """Show what the events told."""
        if not self.query("#box"):
            return
        app = console(self)
        store = app.store
        open_now = bool(store.cancels.unwinding or store.cancels.open_requests or app.pending)
        box = self.query_one("#box")
        box.border_title = "Cancelling" if open_now else "Cancelled"
        words = "K kill now · esc hide" if open_now else "esc close"
        box.border_subtitle = in_ascii(words) if app.options.ascii else words
        self.query_one("#head", Sheet).show([[*cancelling.heading(store), *app.notice]])
        notes = cancelling.notes(store)
        lines = cancelling.lines(store)
        rows = self.query_one("#rows", Sheet)
        rows.show([*lines, *([[], *notes] if notes else [])])
        room = max(3, self.size.height * 4 // 5 - 4)
        rows.styles.height = max(3, min(len(rows.lines), room))

    def action_hide(self) -> None:
        """Go back to the screen below; the cancel goes on."""
        self.dismiss(None)

    def action_kill(self) -> None:
        """Kill what is still unwinding."""
        console(self).kill_now()


class Prompt(ModalScreen[str]):
    """A line to type a text into, at the bottom of the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    DEFAULT_CSS = """
    Prompt { align: left bottom; background: $background 0%; }
    Prompt Input { border: none; height: 1; width: 1fr; background: $panel; padding: 0 1; }
    Prompt Input:focus { border: none; }
    """

    def __init__(self, words: str, text: str = "") -> None:
        super().__init__()
        self._words = words
        self._text = text

    def compose(self) -> ComposeResult:
        """Make the line."""
        field = Input(self._text, placeholder=self._words)
        field.cursor_blink = False
        yield field

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Take what was typed."""
        self.dismiss(message.value)

    def action_leave(self) -> None:
        """Take nothing."""
        self.dismiss(self._text)


class Listing(ModalScreen[None]):
    """Lines to read: all keys, a diff."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,d", "leave", show=False)
    ]

    DEFAULT_CSS = """
    Listing { align: center middle; background: $background 50%; }
    Listing Sheet { width: 90; max-width: 96%; height: 90%; border: heavy $primary; }
    Listing Sheet:focus { border: heavy $primary; }
    """

    def __init__(self, title: str, lines: list[Parts], *, hang: int = 0) -> None:
        super().__init__()
        self._heading = title
        self._lines = lines
        self._hang = hang

    def compose(self) -> ComposeResult:
        """Make the list."""
        yield Sheet(hang=self._hang, id="lines")

    def on_mount(self) -> None:
        """Show the lines."""
        self.set_class(console(self).options.ascii, "-ascii")
        sheet = self.query_one(Sheet)
        sheet.frame(self._heading, "esc close")
        sheet.focus()
        self.call_after_refresh(sheet.show, self._lines)

    def action_leave(self) -> None:
        """Close it."""
        self.dismiss(None)


def help_lines(own: Mapping[str, str]) -> list[Parts]:
    """Give a line for every key, by where it works; ``own`` are the operator's."""
    titles = (
        ("app", "everywhere"),
        ("matrix", "targets × tasks"),
        ("log", "output"),
        ("list", "lists"),
        ("cancelling", "while cancelling"),
    )
    lines: list[Parts] = []
    for where, title in titles:
        lines.append([(title, "title")])
        for key in TABLE:
            if key.where.replace("output", "app").split()[0] == where:
                keys = own.get(key.id, key.keys)
                names = _NAMES.get(keys, keys.replace(",", ", "))
                lines.append([(f"  {names:<18}", "key"), (key.text, "")])
        if where == "app":
            lines.append(
                [
                    (f"  {'ctrl+c':<18}", "key"),
                    ("cancel the run (asks); again: kill; again: leave", ""),
                ]
            )
        lines.append([])
    return lines


_NAMES = {
    "slash": "/",
    "question_mark,f1": "?, f1",
    "colon,ctrl+p": ":, ctrl+p",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}
