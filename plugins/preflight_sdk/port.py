"""A handle's ops on the wire, each with the call that it belongs to."""

from __future__ import annotations

from preflight_sdk.codec import Raw, encode
from preflight_sdk.extensions import CHUNKS, PARENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from preflight_sdk.calls import Call
    from preflight_sdk.context import Context
    from preflight_sdk.ops import Ops, Turn
    from preflight_sdk.wire import Writer


class WirePort:
    """Where the handles of one call lead."""

    def __init__(self, ops: Ops, writer: Writer, call: Call) -> None:
        self._ops = ops
        self._writer = writer
        self._tag: dict[str, object] = {}
        if call.ctx.has_capability(PARENT):
            self._tag["parent"] = Raw(call.id_text.encode())
        self.has_chunks = call.ctx.has_capability(CHUNKS)
        self.limit = writer.limit

    def request(
        self, method: str, params: dict[str, object], ctx: Context, timeout: float | None
    ) -> dict[str, object]:
        """One op."""
        return self._ops.request(method, {**params, **self._tag}, ctx, timeout)

    def turn(self, ctx: Context, timeout: float | None) -> Turn:
        """Many ops, with none of another thread between them."""
        return self._ops.turn(ctx, timeout, self._tag)

    def output(self, line: str, index: int | None) -> None:
        """One notification."""
        params: dict[str, object] = {"line": line, **self._tag}
        if index is not None:
            params["index"] = index
        self._writer.send(
            "output", encode({"jsonrpc": "2.0", "method": "output", "params": params})
        )
