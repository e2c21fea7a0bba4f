"""A target in memory, for tests: its files, and the answers to the scripts it is asked to run."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from typing import TYPE_CHECKING

from preflight_sdk.codec import decode, encode
from preflight_sdk.errors import HandleError
from preflight_sdk.results import RunResult

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer = RunResult | Callable[[str], RunResult]
    Params = dict[str, object]


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


def op_of(method: str, params: Params) -> Op:
    """An op as it would arrive at the host."""
    wire = decode(encode(params).decode())
    assert isinstance(wire, dict)
    text: dict[str, str] = {str(name): str(value) for name, value in wire.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return Op(
        method,
        path=text.get("path", ""),
        script=text.get("script", ""),
        data=a2b_base64(text.get("data", "")),
    )
