"""The frames this side writes, apart from its own requests."""

from __future__ import annotations

from preflight_sdk.codec import Raw, encode


def answer(id_text: str, result: dict[str, object]) -> bytes:
    """A response frame; the id goes back as it came."""
    return encode({"jsonrpc": "2.0", "id": Raw(id_text.encode()), "result": result})


def refusal(id_text: str, code: int, message: str) -> bytes:
    """An error response frame."""
    error = {"code": code, "message": message}
    return encode({"jsonrpc": "2.0", "id": Raw(id_text.encode()), "error": error})
