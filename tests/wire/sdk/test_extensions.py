"""What is in force only when both sides list it, byte for byte, and what goes on without it."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_host import FakeHost, Frame, members
from tests.wire.sdk.test_handshake import EXTENSIONS, error_of, initialize

if TYPE_CHECKING:
    from tests.wire.sdk.conftest import Spawn


def extended(
    spawn: Spawn,
    check: str = "pass",
    apply: str = "pass",
    *,
    only: list[str] = EXTENSIONS,
    limit: int | None = None,
    top: str = "",
    options: str = "",
) -> FakeHost:
    """A plugin whose host lists every extension, or those it is told."""
    host = spawn(check, apply, initialize=False, top=top, options=options)
    assert "result" in host.initialize(hello(only, limit))
    return host


def hello(names: list[str], limit: int | None = None) -> bytes:
    return initialize(protocol_version=2, capabilities=names, max_message_bytes=limit)


def test_every_op_and_line_names_its_call(spawn: Spawn) -> None:
    body = "handle.output('a'); handle.run_command('b'); handle.put_file('/c', b''); "
    host = extended(spawn, body + "handle.get_file('/d')")
    host.send(b'{"jsonrpc":"2.0","id":"x\\u00e9 1","method":"check","params":{}}\n')
    for method in ("output", "run_command", "put_file", "get_file"):
        frame = host.frame()
        assert frame["method"] == method
        assert members(frame["params"])["parent"] == "xé 1"
        if "id" in frame:
            host.answer(frame, {"exit_code": 0, "data": "", "eof": True})
    assert "result" in host.frame()


def test_a_host_that_lists_nothing_gets_the_base_protocol_to_the_byte(spawn: Spawn) -> None:
    body = """
    handle.output('a')
    handle.run_command('b')
    handle.put_file('/c', b'1')
    handle.get_file('/d')
    return CheckResult(True, 'm', changes=[Change('/x', None, 'y')])
    """
    host = spawn(body)
    host.check()
    said = [host.out.line()]
    for _ in range(3):
        said.append(host.out.line())
        host.answer(json.loads(said[-1]), {"exit_code": 0, "data": ""})
    said.append(host.out.line())
    assert said == [
        b'{"jsonrpc":"2.0","method":"output","params":{"line":"a"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"run_command","params":{"script":"b"}}',
        b'{"jsonrpc":"2.0","id":2,"method":"put_file","params":{"path":"/c","data":"MQ=="}}',
        b'{"jsonrpc":"2.0","id":3,"method":"get_file","params":{"path":"/d"}}',
        b'{"jsonrpc":"2.0","id":2,"result":{"needs_change":true,"message":"m"}}',
    ]


@pytest.mark.parametrize("method", ["check_batch", "apply_batch", "configure"])
def test_what_was_not_agreed_on_is_no_method(spawn: Spawn, method: str) -> None:
    host = spawn()
    host.request(2, method, {"items": []})
    assert error_of(host.frame())[0] == -32601


def test_changes_go_along_when_they_are_wanted(spawn: Spawn) -> None:
    changes = "[Change('/x', None, 'y'), Change('/z', 'a', None)]"
    host = extended(spawn, f"return CheckResult(True, changes={changes})")
    host.check()
    assert members(host.frame()["result"])["changes"] == [
        {"path": "/x", "before": None, "after": "y"},
        {"path": "/z", "before": "a", "after": None},
    ]


def test_output_that_is_no_text_is_there_as_bytes(spawn: Spawn) -> None:
    body = """
    r = handle.run_command('x')
    return CheckResult(False, repr((r.stdout, r.stdout_bytes, r.stderr_bytes)))
    """
    host = extended(spawn, body)
    host.check()
    raw = base64.b64encode(b"\xff\0").decode()
    host.answer(
        host.frame(), {"stdout": "\ufffd\0", "stdout_b64": raw, "stderr": "é", "exit_code": 0}
    )
    told = members(host.frame()["result"])["message"]
    assert told == repr(("\ufffd\0", b"\xff\0", "é".encode()))


def test_configure_is_known_to_every_call_and_comes_once(spawn: Spawn) -> None:
    host = extended(
        spawn, "return CheckResult(False, repr((ctx.run.id, ctx.run.dry_run, ctx.config)))"
    )
    params = {"run": {"id": "r1", "dry_run": True, "new": 1}, "config": {"a": [1]}}
    host.request(2, "configure", params)
    host.check(3)
    assert host.frame()["result"] == {}
    assert members(host.frame()["result"])["message"] == repr(("r1", True, {"a": [1]}))
    host.request(4, "configure", params)
    assert error_of(host.frame())[0] == -32011


def test_without_configure_run_and_config_are_empty(spawn: Spawn) -> None:
    host = spawn("return CheckResult(False, repr((ctx.run.id, ctx.config)))")
    host.check()
    assert members(host.frame()["result"])["message"] == "('', {})"


@pytest.mark.parametrize(
    ("body", "error"),
    [("raise InvalidParams('no endpoint')", "no endpoint"), ("1 / 0", "ZeroDivisionError: ")],
)
def test_a_plugin_may_refuse_its_config(spawn: Spawn, body: str, error: str) -> None:
    top = f"def configure(ctx, config):\n    assert config == ctx.config == {{'a': 1}}\n    {body}"
    options = "capabilities=[setattr(Demo, 'configure', staticmethod(configure)) or 'x']"
    host = extended(spawn, top=top, options=options)
    host.request(2, "configure", {"run": {}, "config": {"a": 1}})
    assert error in str(members(host.frame()["result"])["error"])
    assert (b"Traceback" in host.err.data) is ("ZeroDivision" in error)


PARAMS = """
from dataclasses import dataclass, field
from preflight_sdk.params import load

@dataclass
class Params:
    count: int = field(metadata={"minimum": 1})

@dataclass
class Config:
    url: str
"""
DECLARED = (
    "capabilities=[setattr(Demo, 'params', Params) or setattr(Demo, 'config', Config) or 'x']"
)


def test_schemas_are_given_to_a_host_that_asks_and_to_no_other(spawn: Spawn) -> None:
    host = spawn(top=PARAMS, options=DECLARED, initialize=False)
    shaken = members(host.initialize(hello(EXTENSIONS))["result"])
    assert members(shaken["params_schema"])["properties"] == {
        "count": {"type": "integer", "minimum": 1}
    }
    assert members(shaken["config_schema"])["required"] == ["url"]
    other = spawn(top=PARAMS, options=DECLARED, initialize=False)
    shaken = members(other.initialize(hello(["preflight-tui/batch"]))["result"])
    assert "params_schema" not in shaken


def test_bad_params_are_the_tasks_error_without_a_traceback(spawn: Spawn) -> None:
    host = extended(spawn, "load(Params, args)", top=PARAMS, options=DECLARED)
    host.check(count=0)
    assert host.frame()["result"] == {
        "needs_change": False,
        "error": "count must be at least 1, not 0",
    }
    host.fence()
    assert b"Traceback" not in host.err.data


def test_a_dataclass_without_a_schema_fails_the_handshake_and_says_which_field(
    spawn: Spawn,
) -> None:
    top = PARAMS.replace("count: int", "count: set")
    host = spawn(top=top, options=DECLARED, initialize=False)
    code, words = error_of(host.initialize(hello(EXTENSIONS)))
    assert code == -32603
    assert "count: " in words
    assert "result" in host.initialize()  # a host that asks for none can do without


def pieces(host: FakeHost, method: str) -> list[Frame]:
    """Answer every piece of a file until the call ends."""
    seen: list[Frame] = []
    while "method" in (frame := host.frame()):
        assert frame["method"] == method
        seen.append(members(frame["params"]))
        host.answer(frame, {})
    assert "error" not in members(frame["result"]), frame
    return seen


@pytest.mark.parametrize("source", ["data", "io.BytesIO(data)"])
def test_a_large_file_is_put_in_pieces_that_fit(spawn: Spawn, source: str) -> None:
    body = f"import io; data = bytes(range(256)) * 100; handle.put_file('/x', {source})"
    host = extended(spawn, body, limit=8192)
    host.check()
    seen = pieces(host, "put_file")
    data = [base64.b64decode(str(piece["data"])) for piece in seen]
    assert b"".join(data) == bytes(range(256)) * 100
    assert [piece["offset"] for piece in seen] == [
        sum(map(len, data[:n])) for n in range(len(data))
    ]
    assert [piece["final"] for piece in seen] == [False] * (len(seen) - 1) + [True]
    assert len(host.out.data) > len(seen) * 100
    assert max(map(len, bytes(host.out.data).split(b"\n"))) <= 8192 * 0.8


def test_a_small_file_goes_whole(spawn: Spawn) -> None:
    host = extended(spawn, "import io; handle.put_file('/x', io.BytesIO(b'1'))")
    host.check()
    ((piece,)) = pieces(host, "put_file")
    assert piece == {"path": "/x", "data": "MQ==", "parent": 2}


def test_a_file_that_does_not_fit_names_both_numbers_where_there_are_no_pieces(
    spawn: Spawn,
) -> None:
    body = """
    import io
    for data in (b"1" * 30000, io.BytesIO(b"1" * 30000)):
        try:
            handle.put_file("/x", data)
        except MessageTooLarge as exc:
            handle.output(str(exc))
    """
    host = extended(spawn, body, only=[], limit=8192)
    host.check()
    for _ in range(2):
        line = str(members(host.frame()["params"])["line"])
        assert "put_file: a message of 40" in line
        assert "over the limit of 8192 bytes" in line


@pytest.mark.parametrize("into", [False, True])
def test_a_file_is_got_in_pieces(spawn: Spawn, into: bool) -> None:
    body = """
    import io
    file = io.BytesIO() if INTO else None
    data = handle.get_file('/x', into=file)
    return CheckResult(False, (file.getvalue() if file else data).decode())
    """
    host = extended(spawn, body.replace("INTO", str(into)), limit=8192)
    host.check()
    for offset, text, eof in ((0, b"ab", False), (2, b"c", False), (3, b"", True)):
        frame = host.frame()
        params = members(frame["params"])
        assert params["offset"] == offset
        assert 0 < int(str(params["max_bytes"])) < 8192
        data = base64.b64encode(text).decode()
        host.answer(frame, {"data": data, "size": 3, "eof": eof})
    assert members(host.frame()["result"])["message"] == "abc"


def test_no_other_threads_op_comes_between_the_pieces(spawn: Spawn) -> None:
    body = """
    threads = [threading.Thread(target=handle.put_file, args=(f"/{n}", b"x" * 20000))
               for n in range(3)]
    for t in threads: t.start()
    for t in threads: t.join()
    """
    host = extended(spawn, body, limit=8192)
    host.check()
    paths = [str(piece["path"]) for piece in pieces(host, "put_file")]
    assert len(paths) > 6
    assert sum(one != other for one, other in pairwise(paths)) == 2


def test_a_cancel_between_pieces_sends_no_more_of_them(spawn: Spawn) -> None:
    host = extended(spawn, "handle.put_file('/x', b'x' * 20000)", limit=8192)
    host.check()
    host.answer(host.frame(), {})
    op = host.frame()
    host.cancel()
    assert host.frame()["params"] == {"id": op["id"]}
    assert error_of(host.frame())[0] == -32800
    assert host.fence() == []
