"""The handle: what a plugin may do to its target, one operation at a time, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from preflight.errors import PreflightError
from preflight.plugins.protocol import GetFileParams, PutFileParams, RunCommandParams
from preflight.ports.module import TaskContext
from preflight.rpc.machine import too_large_words
from preflight.rpc.messages import (
    CANCELLED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    NO_TARGET,
    OP_FAILED,
    TOO_LARGE,
    Id,
    Request,
    RpcError,
    decode,
)

T = TypeVar("T")

METHODS = ("run_command", "put_file", "get_file")

_ENVELOPE_BYTES = 4096  # what a result has around its data, generously


class Ops:
    """Serves the operations of one session, for the call that is bound at the time.

    A second operation that comes before the first was answered waits its turn. One that comes
    while no call is bound, or for a call that was cancelled, starts nothing.
    """

    def __init__(
        self,
        group: asyncio.TaskGroup,
        *,
        answer: Callable[[Id, bytes], None],
        refuse: Callable[[Id, int, str], None],
        peer_limit: Callable[[], int],
    ) -> None:
        self._group = group
        self._answer = answer
        self._refuse = refuse
        self._peer_limit = peer_limit
        self._turn = asyncio.Lock()
        self._tasks: dict[Id, asyncio.Task[None]] = {}
        self._methods: dict[Id, str] = {}
        self._ctx: TaskContext | None = None

    @property
    def running(self) -> bool:
        """Whether an operation is in flight."""
        return bool(self._tasks)

    def bind(self, ctx: TaskContext | None) -> None:
        """Serve operations for this call from now on; ``None`` for no call."""
        self._ctx = ctx

    def start(self, request: Request) -> None:
        """Begin, or queue, an operation."""
        if request.method not in METHODS:
            self._refuse(request.id, METHOD_NOT_FOUND, f"no such method: {request.method}")
        elif self._ctx is None:
            self._refuse(request.id, OP_FAILED, f"{request.method}: no check or apply is running")
        elif self._ctx.scope.request is not None:
            self._refuse(request.id, OP_FAILED, f"{request.method}: its call was cancelled")
        else:
            self._methods[request.id] = request.method
            coro = self._serve(request, self._ctx)
            self._tasks[request.id] = self._group.create_task(coro, name=f"op {request.id}")

    def refuse_unbound(self, request: Request) -> None:
        """Refuse an operation of a plugin that is only looked at: there is no target."""
        self._refuse(request.id, NO_TARGET, f"{request.method}: no target is bound")

    def cancel(self, id: Id) -> str:
        """Stop one operation; its process on the target ends.

        Gives the operation's method, ``""`` for an id that is unknown or finished.
        """
        task = self._tasks.get(id)
        return self._methods[id] if task is not None and task.cancel() else ""

    async def cancel_all(self) -> None:
        """Stop every operation and wait until nothing runs on the target any more.

        Cancel: call through ``finish``; bounded by what the target takes to kill.
        """
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _serve(self, request: Request, ctx: TaskContext) -> None:
        try:
            async with self._turn:
                if ctx.scope.request is not None:
                    raise RpcError(OP_FAILED, f"{request.method}: its call was cancelled")
                self._answer(request.id, await self._run(request, ctx))
        except RpcError as exc:
            self._refuse(request.id, exc.code, exc.message)
        except PreflightError as exc:
            self._refuse(request.id, OP_FAILED, exc.message)
        except asyncio.CancelledError:
            # Not raised further: a task that nobody awaits ends here, its work is undone.
            self._refuse(request.id, CANCELLED, f"{request.method} was cancelled")
        finally:
            self._tasks.pop(request.id, None)
            self._methods.pop(request.id, None)

    async def _run(self, request: Request, ctx: TaskContext) -> bytes:
        match request.method:
            case "run_command":
                return await self._run_command(_params(request, RunCommandParams), ctx)
            case "put_file":
                file = _params(request, PutFileParams)
                await ctx.target.put_file(file.path, file.data)
                return b"{}"
            case _:
                return await self._get_file(_params(request, GetFileParams), ctx)

    async def _run_command(self, params: RunCommandParams, ctx: TaskContext) -> bytes:
        limit = self._peer_limit()
        done = await ctx.exec(params.script, keep_bytes=limit)
        result = msgspec.json.encode(
            {"stdout": done.text, "stderr": done.error_text, "exit_code": done.exit_code}
        )
        if done.truncated:
            words = too_large_words("the result of run_command", len(result), limit)
            raise RpcError(TOO_LARGE, f"{words}, or print less: more was printed than is kept")
        return result

    async def _get_file(self, params: GetFileParams, ctx: TaskContext) -> bytes:
        limit = (self._peer_limit() - _ENVELOPE_BYTES) // 4 * 3  # base64 grows by a third
        data = await ctx.target.get_file(params.path, limit_bytes=limit)
        return msgspec.json.encode({"data": data})


def _params(request: Request, kind: type[T]) -> T:
    try:
        return decode(request.params, kind)
    except ValueError as exc:
        raise RpcError(INVALID_PARAMS, f"{request.method}: {exc}") from exc
