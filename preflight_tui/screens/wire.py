"""What goes over the plugins' wires, frame by frame."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from preflight.views import wire
from preflight.views.store import Changes
from preflight_tui.panes.sheet import Sheet
from preflight_tui.screens.base import ConsoleScreen

_NONE = "No frame yet: only runs with --trace-wire record them."


class WireScreen(ConsoleScreen):
    """The frames in a list that follows the newest, and the chosen one in full."""

    TAB = "wire"

    DEFAULT_CSS = """
    WireScreen #body { layout: horizontal; }
    WireScreen #frames { width: 2fr; height: 1fr; }
    WireScreen #one { width: 1fr; height: 1fr; }
    WireScreen.-narrow #body { layout: vertical; }
    WireScreen.-narrow #frames, WireScreen.-narrow #one { width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.following = True
        self._found: list[wire.Frame] = []

    def body(self) -> Iterable[Widget]:
        """Make the panes."""
        yield Sheet(choose=True, wrap=False, heads=1, id="frames")
        yield Sheet(hang=11, id="one")

    def show_body(self, changes: Changes | None) -> None:
        """Show the frames."""
        if changes is not None and not changes.wire:
            return
        store = self.store.wire
        zone_s = self.console_app.options.zone_s
        sheet = self.query_one("#frames", Sheet)
        self._found = store.matching(self.words)
        lines = [wire.line(store, one, zone_s=zone_s) for one in self._found]
        filtered = f"{len(lines)} shown, /{' '.join(self.words)} · " if self.words else ""
        gone = f", {store.dropped} in the record alone" if store.dropped else ""
        sheet.frame(
            "⇢ host to plugin   ⇠ plugin to host",
            f"{filtered}{store.count} frames, {store.bytes / 1024:.1f} KB{gone}",
        )
        newest = len(lines) - 1 if self.following and lines else None
        sheet.show([wire.heading(), *lines] if lines else [[(_NONE, "muted")]], newest)
        self._show_one()

    def search(self, text: str) -> None:
        """Show only the frames that hold all words of a text."""
        self.words = text.lower().split()
        self.show(None)

    def toggle_follow(self) -> None:
        """Follow the newest frame, or stay."""
        self.following = not self.following
        self.show(None)

    def on_sheet_chosen(self, message: Sheet.Chosen) -> None:
        """Show the frame that was chosen; the last one is followed."""
        if message.sheet.id == "frames":
            self.following = message.line == len(self._found) - 1
            self._show_one()

    def on_sheet_opened(self, message: Sheet.Opened) -> None:
        """Go to the frame's pair."""
        pair = self._found[message.line].pair if message.line < len(self._found) else -1
        for at, one in enumerate(self._found):
            if one.number == pair:
                self.following = False
                self.query_one("#frames", Sheet).choose(at)
                self._show_one()

    def _show_one(self) -> None:
        one = self.query_one("#one", Sheet)
        at = self.query_one("#frames", Sheet).chosen - 1
        if 0 <= at < len(self._found):
            frame = self._found[at]
            one.frame(f"{frame.event.kind}")
            zone_s = self.console_app.options.zone_s
            one.show(wire.detail(self.store.wire, frame, zone_s=zone_s))
