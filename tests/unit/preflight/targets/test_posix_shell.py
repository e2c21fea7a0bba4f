"""The text of an operation, read by the shells that may be ``/bin/sh`` somewhere."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Mapping

import pytest

from preflight.errors import Reason, TargetError
from preflight.targets.posix_shell import assignment, boot_text, new_token, operation_text, quote
from tests.support.proc_tree import SHELLS

OP = "0123456789abcdef"


def run(
    shell: list[str],
    script: str,
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    again: int = 1,
) -> list[tuple[int, bytes, bytes]]:
    """Feed one shell with operations, and take its answers apart by their tokens."""
    tokens = [new_token() for _ in range(again)]
    text = boot_text("boot" * 6)
    for token in tokens:
        text += operation_text(token, OP, script, env=env, stdin=stdin)
    done = subprocess.run(shell, input=text, capture_output=True, timeout=20, check=True)
    answers: list[tuple[int, bytes, bytes]] = []
    out, err = done.stdout, done.stderr
    assert re.match(rb"\x1e(boot){6} S\n\x1e(boot){6} W [0-9]+\n", out)
    out = out.split(b"\n", 2)[2]
    err = err.removeprefix(b"\x1e" + b"boot" * 6 + b"\n")
    for token in tokens:
        mark = b"\x1e" + token.encode()
        body, _, out = out.partition(mark + b" E ")
        code, _, out = out.partition(b"\n")
        words, _, err = err.partition(mark + b"\n")
        body, found = re.subn(mark + rb" P [0-9]+\n", b"", body)
        assert found == 1
        answers.append((int(code), body, words))
    assert (out, err) == (b"", b"")
    return answers


@pytest.mark.parametrize("shell", SHELLS)
def test_one_operation_after_the_other_each_with_its_own_frame(shell: list[str]) -> None:
    answers = run(shell, "printf out; printf err >&2; exit 3", again=3)
    assert answers == [(3, b"out", b"err")] * 3


@pytest.mark.parametrize("shell", SHELLS)
def test_a_signal_is_told_by_the_code_and_by_nothing_else(shell: list[str]) -> None:
    assert run(shell, "kill -s KILL $$", again=2) == [(137, b"", b"")] * 2
    assert run(shell, "kill -s TERM $$") == [(143, b"", b"")]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("size", [1, 56, 57, 58, 5_000, 200_000])
def test_stdin_is_the_operations_and_no_other_bytes(shell: list[str], size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert run(shell, "cat", stdin=data, again=2) == [(0, data, b"")] * 2
    assert run(shell, "true", stdin=data, again=2) == [(0, b"", b"")] * 2


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_reads_no_operations_stdin(shell: list[str]) -> None:
    assert run(shell, "cat; read -r line; echo $?", again=2) == [(0, b"1\n", b"")] * 2


@pytest.mark.parametrize("shell", SHELLS)
def test_any_text_is_quoted(shell: list[str]) -> None:
    value = "".join(chr(n) for n in range(1, 128)) + "é秘\\'\"$(x)`y`\n\n"
    assert run(shell, 'printf %s "$V"', env={"V": value}) == [(0, value.encode(), b"")]
    raw = bytes(range(1, 256)).replace(b"'", b"")
    text = f"printf %s '{raw.decode('utf-8', 'surrogateescape')}'"
    assert run(shell, text) == [(0, raw, b"")]


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_left_of_the_group_is_ended_and_holds_nothing_open(shell: list[str]) -> None:
    assert run(shell, "sleep 30 & sleep 30 & echo on", again=2) == [(0, b"on\n", b"")] * 2


@pytest.mark.parametrize("shell", SHELLS)
def test_the_mark_is_in_the_environment_and_the_script_in_nobodys(shell: list[str]) -> None:
    code, out, _ = run(shell, "env; : secret")[0]
    assert code == 0
    assert f"PREFLIGHT_OP={OP}".encode() in out
    assert b"PREFLIGHT_RUN" not in out
    assert b"secret" not in out
    _, shown, _ = run(shell, "tr '\\0' ' ' </proc/$$/cmdline; : secret")[0]
    assert b"secret" not in shown


@pytest.mark.parametrize("shell", SHELLS)
def test_a_pid_that_is_no_new_childs_is_neither_waited_for_nor_signalled(shell: list[str]) -> None:
    text = boot_text("boot" * 6) + b"pf_last=17\nkill() { echo signalled; }\n"
    for wrong in ("17", "0", "1", "-1", "", "x", "007"):
        text += f"pf_end {'t' * 24} '{wrong}'\n".encode()
    done = subprocess.run(shell, input=text, capture_output=True, timeout=20, check=True)
    answers = done.stdout.split(b"\n")[2:-1]
    assert answers == [b"\x1e" + b"t" * 24 + b" E 126"] * 7


def test_a_nul_and_a_bad_name_are_refused_before_anything_is_sent() -> None:
    for wrong in (
        lambda: quote(b"a\0b"),
        lambda: assignment("A-B", "x"),
        lambda: assignment("", ""),
    ):
        with pytest.raises(TargetError) as caught:
            wrong()
        assert caught.value.reason is Reason.INVALID_PARAMS
