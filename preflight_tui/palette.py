"""Every action by its name: the command palette, from the one table of keys."""

from __future__ import annotations

from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from preflight_tui.keys import TABLE
from preflight_tui.panes.paint import app_of


class KeyCommands(Provider):
    """The actions that work everywhere, with their keys, and the themes; texts are markup."""

    def _commands(self) -> list[tuple[str, str]]:
        actions = [
            (f"{key.text}  ({key.show or key.keys.split(',')[0]})", key.action)
            for key in TABLE
            if {"app", "output"} & set(key.where.split())
        ]
        names = sorted(app_of(self.screen).available_themes)
        return actions + [(f"theme: {name}", f"theme('{name}')") for name in names]

    async def discover(self) -> Hits:
        """Give all of them."""
        for text, action in self._commands():
            yield DiscoveryHit(text, partial(app_of(self.screen).run_action, action))

    async def search(self, query: str) -> Hits:
        """Give those that match what was typed."""
        matcher = self.matcher(query)
        for text, action in self._commands():
            score = matcher.match(text)
            if score > 0:
                command = partial(app_of(self.screen).run_action, action)
                yield Hit(score, matcher.highlight(text), command)
