"""The reading side: every line of the host is answered, dispatched or counted here.

Runs on the reader thread and never blocks: what has to be written goes through ``post``,
what has to be run goes onto ``jobs``.
"""

from __future__ import annotations

from preflight_sdk import errors, extensions
from preflight_sdk.calls import Call, Calls
from preflight_sdk.codec import Envelope, peek, split
from preflight_sdk.context import Context
from preflight_sdk.errors import HandleError, InvalidMessage, MessageTooLarge
from preflight_sdk.frames import answer, refusal
from preflight_sdk.framing import Framer, Oversize
from preflight_sdk.handlers import describe, show_traceback
from preflight_sdk.handshake import (
    MIN_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
    Agreement,
    agree,
)
from preflight_sdk.ops import Ops
from preflight_sdk.violations import Violations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from preflight_sdk.served import Served
    from preflight_sdk.wire import Writer

    Job = Callable[[], None]
    Jobs = Callable[[Job], None]

_NO_ID = "null"
_CALLS = ("check", "apply")


class Session:
    """One host's conversation, from its first byte to end of file."""

    def __init__(self, served: Served, writer: Writer, jobs: Jobs) -> None:
        self._served = served
        self._writer = writer
        self._jobs = jobs
        self._framer = Framer(served.limit)
        self._opening: Callable[[], None] | None = None
        self._first_line = True
        self._called = False
        self.agreement: Agreement | None = None
        self.calls = Calls()
        self.ops = Ops(writer.send)
        self.violations = Violations()

    def feed(self, chunk: bytes) -> None:
        """Take what was read.

        What came in the same read as ``initialize`` was sent before its answer, so it is
        out of order: the handshake takes effect behind the chunk.
        """
        self._take(self._framer.feed(chunk))
        opening, self._opening = self._opening, None
        if opening is not None:
            opening()

    def end(self) -> None:
        """The host has closed stdin: a last line without newline counts, then all is cancelled."""
        self._take(self._framer.end())
        if self._opening is not None:
            self._opening()
        self.interrupt()

    def interrupt(self) -> None:
        """Cancel every call: SIGTERM, or the host has gone."""
        for call in self.calls.cancel_all():
            self._refuse(
                call.id_text, errors.CANCELLED, f"{call.method} was cancelled in the queue"
            )

    def _take(self, lines: list[bytes | Oversize]) -> None:
        for line in lines:
            if isinstance(line, Oversize):
                self._oversize(line)
                continue
            if self._first_line:
                self._first_line = False
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip(b" \t\r"):
                self._line(line)

    def _line(self, line: bytes) -> None:
        try:
            envelope = split(line)
        except InvalidMessage as exc:
            self.violations.count(str(exc), line)
            seen = peek(line[:4096])
            lost = HandleError(f"the host's answer can't be read: {exc}")
            if "method" in seen or not self.ops.fail(seen.value("id"), lost):
                self._refuse(_NO_ID, exc.code, str(exc))
            return
        if "method" not in envelope:
            self._response(envelope, line)
        elif "id" in envelope:
            self._request(envelope)
        else:
            self._notification(envelope, line)

    def _oversize(self, line: Oversize) -> None:
        self.violations.count(f"a line of {line.size} bytes is over the limit", line.head)
        seen = peek(line.head)
        method, key = seen.members.get("method"), seen.members.get("id")
        name = method if isinstance(method, str) else "the host's message"
        text = errors.too_large(name[:80], line.size, self._served.limit)
        if "method" not in seen and self.ops.fail(key, MessageTooLarge(text)):
            return
        self._refuse(seen.id_text if _is_id(key) else _NO_ID, errors.TOO_LARGE, text)

    def _response(self, envelope: Envelope, line: bytes) -> None:
        if "id" not in envelope:
            self.violations.count("neither a request nor a response", line)
            self._refuse(_NO_ID, errors.INVALID_REQUEST, "a message has a method, an id or both")
        elif not self.ops.resolve(envelope.members["id"], envelope):
            self.violations.count("a response to nothing that was asked", line)

    def _notification(self, envelope: Envelope, line: bytes) -> None:
        if envelope.members.get("jsonrpc") != "2.0":
            self.violations.count("jsonrpc is not 2.0", line)
        elif envelope.members["method"] == "cancel":
            self._cancel(envelope)

    def _cancel(self, envelope: Envelope) -> None:
        try:
            params = envelope.value("params")
        except ValueError:
            return
        members: dict[str, object] = params if isinstance(params, dict) else {}  # pyright: ignore[reportUnknownVariableType]
        key = members.get("id")
        if not _is_id(key):
            return
        call = self.calls.cancel(key)
        if call is not None:
            self._refuse(
                call.id_text, errors.CANCELLED, f"{call.method} was cancelled in the queue"
            )

    def _request(self, envelope: Envelope) -> None:
        key, method = envelope.members["id"], envelope.members["method"]
        if not _is_id(key):
            self._refuse(_NO_ID, errors.INVALID_REQUEST, "an id is an integer or a string")
            return
        refusal = self._refusal(envelope, method)
        if refusal is not None:
            self._refuse(envelope.id_text, refusal[0], refusal[1])
        elif method == "initialize":
            self._initialize(envelope)
        elif self.agreement is not None:
            assert isinstance(key, int | str)
            ctx = Context(self.agreement.version, self.agreement.capabilities)
            self._call(Call(str(method), key, envelope, ctx), self.agreement)

    def _refusal(self, envelope: Envelope, method: object) -> tuple[int, str] | None:
        if envelope.members.get("jsonrpc") != "2.0":
            return errors.INVALID_REQUEST, 'jsonrpc must be "2.0"'
        if not isinstance(method, str):
            return errors.INVALID_REQUEST, "method is not a string"
        name = method[:80].replace('"', "'")
        if method == "initialize":
            if self.agreement is None and not self._served.opening:
                return None
            return errors.OUT_OF_ORDER, 'method "initialize" called a second time'
        if self.agreement is None:
            return errors.OUT_OF_ORDER, f'method "{name}" called before initialize completed'
        needed = extensions.METHODS.get(method)
        if method not in _CALLS and needed not in self.agreement.capabilities:
            return errors.METHOD_NOT_FOUND, f'method "{name}" is not known'
        if method == "configure" and self._called:
            return errors.OUT_OF_ORDER, 'method "configure" comes once, before any other call'
        return None

    def _call(self, call: Call, agreement: Agreement) -> None:
        if not self.calls.add(call):
            self._refuse(call.id_text, errors.INVALID_REQUEST, "this id is in flight already")
            return
        self._called = True
        self._jobs(lambda: self._served.run(call, agreement, self))

    def _initialize(self, envelope: Envelope) -> None:
        try:
            params = envelope.value("params")
            if not isinstance(params, dict):
                raise InvalidMessage(errors.INVALID_PARAMS, "params is not an object")
            agreement = agree(params, self._served.capabilities)  # pyright: ignore[reportUnknownArgumentType]
        except (InvalidMessage, ValueError) as exc:
            code = exc.code if isinstance(exc, InvalidMessage) else errors.INVALID_PARAMS
            self._refuse(envelope.id_text, code, str(exc))
            return
        self._served.opening = True
        id_text = envelope.id_text
        if self._served.start is None:
            self._opening = lambda: self._open(id_text, agreement)
        else:
            self._opening = lambda: self._jobs(lambda: self._start(id_text, agreement))

    def _start(self, id_text: str, agreement: Agreement) -> None:
        """On the main thread: the plugin's own start, then the answer to ``initialize``."""
        failure = self._served.run_start(agreement)
        if failure:
            self._served.opening = False
            self._refuse(id_text, errors.INTERNAL_ERROR, failure)
        else:
            self._open(id_text, agreement)

    def _open(self, id_text: str, agreement: Agreement) -> None:
        try:
            schemas = self._served.schemas(agreement)
        except Exception as exc:  # the author's schema: a reader that ends here would say nothing
            show_traceback()
            self._served.opening = False
            self._refuse(id_text, errors.INTERNAL_ERROR, f"no schema: {describe(exc)}")
            return
        self._writer.limit = min(self._served.limit, agreement.peer_limit)
        self.agreement = agreement
        self._served.opening = False
        self._writer.post(
            answer(
                id_text,
                {
                    "protocol_version": PROTOCOL_VERSION,
                    "min_protocol_version": MIN_PROTOCOL_VERSION,
                    "capabilities": self._served.capabilities,
                    "name": self._served.name,
                    "version": self._served.version,
                    "max_message_bytes": self._served.limit,
                    **schemas,
                },
            )
        )

    def _refuse(self, id_text: str, code: int, message: str) -> None:
        self._writer.post(refusal(id_text, code, message))


def _is_id(key: object) -> bool:
    return isinstance(key, int | str) and not isinstance(key, bool)
