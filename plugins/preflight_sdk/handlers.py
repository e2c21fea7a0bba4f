"""One run of what the author wrote, whatever it does, made into one outcome."""

from __future__ import annotations

from preflight_sdk import errors
from preflight_sdk.errors import Cancelled, HandleError, InvalidParams
from preflight_sdk.results import ApplyResult, CheckResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from preflight_sdk.context import Context

    Outcome = dict[str, object] | tuple[int, str]
    """A result's members, or the code and the words of an error."""

RESULTS: dict[str, type[CheckResult] | type[ApplyResult]] = {
    "check": CheckResult,
    "apply": ApplyResult,
}


def attempt(ctx: Context, work: Callable[[], object]) -> tuple[object, str | None]:
    """What the author's code returned and None, or None and why it failed.

    Cancel: Cancelled goes through when the host did give this call up.
    """
    try:
        return work(), None
    except Cancelled as exc:
        if ctx.is_set:
            raise
        return None, f"gave up, but was not cancelled: {exc}"
    except KeyboardInterrupt:  # someone at a keyboard wants the process to end
        raise
    except BaseException as exc:  # whatever it is, the call is answered
        if not isinstance(exc, HandleError | InvalidParams):
            show_traceback()
        return None, describe(exc)


def outcome_of(
    method: str, ctx: Context, work: Callable[[], object], *, diff: bool = False
) -> Outcome:
    """Run a ``check`` or an ``apply``; a handler that fails is a result with an ``error``.

    Cancel: Cancelled goes through when the host did give this call up.
    """
    result, error = attempt(ctx, work)
    if error is not None:
        return failed(method, error)
    return wire_of(method, result, diff=diff)


def wire_of(method: str, result: object, *, diff: bool) -> Outcome:
    """The members of what a handler returned, if it is of the right kind."""
    wanted = RESULTS[method]
    if not isinstance(result, wanted):
        kind = type(result).__name__
        return errors.INTERNAL_ERROR, f"{method} returned {kind}, not {wanted.__name__}"
    return result.to_wire(diff=diff)


def failed(method: str, error: str) -> dict[str, object]:
    """A failed handler's result, as the Go SDK has it."""
    if method == "check":
        return CheckResult(False, error=error).to_wire()
    return ApplyResult(error=error).to_wire()


def describe(exc: BaseException) -> str:
    """An exception in the operator's words."""
    if isinstance(exc, HandleError | InvalidParams):
        return str(exc)
    if isinstance(exc, SystemExit):
        return f"the handler called sys.exit({exc.code!r})"
    return f"{type(exc).__name__}: {exc}"


def show_traceback() -> None:
    """The exception being handled, on stderr: the host shows it to the operator."""
    import traceback

    traceback.print_exc()
