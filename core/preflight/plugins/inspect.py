"""Plugins looked at without a target, all at once: what ``plugin list`` and ``info`` show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from preflight.control import finish
from preflight.errors import PluginError
from preflight.events import Event, TargetInfo
from preflight.model.settings import Settings
from preflight.plugins.descriptors import DescriptorCache
from preflight.plugins.discovery import Found
from preflight.plugins.protocol import Handshake
from preflight.plugins.session import Session

_CLOSE_BOUND_S = 10.0  # 2 s for the end of stdin, 1 s TERM, 2 s KILL, with room


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin: its handshake, or the reason and the words why there was none."""

    found: Found
    handshake: Handshake | None = None
    reason: str = ""
    error: str = ""
    stderr_tail: list[str] = []


async def inspect(
    plugins: Sequence[Found],
    *,
    emit: Callable[[Event], None],
    settings: Settings,
    descriptors: DescriptorCache | None = None,
) -> list[Inspection]:
    """Start, ask and end every plugin, in parallel and in the given order.

    One that hangs costs its own ``init_timeout`` and delays no other.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_inspect(found, emit, settings, group)) for found in plugins]
    inspections = [task.result() for task in tasks]
    if descriptors is not None:
        for one in inspections:
            if one.handshake is not None:
                descriptors.put(one.found, one.handshake)
    return inspections


async def _inspect(
    found: Found, emit: Callable[[Event], None], settings: Settings, group: asyncio.TaskGroup
) -> Inspection:
    if found.problem:
        return Inspection(found=found, reason="plugin_start", error=found.problem)
    try:
        session = Session(found, target="", emit=emit, settings=settings, group=group)
    except PluginError as exc:
        return Inspection(found=found, reason=exc.reason, error=exc.message)
    try:
        handshake = await session.initialize(TargetInfo())
    except PluginError as exc:
        return Inspection(
            found=found, reason=exc.reason, error=exc.message, stderr_tail=session.stderr_tail
        )
    await finish(session.close(), within_s=_CLOSE_BOUND_S)
    return Inspection(found=found, handshake=handshake, stderr_tail=session.stderr_tail)
