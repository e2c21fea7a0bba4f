"""What is odd about a plugin and ends nothing: shown a few times, counted always."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from preflight.events import Event, PluginWarning
from preflight.rpc.machine import Large, Violation

_SHOWN = 5  # of each kind; a plugin that repeats a mistake 100,000 times costs a number


class Warnings:
    """The warnings of one session."""

    def __init__(self, plugin: str, target: str, emit: Callable[[Event], None]) -> None:
        self._plugin = plugin
        self._target = target
        self._emit = emit
        self._counts: Counter[tuple[str, str]] = Counter()
        self._large: set[tuple[str, bool]] = set()

    @property
    def noise_count(self) -> int:
        """How many lines came on stdout that are no protocol at all."""
        return sum(count for (kind, _), count in self._counts.items() if kind == "stdout_noise")

    def violation(self, violation: Violation) -> None:
        """Show a line that broke the protocol: its reason and its first 200 bytes."""
        line = violation.line.decode("utf-8", "replace")
        if violation.noise:
            self._count("stdout_noise", "", f"printed on stdout: {line}")
        else:
            detail = f" ({violation.detail})" if violation.detail else ""
            words = f"in: {violation.reason}{detail}: {line}"
            self._count("protocol_violation", violation.reason, words)

    def stray_output(self, line: str) -> None:
        """Show an output line that belongs to no call."""
        self._count("protocol_violation", "output", f"in: output outside a call: {line[:200]}")

    def slow_start(self, after_s: float) -> None:
        """Say that the plugin takes long to answer ``initialize``."""
        self._show("slow_start", f"no answer to initialize after {after_s:.0f} s")

    def world_writable(self, path: str) -> None:
        """Say that anybody may change what is executed here."""
        self._show("world_writable", f"{path} or its folder can be written by anybody")

    def large(self, large: Large) -> None:
        """Say once for each method and direction that a message is near the limit."""
        key = (large.method, large.outgoing)
        if key not in self._large:
            self._large.add(key)
            way = "to" if large.outgoing else "from"
            share = round(100 * large.size / large.limit)
            self._show(
                "large_message",
                f"{large.method} {way} the plugin: {large.size} bytes, {share} % of the limit "
                f"of {large.limit} bytes; raise max_message_bytes or send less",
            )

    def close(self) -> None:
        """Say how often the things happened that were shown only a few times."""
        for (kind, reason), count in self._counts.items():
            if count > _SHOWN:
                self._show(kind, f"{count} times in all: {reason or 'lines on stdout'}")

    def _count(self, kind: str, reason: str, detail: str) -> None:
        self._counts[kind, reason] += 1
        if self._counts[kind, reason] <= _SHOWN:
            self._show(kind, detail)

    def _show(self, kind: str, detail: str) -> None:
        self._emit(
            PluginWarning(target=self._target, plugin=self._plugin, kind=kind, detail=detail)
        )
