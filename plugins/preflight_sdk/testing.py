"""Test a plugin without a host: a target in memory, and a cancel or a kill at any op.

Ops are numbered from 1 within one call, in the order the handler makes them.
"""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import TYPE_CHECKING

from preflight_sdk.batch import Batch, BatchRun
from preflight_sdk.codec import decode, encode
from preflight_sdk.context import Context
from preflight_sdk.errors import Cancelled, HandleError
from preflight_sdk.fake_target import FakeTarget, Op, op_of
from preflight_sdk.handle import Handle
from preflight_sdk.results import ApplyResult, CheckResult, TargetInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike
    from types import ModuleType

    from preflight_sdk.ops import Turn
    from preflight_sdk.served import Module

    Params = dict[str, object]

__all__ = ["POSIX", "BatchOutcome", "FakeTarget", "Harness", "Killed", "Op", "Outcome", "load"]

POSIX = TargetInfo(family="linux", runtime_kind="posix-shell")


class Killed(BaseException):
    """Stands for the end of the plugin's process: nothing it does after this has any effect."""


class Outcome:
    """How one call ended.

    ``result`` is None when it was ``cancelled``, ``killed`` or raised ``exception``; the
    host would report the last as the task's error.
    """

    def __init__(self) -> None:
        self.result: CheckResult | ApplyResult | None = None
        self.exception: Exception | None = None
        self.cancelled = False
        self.killed = False
        self.ops: list[Op] = []
        self.lines: list[str] = []

    @property
    def error(self) -> str:
        """The task's error, however the handler said it."""
        if self.exception is not None:
            return str(self.exception)
        return self.result.error if self.result is not None else ""

    @property
    def needs_change(self) -> bool:
        """What a check found. Raises: AssertionError when there is no such result."""
        assert isinstance(self.result, CheckResult), f"no check result: {self.error or self}"
        return self.result.needs_change


class BatchOutcome(Outcome):
    """How a batch ended: ``results`` has what was reported, by the item's place."""

    def __init__(self) -> None:
        super().__init__()
        self.results: dict[int, Params] = {}
        self.batch_error = ""


class _Port:
    """Records one call's ops, and strikes at the op it was told."""

    def __init__(self, target: FakeTarget, ctx: Context, outcome: Outcome, plan: _Plan) -> None:
        self._target = target
        self._ctx = ctx
        self._outcome = outcome
        self._plan = plan

    has_chunks = False
    limit = sys.maxsize

    def turn(self, ctx: Context, timeout: float | None) -> Turn:
        raise AssertionError("this target takes and gives every file whole")

    def request(self, method: str, params: Params, ctx: Context, timeout: float | None) -> Params:
        self._stop_if_killed()
        ctx.raise_if_cancelled()
        if self._ctx.is_set and not self._plan.allow_cleanup:
            raise HandleError("refused: the call was cancelled")
        op = op_of(method, params)
        self._outcome.ops.append(op)
        number = len(self._outcome.ops)
        if number == self._plan.kill_at:
            self._outcome.killed = True
            self._stop_if_killed()
        if number == self._plan.cancel_at:
            self._ctx.cancel()
            self._ctx.raise_if_cancelled()
        result = self._target.do(op)
        if number == self._plan.cancel_after:
            self._ctx.cancel()
        return result

    def output(self, line: str, index: int | None) -> None:
        self._stop_if_killed()
        self._outcome.lines.append(line)

    def _stop_if_killed(self) -> None:
        if self._outcome.killed:
            raise Killed


class _Plan:
    """Where to strike; 0 for nowhere."""

    def __init__(self, cancel_at: int, cancel_after: int, kill_at: int, cleanup: bool) -> None:
        self.cancel_at = cancel_at
        self.cancel_after = cancel_after
        self.kill_at = kill_at
        self.allow_cleanup = cleanup


class Harness:
    """Calls a plugin in this process, on a target in memory.

    ``allow_cleanup`` is the one thing hosts differ in: whether ``run_cleanup`` of a
    cancelled call reaches the target.
    """

    def __init__(
        self,
        module: Module | type[Module],
        target: FakeTarget | None = None,
        *,
        info: TargetInfo = POSIX,
        capabilities: Iterable[str] = (),
        config: Params | None = None,
        allow_cleanup: bool = False,
    ) -> None:
        self.module: Module = module() if isinstance(module, type) else module
        self.target = FakeTarget() if target is None else target
        self._info = info
        self._capabilities = tuple(capabilities)
        self._config = config or {}
        self._allow_cleanup = allow_cleanup
        configure = getattr(self.module, "configure", None)
        if configure is not None:
            configure(self._context(), self._config)

    def check(
        self,
        args: Params | None = None,
        *,
        cancel_at: int = 0,
        cancel_after: int = 0,
        kill_at: int = 0,
    ) -> Outcome:
        """Run ``check``; see :meth:`apply`."""
        plan = _Plan(cancel_at, cancel_after, kill_at, self._allow_cleanup)
        return self._call(self.module.check, args, plan)

    def apply(
        self,
        args: Params | None = None,
        *,
        cancel_at: int = 0,
        cancel_after: int = 0,
        kill_at: int = 0,
    ) -> Outcome:
        """Run ``apply``.

        ``cancel_at=n``: the cancel comes while op n is in flight, and op n has no effect;
        ``cancel_after=n``: just behind its answer; ``kill_at=n``: the process is gone.
        """
        plan = _Plan(cancel_at, cancel_after, kill_at, self._allow_cleanup)
        return self._call(self.module.apply, args, plan)

    def check_batch(self, *items: Params) -> BatchOutcome:
        """Run ``check`` for many items, as a host does that sends them in one message."""
        return self._batch("check", items)

    def apply_batch(self, *items: Params) -> BatchOutcome:
        """Run ``apply`` for many items."""
        return self._batch("apply", items)

    def _batch(self, method: str, items: tuple[Params, ...]) -> BatchOutcome:
        ctx, outcome = self._context(), BatchOutcome()
        port = _Port(self.target, ctx, outcome, _Plan(0, 0, 0, self._allow_cleanup))
        sent = decode(encode([{"index": n, "args": args} for n, args in enumerate(items)]).decode())

        def report(entry: Params) -> None:
            index = entry["index"]
            assert isinstance(index, int)
            outcome.results[index] = entry

        run = BatchRun(self.module, method, ctx, diff=True, report=report)
        outcome.batch_error = run.run(
            Batch({"items": sent}), lambda ctx, index: Handle(port, ctx, self._info, index)
        )
        return outcome

    def _context(self) -> Context:
        return Context(capabilities=self._capabilities, config=self._config)

    def _call(
        self,
        method: Callable[[Context, Params, Handle], CheckResult | ApplyResult],
        args: Params | None,
        plan: _Plan,
    ) -> Outcome:
        ctx, outcome = self._context(), Outcome()
        handle = Handle(_Port(self.target, ctx, outcome, plan), ctx, self._info)
        sent = decode(encode(args or {}).decode())  # what is no JSON fails here, as it would there
        assert isinstance(sent, dict)
        try:
            outcome.result = method(ctx, sent, handle)  # pyright: ignore[reportUnknownArgumentType]
        except (Cancelled, Killed):
            pass
        except Exception as exc:
            outcome.exception = exc
        finally:
            handle.end()
        outcome.cancelled = ctx.is_set and not outcome.killed
        if outcome.cancelled or outcome.killed:
            outcome.result = None
        return outcome


def load(path: str | PathLike[str]) -> ModuleType:
    """A plugin's executable as a module, under its file's name; its ``serve`` must be behind
    ``if __name__ == "__main__"``.
    """
    name = str(path).rpartition("/")[2].replace("-", "_").removesuffix(".py")
    loader = SourceFileLoader(name, str(path))
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module
