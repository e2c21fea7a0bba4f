"""Test a plugin without a host: a target in memory, and a cancel or a kill at any op.

Ops are numbered from 1 within one call, in the order the handler makes them.
"""

from __future__ import annotations

import sys
from binascii import a2b_base64, b2a_base64
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import TYPE_CHECKING

from preflight_sdk.codec import decode, encode
from preflight_sdk.context import Context
from preflight_sdk.errors import Cancelled, HandleError
from preflight_sdk.handle import Handle
from preflight_sdk.results import ApplyResult, CheckResult, RunResult, TargetInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike
    from types import ModuleType

    from preflight_sdk.ops import Turn
    from preflight_sdk.served import Module

    Answer = RunResult | Callable[[str], RunResult]
    Params = dict[str, object]

POSIX = TargetInfo(family="linux", runtime_kind="posix-shell")


class Killed(BaseException):
    """Stands for the end of the plugin's process: nothing it does after this has any effect."""


class Op:
    """One handle op as it was made; what does not belong to its method is empty."""

    __slots__ = ("data", "method", "path", "script")

    def __init__(self, method: str, *, path: str = "", script: str = "", data: bytes = b"") -> None:
        self.method = method
        self.path = path
        self.script = script
        self.data = data

    def __repr__(self) -> str:
        return f"<{self.method} {self.path or self.script[:60]!r}>"


class FakeTarget:
    """A target's files, and the answers to the scripts it will be asked to run."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files: dict[str, bytes] = dict(files or {})
        self._answers: list[tuple[str, Answer]] = []

    def on_run(self, part: str, answer: Answer) -> None:
        """Answer every script that contains ``part`` so; what was said last is tried first."""
        self._answers.insert(0, (part, answer))

    def do(self, op: Op) -> Params:
        """The result of one op, in its wire form. Raises: HandleError as a target would."""
        match op.method:
            case "put_file":
                self.files[op.path] = op.data
                return {}
            case "get_file":
                if op.path not in self.files:
                    raise HandleError(f"{op.path}: no such file")
                return {"data": b2a_base64(self.files[op.path], newline=False).decode()}
            case _:
                return self._run(op.script)

    def _run(self, script: str) -> Params:
        for part, answer in self._answers:
            if part in script:
                got = answer if isinstance(answer, RunResult) else answer(script)
                return {
                    "stdout": got.stdout,
                    "stderr": got.stderr,
                    "exit_code": got.exit_code,
                    "stdout_b64": b2a_base64(got.stdout_bytes, newline=False).decode(),
                    "stderr_b64": b2a_base64(got.stderr_bytes, newline=False).decode(),
                }
        raise HandleError(f"the test has no answer for this script: {script!r}")


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
        op = _op_of(method, params)
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
        allow_cleanup: bool = False,
    ) -> None:
        self.module: Module = module() if isinstance(module, type) else module
        self.target = FakeTarget() if target is None else target
        self._info = info
        self._capabilities = tuple(capabilities)
        self._allow_cleanup = allow_cleanup

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

    def _call(
        self,
        method: Callable[[Context, Params, Handle], CheckResult | ApplyResult],
        args: Params | None,
        plan: _Plan,
    ) -> Outcome:
        ctx = Context(capabilities=self._capabilities)
        outcome = Outcome()
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


def _op_of(method: str, params: Params) -> Op:
    wire = decode(encode(params).decode())
    assert isinstance(wire, dict)
    text: dict[str, str] = {str(name): str(value) for name, value in wire.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return Op(
        method,
        path=text.get("path", ""),
        script=text.get("script", ""),
        data=a2b_base64(text.get("data", "")),
    )
