"""A recorded wire played against a plugin: no target, no engine, only what was said then.

The host's frames are sent as they were, the plugin's are compared with what it says now. Its ids
may be others, and its version: both are passed over. What was masked in the trace stands for any
text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

from preflight.errors import ConfigError
from preflight.verify.driver import Driver, Ended
from preflight.verify.watch import Frame, members

_MASK = "******"
_FORMAT = 1
_LEAST_WAIT_S = 10.0  # for a frame that came at once in the trace
_LISTEN_S = 0.2  # for a frame that did not come in the trace
_SHOWN_CHARS = 1000


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a trace; ``frame`` is None for what was no JSON object, which is ``text``."""

    t_ms: float
    dir: str
    plugin: str
    pid: int
    target: str = ""
    frame: Frame | None = None
    text: str = ""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Where the plugin first said something else; ``line`` counts the trace's lines from 1."""

    line: int
    words: str
    then: str
    now: str


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What one process of the plugin was asked and said, by its lines of the trace."""

    pid: int
    target: str
    entries: list[tuple[int, Entry]]


class _Differs(Exception):
    def __init__(self, line: int, words: str, then: str, now: str) -> None:
        super().__init__(words)
        self.found = Difference(
            line=line, words=words, then=then[:_SHOWN_CHARS], now=now[:_SHOWN_CHARS]
        )


def read_scripts(path: Path, plugin: str) -> list[Script]:
    """Read what a trace has of one plugin, process by process, in the order of their starts.

    Raises :class:`ConfigError`.
    """
    entries = list(_entries(path))
    scripts: dict[tuple[str, int], Script] = {}
    for number, entry in entries:
        if entry.plugin == plugin:
            found = scripts.setdefault(
                (entry.target, entry.pid), Script(pid=entry.pid, target=entry.target, entries=[])
            )
            found.entries.append((number, entry))
    if not scripts:
        have = ", ".join(sorted({entry.plugin for _, entry in entries})) or "none"
        raise ConfigError(f"{path}: no frame of plugin {plugin!r}; it has those of: {have}")
    return list(scripts.values())


def _entries(path: Path) -> Iterator[tuple[int, Entry]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    _check_first(path, line)
                elif line.endswith(b"\n"):  # else it was cut off in the middle of a write
                    yield number, msgspec.json.decode(line, type=Entry)
    except OSError as exc:
        raise ConfigError(f"{path}: {exc.strerror}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path}: this is no wire trace: {exc}") from exc


def _check_first(path: Path, line: bytes) -> None:
    if members(msgspec.json.decode(line)).get("trace") != _FORMAT:
        raise ConfigError(f"{path}: this is no wire trace of format {_FORMAT}")


def replay(
    command: Sequence[str], environment: Mapping[str, str], script: Script
) -> Difference | None:
    """Play one process's part; gives the first difference. Raises ``OSError`` from the start."""
    with Driver(command, environment) as driver:
        try:
            _Player(driver).play(script)
        except _Differs as exc:
            return exc.found
    return None


class _Player:
    """Where the replay is, and which of the plugin's ids stands for which of the trace."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._ids: dict[str, object] = {}  # the trace's id of an operation, and today's
        self._asked: dict[str, str] = {}  # the host's requests without an answer

    def play(self, script: Script) -> None:
        last_ms = script.entries[0][1].t_ms
        for number, entry in script.entries:
            wait_s = _LEAST_WAIT_S + 2 * (entry.t_ms - last_ms) / 1000
            last_ms = entry.t_ms
            if entry.dir == "out":
                self._send(entry)
            else:
                self._compare(number, entry, self._next(number, entry, wait_s))
        if not self._asked:  # else the trace ends in the middle of a call
            self._expect_silence(script.entries[-1][0])

    def _send(self, entry: Entry) -> None:
        frame = entry.frame
        if frame is None:
            self._driver.write(entry.text.encode() + b"\n")
            return
        if "method" not in frame:
            frame = {**frame, "id": self._ids.get(_key(frame.get("id")), frame.get("id"))}
        elif "id" in frame:
            self._asked[_key(frame["id"])] = str(frame["method"])
        self._driver.write(json.dumps(frame).encode() + b"\n")

    def _next(self, number: int, entry: Entry, wait_s: float) -> bytes:
        then = _shown(entry)
        try:
            raw = self._driver.read_line(wait_s)
            while raw is not None and not raw.strip():
                raw = self._driver.read_line(wait_s)
        except Ended as exc:
            raise _Differs(number, "its process ended", then, str(exc)) from exc
        if raw is None:
            raise _Differs(number, f"nothing came within {wait_s:.0f} s", then, "")
        return raw

    def _compare(self, number: int, entry: Entry, raw: bytes) -> None:
        now_text = raw.decode("utf-8", "replace").strip()
        then, now = entry.frame, _object(raw)
        if then is None or now is None:
            if then is not None or not _alike(entry.text.strip(), now_text):
                raise _Differs(number, "another line came", _shown(entry), now_text)
            return
        method = self._asked.pop(_key(then.get("id")), "") if "method" not in then else ""
        place = _first_difference(self._plain(then, method), self._plain(now, method))
        if place is not None:
            words = f"it differs at {place or 'the top'}"
            raise _Differs(number, words, _shown(entry), now_text)
        if "method" in then and "id" in then:
            self._ids[_key(then["id"])] = now.get("id")

    def _plain(self, frame: Frame, method: str) -> Frame:
        """Leave out what may be otherwise: the plugin's own ids, and its version."""
        if "method" in frame and "id" in frame:
            return {**frame, "id": "its own"}
        if frame.get("method") == "cancel":
            return {"method": "cancel"}
        if method == "initialize" and isinstance(frame.get("result"), dict):
            return {**frame, "result": {**members(frame["result"]), "version": ""}}
        return frame

    def _expect_silence(self, number: int) -> None:
        try:
            raw = self._driver.read_line(_LISTEN_S)
        except Ended:
            return
        if raw is not None:
            text = raw.decode("utf-8", "replace")
            raise _Differs(number, "one frame more came after the last one", "", text)


def _first_difference(then: object, now: object, place: str = "") -> str | None:
    """Give the JSON Pointer of the first difference; None when there is none."""
    if isinstance(then, dict) and isinstance(now, dict):
        old, new = cast("Frame", then), cast("Frame", now)
        for name in [*old, *(one for one in new if one not in old)]:
            inner = f"{place}/{name}"
            if name not in old or name not in new:
                return inner
            if (found := _first_difference(old[name], new[name], inner)) is not None:
                return found
        return None
    if isinstance(then, list) and isinstance(now, list):
        old_items, new_items = cast("list[object]", then), cast("list[object]", now)
        for index, (one, other) in enumerate(zip(old_items, new_items, strict=False)):
            if (found := _first_difference(one, other, f"{place}/{index}")) is not None:
                return found
        return None if len(old_items) == len(new_items) else place
    if isinstance(then, str) and isinstance(now, str):
        return None if _alike(then, now) else place
    same = then == now and isinstance(then, bool) is isinstance(now, bool)
    return None if same else place


def _alike(then: str, now: str) -> bool:
    """Compare texts; what was masked then may be anything now."""
    if _MASK not in then:
        return then == now
    pattern = ".*".join(re.escape(part) for part in then.split(_MASK))
    return re.fullmatch(pattern, now, re.DOTALL) is not None


def _object(raw: bytes) -> Frame | None:
    try:
        value: object = json.loads(raw)
    except ValueError:
        return None
    return cast("Frame", value) if isinstance(value, dict) else None


def _key(id: object) -> str:
    return json.dumps(id)


def _shown(entry: Entry) -> str:
    return entry.text if entry.frame is None else json.dumps(entry.frame, ensure_ascii=False)
