"""Nothing but frames on stdout, in order, whatever handlers and their children print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.wire.sdk.conftest import Spawn

NOISE = {
    "print": "print('noise')",
    "sys.stdout.write": "sys.stdout.write('noise'); sys.stdout.flush()",
    "sys.__stdout__": "sys.__stdout__.write('noise\\n')",
    "os.write": "os.write(1, b'noise')",
    "os.system": "os.system('echo noise')",
    "subprocess": "subprocess.run(['echo', 'noise'])",
    "logging": "import logging; logging.basicConfig(stream=sys.stdout); logging.error('noise')",
    "C printf": "import ctypes; c = ctypes.CDLL(None); c.printf(b'noise\\n'); c.fflush(None)",
    "fork": "pid = os.fork(); pid or (print('noise', flush=True), os._exit(0)); os.waitpid(pid, 0)",
}


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())
def test_whatever_a_handler_prints_goes_to_stderr_and_never_onto_the_wire(
    spawn: Spawn, noise: str
) -> None:  # P105 P106
    host = spawn(noise)
    host.check()
    assert host.frame() == {"jsonrpc": "2.0", "id": 2, "result": {"needs_change": False}}
    host.err.wait_for(b"noise")
    host.close_stdin()
    assert b"noise" not in host.out.wait_end()


def test_a_print_before_serve_stays_off_the_wire_too(spawn: Spawn) -> None:  # P106
    host = spawn(top="print('noise')")
    host.close_stdin()
    assert b"noise" not in host.out.wait_end()
    assert b"noise" in host.err.wait_end()


def test_a_child_that_reads_stdin_gets_end_of_file(spawn: Spawn) -> None:  # P105
    host = spawn("return CheckResult(False, repr(subprocess.run(['cat'], timeout=5).returncode))")
    host.check()
    assert host.frame()["result"] == {"needs_change": False, "message": "0"}


def test_children_inherit_no_end_of_the_wire(spawn: Spawn) -> None:  # P105
    host = spawn("subprocess.Popen(['sleep', '60'], close_fds=False)")
    host.check()
    assert "result" in host.frame()
    host.close_stdin()
    host.out.wait_end()  # the pipe is closed though the child lives
    assert host.wait() == 0
    assert len(host.leftovers()) == 1


def test_a_forked_child_cannot_speak_for_its_parent(spawn: Spawn) -> None:  # P106
    body = """
    pid = os.fork()
    if pid == 0:
        try:
            handle.output("child")
        finally:
            os._exit(7)
    return CheckResult(False, str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
    """
    host = spawn(body)
    host.check()
    assert host.frame()["result"] == {"needs_change": False, "message": "7"}


def test_a_forked_childs_sigterm_ends_the_child_and_cancels_nothing(spawn: Spawn) -> None:
    body = """
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
    os.kill(pid, signal.SIGTERM)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return CheckResult(ctx.wait(0.1), str(status))
    """
    host = spawn(body)
    host.check()
    assert host.frame()["result"] == {"needs_change": False, "message": "-15"}


def test_all_output_comes_before_the_answer_in_order(spawn: Spawn) -> None:  # P84
    host = spawn("for n in range(1000): handle.output(str(n))")
    host.check()
    frames = host.until_answer(2)
    assert [f["params"] for f in frames[:-1]] == [{"line": str(n)} for n in range(1000)]


def test_text_of_many_lines_is_one_output_each(spawn: Spawn) -> None:
    host = spawn("handle.output('a\\nb\\r\\n\\nc'); handle.output('')")
    host.check()
    assert [f["params"] for f in host.until_answer(2)[:-1]] == [
        {"line": text} for text in ("a", "b", "", "c", "")
    ]
