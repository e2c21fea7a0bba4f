"""The author's module, and how one call to it becomes exactly one answer."""

from __future__ import annotations

from preflight_sdk import errors
from preflight_sdk.codec import encode
from preflight_sdk.context import Context
from preflight_sdk.errors import Cancelled, HandleError, MessageTooLarge
from preflight_sdk.frames import answer, refusal
from preflight_sdk.handle import Handle
from preflight_sdk.results import ApplyResult, CheckResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    from preflight_sdk.calls import Call
    from preflight_sdk.handshake import Agreement
    from preflight_sdk.session import Session
    from preflight_sdk.wire import Writer

    Args = dict[str, object]

    class Module(Protocol):
        """What an author writes; a class, an object or a whole Python module will do.

        It may also have ``start(ctx, info)``, run once during the handshake.
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


class _WirePort:
    """A handle's ops, on the wire."""

    def __init__(self, session: Session, writer: Writer) -> None:
        self.request = session.ops.request
        self._send = writer.send

    def output(self, line: str) -> None:
        """One notification."""
        frame = {"jsonrpc": "2.0", "method": "output", "params": {"line": line}}
        self._send("output", encode(frame))


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
        self.start: Callable[..., object] | None = getattr(self.module, "start", None)
        self.capabilities = tuple(dict.fromkeys(capabilities))
        self.limit = limit
        self.opening = False
        self.writer: Writer | None = None

    def run_start(self, agreement: Agreement) -> str:
        """Run the author's ``start``; why it failed, or an empty string."""
        assert self.start is not None
        try:
            self.start(Context(agreement.version, agreement.capabilities), agreement.info)
        except (Exception, SystemExit, Cancelled) as exc:
            show_traceback()
            return f"start failed: {_describe(exc)}"
        return ""

    def run(self, call: Call, agreement: Agreement, session: Session) -> None:
        """On the main thread: one call, one answer."""
        if not session.calls.start(call):
            return
        assert self.writer is not None
        handle = Handle(_WirePort(session, self.writer), call.ctx, agreement.info)
        outcome = self._outcome(call, handle)
        handle.end()
        cancelled = session.calls.finish(call)
        call.ctx.cancel()  # a thread the handler left behind must not keep the next op waiting
        if cancelled:
            frame = refusal(call.id_text, errors.CANCELLED, _cancelled_text(call, outcome))
        elif isinstance(outcome, dict):
            frame = answer(call.id_text, outcome)
        else:
            frame = refusal(call.id_text, outcome[0], outcome[1])
        try:
            self.writer.send(f"{call.method} result", frame)
        except MessageTooLarge as exc:
            self.writer.send("error", refusal(call.id_text, errors.TOO_LARGE, str(exc)))

    def _outcome(self, call: Call, handle: Handle) -> dict[str, object] | tuple[int, str]:
        try:
            args = _args_of(call)
        except ValueError as exc:
            return errors.INVALID_PARAMS, str(exc)
        wanted = CheckResult if call.method == "check" else ApplyResult
        try:
            method = getattr(self.module, call.method)
            result: object = method(call.ctx, args, handle)
        except Cancelled as exc:
            if call.ctx.is_set:
                return errors.CANCELLED, ""
            return wanted_error(call.method, f"gave up, but was not cancelled: {exc}")
        except KeyboardInterrupt:  # someone at a keyboard wants the process to end
            raise
        except BaseException as exc:  # whatever it is, the call is answered
            if not isinstance(exc, HandleError):
                show_traceback()
            return wanted_error(call.method, _describe(exc))
        if not isinstance(result, wanted):
            kind = type(result).__name__
            return errors.INTERNAL_ERROR, f"{call.method} returned {kind}, not {wanted.__name__}"
        return result.to_wire()


def wanted_error(method: str, error: str) -> dict[str, object]:
    """A failed handler is a result with an ``error``, as the Go SDK has it."""
    if method == "check":
        return CheckResult(False, error=error).to_wire()
    return ApplyResult(error=error).to_wire()


def show_traceback() -> None:
    """The exception being handled, on stderr: the host shows it to the operator."""
    import traceback

    traceback.print_exc()


def _args_of(call: Call) -> dict[str, object]:
    params = call.take_params()
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise ValueError("params is not an object")
    args: object = params.get("args")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if args is None:
        return {}
    if not isinstance(args, dict):
        raise ValueError("args is not an object")
    return args  # pyright: ignore[reportUnknownVariableType]


def _cancelled_text(call: Call, outcome: dict[str, object] | tuple[int, str]) -> str:
    if isinstance(outcome, tuple):
        return f"{call.method} was cancelled"
    error = outcome.get("error")
    if error:
        return f"{call.method} was cancelled, and then failed: {error}"
    return f"{call.method} was cancelled, but ran to its end all the same"


def _describe(exc: BaseException) -> str:
    if isinstance(exc, HandleError):
        return str(exc)
    if isinstance(exc, SystemExit):
        return f"the handler called sys.exit({exc.code!r})"
    return f"{type(exc).__name__}: {exc}"


def _attribute(module: object, name: str) -> str:
    value = getattr(module, name, None)
    if not isinstance(value, str) or not value:
        raise TypeError(f"a plugin needs a {name}: a string that is not empty")
    return value
