"""The process: it ends when stdin ends, and survives its handlers and a slow host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_host import I1, X2, wait_pidfd
from tests.wire.sdk.conftest import PLUGINS
from tests.wire.sdk.test_handshake import error_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.fake_host import FakeHost
    from tests.wire.sdk.conftest import Spawn


def test_one_megabyte_on_stderr_blocks_nothing(spawn: Spawn) -> None:  # P54
    host = spawn("sys.stderr.write('e' * 1_000_000)")
    host.check()
    assert "result" in host.frame()


def test_end_of_file_ends_an_idle_plugin_with_0(spawn: Spawn) -> None:  # P93
    host = spawn()
    started = time.monotonic()
    host.close_stdin()
    assert host.wait() == 0
    assert time.monotonic() - started < 1
    assert host.err.wait_end() == b""


def test_end_of_file_cancels_what_runs_and_what_waits_and_both_are_answered(spawn: Spawn) -> None:
    # P93
    host = spawn("print('running', file=sys.stderr); handle.run_command('sleep 30')")
    host.check(2)
    op = host.frame()
    host.check(3)
    host.fence()
    host.close_stdin()
    frames = [json.loads(line) for line in host.out.wait_end().splitlines()[-3:]]
    assert {"jsonrpc": "2.0", "method": "cancel", "params": {"id": op["id"]}} in frames
    answers = {frame["id"]: frame["error"]["code"] for frame in frames if "error" in frame}
    assert answers == {2: -32800, 3: -32800}
    assert host.wait() == 0


STUCK = {
    "sleep": "time.sleep(60)",
    "cpu": "while True: pass",
    "child": "subprocess.run(['sleep', '60'])",
    "signals off": "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
    "swallows all": """
while True:
    try:
        handle.run_command('x')
    except BaseException:
        pass
""",
    "thread": "threading.Thread(target=time.sleep, args=(60,)).start()",
}


@pytest.mark.xdist_group("slow_exits")
def test_end_of_file_ends_the_process_within_3_s_whatever_the_handler_does(spawn: Spawn) -> None:
    # P93: side by side, because each takes its 2 s
    hosts: dict[str, FakeHost] = {}
    for name, body in STUCK.items():
        hosts[name] = spawn(f"print('stuck', file=sys.stderr)\n{body}")
        hosts[name].check()
        hosts[name].err.wait_for(b"stuck")
    started = time.monotonic()
    for host in hosts.values():
        host.close_stdin()
    for name, host in hosts.items():
        status = host.wait()
        assert status == 1, name
        assert b"the handler went on for 2 s" in host.err.wait_end(), name
        host.wait_no_leftovers()
    assert 1.5 < time.monotonic() - started < 3


def test_a_host_that_is_killed_leaves_no_plugin(tmp_path: Path, plugin_env: dict[str, str]) -> None:
    # P93 P94
    plugin = tmp_path / "preflight-plugin-demo"
    plugin.write_text(
        f"import sys\nsys.path.insert(0, {str(PLUGINS)!r})\n"
        "from preflight_sdk import *\nimport os\n"
        "class Demo:\n    name, version = 'demo', '1'\n"
        "    def check(self, ctx, args, handle):\n"
        "        handle.output(str(os.getpid())); ctx.wait(60); return CheckResult(False)\n"
        "    def apply(self, ctx, args, handle): return ApplyResult()\n"
        "serve(Demo)\n",
        encoding="utf-8",
    )
    host = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, sys.argv[1]], stdin=-1, stdout=-1, bufsize=0,"
        " start_new_session=True)\n"
        f"p.stdin.write({I1!r}); p.stdout.readline()\n"
        'p.stdin.write(b\'{"jsonrpc":"2.0","id":2,"method":"check"}\\n\')\n'
        "sys.stdout.buffer.write(p.stdout.readline()); sys.stdout.flush(); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", host, str(plugin)], stdout=subprocess.PIPE, env=plugin_env
    ) as process:
        assert process.stdout is not None
        pid = int(json.loads(process.stdout.readline())["params"]["line"])
        watch = os.pidfd_open(pid)
        process.kill()
    try:
        assert wait_pidfd(watch, 3.0)
    finally:
        os.close(watch)


def test_a_host_that_reads_no_more_ends_the_plugin_too(spawn: Spawn) -> None:  # P56
    host = spawn("while True: handle.output('x' * 1000)", reads=False, initialize=False)
    host.send(I1)
    assert host.process.stdout is not None
    os.read(host.process.stdout.fileno(), 1000)
    host.check()
    os.read(host.process.stdout.fileno(), 1000)
    host.read_no_more()
    assert host.wait() == 0


def test_a_slow_host_blocks_the_handler_and_its_cancel_is_still_obeyed(spawn: Spawn) -> None:
    # P59
    body = """
    for n in range(100_000):
        handle.output(f"{n} " + "x" * 100)
        if n == 100: print("going", file=sys.stderr)
    """
    host = spawn(body, reads=False, initialize=False)
    host.send(I1)
    host.wait_readable()
    host.check()
    host.err.wait_for(b"going")
    host.wait_blocked_in_write()
    before = host.rss_kib()
    host.send(X2)
    host.process.send_signal(signal.SIGTERM)
    host.out.start()
    frames = host.until_answer(2)
    assert error_of(frames[-1])[0] == -32800
    lines = [str(f["params"]).split()[1].lstrip("'") for f in frames[1:-1]]
    assert lines == [str(n) for n in range(len(lines))]
    assert 100 < len(lines) < 10_000
    assert host.rss_kib() - before < 4096


@pytest.mark.xdist_group("slow_exits")
def test_a_handler_stuck_in_a_write_does_not_outlive_stdin(spawn: Spawn) -> None:  # P59 P93
    host = spawn("while True: handle.output('x' * 4096)", reads=False, initialize=False)
    host.send(I1)
    host.wait_readable()
    host.check()
    host.wait_blocked_in_write()
    started = time.monotonic()
    host.close_stdin()
    assert host.wait() == 1
    assert time.monotonic() - started < 3


def test_the_reader_never_blocks_on_a_host_that_asks_but_does_not_read(spawn: Spawn) -> None:
    # P59: the answers to 30 000 bad requests fill the pipe; end of file is seen all the same
    host = spawn(reads=False, initialize=False)
    host.send(b'{"jsonrpc":"2.0","id":7,"method":"nope"}\n' * 30_000)
    host.close_stdin()
    host.out.start()
    everything = host.out.wait_end()
    assert everything.count(b"-32011") > 100
    assert host.wait() in (0, 1)


def test_serve_refuses_a_module_that_is_no_plugin(plugin_env: dict[str, str]) -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(PLUGINS)!r})\n"
        "from preflight_sdk import serve\n"
        "class Demo: {}\n"
        "serve(Demo)\n"
    )
    for members, words in (
        ("version = '1'", "a plugin needs a name"),
        ("name = 'x'", "a plugin needs a version"),
        ("name, version = 'x', '1'", "a plugin needs check(ctx, args, handle)"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", script.format(members)],
            capture_output=True,
            env=plugin_env,
            stdin=subprocess.DEVNULL,
            timeout=10,
            check=False,
        )
        assert done.returncode == 1
        assert words in done.stderr.decode()


def test_a_python_module_can_be_served_and_started_without_stderr(
    tmp_path: Path, plugin_env: dict[str, str]
) -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(PLUGINS)!r})\n"
        "from preflight_sdk import *\n"
        "name, version = 'x', '1'\n"
        "def check(ctx, args, handle):\n    print('noise'); return CheckResult(True)\n"
        "def apply(ctx, args, handle): return ApplyResult()\n"
        "serve(sys.modules[__name__])\n"
    )
    path = tmp_path / "p"
    path.write_text(script, encoding="utf-8")
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" "$1" 2>&-', sys.executable, str(path)],
        input=I1,
        capture_output=True,
        env=plugin_env,
        timeout=10,
        check=False,
    )
    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise OSError('disk full')", "OSError: disk full"),
        ("sys.exit(3)", "the handler called sys.exit(3)"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise BaseException('odd')", "BaseException: odd"),
    ],
)
def test_a_handler_that_raises_fails_its_task_and_not_the_session(
    spawn: Spawn, body: str, error: str
) -> None:
    host = spawn(body, body)
    host.check()
    assert host.frame()["result"] == {"needs_change": False, "error": error}
    host.request(3, "apply")
    assert host.frame()["result"] == {"error": error}
    host.err.wait_for(b"Traceback")


def test_a_handler_that_returns_something_else_is_an_internal_error(spawn: Spawn) -> None:
    host = spawn("return True", "return CheckResult(True)")
    host.check()
    assert error_of(host.frame()) == (-32603, "check returned bool, not CheckResult")
    host.request(3, "apply")
    assert error_of(host.frame()) == (-32603, "apply returned CheckResult, not ApplyResult")
