"""The author's module, and how one call to it becomes exactly one answer."""

from __future__ import annotations

from preflight_sdk import errors, extensions
from preflight_sdk.codec import Raw, encode
from preflight_sdk.context import Context
from preflight_sdk.errors import Cancelled, MessageTooLarge
from preflight_sdk.frames import answer, refusal
from preflight_sdk.handle import Handle
from preflight_sdk.handlers import attempt, describe, outcome_of, show_traceback
from preflight_sdk.port import WirePort
from preflight_sdk.results import RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    from preflight_sdk.calls import Call
    from preflight_sdk.handlers import Outcome
    from preflight_sdk.handshake import Agreement
    from preflight_sdk.results import ApplyResult, CheckResult
    from preflight_sdk.session import Session
    from preflight_sdk.wire import Writer

    Args = dict[str, object]

    class Module(Protocol):
        """What an author writes; a class, an object or a whole Python module will do.

        It may also have ``start(ctx, info)``, run once during the handshake;
        ``configure(ctx, config)``, run once behind it; ``params`` and ``config``, dataclasses,
        or ``params_schema`` and ``config_schema``; and ``check_batch`` and ``apply_batch``.
        """

        @property
        def name(self) -> str:
            """The part of the file's name behind ``preflight-plugin-``."""
            ...

        @property
        def version(self) -> str:
            """Any text."""
            ...

        def check(self, ctx: Context, args: Args, handle: Handle) -> CheckResult:
            """Say whether apply has anything to do; change nothing."""
            ...

        def apply(self, ctx: Context, args: Args, handle: Handle) -> ApplyResult:
            """Bring the target into the wanted state; safe to repeat."""
            ...


class Served:
    """An author's module, looked over once, with what the session needs to know of it."""

    def __init__(
        self, module: Module | type[Module], *, capabilities: Iterable[str], limit: int
    ) -> None:
        self.module: Module = module() if isinstance(module, type) else module
        self.name = _attribute(self.module, "name")
        self.version = _attribute(self.module, "version")
        for method in ("check", "apply"):
            if not callable(getattr(self.module, method, None)):
                raise TypeError(f"a plugin needs {method}(ctx, args, handle)")
        self._sources = {name: _schema_source(self.module, name) for name in ("params", "config")}
        self.start: Callable[..., object] | None = getattr(self.module, "start", None)
        self.capabilities = tuple(dict.fromkeys((*extensions.ALL, *capabilities)))
        self.limit = limit
        self.opening = False
        self.writer: Writer | None = None
        self._run_info = RunInfo()
        self._config: Args = {}

    def run_start(self, agreement: Agreement) -> str:
        """Run the author's ``start``; why it failed, or an empty string."""
        assert self.start is not None
        try:
            self.start(Context(agreement.version, agreement.capabilities), agreement.info)
        except (Exception, SystemExit, Cancelled) as exc:
            show_traceback()
            return f"start failed: {describe(exc)}"
        return ""

    def schemas(self, agreement: Agreement) -> dict[str, object]:
        """The members of the answer to ``initialize`` that say what params and config may be.

        Made only for a host that asks. Raises: TypeError when a dataclass has no schema.
        """
        if extensions.PARAMS_SCHEMA not in agreement.capabilities:
            return {}
        return {
            f"{name}_schema": Raw(encode(source if isinstance(source, dict) else _derived(source)))
            for name, source in self._sources.items()
            if source is not None
        }

    def run(self, call: Call, agreement: Agreement, session: Session) -> None:
        """On the main thread: one call, one answer."""
        if not session.calls.start(call):
            return
        assert self.writer is not None
        call.ctx.run, call.ctx.config = self._run_info, self._config
        try:
            outcome = self._outcome(call, agreement, session)
        except Cancelled:
            outcome = errors.CANCELLED, ""
        cancelled = session.calls.finish(call)
        call.ctx.cancel()  # a thread the handler left behind must not keep the next op waiting
        if cancelled:
            self._keep_results(call, outcome)
            frame = refusal(call.id_text, errors.CANCELLED, _cancelled_text(call, outcome))
        elif isinstance(outcome, dict):
            frame = answer(call.id_text, outcome)
        else:
            frame = refusal(call.id_text, outcome[0], outcome[1])
        try:
            self.writer.send(f"{call.method} result", frame)
        except MessageTooLarge as exc:
            self.writer.send("error", refusal(call.id_text, errors.TOO_LARGE, str(exc)))

    def _outcome(self, call: Call, agreement: Agreement, session: Session) -> Outcome:
        try:
            params = _object(call.take_params(), "params")
            if call.method == "configure":
                return self._configure(call, params)
            if call.method in extensions.METHODS:
                return self._run_batch(call, params, agreement, session)
            args = _object(params.get("args"), "args")
        except ValueError as exc:
            return errors.INVALID_PARAMS, str(exc)
        handle = self._handle(call, agreement, session)
        handler = getattr(self.module, call.method)
        diff = call.ctx.has_capability(extensions.DIFF)
        try:
            return outcome_of(
                call.method, call.ctx, lambda: handler(call.ctx, args, handle), diff=diff
            )
        finally:
            handle.end()

    def _configure(self, call: Call, params: Args) -> Outcome:
        """Keep what holds for the whole run, if the author's ``configure`` has no objection."""
        ctx = call.ctx
        ctx.run = RunInfo.from_wire(_object(params.get("run"), "run"))
        ctx.config = _object(params.get("config"), "config")
        hook: Callable[..., object] | None = getattr(self.module, "configure", None)
        if hook is not None:
            _, error = attempt(ctx, lambda: hook(ctx, ctx.config))
            if error is not None:
                return {"error": error}
        self._run_info, self._config = ctx.run, ctx.config
        return {}

    def _run_batch(
        self, call: Call, params: Args, agreement: Agreement, session: Session
    ) -> Outcome:
        from preflight_sdk import batch, progress  # not needed until a host sends many at once

        assert self.writer is not None
        wanted = batch.Batch(params)
        method = call.method.removesuffix("_batch")
        said = progress.Progress(call.id_text, self.writer, gather=method == "check")
        port = WirePort(session.ops, self.writer, call)
        diff = call.ctx.has_capability(extensions.DIFF)
        run = batch.BatchRun(self.module, method, call.ctx, diff=diff, report=said.add)
        error = run.run(wanted, lambda ctx, index: Handle(port, ctx, agreement.info, index))
        rest: dict[str, object] = {"results": said.rest()}
        return {**rest, "error": error} if error else rest

    def _keep_results(self, call: Call, outcome: Outcome) -> None:
        """What ended of a cancelled batch has ended all the same."""
        results = outcome.get("results") if isinstance(outcome, dict) else None
        if results:
            assert self.writer is not None
            params = {"id": Raw(call.id_text.encode()), "results": results}
            frame = encode({"jsonrpc": "2.0", "method": "progress", "params": params})
            self.writer.send("progress", frame)

    def _handle(self, call: Call, agreement: Agreement, session: Session) -> Handle:
        assert self.writer is not None
        return Handle(WirePort(session.ops, self.writer, call), call.ctx, agreement.info)


def _object(value: object, name: str) -> dict[str, object]:
    """A member that is an object, empty if it is missing. Raises: ValueError."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not an object")
    return value  # pyright: ignore[reportUnknownVariableType]


def _derived(source: type) -> dict[str, object]:
    from preflight_sdk import params  # imports dataclasses: 10 ms that few plugins need

    return params.schema_of(source)


def _schema_source(module: object, name: str) -> dict[str, object] | type | None:
    """The schema that the author wrote, or the dataclass that it will be made from.

    Raises: TypeError for what is neither.
    """
    schema = getattr(module, f"{name}_schema", None)
    if schema is not None and not isinstance(schema, dict):
        raise TypeError(f"{name}_schema is a dict: a JSON Schema")
    kind = getattr(module, name, None)
    if schema is not None or not isinstance(kind, type):
        return schema  # pyright: ignore[reportUnknownVariableType]
    if not hasattr(kind, "__dataclass_fields__"):
        raise TypeError(f"{name} is a dataclass, or there is a {name}_schema")
    return kind


def _cancelled_text(call: Call, outcome: Outcome) -> str:
    if isinstance(outcome, tuple) or "results" in outcome:
        return f"{call.method} was cancelled"
    error = outcome.get("error")
    if error:
        return f"{call.method} was cancelled, and then failed: {error}"
    return f"{call.method} was cancelled, but ran to its end all the same"


def _attribute(module: object, name: str) -> str:
    value = getattr(module, name, None)
    if not isinstance(value, str) or not value:
        raise TypeError(f"a plugin needs a {name}: a string that is not empty")
    return value
