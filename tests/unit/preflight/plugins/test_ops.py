"""When an operation of a cancelled call is refused: never before the plugin was told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from preflight.bus import Bus
from preflight.control import CancelRequest, RunControl
from preflight.plugins.ops import Ops
from preflight.ports.module import TaskContext
from preflight.rpc.messages import OP_FAILED, Id, Request
from preflight.targets.local import LocalTarget


class Cancelled:
    """The operations of a call whose cancel was asked for and not told to the plugin yet."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.refused: list[tuple[Id, int]] = []
        self.ops = Ops(
            group,
            answer=lambda id, result: None,
            refuse=lambda id, code, words: self.refused.append((id, code)),
            peer_limit=lambda: 1 << 20,
            on_bug=lambda exc: None,
        )
        bus = Bus("r")
        scope = RunControl(bus).scope("one/t")
        ctx = TaskContext(
            target=LocalTarget("one"),
            task="t",
            scope=scope,
            emit=bus.emit,
            output=lambda stream, text: None,
            folder=Path(),
        )
        self.ops.bind(ctx)
        scope.request = CancelRequest(path="one/t", by="operator", at=0.0)

    def ask(self, id: int) -> None:
        self.ops.start(Request(id, "run_command", msgspec.Raw(b'{"script":"true"}')))


async def test_a_refusal_never_overtakes_the_notice_of_the_cancel() -> None:
    async with asyncio.TaskGroup() as group:
        call = Cancelled(group)
        call.ask(7)
        assert call.refused == []
        call.ops.told()
        assert call.refused == [(7, OP_FAILED)]
        call.ask(8)
        assert call.refused[1:] == [(8, OP_FAILED)]
        assert not call.ops.running


async def test_what_was_held_back_is_refused_at_the_latest_when_the_call_is_over() -> None:
    async with asyncio.TaskGroup() as group:
        call = Cancelled(group)
        call.ask(7)
        call.ops.bind(None)
        assert call.refused == [(7, OP_FAILED)]
