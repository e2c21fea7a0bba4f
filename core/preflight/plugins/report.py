"""The words for what went wrong with a plugin: one report that names all that is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from preflight.errors import PluginError, Reason
from preflight.procs import exit_words
from preflight.rpc.messages import NO_COMMON_VERSION, PARSE_ERROR, TOO_LARGE, RpcError

_ENOEXEC = 8
_START_REASONS = {
    NO_COMMON_VERSION: Reason.PLUGIN_PROTOCOL,
    PARSE_ERROR: Reason.PLUGIN_PROTOCOL,
    TOO_LARGE: Reason.PLUGIN_MESSAGE_TOO_LARGE,
}


def spawn_failure(exc: OSError, path: Path) -> PluginError:
    """Tell apart a file that is gone, that lacks its interpreter, and that can't run here."""
    if isinstance(exc, FileNotFoundError):
        interpreter = _interpreter(path)
        if interpreter is None:
            words = f"{path} is not found any more; look with: plugin list"
        else:
            words = f"{path} needs {interpreter}, which is not there"
    elif isinstance(exc, PermissionError):
        words = f"{path} may not be executed: chmod +x it, or look at its file system's options"
    elif exc.errno == _ENOEXEC:
        words = f"{path} can't run on this machine: built for another one, or no #! line"
    else:
        words = f"{path} can't be started: {exc.strerror or exc}"
    return PluginError(Reason.PLUGIN_START, words)


def start_failure(
    exc: Exception,
    path: Path,
    *,
    elapsed_s: float,
    pid: int,
    returncode: int | None,
    stderr: Sequence[str],
) -> PluginError:
    """Say why a plugin that was started never became ready; quotes its stderr."""
    if isinstance(exc, PluginError):
        return PluginError(exc.reason, exc.message + _quote(stderr))
    if isinstance(exc, TimeoutError):
        words = (
            f"{path} gave no answer to initialize in {elapsed_s:.1f} s; its process {pid} was "
            "killed (raise init_timeout if it needs longer)"
        )
        return PluginError(Reason.PLUGIN_INIT_TIMEOUT, words + _quote(stderr))
    if isinstance(exc, RpcError):
        reason = _START_REASONS.get(exc.code, Reason.PLUGIN_START)
        words = f"{path} refused initialize: {exc.message} ({exc.code})"
        return PluginError(reason, words + _quote(stderr))
    how = "closed its stdout" if returncode is None else exit_words(returncode)
    words = f"{path} {how} before initialize was answered"
    return PluginError(Reason.PLUGIN_START, words + _quote(stderr))


def crash(
    name: str,
    *,
    how: str,
    method: str,
    elapsed_s: float,
    noise_count: int,
    stderr: Sequence[str],
) -> PluginError:
    """Make the one report of a crash: how it ended, in what, after how long, its last words."""
    words = f"plugin {name} crashed: {how} during {method} after {elapsed_s:.1f} s"
    if noise_count:
        words += f"; {noise_count} lines on its stdout were no protocol"
    return PluginError(Reason.PLUGIN_CRASHED, words + _quote(stderr))


def refusal(name: str, method: str, exc: RpcError) -> PluginError:
    """Say that the plugin answered a call with a protocol error."""
    reason = Reason.PLUGIN_MESSAGE_TOO_LARGE if exc.code == TOO_LARGE else Reason.PLUGIN_PROTOCOL
    return PluginError(reason, f"plugin {name} answered {method}: {exc.message} ({exc.code})")


def _quote(stderr: Sequence[str]) -> str:
    return "; stderr: " + "\n".join(stderr) if stderr else ""


def _interpreter(path: Path) -> str | None:
    """Name what the kernel did not find to run ``path`` with; None when ``path`` is gone."""
    try:
        with path.open("rb") as file:
            first = file.readline(256)
    except OSError:
        return None
    if first[:2] != b"#!":
        return "a loader for another system"
    if first.endswith(b"\r\n"):
        return "Unix line ends: its first line ends in a carriage return, and the interpreter"
    words = first[2:].split()
    return f"the interpreter {words[0].decode('utf-8', 'replace')}" if words else "an interpreter"
