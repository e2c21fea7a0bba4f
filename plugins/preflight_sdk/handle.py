"""What a handler acts through: everything that touches the target goes by here."""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64

from preflight_sdk import files
from preflight_sdk.context import Context
from preflight_sdk.errors import Cancelled, HandleError
from preflight_sdk.results import RunResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from preflight_sdk.files import Reader, Sink
    from preflight_sdk.ops import Turn
    from preflight_sdk.results import Item, TargetInfo

    class Port(Protocol):
        """Where a handle's ops go: the wire, or a test's target in memory.

        ``limit`` bounds a message; with ``has_chunks`` a file may go in many.
        """

        has_chunks: bool
        limit: int

        def request(
            self, method: str, params: dict[str, object], ctx: Context, timeout: float | None
        ) -> dict[str, object]:
            """The result of one handle op."""
            ...

        def turn(self, ctx: Context, timeout: float | None) -> Turn:
            """The right to make ops, one after another, with no other thread's between them."""
            ...

        def output(self, line: str, index: int | None) -> None:
            """Show one line to the operator, as that item's or as the whole call's."""
            ...


class Handle:
    """The target, for the length of one call, or of one item of a batch.

    One op is in flight at a time; a second thread's op waits its turn. Every op takes a
    ``timeout`` in seconds. Cancel: every op raises Cancelled at once, and starts nothing
    after that.
    """

    def __init__(
        self, port: Port, ctx: Context, info: TargetInfo, index: int | None = None
    ) -> None:
        self._port = port
        self._index = index
        self._ctx = ctx
        self._ended = False
        self._info = info

    @property
    def info(self) -> TargetInfo:
        """What the host knows about the target: don't probe for it again."""
        return self._info

    def run_command(self, script: str, *, timeout: float | None = None) -> RunResult:
        """Run a script in the target's own shell; a non-zero exit is a result.

        Raises: HandleError when it could not be run at all.
        """
        wire = self._request("run_command", {"script": script}, timeout)
        code = wire.get("exit_code", 0)
        if not isinstance(code, int):
            raise HandleError(f"run_command: exit_code {code!r} is no integer")
        return RunResult(
            _text(wire, "stdout"),
            _text(wire, "stderr"),
            code,
            stdout_bytes=_bytes(wire, "stdout_b64"),
            stderr_bytes=_bytes(wire, "stderr_b64"),
        )

    def put_file(self, path: str, data: bytes | Reader, *, timeout: float | None = None) -> None:
        """Write a file on the target, from bytes or from a file opened for bytes.

        Raises: HandleError; MessageTooLarge, where the host takes no pieces, for files of
        about 48 MiB and up with the usual limit.
        """
        self._refuse_if_ended()
        files.put(self._port, path, data, self._ctx, timeout)

    def get_file(
        self, path: str, *, into: Sink | None = None, timeout: float | None = None
    ) -> bytes:
        """The bytes of a file on the target; b"" when they went ``into`` a file.

        Raises: HandleError; what came before it is in the file then.
        """
        self._refuse_if_ended()
        return files.get(self._port, path, self._ctx, timeout, into)

    def run_cleanup(self, script: str, *, timeout: float = 0.75) -> bool:
        """Try one last script, cancelled or not; True when it ran and ended with 0.

        A host may refuse everything of a cancelled call (preflight-tui does), so nothing may
        depend on it: what stays behind must do no harm, and go with the next apply.
        """
        self._refuse_if_ended()
        last = Context(self._ctx.version, self._ctx.capabilities)
        try:
            wire = self._port.request("run_command", {"script": script}, last, timeout)
        except (HandleError, Cancelled):
            return False
        return wire.get("exit_code", 0) == 0

    def output(self, text: str, item: Item | None = None) -> None:
        """Show progress to the operator, one notification for each line of ``text``.

        ``item`` is for a plugin's own ``check_batch`` and ``apply_batch``.
        Cancel: raises Cancelled if the handler can't know yet; once it does know, lines
        pass, so that a clean-up can be seen.
        """
        self._refuse_if_ended()
        self._ctx.raise_if_unnoticed()
        for line in text.replace("\r\n", "\n").removesuffix("\n").split("\n"):
            self._port.output(line, self._index if item is None else item.index)

    def end(self) -> None:
        """Refuse everything from now on: the call was answered."""
        self._ended = True

    def _request(
        self, method: str, params: dict[str, object], timeout: float | None
    ) -> dict[str, object]:
        self._refuse_if_ended()
        return self._port.request(method, params, self._ctx, timeout)

    def _refuse_if_ended(self) -> None:
        if self._ended:
            raise HandleError("this call has been answered: its handle is closed")


def _bytes(wire: dict[str, object], name: str) -> bytes | None:
    text = wire.get(name)
    try:
        return a2b_base64(text) if isinstance(text, str) else None
    except (Base64Error, ValueError) as exc:
        raise HandleError(f"{name} in the host's answer is not base64") from exc


def _text(wire: dict[str, object], name: str) -> str:
    text = wire.get(name)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise HandleError(f"{name} in the host's answer is no string")
    return text
