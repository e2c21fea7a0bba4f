"""The words for plugins: the list, what is known of one, and the capabilities of both sides."""

from __future__ import annotations

from preflight.events import Capabilities
from preflight.views.clock import span, time_of_day
from preflight.views.parts import Parts, label
from preflight.views.plugins import SYMBOLS, Instance, Plugins

_OWNER = "preflight-tui/"
SHOWN_STDERR = 12  # lines: more of it stands in the record
_LIFE = 14


def summary(plugins: Plugins) -> str:
    """Give how many plugins there are in which state."""
    states = [plugins.of(name)[0].state for name in plugins.names]
    if not states:
        return "none yet"
    return " · ".join(f"{states.count(state)} {state}" for state in SYMBOLS if state in states)


def plugin_line(plugins: Plugins, name: str, *, wide: bool = False) -> Parts:
    """Give a plugin as a line of a list: the instance that is worst off speaks for all."""
    instances = plugins.of(name)
    one = instances[0]
    symbol, style = SYMBOLS[one.state]
    parts: Parts = [(f"{symbol} ", style), (name.ljust(16 if wide else 13), "bold")]
    parts.append((f" {one.version or '-':<8}", "" if one.version else "muted"))
    parts.append((f" {one.state:<12}", style))
    version = f"v{one.protocol_version}" if one.protocol_version else "-"
    parts.append((f" {version:<5}", "muted"))
    parts.append((f" {_agreed(one.capabilities):<4}", "muted"))
    running = len([each for each in instances if each.state in ("ready", "initializing")])
    pid = f"{running} running" if running > 1 else str(one.pid or "-")
    parts.append((f" {pid}", "muted"))
    if one.error and not wide:
        parts.append((f"  {one.error}", "error"))
    return parts


def plugin_heading(*, wide: bool = False) -> Parts:
    """Give the heading over the lines of :func:`plugin_line`."""
    name = "plugin".ljust(16 if wide else 13)
    return [(f"  {name} version  state        proto caps pid", "muted")]


def instance_lines(one: Instance, *, zone_s: float, host: list[str]) -> list[Parts]:
    """Give all that is known of a plugin's process on a target."""
    symbol, style = SYMBOLS[one.state]
    reason = f" ({one.reason})" if one.reason else ""
    lines = [label("state", [(f"{symbol} {one.state}{reason}", style)])]
    if one.error:
        lines.append(label("error", [(one.error, "error")]))
    if one.ended:
        lines.append(label("ended", [(one.ended, "")]))
    if one.path:
        lines.append(label("file", [(one.path, "")]))
    if one.version:
        ready = f"ready in {span(one.ready_ms / 1000)}" if one.ready_ms else ""
        lines.append(label("version", [(one.version, ""), (f"  {ready}", "muted")]))
    if one.pid:
        again = f"  process {one.processes} of this run" if one.processes > 1 else ""
        lines.append(label("pid", [(str(one.pid), ""), (again, "muted")]))
    if one.protocol_version:
        lines.append(label("protocol", [(str(one.protocol_version), "")]))
        lines += capability_lines(one.capabilities, host)
    lines += [label("warning", [(text, "warning")]) for text in one.warnings[-3:]]
    return lines + _stderr(one) + _life(one, zone_s)


def capability_lines(both: Capabilities, host: list[str]) -> list[Parts]:
    """Give what both agreed on, what the host and what the plugin offer, one line each.

    Names of our own go without their owner: a small screen has room for one line.
    """
    offers = (
        ("agreed", both.negotiated),
        ("host has", both.host or host),
        ("plugin has", both.plugin),
    )
    return [
        label(side, [(_names(names) or "nothing optional", "" if names else "muted")])
        for side, names in offers
    ]


def _names(names: list[str]) -> str:
    return ", ".join(name.removeprefix(_OWNER) for name in names)


def _agreed(both: Capabilities) -> str:
    offered = len({*both.host, *both.plugin})
    return f"{len(both.negotiated)}/{offered}" if offered else "-"


def _stderr(one: Instance) -> list[Parts]:
    if not one.stderr:
        return []
    tail = list(one.stderr)[-SHOWN_STDERR:]
    heading = f"stderr, last {len(tail)} of {one.stderr_count} lines"
    return [[], [(heading, "muted")], *([("  " + line, "")] for line in tail)]


def _life(one: Instance, zone_s: float) -> list[Parts]:
    if not one.life:
        return []
    moments = one.life[-_LIFE:]
    lines: list[Parts] = [
        [(time_of_day(each.ts, zone_s) + "  ", "muted"), (each.text, "")] for each in moments
    ]
    return [[], [("lifetime", "muted")], *lines]
