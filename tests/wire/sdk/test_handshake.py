"""`initialize`: what is agreed, and that nothing else comes first."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_host import C2, I1, X2, Frame, members

if TYPE_CHECKING:
    from tests.wire.sdk.conftest import Spawn

C3 = C2.replace(b'"id":2', b'"id":3')
EXTENSIONS = [
    f"preflight-tui/{name}"
    for name in ("params-schema", "run-data", "batch", "parent", "bytes", "diff", "chunks")
]
MARKER = Path(__file__).resolve().parents[3] / "plugins" / "preflight-plugin-marker_file"


def initialize(**params: object) -> bytes:
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    return json.dumps(frame).encode() + b"\n"


def error_of(frame: Frame) -> tuple[object, str]:
    error = members(frame["error"])
    return error["code"], str(error["message"])


def test_initialize_is_answered_with_exactly_the_known_members(spawn: Spawn) -> None:
    host = spawn(initialize=False, options='capabilities=["zz", "a/b", "zz"]')
    assert host.initialize() == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {
            "protocol_version": 2,
            "min_protocol_version": 2,
            "capabilities": [*EXTENSIONS, "zz", "a/b"],
            "name": "demo",
            "version": "0.1.0",
            "max_message_bytes": 67108864,
        },
    }


def test_the_handler_sees_target_version_and_common_capabilities(spawn: Spawn) -> None:  # P9 P10
    host = spawn(
        "return CheckResult(False, repr((handle.info, ctx.version, sorted(ctx.capabilities),"
        " ctx.has_capability('a/b'))))",
        options='capabilities=["zz", "a/b"]',
        initialize=False,
    )
    target = {"family": "linux", "arch": "arm64", "extra": {"x": 1}, "init": None}
    caps = ["a/b", 1, None, "a/b", "c"]
    line = initialize(
        protocol_version=2, min_protocol_version=1, capabilities=caps, target=target, more=[1]
    )
    assert "result" in host.initialize(line)
    host.check()
    message = str(host.frame()["result"])
    assert "family='linux'" in message
    assert "arch='arm64'" in message
    assert "init=''" in message
    assert "2, ['a/b'], True" in message


@pytest.mark.parametrize(
    ("params", "code", "words"),
    [
        ({"protocol_version": 9, "min_protocol_version": 8}, -32010, ("8..9", "2..2")),
        ({"protocol_version": 1, "min_protocol_version": 1}, -32010, ("1..1", "2..2")),
        ({}, -32010, ("no protocol_version", "2..2")),
        ({"protocol_version": 1, "min_protocol_version": 3}, -32602, ("3", "1", "above")),
        ({"protocol_version": "2"}, -32602, ("protocol_version", "'2'")),
        ({"protocol_version": 2.5}, -32602, ("protocol_version", "2.5")),
        ({"protocol_version": True}, -32602, ("protocol_version", "True")),
        ({"protocol_version": 2, "target": []}, -32602, ("target", "[]")),
    ],
)
def test_a_handshake_that_fails_says_why_and_may_be_tried_again(
    spawn: Spawn, params: dict[str, object], code: int, words: tuple[str, ...]
) -> None:  # P4 P5 P6 P7
    host = spawn(initialize=False)
    got, message = error_of(host.initialize(initialize(**params)))
    assert got == code
    assert all(word in message for word in words), message
    assert "result" in host.initialize()


def test_a_wider_range_picks_the_highest_common_version(spawn: Spawn) -> None:  # P8
    host = spawn("return CheckResult(False, str(ctx.version))", initialize=False)
    host.initialize(initialize(protocol_version=7, min_protocol_version=1))
    host.check()
    assert host.frame()["result"] == {"needs_change": False, "message": "2"}


def test_a_check_before_initialize_is_refused_by_name_and_initialize_still_works(
    spawn: Spawn,
) -> None:  # P22
    host = spawn(initialize=False)
    host.send(C2)
    assert host.out.line() == (
        b'{"jsonrpc":"2.0","id":2,"error":{"code":-32011,'
        b'"message":"method \\"check\\" called before initialize completed"}}'
    )
    assert "result" in host.initialize()


def test_calls_in_the_same_write_as_initialize_are_refused(spawn: Spawn) -> None:  # P23
    for start in ("", "time.sleep(0.2)"):
        host = spawn(start=start, initialize=False)
        host.send(I1 + C2 + C3)
        frames = {str(f["id"]): f for f in (host.frame(), host.frame(), host.frame())}
        assert "result" in frames["1"]
        assert error_of(frames["2"])[0] == -32011
        assert error_of(frames["3"])[0] == -32011


def test_a_call_while_start_still_runs_is_refused(spawn: Spawn) -> None:  # P23
    host = spawn(start="print('starting', file=sys.stderr); gate()", initialize=False)
    host.send(I1)
    host.err.wait_for(b"starting")
    host.send(C2)
    assert error_of(host.frame())[0] == -32011
    host.open_gate()
    assert "result" in host.frame()


def test_initialize_during_the_first_one_and_after_it_is_refused(spawn: Spawn) -> None:  # P24
    host = spawn(start="print('starting', file=sys.stderr); gate()", initialize=False)
    again = I1.replace(b'"id":1', b'"id":5')
    host.send(I1)
    host.err.wait_for(b"starting")
    host.send(again)
    during = host.frame()
    host.open_gate()
    assert "result" in host.frame()
    host.send(again.replace(b'"linux"', b'"other"'))
    after = host.frame()
    for frame in (during, after):
        assert frame["id"] == 5
        assert error_of(frame) == (-32011, 'method "initialize" called a second time')
    host.check()
    assert "result" in host.frame()


def test_a_start_that_fails_fails_initialize_with_its_reason(spawn: Spawn) -> None:
    host = spawn(start="raise OSError('no licence file')", initialize=False)
    assert error_of(host.initialize()) == (-32603, "start failed: OSError: no licence file")


def test_notifications_before_initialize_are_ignored(spawn: Spawn) -> None:  # P25
    host = spawn(initialize=False)
    host.send(X2 + b'{"jsonrpc":"2.0","method":"whatever","params":7}\n')
    assert host.fence() == []
    assert "result" in host.initialize()


def test_by_hand_on_a_terminal_it_says_what_it_is_and_fails(plugin_env: dict[str, str]) -> None:
    # P26
    controller, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, str(MARKER)],
            stdin=terminal,
            capture_output=True,
            env=plugin_env,
            timeout=10,
            check=False,
        )
    finally:
        os.close(controller)
        os.close(terminal)
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"marker_file 1.0.0 is a plugin for Preflight" in done.stderr


def test_with_the_null_device_for_stdin_it_ends_with_0_at_once(plugin_env: dict[str, str]) -> None:
    # P26
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(MARKER)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=plugin_env,
        timeout=10,
        check=False,
    )
    assert time.monotonic() - started < 1
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
