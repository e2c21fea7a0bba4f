"""What a plugin's handler may have to catch, and the wire's error codes."""

from __future__ import annotations

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
OP_FAILED = -32000
VERSION_MISMATCH = -32010
OUT_OF_ORDER = -32011
TOO_LARGE = -32020
CANCELLED = -32800


class Cancelled(BaseException):
    """The host gave this call up: clean up and let the exception go.

    A BaseException, so that an ``except Exception`` around a handle op can't swallow it.
    """


class HandleError(Exception):
    """A handle op failed; the text is the target's own error.

    ``code`` is the JSON-RPC code of the answer, -32000 when the target itself failed.
    """

    def __init__(self, message: str, code: int = OP_FAILED) -> None:
        super().__init__(message)
        self.code = code


class OpTimeout(HandleError):
    """A handle op took longer than the ``timeout`` it was given, and was cancelled."""


class MessageTooLarge(HandleError):
    """A message over the limit: refused before any byte of it was written, or dropped."""

    def __init__(self, message: str) -> None:
        super().__init__(message, TOO_LARGE)


class InvalidParams(Exception):
    """The task's params can't be used; the text is for who wrote the playbook.

    It becomes the task's error, without a traceback.
    """


class InvalidMessage(Exception):
    """A line that is no usable frame; ``code`` is what its sender is answered."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def too_large(method: str, size: int, limit: int) -> str:
    """One sentence naming the method, both sizes and the setting.

    Units: bytes of one line; base64 leaves three quarters of it for a file.
    """
    mib = max(0, limit - 1024) * 3 // 4 * 10 // (1 << 20)
    return (
        f"{method}: a message of {size} bytes is over the limit of {limit} bytes"
        f" (about {mib // 10}.{mib % 10} MiB of file); raise max_message_bytes or send less"
    )
