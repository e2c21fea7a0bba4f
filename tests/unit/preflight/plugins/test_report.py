"""The words of a failure name all that is known, and the cure."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from preflight.errors import PluginError, Reason
from preflight.plugins.report import crash, refusal, spawn_failure, start_failure
from preflight.rpc.messages import RpcError

PATH = Path("/p/preflight-plugin-x")


def started(exc: Exception, returncode: int | None = None) -> PluginError:
    return start_failure(
        exc, PATH, elapsed_s=10.04, pid=77, returncode=returncode, stderr=["one", "two"]
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"#!/nowhere/py -x\n", "the interpreter /nowhere/py,"),
        (b"#! /nowhere/py\n", "the interpreter /nowhere/py,"),
        (b"#!/bin/sh\r\n", "line ends"),
        (b"#!\n", "an interpreter,"),
        (b"\x7fELF", "a loader for another system"),
    ],
)
def test_a_missing_interpreter_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "preflight-plugin-x"
    path.write_bytes(content)
    failure = spawn_failure(FileNotFoundError(), path)
    assert failure.reason is Reason.PLUGIN_START
    assert words in failure.message


def test_other_causes_are_told_apart(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert "not found any more" in spawn_failure(FileNotFoundError(), gone).message
    assert "chmod +x" in spawn_failure(PermissionError(), PATH).message
    assert "another one" in spawn_failure(OSError(errno.ENOEXEC, "x"), PATH).message
    busy = spawn_failure(OSError(errno.ETXTBSY, "Text file busy"), PATH)
    assert "can't be started: Text file busy" in busy.message


@pytest.mark.parametrize(
    ("exc", "returncode", "reason", "words"),
    [
        (TimeoutError(), None, Reason.PLUGIN_INIT_TIMEOUT, "no answer to initialize in 10.0 s"),
        (TimeoutError(), None, Reason.PLUGIN_INIT_TIMEOUT, "process 77"),
        (RpcError(-32010, "no"), None, Reason.PLUGIN_PROTOCOL, "no (-32010)"),
        (RpcError(-32020, "big"), None, Reason.PLUGIN_MESSAGE_TOO_LARGE, "big"),
        (RpcError(-32700, "bad"), None, Reason.PLUGIN_PROTOCOL, "bad"),
        (RpcError(-1, "no"), None, Reason.PLUGIN_START, "refused initialize"),
        (EOFError(), 3, Reason.PLUGIN_START, "exited (status 3) before initialize"),
        (EOFError(), -9, Reason.PLUGIN_START, "killed by SIGKILL before initialize"),
        (EOFError(), None, Reason.PLUGIN_START, "closed its stdout before initialize"),
        (
            PluginError(Reason.PLUGIN_NAME_MISMATCH, "other"),
            0,
            Reason.PLUGIN_NAME_MISMATCH,
            "other",
        ),
    ],
)
def test_a_start_that_failed(
    exc: Exception, returncode: int | None, reason: Reason, words: str
) -> None:
    failure = started(exc, returncode)
    assert failure.reason is reason
    assert words in failure.message
    assert failure.message.endswith("; stderr: one\ntwo")


def test_a_crash_is_one_report() -> None:
    failure = crash(
        "x", how="killed by SIGSEGV", method="apply", elapsed_s=1.26, noise_count=2, stderr=["last"]
    )
    assert failure.message == (
        "plugin x crashed: killed by SIGSEGV during apply after 1.3 s; "
        "2 lines on its stdout were no protocol; stderr: last"
    )
    quiet = crash(
        "x", how="exited (status 0)", method="check", elapsed_s=0, noise_count=0, stderr=[]
    )
    assert quiet.message == "plugin x crashed: exited (status 0) during check after 0.0 s"


@pytest.mark.parametrize(
    ("code", "reason"), [(-32020, Reason.PLUGIN_MESSAGE_TOO_LARGE), (-1, Reason.PLUGIN_PROTOCOL)]
)
def test_a_refusal_keeps_the_plugins_words(code: int, reason: Reason) -> None:
    failure = refusal("x", "check", RpcError(code, "no"))
    assert (failure.reason, failure.message) == (reason, f"plugin x answered check: no ({code})")
