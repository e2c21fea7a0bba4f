"""One conversation with one process of the plugin: asks, serves its operations, watches.

It goes on where it can after a fault that only a :class:`Watch` notes, so that one fault is
named once and not by everything that comes after it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import msgspec

from preflight.verify.driver import Driver, Ended
from preflight.verify.targets import KitTarget, OpFailed
from preflight.verify.watch import Frame, Log, Watch, error_code, members, shape_fault

PATIENCE_S = 10.0
"""Seconds for any answer. Source: docs/protocol.md 3, ``init_timeout``."""

OPS = ("run_command", "put_file", "get_file")
_CALLS = ("check", "apply", "check_batch", "apply_batch")
_NO_SIGNALS = dict.fromkeys(
    ("family", "name", "version", "arch", "hostname", "package_manager", "init"), ""
)
TARGET = {**_NO_SIGNALS, "family": "linux", "runtime_kind": "posix-shell"}


class Fault(Exception):
    """The requirement is not held; the text says what was seen, ``frames`` what led to it."""

    def __init__(self, words: str, frames: Sequence[str] = ()) -> None:
        super().__init__(words)
        self.frames = list(frames)


class CallEnd(msgspec.Struct, kw_only=True):
    """How a call ended: its answer, or the operation at which it was held."""

    answer: Frame | None = None
    held: Frame | None = None
    op_count: int = 0
    id: object = None

    @property
    def result(self) -> Frame:
        """The result's members; empty for an error and for a missing result."""
        return members((self.answer or {}).get("result"))

    @property
    def error(self) -> str:
        """The error, the protocol's or the module's; empty for success."""
        if self.answer is None:
            return "no answer"
        wrong = members(self.answer.get("error"))
        return str(wrong.get("message") or wrong) if wrong else str(self.result.get("error") or "")


class Talk:
    """Raw frames over a driver; the ids of requests are given by the caller or count from 1."""

    def __init__(self, driver: Driver, target: KitTarget, watch: Watch, limit: int = 0) -> None:
        self.driver = driver
        self.log = Log()
        self.abandoned: set[object] = set()  # operations that the plugin has cancelled
        self.progress: list[Frame] = []
        self.refuses = False  # operations of a call that was cancelled start nothing
        self._target = target
        self._watch = watch
        self._limit = limit
        self._last_id = 0
        self._open: dict[str, str] = {}
        self._shaken = False

    def send_raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        self.log.add(">", data)
        self.driver.write(data)

    def send(self, frame: Mapping[str, object]) -> None:
        """Write one frame."""
        self.send_raw(line(frame))

    def expect(self, id: object, method: str) -> None:
        """Know that an answer to ``id`` is due: its request is sent raw."""
        if method != "initialize":
            self._shaken = True  # what comes now was asked for, be it too early
        self._open[key(id)] = method

    def ask(self, method: str, params: object = None, id: object = None) -> object:
        """Send a request; gives its id."""
        if id is None:
            self._last_id += 1
            id = self._last_id
        self.expect(id, method)
        self.send({"id": id, "method": method, "params": {} if params is None else params})
        return id

    def forget(self, id: object) -> None:
        """Wait for no answer to ``id``, and mind none."""
        self._open.pop(key(id), None)

    def initialize(self, **over: object) -> Frame:
        """Shake hands, or try to; gives the answer."""
        params = initialize_params(**over)
        return self.answer_to(self.ask("initialize", params))

    def answer_to(self, id: object, timeout: float = PATIENCE_S) -> Frame:
        """Wait for the answer to ``id``, serving operations. Raises :class:`Fault`."""
        found = self.until(lambda frame: is_answer(frame, id), timeout)
        if found is None:
            raise Fault(f"no answer to {key(id)} within {timeout:g} s")
        return found

    def call(self, method: str, params: object, *, hold_at: int = 0, id: object = None) -> CallEnd:
        """Call to the answer, or to its operation ``hold_at``, which is then left unanswered."""
        id = self.ask(method, params, id)
        count = 0

        def stop(frame: Frame) -> bool:
            nonlocal count
            if is_op(frame):
                count += 1
                return count == hold_at
            return is_answer(frame, id)

        found = self.until(stop)
        if found is None:
            raise Fault(f"no answer to {method} within {PATIENCE_S:g} s")
        if is_op(found):
            return CallEnd(held=found, op_count=count, id=id)
        return CallEnd(answer=found, op_count=count, id=id)

    def until(self, stop: Callable[[Frame], bool], timeout: float = PATIENCE_S) -> Frame | None:
        """Read on to the frame that ``stop`` wants; None when it did not come in time.

        All operations but that frame are served. Raises :class:`Fault` when the process ends.
        """
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            try:
                raw = self.driver.read_line(left)
            except Ended as exc:
                raise Fault(str(exc)) from exc
            frame = self._read(raw) if raw is not None else None
            if frame is None:
                continue
            if stop(frame):
                return frame
            if is_op(frame):
                self.serve(frame)
        return None

    def listen(self, seconds: float) -> None:
        """Read what comes without being asked for."""
        self.until(lambda frame: False, seconds)

    def serve(self, op: Frame) -> None:
        """Do an operation on the target and answer it."""
        if self.refuses:
            self.refuse(op, -32000, "its call was cancelled")
            return
        try:
            result = self._target.do(str(op["method"]), members(op.get("params")))
            self.send({"id": op["id"], "result": result})
        except OpFailed as exc:
            self.refuse(op, -32000, str(exc))

    def refuse(self, op: Frame, code: int, message: str) -> None:
        """Answer an operation with an error."""
        self.send({"id": op["id"], "error": {"code": code, "message": message}})

    def _read(self, raw: bytes) -> Frame | None:
        """Take a line; None for one that is no frame to act on."""
        if not raw.strip():
            return None
        self.log.add("<", raw)
        if self._limit and len(raw) > self._limit:
            words = f"a frame of {len(raw)} bytes, the host's limit is {self._limit}"
            self._note("V2-OV-03", words)
        try:
            value: object = json.loads(raw)
        except ValueError:
            self._note("V2-SO-01", f"this is no JSON: {raw[:200]!r}")
            return None
        if not isinstance(value, dict):
            self._note("V2-SO-01", f"this is no JSON object: {raw[:200]!r}")
            return None
        frame = cast("Frame", value)
        if wrong := shape_fault(frame):
            self._note("V2-FR-01", wrong)
        elif not self._shaken and not is_answer(frame, None, any_id=True):
            self._note("V2-OR-03", "this came before initialize was answered")
        if "method" in frame:
            self._notice(frame)
        elif "id" in frame:
            return self._answer(frame)
        return frame

    def _notice(self, frame: Frame) -> None:
        params = members(frame.get("params"))
        match frame["method"]:
            case "output":
                self._watch.output_count += 1
                if not {"initialize", *_CALLS} & set(self._open.values()):
                    self._note("V2-OR-04", "this line of output belongs to no call in flight")
            case "progress":
                self.progress.append(params)
            case "cancel":
                self.abandoned.add(key(params.get("id")))
            case _ if "id" in frame and frame["method"] not in OPS:
                self.refuse(frame, -32601, "no such method")
            case _:
                pass

    def _answer(self, frame: Frame) -> Frame | None:
        """Pair an answer with its request; None for one that was not asked for."""
        id = frame["id"]
        method = self._open.pop(key(id), None)
        if method is None and not isinstance(id, bool):
            alike = [
                one for one in self._open if id is not None and loosely(one) == loosely(key(id))
            ]
            if alike:
                self._note("V2-ID-01", f"the id {alike[0]} was echoed as {key(id)}")
                method = self._open.pop(alike[0])
                frame = {**frame, "id": json.loads(alike[0])}
        if method is None and id is not None:
            self._note("V2-ID-03", f"an answer to {key(id)}, which is not waited for")
            return None
        if method == "initialize" and error_code(frame) is None:
            self._shaken = True
        return frame

    def _note(self, id: str, words: str) -> None:
        self._watch.note(id, words, self.log.frames)


def initialize_params(**over: object) -> Frame:
    """Give the params of ``initialize`` as this kit sends them."""
    params: Frame = {
        "protocol_version": 2,
        "min_protocol_version": 2,
        "capabilities": [],
        "max_message_bytes": 64 * 1024 * 1024,
        "target": TARGET,
    }
    return {**params, **over}


def line(frame: Mapping[str, object]) -> bytes:
    """Give a frame as it is written."""
    return json.dumps({"jsonrpc": "2.0", **frame}, ensure_ascii=False).encode() + b"\n"


def key(id: object) -> str:
    """Give an id as text that tells 7 from "7"."""
    return json.dumps(id)


def loosely(known: str) -> str:
    """Give an id's text without its type."""
    return known.strip('"').removesuffix(".0")


def is_op(frame: Frame) -> bool:
    """Tell whether it asks for a handle operation."""
    return "id" in frame and frame.get("method") in OPS


def is_answer(frame: Frame, id: object, *, any_id: bool = False) -> bool:
    """Tell whether it answers ``id``."""
    return "method" not in frame and "id" in frame and (any_id or key(frame["id"]) == key(id))
