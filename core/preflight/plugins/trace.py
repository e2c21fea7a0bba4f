"""Every frame of every plugin's wire, in a file that ``plugin replay`` plays again.

One JSON object a line. Secrets are masked in it, also where they are base64. A trace that can't
be written ends; the run goes on.
"""

from __future__ import annotations

import os
import time
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec

from preflight.errors import ConfigError
from preflight.events import Diagnostic, Event, WireFrame
from preflight.rpc.peer import Direction, Trace

MASK = "******"
TRACE_FORMAT = 1

_PREVIEW_CHARS = 1024
_MOST_OPEN = 1000  # requests whose answer is awaited, to tell how long it took
_BASE64 = frozenset({"data", "stdout_b64", "stderr_b64"})

Mask = Callable[[str], str]


class WireTrace:
    """Writes one trace file and, as events, what a console shows of it.

    The file is its owner's alone. Raises :class:`ConfigError` when it can't be made.
    """

    def __init__(
        self,
        path: Path,
        *,
        emit: Callable[[Event], None],
        mask: Mask,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        try:
            self._fd = os.open(path, flags, 0o600)
        except OSError as exc:
            raise ConfigError(f"--trace-wire {path}: {exc.strerror}") from exc
        self._path = path
        self._emit = emit
        self._mask = mask
        self._clock = clock
        self._start = clock()
        self._write({"trace": TRACE_FORMAT})

    def tap(self, *, plugin: str, target: str, pid: int, task: Callable[[], str]) -> Trace:
        """Make the hook for one process of one plugin; ``task`` tells what it works on."""
        open_since: OrderedDict[tuple[str, object], float] = OrderedDict()

        def take(direction: Direction, frame: bytes, size: int) -> None:
            now = self._clock()
            text, value = masked(frame, self._mask)
            busy = task()
            about = {"plugin": plugin, "target": target, "task": busy}
            key = "frame" if value is not None else "text"
            said = msgspec.Raw(text.encode()) if value is not None else text
            at = {"t_ms": round((now - self._start) * 1000, 3), "dir": direction}
            self._write({**at, **about, "pid": pid, "bytes": size, key: said})
            kind, id = _kind(value)
            took = _took(open_since, direction, kind, id, now)
            self._emit(
                WireFrame(
                    dir=direction,
                    kind=kind,
                    bytes=size,
                    id=id,
                    took_ms=took,
                    preview=text[:_PREVIEW_CHARS],
                    plugin=plugin,
                    target=target,
                    task=busy,
                )
            )

        return take

    def close(self) -> None:
        """End the file. Safe to repeat."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, entry: dict[str, object]) -> None:
        if self._fd < 0:
            return
        rest = memoryview(msgspec.json.encode(entry) + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as exc:
            self.close()
            words = f"the wire trace {self._path} ends here: {exc.strerror}"
            self._emit(Diagnostic(level="warning", summary=words))


def masked(frame: bytes, mask: Mask) -> tuple[str, dict[str, object] | None]:
    """Give a frame's text without secrets, and its members; None for what is no JSON object.

    Secrets are looked for in the strings as they are meant, since JSON may write one in many ways.
    """
    try:
        value = msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return mask(frame.decode("utf-8", "replace")), None
    if not isinstance(value, dict):
        return mask(frame.decode("utf-8", "replace")), None
    clean = cast("dict[str, object]", _clean(cast("object", value), mask))
    if clean == value:
        return frame.decode().strip(), clean
    return msgspec.json.encode(clean).decode(), clean


def _clean(value: object, mask: Mask, name: str = "") -> object:
    if isinstance(value, str):
        return MASK if name in _BASE64 and _hides(value, mask) else mask(value)
    if isinstance(value, list):
        return [_clean(item, mask) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return {mask(key): _clean(item, mask, key) for key, item in pairs}
    return value


def _hides(text: str, mask: Mask) -> bool:
    """Tell whether there is a secret in what base64 stands for."""
    try:
        plain = b64decode(text, validate=True).decode("utf-8", "replace")
    except ValueError:
        return False
    return mask(plain) != plain


def _kind(value: dict[str, object] | None) -> tuple[str, int | str | None]:
    if value is None:
        return "invalid", None
    id, method = value.get("id"), value.get("method")
    known = id if isinstance(id, int | str) and not isinstance(id, bool) else None
    if isinstance(method, str):
        return method, known
    return ("error" if value.get("error") is not None else "result"), known


def _took(
    open_since: OrderedDict[tuple[str, object], float],
    direction: Direction,
    kind: str,
    id: int | str | None,
    now: float,
) -> float | None:
    """Pair an answer with its request; gives the milliseconds between the two."""
    if id is None:
        return None
    if kind in ("result", "error"):
        asked = open_since.pop(("in" if direction == "out" else "out", id), None)
        return None if asked is None else round((now - asked) * 1000, 1)
    open_since[direction, id] = now
    if len(open_since) > _MOST_OPEN:
        open_since.popitem(last=False)
    return None
