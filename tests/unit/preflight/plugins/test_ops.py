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


async def test_a_refusal_never_overtakes_the_notice_of_the_cancel() -> None:
    refused: list[tuple[Id, int]] = []
    bus = Bus("r")
    scope = RunControl(bus).scope("one/t")
    async with asyncio.TaskGroup() as group:
        ops = Ops(
            group,
            answer=lambda id, result: None,
            refuse=lambda id, code, words: refused.append((id, code)),
            peer_limit=lambda: 1 << 20,
            on_bug=lambda exc: None,
        )
        ctx = TaskContext(
            target=LocalTarget("one"),
            task="t",
            scope=scope,
            emit=bus.emit,
            output=lambda stream, text: None,
            folder=Path(),
        )
        ops.bind(ctx)
        scope.request = CancelRequest(path="one/t", by="operator", at=0.0)
        ops.start(Request(7, "run_command", msgspec.Raw(b'{"script":"true"}')))
        assert refused == []
        ops.told()
        assert refused == [(7, OP_FAILED)]
        ops.start(Request(8, "run_command", msgspec.Raw(b'{"script":"true"}')))
        assert refused[1:] == [(8, OP_FAILED)]
        assert not ops.running


async def test_what_was_held_back_is_refused_at_the_latest_when_the_call_is_over() -> None:
    refused: list[Id] = []
    bus = Bus("r")
    scope = RunControl(bus).scope("one/t")
    async with asyncio.TaskGroup() as group:
        ops = Ops(
            group,
            answer=lambda id, result: None,
            refuse=lambda id, code, words: refused.append(id),
            peer_limit=lambda: 1 << 20,
            on_bug=lambda exc: None,
        )
        ctx = TaskContext(
            target=LocalTarget("one"),
            task="t",
            scope=scope,
            emit=bus.emit,
            output=lambda stream, text: None,
            folder=Path(),
        )
        ops.bind(ctx)
        scope.request = CancelRequest(path="one/t", by="operator", at=0.0)
        ops.start(Request(7, "get_file", msgspec.Raw(b'{"path":"/x"}')))
        ops.bind(None)
        assert refused == [7]
