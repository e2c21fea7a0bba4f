"""The stop ladder of one call: notice, grace, kill; each step is an event.

Source: docs/protocol.md, Cancellation. Nothing here depends on the cancelled call's own deadline,
and the grace is counted from when the cancel was due, not from when it could be written.
"""

from __future__ import annotations

import asyncio
import signal

from preflight.control import Outcome
from preflight.events import CancelSent
from preflight.plugins.protocol import ApplyAnswer
from preflight.plugins.wire import How, Wire
from preflight.ports.module import ApplyResult, TaskContext
from preflight.rpc.messages import RpcError, decode
from preflight.rpc.peer import Call, Closed

FLUSH_S = 0.25
"""A cancel that can't be written within this goes out of band. Source: protocol.md 4.6."""
_LAST_WORDS_S = 0.25  # a process whose wire is gone may take this long to exit by itself


async def unwind(wire: Wire, call: Call, ctx: TaskContext) -> None:
    """Tell the plugin, wait out its grace, and make an end of what did not answer.

    Sets ``ctx.scope.outcome`` to answered, finished_first, killed or lost. Afterwards nothing of
    the call runs, here or on the target.
    Cancel: call through ``finish``; bounded by ``cancel_grace`` and the kills.
    """
    due = asyncio.get_running_loop().time() + wire.settings.cancel_grace
    if not call.answer.done():
        await _tell(wire, call, ctx)
    if await _answered(call, ctx, due):
        ctx.scope.outcome, ctx.scope.result = _read_late(call)
        if ctx.scope.outcome != "lost":
            return
        exited = await wire.process.wait_exit(_LAST_WORDS_S)
        how: How = "crashed" if exited else "killed"
    else:
        ctx.scope.outcome = how = "killed"
        wire.peer.abandon(call)
    async with asyncio.TaskGroup() as group:
        group.create_task(wire.ops.cancel_all())
        group.create_task(wire.end(how, term_s=0))


async def _tell(wire: Wire, call: Call, ctx: TaskContext) -> None:
    written = wire.peer.cancel(call)
    wire.ops.told()
    if call.answer.done():
        return  # not a byte of the call was written: there is nothing to tell
    if not written.done() and not ctx.scope.kill.is_set():
        await asyncio.wait([written, call.answer], timeout=FLUSH_S, return_when="FIRST_COMPLETED")
    out_of_band = not written.done() and not call.answer.done()
    if out_of_band:
        wire.process.signal_group(signal.SIGTERM)
    wire.emit(
        CancelSent(
            target=wire.target,
            task=ctx.task,
            plugin=wire.found.name,
            request_id=call.id,
            method=call.method,
            grace_ms=round(wire.settings.cancel_grace * 1000),
            out_of_band=out_of_band,
        )
    )


async def _answered(call: Call, ctx: TaskContext, due: float) -> bool:
    """Wait for the answer until ``due``, or until somebody wants the kill now."""
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        hurry = group.create_task(ctx.scope.kill.wait())
        await asyncio.wait(
            [call.answer, hurry],
            timeout=max(0.0, due - loop.time()),
            return_when="FIRST_COMPLETED",
        )
        hurry.cancel()
    return call.answer.done()


def _read_late(call: Call) -> tuple[Outcome, object]:
    """Tell what an answer that came after the cancel means.

    The Go SDK answers a cancelled call with a normal result whose ``error`` says so.
    """
    try:
        answer = decode(call.answer.result(), ApplyAnswer)
    except Closed:
        return "lost", None
    except (RpcError, ValueError):
        return "answered", None
    if call.method == "apply" and not answer.error:
        return "finished_first", ApplyResult(message=answer.message)
    return "answered", None
