"""What the kit lets a plugin work on: files in memory with scripted answers, or this machine."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

_LONGEST_S = 60.0  # of one script on this machine


class OpFailed(Exception):
    """The target refuses an operation; answered with -32000 and this text."""


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a script in memory is answered with, if ``match`` is part of it."""

    match: str
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


class KitTarget(Protocol):
    """One target; every scenario begins with :meth:`reset`."""

    def reset(self) -> None:
        """Bring it back to its beginning."""
        ...

    def do(self, method: str, params: Mapping[str, object]) -> dict[str, object]:
        """Give the result of a handle operation. Raises :class:`OpFailed`."""
        ...

    def state(self) -> dict[str, bytes] | None:
        """Give what is on it, to be compared; None where nobody can know."""
        ...


class MemoryTarget:
    """Files by path. A script gets the first answer that matches it; else it is tried as one of
    a few plain commands on those files (test, cat, rm, mv, mkdir), else it ends with 0.
    """

    def __init__(
        self, files: Mapping[str, bytes] | None = None, answers: Sequence[Answer] = ()
    ) -> None:
        self._first = dict(files or {})
        self._answers = answers
        self.files = dict(self._first)

    def reset(self) -> None:
        """Have the files of the beginning."""
        self.files = dict(self._first)

    def state(self) -> dict[str, bytes]:
        """Give all files."""
        return dict(self.files)

    def do(self, method: str, params: Mapping[str, object]) -> dict[str, object]:
        """Give the result of a handle operation. Raises :class:`OpFailed`."""
        path = _text(params, "path") if method != "run_command" else ""
        match method:
            case "put_file":
                self.files[path] = _data(params)
                return {}
            case "get_file":
                if path not in self.files:
                    raise OpFailed(f"{path}: no such file")
                return {"data": b64encode(self.files[path]).decode()}
            case _:
                return self._run(_text(params, "script"))

    def _run(self, script: str) -> dict[str, object]:
        for answer in self._answers:
            if answer.match in script:
                return {
                    "stdout": answer.stdout,
                    "stderr": answer.stderr,
                    "exit_code": answer.exit_code,
                }
        out, code = self._plain(script)
        return {"stdout": out, "stderr": "", "exit_code": code}

    def _plain(self, script: str) -> tuple[str, int]:
        words: list[str] = []
        with contextlib.suppress(ValueError):
            words = [word for word in shlex.split(script) if word not in ("-f", "-e", "-rf", "--")]
        match words:
            case ["test", path] | ["[", path, "]"]:
                return "", 0 if path in self.files else 1
            case ["cat", path]:
                found = self.files.get(path)
                return ("", 1) if found is None else (found.decode("utf-8", "replace"), 0)
            case ["rm", *paths]:
                for path in paths:
                    self.files.pop(path, None)
            case ["mv", old, new] if old in self.files:
                self.files[new] = self.files.pop(old)
            case _:
                pass
        return "", 0


class LocalTarget:
    """This machine, for real; ``reset_script`` brings it back to the beginning."""

    def __init__(self, reset_script: str = "") -> None:
        self._reset_script = reset_script

    def reset(self) -> None:
        """Run the reset script. Raises :class:`OpFailed` when it fails."""
        if self._reset_script:
            done = self._run(self._reset_script)
            if done["exit_code"] != 0:
                raise OpFailed(f"the reset script ended with {done['exit_code']}: {done['stderr']}")

    def state(self) -> None:
        """Tell nothing: a machine is too large to compare."""

    def do(self, method: str, params: Mapping[str, object]) -> dict[str, object]:
        """Give the result of a handle operation. Raises :class:`OpFailed`."""
        try:
            match method:
                case "put_file":
                    path = Path(_text(params, "path"))
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(_data(params))
                    return {}
                case "get_file":
                    data = Path(_text(params, "path")).read_bytes()
                    return {"data": b64encode(data).decode()}
                case _:
                    return self._run(_text(params, "script"))
        except OSError as exc:
            raise OpFailed(str(exc)) from exc

    def _run(self, script: str) -> dict[str, object]:
        try:
            done = subprocess.run(
                ["sh", "-c", script],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            raise OpFailed(f"the script took longer than {_LONGEST_S:g} s") from exc
        code = done.returncode if done.returncode >= 0 else 128 - done.returncode
        return {
            "stdout": done.stdout.decode("utf-8", "replace"),
            "stderr": done.stderr.decode("utf-8", "replace"),
            "exit_code": code,
        }


def _text(params: Mapping[str, object], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise OpFailed(f"{name} is no text")
    return value


def _data(params: Mapping[str, object]) -> bytes:
    try:
        return b64decode(_text(params, "data"), validate=True)
    except ValueError as exc:
        raise OpFailed("data is no base64") from exc
