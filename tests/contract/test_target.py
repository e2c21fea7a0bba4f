"""What every target promises, over each way to reach one."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from preflight.errors import Reason, TargetError
from preflight.events import Stream
from preflight.ports.target import Target
from tests.support.running import Watch, cancelled, gone, odd_seconds, sleepers
from tests.support.ssh_places import PATIENCE_S, Place

EVERY_BYTE = bytes(range(256))


@asynccontextmanager
async def entered(place: Place) -> AsyncGenerator[Target]:
    async with asyncio.timeout(PATIENCE_S), place.target as target:
        yield target


async def test_the_probe_says_what_the_machine_is(place: Place) -> None:
    async with entered(place) as target:
        assert target.info.runtime_kind == "posix-shell"
        assert target.info.family == "linux"
        assert target.info.hostname


async def test_facts_have_every_key_and_nothing_of_ours(place: Place) -> None:
    async with entered(place) as target:
        facts = await target.facts()
        assert set(facts) == {"hostname", "os", "disks", "memory", "cpus", "env"}
        variables = cast("dict[str, str]", facts["env"])
        assert "PATH" in variables
        assert not [name for name in variables if "PREFLIGHT_" in name]
        assert facts["disks"]


async def test_streams_are_apart_and_a_failure_is_a_result(place: Place) -> None:
    async with entered(place) as target:
        result = await target.exec("printf out; printf err >&2; exit 3")
        assert (result.stdout, result.stderr, result.exit_code) == (b"out", b"err", 3)
        assert not result.truncated


@pytest.mark.parametrize("name", ["KILL", "TERM", "HUP", "SEGV"])
async def test_a_signal_is_128_and_its_number(place: Place, name: str) -> None:
    async with entered(place) as target:
        code = (await target.exec(f"kill -s {name} $$; sleep 5")).exit_code
        assert code == 128 + getattr(signal, f"SIG{name}")


async def test_a_script_that_is_no_script_is_a_result(place: Place) -> None:
    async with entered(place) as target:
        assert (await target.exec("if")).exit_code == 2
        assert (await target.exec("no-such-command-here")).exit_code == 127
        assert (await target.exec("exit 0\nexit 5")).exit_code == 0
        assert (await target.exec("")).exit_code == 0


async def test_lines_come_while_the_script_still_runs(place: Place) -> None:
    """F13: the script goes on only once its first line has been seen here."""
    go = place.folder / "go"
    watch = Watch()

    def on_line(stream: Stream, text: str) -> None:
        watch(stream, text)
        if text == "ready":
            go.touch()

    script = f"echo ready; while [ ! -e '{go}' ]; do sleep 0.02; done; echo done"
    async with entered(place) as target:
        await target.exec(script, on_line=on_line)
    assert watch.of("out") == ["ready", "done"]


async def test_each_stream_is_whole_and_in_order(place: Place) -> None:
    """F14"""
    watch = Watch()
    script = "i=0; while [ $i -lt 500 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done"
    async with entered(place) as target:
        result = await target.exec(script, on_line=watch)
    assert watch.of("out") == [f"o{number}" for number in range(500)]
    assert watch.of("err") == [f"e{number}" for number in range(500)]
    assert result.stdout == "".join(f"o{number}\n" for number in range(500)).encode()


async def test_bytes_go_both_ways_as_they_are(place: Place) -> None:
    """F19"""
    shuffled = bytearray(EVERY_BYTE * 40)
    random.Random(7).shuffle(shuffled)
    async with entered(place) as target:
        result = await target.exec("cat; cat >&2 </dev/null", stdin=bytes(shuffled))
    assert result.stdout == shuffled


@pytest.mark.parametrize("size", [1, 75, 76, 77, 65_535, 65_536, 65_537, 300_000, 3_000_000])
async def test_stdin_of_any_size_arrives(place: Place, size: int) -> None:
    data = random.Random(size).randbytes(size)
    async with entered(place) as target:
        result = await target.exec("cat", stdin=data, keep_bytes=size)
        assert result.stdout == data
        assert not result.truncated
        assert (await target.exec("head -c 1 >/dev/null; echo ok", stdin=data)).text == "ok\n"
        assert (await target.exec("exec true", stdin=data)).exit_code == 0


async def test_text_that_is_not_utf_8_harms_no_line(place: Place) -> None:
    """F20: a lone byte is replaced, a character that comes in two parts is whole."""
    watch = Watch()
    script = r"printf 'a\303'; sleep 0.05; printf '\251b\n'; printf '\351\n'; printf '\200\n'"
    async with entered(place) as target:
        result = await target.exec(script, on_line=watch)
    assert watch.of("out") == ["aéb", "\ufffd", "\ufffd"]
    assert result.stdout == "aéb\n".encode() + b"\xe9\n\x80\n"


async def test_output_that_looks_like_a_mark_is_output(place: Place) -> None:
    """F21"""
    forged = "\\036" + "0" * 24 + " E 0\\n"
    script = f"printf '{forged}'; printf '{forged}' >&2; printf '\\036'; exit 4"
    async with entered(place) as target:
        result = await target.exec(script)
        assert result.exit_code == 4
        assert result.stdout == b"\x1e" + b"0" * 24 + b" E 0\n\x1e"
        assert (await target.exec("echo next")).text == "next\n"


async def test_escape_sequences_arrive_as_they_are(place: Place) -> None:
    """F22: what neutralises them is whoever shows them; the record keeps them."""
    async with entered(place) as target:
        assert (await target.exec(r"printf '\033[2J\033]0;x\007'")).stdout == b"\x1b[2J\x1b]0;x\x07"


async def test_variables_arrive_as_they_are_and_end_with_the_script(place: Place) -> None:
    value = 'it\'s "$HOME" `id` \\ é 秘密\nsecond line\t*'
    async with entered(place) as target:
        result = await target.exec('printf %s "$A_b1"', env={"A_b1": value})
        assert result.text == value
        assert (await target.exec('echo "[$A_b1]"')).text == "[]\n"


async def test_a_script_of_any_length_runs(place: Place) -> None:
    filler = "# it's a comment\n" * 20_000
    async with entered(place) as target:
        result = await target.exec(f"{filler}cat; exit 7", stdin=b"in")
        assert (result.stdout, result.exit_code) == (b"in", 7)


async def test_what_no_script_can_hold_is_an_error(place: Place) -> None:
    async with entered(place) as target:
        with pytest.raises(TargetError):
            await target.exec("echo \0")
        assert (await target.exec("echo on")).text == "on\n"


async def test_only_the_beginning_is_kept_and_all_lines_come(place: Place) -> None:
    watch = Watch()
    async with entered(place) as target:
        result = await target.exec("seq 1 20000", on_line=watch, keep_bytes=100)
    assert len(result.stdout) == 100
    assert result.truncated
    assert watch.of("out")[-1] == "20000"
    assert len(watch.lines) == 20_000


async def test_a_script_changes_nothing_for_the_next(place: Place) -> None:
    async with entered(place) as target:
        await target.exec("cd /; umask 000; export LEFT=1; set -e; trap '' TERM; exec >/dev/null")
        result = await target.exec('pwd; umask; echo "[$LEFT]"; false; echo on')
        assert result.text.split()[-2:] == ["[]", "on"]
        assert not result.text.startswith("/\n")
        assert result.text.split()[1] != "0000"


async def test_what_a_script_leaves_in_its_group_is_ended(place: Place) -> None:
    seconds = odd_seconds()
    async with entered(place) as target:
        result = await target.exec(f"sleep {seconds} & sleep {seconds} & echo started")
        assert result.text == "started\n"
        await gone(seconds)


async def test_a_grandchild_that_holds_the_streams_delays_nothing(place: Place) -> None:
    seconds = odd_seconds()
    async with entered(place) as target:
        try:
            result = await target.exec(f"setsid sleep {seconds} & echo $!")
            assert result.exit_code == 0
        finally:
            for pid in sleepers(seconds):
                os.kill(pid, signal.SIGKILL)


async def test_a_cancel_ends_the_whole_group_and_says_so(place: Place) -> None:
    """F23, F24"""
    seconds = odd_seconds()
    tree = (
        f"sleep {seconds} & sh -c 'sleep {seconds} & sleep {seconds}' & echo ready; sleep {seconds}"
    )
    async with entered(place) as target:
        reports = await cancelled(target, tree)
        assert sleepers(seconds) == []
        assert [(one.op, one.how, one.survivors) for one in reports] == [("exec", "SIGTERM", [])]
        assert reports[0].pid > 1
        assert reports[0].elapsed_ms < 1000
        assert (await target.exec("echo still here")).text == "still here\n"


async def test_what_ignores_term_is_killed_after_a_second(place: Place) -> None:
    """F25"""
    seconds = odd_seconds()
    stubborn = (
        f"trap '' TERM INT HUP; sleep {seconds} & echo ready; sleep {seconds}; sleep {seconds}"
    )
    async with entered(place) as target:
        reports = await cancelled(target, stubborn)
        assert sleepers(seconds) == []
        assert [(one.how, one.survivors) for one in reports] == [("SIGKILL", [])]
        assert 900 < reports[0].elapsed_ms < 2500


async def test_what_cleans_up_on_term_gets_its_time(place: Place) -> None:
    left = place.folder / "cleaned"
    script = (
        f"trap 'sleep 0.3; touch {left}; exit 1' TERM; echo ready; while :; do sleep 0.05; done"
    )
    async with entered(place) as target:
        await cancelled(target, script)
        assert left.exists()


async def test_a_stopped_process_is_ended(place: Place) -> None:
    """F40, its first half"""
    seconds = odd_seconds()
    script = f"sleep {seconds} & kill -s STOP $!; echo ready; wait"
    async with entered(place) as target:
        reports = await cancelled(target, script)
        assert sleepers(seconds) == []
        assert reports[0].survivors == []


async def test_a_writer_that_never_stops_can_be_cancelled(place: Place) -> None:
    async with entered(place) as target:
        reports = await cancelled(target, "echo ready; while :; do echo x; done")
        assert reports[0].survivors == []
        assert (await target.exec("echo y")).text == "y\n"


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 3_000_000])
async def test_a_file_comes_back_as_it_was_put(shelf: Place, size: int) -> None:
    """F41, its bytes"""
    data = random.Random(size).randbytes(size)
    path = shelf.folder / "new" / "deep" / 'it\'s $(a) `b` "c" é\n.bin'
    async with entered(shelf) as target:
        await target.put_file(str(path), data)
        assert path.read_bytes() == data
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        assert await target.get_file(str(path)) == data
        assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("size", [10, 200_000])
async def test_a_mode_is_set_or_kept(shelf: Place, size: int) -> None:
    """F41, its mode"""
    path = shelf.folder / "f"
    async with entered(shelf) as target:
        await target.put_file(str(path), b"a" * size, mode=0o600)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await target.put_file(str(path), b"b" * size)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await target.put_file(str(path), b"b" * size, mode=0o755)
        assert stat.S_IMODE(path.stat().st_mode) == 0o755
        assert path.read_bytes() == b"b" * size


@pytest.mark.parametrize("size", [10, 200_000])
async def test_a_link_stays_a_link(shelf: Place, size: int) -> None:
    (shelf.folder / "real").write_bytes(b"old")
    (shelf.folder / "real").chmod(0o666)
    (shelf.folder / "link").symlink_to("real")
    async with entered(shelf) as target:
        await target.put_file(str(shelf.folder / "link"), b"n" * size)
    assert (shelf.folder / "link").is_symlink()
    assert (shelf.folder / "real").read_bytes() == b"n" * size


@pytest.mark.parametrize("size", [10, 200_000])
async def test_what_is_no_file_is_not_replaced(shelf: Place, size: int) -> None:
    os.mkfifo(shelf.folder / "fifo", 0o666)
    (shelf.folder / "sub").mkdir(mode=0o777)
    async with entered(shelf) as target:
        for name in ("fifo", "sub"):
            with pytest.raises(TargetError, match=f"can't write .*{name}"):
                await target.put_file(str(shelf.folder / name), b"x" * size)
            with pytest.raises(TargetError, match=f"can't read .*{name}"):
                await target.get_file(str(shelf.folder / name))
    assert sorted(os.listdir(shelf.folder)) == ["fifo", "sub"]
    assert os.listdir(shelf.folder / "sub") == []


async def test_what_is_not_there_is_an_error_that_names_it(shelf: Place) -> None:
    async with entered(shelf) as target:
        with pytest.raises(TargetError, match=r"can't read .*/missing.*: No such file") as caught:
            await target.get_file(str(shelf.folder / "missing"))
        assert caught.value.reason is Reason.TARGET_ERROR


async def test_a_file_that_is_too_long_is_not_read(shelf: Place) -> None:
    path = shelf.folder / "f"
    path.write_bytes(b"x" * 101)
    path.chmod(0o644)
    async with entered(shelf) as target:
        with pytest.raises(TargetError, match="has 101 bytes, more than the 100"):
            await target.get_file(str(path), limit_bytes=100)
        assert await target.get_file(str(path), limit_bytes=101) == b"x" * 101
