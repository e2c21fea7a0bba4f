"""The handle: what a plugin may do to its target, one operation at a time, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from preflight.errors import PreflightError
from preflight.plugins.pieces import Pieces
from preflight.plugins.protocol import GetFileParams, PutFileParams, RunCommandParams
from preflight.ports.module import TaskContext
from preflight.rpc.machine import too_large_words
from preflight.rpc.messages import (
    CANCELLED,
    INTERNAL_ERROR,
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
_MOST_WAITING = 1000  # operations of one session; a plugin has one in flight, by the protocol


class _Op:
    """One operation under way; a cancel that comes before its task began is not lost."""

    def __init__(self, request: Request, ctx: TaskContext) -> None:
        self.request = request
        self.ctx = ctx
        self.task: asyncio.Task[None] | None = None
        self.begun = False
        self.cancelled = False

    def cancel(self) -> bool:
        """Stop it, once; False when that was done before."""
        if self.cancelled:
            return False
        self.cancelled = True
        if self.begun and self.task is not None:  # else the task would end without an answer
            self.task.cancel()
        return True


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
        on_bug: Callable[[Exception], None],
        wants_bytes: Callable[[], bool] = lambda: False,
    ) -> None:
        self._group = group
        self._answer = answer
        self._refuse = refuse
        self._peer_limit = peer_limit
        self._on_bug = on_bug
        self._wants_bytes = wants_bytes
        self._pieces = Pieces()
        self.call_id = 0
        self._turn = asyncio.Lock()
        self._ops: dict[Id, _Op] = {}
        self._ctx: TaskContext | None = None
        self._told = False
        self._held: list[Request] = []

    @property
    def running(self) -> bool:
        """Whether an operation is in flight."""
        return bool(self._ops)

    def bind(self, ctx: TaskContext | None) -> None:
        """Serve operations for this call from now on; ``None`` for no call."""
        self.told()
        self._told = False
        self._ctx = ctx
        self._pieces.drop()

    def told(self) -> None:
        """Know that the plugin was told of the cancel: what its call asked for since is refused.

        Not before: a refusal that overtakes the notice would look like the operation's own failure,
        and a batch would go on to its next item.
        """
        self._told = True
        held, self._held = self._held, []
        for request in held:
            self._refuse_cancelled(request)

    def _refuse_cancelled(self, request: Request) -> None:
        if self._told:
            self._refuse(request.id, OP_FAILED, f"{request.method}: its call was cancelled")
        else:
            self._held.append(request)

    def start(self, request: Request) -> None:
        """Begin, or queue, an operation."""
        if request.method not in METHODS:
            self._refuse(request.id, METHOD_NOT_FOUND, f"no such method: {request.method}")
        elif self._ctx is None:
            self._refuse(request.id, OP_FAILED, f"{request.method}: no check or apply is running")
        elif self._ctx.scope.request is not None:
            self._refuse_cancelled(request)
        elif len(self._ops) >= _MOST_WAITING:
            words = f"{request.method}: {_MOST_WAITING} operations are waiting already"
            self._refuse(request.id, OP_FAILED, words)
        else:
            op = self._ops[request.id] = _Op(request, self._ctx)
            op.task = self._group.create_task(self._serve(op), name=f"op {request.id}")

    def refuse_unbound(self, request: Request) -> None:
        """Refuse an operation of a plugin that is only looked at: there is no target."""
        known = request.method in METHODS
        code = NO_TARGET if known else METHOD_NOT_FOUND
        words = "no target is bound" if known else "no such method"
        self._refuse(request.id, code, f"{request.method}: {words}")

    def cancel(self, id: Id) -> str:
        """Stop one operation; its process on the target ends.

        Gives the operation's method, ``""`` for an id that is unknown, finished or cancelled.
        """
        op = self._ops.get(id)
        return op.request.method if op is not None and op.cancel() else ""

    async def cancel_all(self) -> None:
        """Stop every operation and wait until nothing runs on the target any more.

        Cancel: call through ``finish``; bounded by what the target takes to kill.
        """
        ops = list(self._ops.values())
        for op in ops:
            op.cancel()
        tasks = [op.task for op in ops if op.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def _serve(self, op: _Op) -> None:
        request = op.request
        try:
            op.begun = True
            if op.cancelled:
                raise asyncio.CancelledError
            async with self._turn:
                if op.ctx.scope.request is not None:
                    return self._refuse_cancelled(request)
                self._answer(request.id, await self._run(request, op.ctx))
        except RpcError as exc:
            self._refuse(request.id, exc.code, exc.message)
        except PreflightError as exc:
            self._refuse(request.id, OP_FAILED, exc.message)
        except asyncio.CancelledError:
            # Not raised further: a task that nobody awaits ends here, its work is undone.
            self._refuse(request.id, CANCELLED, f"{request.method} was cancelled")
        except Exception as exc:  # the wire boundary: one operation's bug is not its target's end
            self._on_bug(exc)
            self._refuse(request.id, INTERNAL_ERROR, f"{request.method}: a bug of the host: {exc}")
        finally:
            del self._ops[request.id]

    async def _run(self, request: Request, ctx: TaskContext) -> bytes:
        match request.method:
            case "run_command":
                command = _params(request, RunCommandParams)
                self._refuse_other(request, command.parent)
                return await self._run_command(command, ctx)
            case "put_file":
                put = _params(request, PutFileParams)
                self._refuse_other(request, put.parent)
                if put.offset is not None:
                    return await self._pieces.put(put, ctx)
                await ctx.target.put_file(put.path, put.data)
                return b"{}"
            case _:
                get = _params(request, GetFileParams)
                self._refuse_other(request, get.parent)
                most = (self._peer_limit() - _ENVELOPE_BYTES) // 4 * 3  # base64 grows by a third
                if get.offset is not None:
                    return await self._pieces.get(get, ctx, most)
                data = await ctx.target.get_file(get.path, limit_bytes=most)
                return msgspec.json.encode({"data": data})

    def _refuse_other(self, request: Request, parent: int | None) -> None:
        if parent is not None and parent != self.call_id:
            raise RpcError(OP_FAILED, f"{request.method}: its call {parent} is over")

    async def _run_command(self, params: RunCommandParams, ctx: TaskContext) -> bytes:
        limit = self._peer_limit()
        done = await ctx.exec(params.script, keep_bytes=limit)
        said: dict[str, object] = {
            "stdout": done.text,
            "stderr": done.error_text,
            "exit_code": done.exit_code,
        }
        if self._wants_bytes():
            said |= {
                f"{name}_b64": raw
                for name, raw in (("stdout", done.stdout), ("stderr", done.stderr))
                if not _is_text(raw)
            }
        result = msgspec.json.encode(said)
        if done.truncated:
            words = too_large_words("the result of run_command", len(result), limit)
            raise RpcError(TOO_LARGE, f"{words}, or print less: more was printed than is kept")
        return result


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _params(request: Request, kind: type[T]) -> T:
    try:
        return decode(request.params, kind)
    except ValueError as exc:
        raise RpcError(INVALID_PARAMS, f"{request.method}: {exc}") from exc
