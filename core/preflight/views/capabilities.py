"""Plugins × capabilities: who offers what, what both agreed on, and what each cell means."""

from __future__ import annotations

from preflight.events import Capabilities
from preflight.views.parts import Part, Parts
from preflight.views.plugins import SYMBOLS, Instance, Plugins

_MEANING = {
    "✓": ("both", "both offer it: agreed, in use"),
    "h": ("host", "only this host offers it: not used, nothing is wrong"),
    "p": ("plugin", "only the plugin offers it: unknown here, not used"),
    "!": ("refused", "both offer it, but it was not agreed on"),
    "-": ("neither", "neither side offers it"),
}
_STYLE = {"✓": "ok", "h": "muted", "p": "in", "!": "warning", "-": "muted", "?": "muted"}


def host_offers(plugins: Plugins) -> list[str]:
    """Give what the host offers, as far as any handshake has told."""
    offered = {name for one in plugins.instances.values() for name in one.capabilities.host}
    return sorted(offered)


def names(plugins: Plugins) -> list[str]:
    """Give every capability that either side offers."""
    every = {
        name
        for one in plugins.instances.values()
        for name in (*one.capabilities.host, *one.capabilities.plugin)
    }
    return sorted(every)


def mark(both: Capabilities, name: str) -> str:
    """Give the symbol for one capability of one plugin."""
    host, plugin = name in both.host, name in both.plugin
    if name in both.negotiated:
        return "✓"
    if host and plugin:
        return "!"
    return "h" if host else ("p" if plugin else "-")


def table(plugins: Plugins) -> list[Parts]:
    """Give the heading, and a line for every plugin."""
    columns = names(plugins)
    head = "  " + "plugin".ljust(16) + " protocol  agreed  "
    head += "".join(_short(name).ljust(_width(name)) for name in columns)
    return [[(head.rstrip(), "muted")], *(_line(plugins, name, columns) for name in plugins.names)]


def _short(name: str) -> str:
    return name.rpartition("/")[2] or name  # the prefix says whose it is, and is mostly the same


def _width(name: str) -> int:
    return max(5, len(_short(name)) + 2)


def _line(plugins: Plugins, plugin: str, columns: list[str]) -> Parts:
    one = plugins.of(plugin)[0]
    symbol, style = SYMBOLS[one.state]
    parts: Parts = [(f"{symbol} ", style), (plugin.ljust(16), "bold")]
    if not one.protocol_version:
        words = one.error or one.state
        return [*parts, (f" {words}", "error" if one.error else "muted")]
    both = one.capabilities
    offered = len({*both.host, *both.plugin})
    agreed = f"{len(both.negotiated)}/{offered}"
    parts.append((f" {one.protocol_version:<9} {agreed:<7} ", ""))
    for name in columns:
        symbol = mark(both, name)
        last = name == columns[-1]
        parts.append((symbol if last else symbol.ljust(_width(name)), _STYLE[symbol]))
    return parts


def legend() -> Parts:
    """Give what the symbols mean."""
    parts: Parts = [(" ", "")]
    for symbol, (word, _) in _MEANING.items():
        parts += [(symbol, _STYLE[symbol]), (f" {word}   ", "muted")]
    return parts


def explain(plugins: Plugins, plugin: str) -> list[Parts]:
    """Give a sentence for every capability of a plugin."""
    one: Instance = plugins.of(plugin)[0]
    if not one.protocol_version:
        if one.error:
            return [[(one.error, "error")]]
        return [[("It has not answered the handshake: what it offers is not known yet.", "muted")]]
    columns = names(plugins)
    if not columns:
        return [[("Neither side offers any capability.", "muted")]]
    width = max(map(len, columns))
    lines: list[Parts] = []
    for name in columns:
        symbol = mark(one.capabilities, name)
        shown: Part = (f"{symbol} ", _STYLE[symbol])
        lines.append([shown, (name.ljust(width) + "  ", "bold"), (_MEANING[symbol][1], "")])
    return [*lines, [], [(f"protocol {one.protocol_version}, spoken by both", "muted")]]
