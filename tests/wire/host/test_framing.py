"""Lines, encodings and sizes, seen from a plugin that writes all sorts of bytes."""

from __future__ import annotations

import gc
import json
import time
from pathlib import Path

import pytest

from preflight.errors import ModuleError, Reason
from preflight.events import PluginSpawned, PluginStopped
from preflight.model.settings import Settings
from tests.support.fake_plugin import (
    R1,
    R2,
    R3,
    Action,
    answer,
    frame,
    lay,
    leave,
    output,
    pieces,
    read,
    request,
    shaken,
    sleep,
    until,
    write,
)
from tests.support.loop import in_loop
from tests.support.stage import Stage

MIB = 1024 * 1024
SMALL = Settings(max_message_bytes=MIB)


def padded(size: int, id: int = 2) -> bytes:
    """A check's answer whose line has exactly this many bytes, newline not counted."""
    bare = answer(id, needs_change=True, message="")
    return answer(id, needs_change=True, message="x" * (size - len(bare) + 1))


async def checked(folder: Path, *actions: Action) -> Stage:
    """A check by a plugin that does these after it has read the call must succeed."""
    stage = Stage()
    async with stage.open():
        assert not (await stage.check(lay(folder, *shaken(read(), *actions)))).needs_change
    assert [event.how for event in stage.of(PluginStopped)] == ["closed"]
    return stage


@in_loop
async def test_frames_are_cut_by_newlines_alone(tmp_path: Path) -> None:
    # P27
    both = output("a") + output("b") + R2
    assert (await checked(tmp_path / "1", write(both), read())).lines == ["a", "b"]
    stage = await checked(tmp_path / "3", pieces(both, len(both) // 3 + 1, every=0.02), read())
    assert stage.lines == ["a", "b"]


@in_loop
async def test_crlf_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    # P28, P29: the mark is taken without a warning, as it harms nobody
    plugin = lay(
        tmp_path,
        read(),
        write(b"\xef\xbb\xbf" + R1.replace(b"\n", b"\r\n")),
        read(),
        write(b"\n   \n\r\n" + R2.replace(b"\n", b"\r\n")),
        read(),
    )
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert stage.warnings("protocol_violation") == []
    assert stage.warnings("stdout_noise") == []


@in_loop
async def test_what_is_printed_on_stdout_is_shown_and_ends_nothing(tmp_path: Path) -> None:
    # P30
    plugin = lay(
        tmp_path,
        write(b"Loading model...\n"),
        *shaken(read(), write(b"DEBUG x\n" + R2), read(), leave(5)),
    )
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
        noise = stage.warnings("stdout_noise")
        assert [word in line for word, line in zip(("Loading", "DEBUG"), noise, strict=True)] == [
            True,
            True,
        ]
        failure = await stage.failure(plugin, "two")
    assert "2 lines on its stdout were no protocol" in failure.message


@in_loop
async def test_json_that_is_broken_fails_the_call_it_seems_to_answer(tmp_path: Path) -> None:
    # P33
    plugin = lay(tmp_path, *shaken(read(), write(b'{"jsonrpc":"2.0","id":2,\n'), read(), write(R3)))
    stage = Stage()
    async with stage.open():
        failure = await stage.failure(plugin)
        assert failure.reason is Reason.PLUGIN_PROTOCOL
        assert "can't be read" in failure.message
        await stage.check(plugin, "two")
    assert len(stage.of(PluginSpawned)) == 1
    assert "not JSON" in stage.warnings("protocol_violation")[0]


@in_loop
async def test_json_that_is_broken_and_nobodys_is_a_warning(tmp_path: Path) -> None:
    # P33: without an id the call waits on; it is not failed for somebody else's line
    stage = await checked(tmp_path, write(b'{"jsonrpc":"2.0",\n{"id":9,\n' + R2), read())
    assert len(stage.warnings("protocol_violation")) == 2


@pytest.mark.parametrize("line", [b"42", b"null", b'"x"', b"true"])
def test_json_that_is_no_object_is_noise(tmp_path: Path, line: bytes) -> None:
    # P34
    @in_loop
    async def test() -> None:
        stage = await checked(tmp_path, write(line + b"\n" + R2), read())
        assert len(stage.warnings("stdout_noise")) == 1

    test()


@in_loop
async def test_a_json_rpc_batch_is_refused_once(tmp_path: Path) -> None:
    # P35, host side
    batch = b"[" + output("a")[:-1] + b"," + output("b")[:-1] + b"]\n"
    plugin = lay(tmp_path, *shaken(read(), write(batch), read(), write(R2), read()))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert [line for line in plugin.lines if "error" in line] == [
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "not a JSON object"}}
    ]


@in_loop
async def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    # P37
    bad = output("<>").replace(b"<>", b"<\xff\xfe>")
    stage = await checked(tmp_path, write(bad + output("fine") + R2), read())
    assert stage.lines == ["<\ufffd\ufffd>", "fine"]


@in_loop
async def test_a_character_in_two_writes_stays_whole(tmp_path: Path) -> None:
    # P38
    line = b'{"jsonrpc":"2.0","method":"output","params":{"line":"caf\xc3\xa9"}}\n'
    cut = line.index(b"\xa9")
    stage = await checked(tmp_path, write(line[:cut]), sleep(0.05), write(line[cut:] + R2), read())
    assert stage.lines == ["café"]


@in_loop
async def test_odd_characters_are_carried_or_replaced(tmp_path: Path) -> None:
    # P39, P40: control characters reach events as they are; whoever draws them makes them harmless
    odd = [b"\\ud800", b"\\u2028", b"\\u0000", b"\\u001b[2J", b"a\x01b"]
    frames = b"".join(output("@").replace(b"@", text) for text in odd)
    result = answer(2, needs_change=True, message="@").replace(b"@", b"<\\udcff>")
    stage = Stage()
    async with stage.open():
        done = await stage.check(lay(tmp_path, *shaken(read(), write(frames + result), read())))
    assert done.message == "<?>"
    assert stage.lines == ["?", "\u2028", "\0", "\x1b[2J", "a\x01b"]
    assert all(json.dumps(line).encode("utf-8") for line in stage.lines)


@in_loop
async def test_of_duplicate_keys_the_last_wins(tmp_path: Path) -> None:
    # P43
    stage = await checked(tmp_path, write(R2.replace(b'"id":2', b'"id":9,"id":2')), read())
    assert not stage.warnings("protocol_violation")


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("chunk", [2 * MIB, 64 * 1024])
def test_the_limit_of_what_is_read_is_exact(tmp_path: Path, over: int, chunk: int) -> None:
    # P44
    @in_loop
    async def test() -> None:
        stage = Stage(SMALL)
        line = padded(MIB + over)
        assert len(line) == MIB + over + 1
        plugin = lay(tmp_path, *shaken(read(), pieces(line, chunk), read(), write(R3), read()))
        async with stage.open():
            if over <= 0:
                assert (await stage.check(plugin)).needs_change
            else:
                failure = await stage.failure(plugin)
                assert failure.reason is Reason.PLUGIN_MESSAGE_TOO_LARGE
                for part in ("check", str(MIB + 1), str(MIB)):
                    assert part in failure.message
            assert not (await stage.check(plugin, "two")).needs_change
        assert len(stage.of(PluginSpawned)) == 1

    test()


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_limit_of_what_is_sent_is_exact(tmp_path: Path, over: int) -> None:
    # P44, P49
    @in_loop
    async def test() -> None:
        limited = R1.replace(b'"name"', b'"max_message_bytes":1048576,"name"')
        plugin = lay(
            tmp_path, read(), write(limited), read(), write(R2), until(b'"two"'), write(R3), read()
        )
        stage = Stage()
        bare = '{"jsonrpc":"2.0","id":2,"method":"check","params":{"args":{"x":""}}}'
        async with stage.open():
            text = "x" * (MIB + over - len(bare))
            if over <= 0:
                await stage.check(plugin, x=text)
                assert len(plugin.received.split(b"\n")[1]) == MIB + over
                await stage.check(plugin, x="two")
                return
            with pytest.raises(Exception, match="max_message_bytes") as caught:
                await stage.check(plugin, x=text)
            assert str(MIB + 1) in str(caught.value)
            assert plugin.received.count(b"\n") == 1
            # The refused call cost no id, and the session goes on.
            assert not (await stage.check(plugin, "two", x="y")).needs_change
        assert len(stage.of(PluginSpawned)) == 1

    test()


@in_loop
async def test_a_large_message_is_warned_of_once_for_each_method(tmp_path: Path) -> None:
    # P45
    sizes = [0.79, 0.80, 0.81]
    answers = [write(padded(round(share * MIB), id)) for id, share in enumerate(sizes, 2)]
    steps = [step for one in answers for step in (read(), one)]
    stage = Stage(SMALL)
    plugin = lay(tmp_path, *shaken(*steps, read()))
    async with stage.open():
        await stage.check(plugin)
        assert stage.warnings("large_message") == []
        await stage.check(plugin, "two")
        await stage.check(plugin, "three")
        await_one = stage.warnings("large_message")
        assert len(await_one) == 1
        assert "80 % of the limit of 1048576 bytes" in await_one[0]


def rss_kib() -> int:
    """This process's resident memory, at most, since it was last asked."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    high = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return high


@in_loop
async def test_an_oversize_line_costs_no_memory(tmp_path: Path) -> None:
    # P46
    head = answer(2, needs_change=True, message="@").partition(b"@")[0]
    plugin = lay(
        tmp_path,
        *shaken(read(), write(head), write(b"x" * MIB, times=300), write(b'"}}\n'), read()),
        write(R3),
        read(),
    )
    stage = Stage(SMALL)
    async with stage.open():
        gc.collect()
        rss_kib()
        before = rss_kib()
        failure = await stage.failure(plugin)
        assert rss_kib() - before < 16 * 1024
        assert failure.reason is Reason.PLUGIN_MESSAGE_TOO_LARGE
        assert str(300 * MIB + len(head) + 3) in failure.message
        assert not (await stage.check(plugin, "two")).needs_change


@in_loop
async def test_an_oversize_answer_without_an_id_in_reach_fails_the_oldest_call(
    tmp_path: Path,
) -> None:
    # P46
    line = b'{"result":{"message":"' + b"x" * 2 * MIB + b'"},"id":2}\n'
    plugin = lay(tmp_path, *shaken(read(), write(line), read(), write(R3), read()))
    stage = Stage(SMALL)
    async with stage.open():
        assert (await stage.failure(plugin)).reason is Reason.PLUGIN_MESSAGE_TOO_LARGE
        assert not (await stage.check(plugin, "two")).needs_change


@in_loop
async def test_an_oversize_answer_whose_result_has_a_method_is_still_an_answer(
    tmp_path: Path,
) -> None:
    # P46: the members of the line itself count, not those of its result
    line = b'{"result":{"method":"x","id":9,"y":"' + b"x" * 2 * MIB + b'"},"id":2}\n'
    plugin = lay(tmp_path, *shaken(read(), write(line), read(), write(R3), read()))
    stage = Stage(SMALL)
    async with stage.open():
        assert (await stage.failure(plugin)).reason is Reason.PLUGIN_MESSAGE_TOO_LARGE


@in_loop
async def test_an_oversize_request_is_answered_and_an_oversize_output_dropped(
    tmp_path: Path,
) -> None:
    # P46
    big = "x" * 2 * MIB
    plugin = lay(
        tmp_path,
        *shaken(
            read(),
            write(output(big)),
            write(request(7, "put_file", path=str(tmp_path / "f"), data=big)),
            until(b'"id":7'),
            write(R2),
            read(),
        ),
    )
    stage = Stage(SMALL)
    async with stage.open():
        await stage.check(plugin)
    (refusal,) = [line for line in plugin.lines if line.get("id") == 7]
    error = json.loads(json.dumps(refusal))["error"]
    assert error["code"] == -32020
    for part in ("put_file", "1048576", "786432"):  # base64: the file that would fit
        assert part in error["message"]
    assert stage.lines == []
    assert len(stage.warnings("protocol_violation")) == 2


@in_loop
async def test_a_good_frame_before_an_oversize_one_is_taken_first(tmp_path: Path) -> None:
    # P48
    plugin = lay(
        tmp_path,
        *shaken(
            read(), write(R2 + b'{"x":"' + b"x" * 2 * MIB + b'"}\n'), read(), write(R3), read()
        ),
    )
    stage = Stage(SMALL)
    async with stage.open():
        assert not (await stage.check(plugin)).needs_change
        assert not (await stage.check(plugin, "two")).needs_change


@in_loop
async def test_args_over_the_default_limit_are_refused_before_a_byte(tmp_path: Path) -> None:
    # P49
    plugin = lay(tmp_path, *shaken(read(), write(R2), read()))
    stage = Stage()
    async with stage.open():
        with pytest.raises(Exception, match="raise max_message_bytes on both sides"):
            await stage.check(plugin, x="x" * 65 * MIB)
        await stage.check(plugin, "two")
    assert plugin.received.count(b"\n") == 2


@in_loop
async def test_large_messages_cross_in_both_directions_at_once(tmp_path: Path) -> None:
    # P51
    stage = Stage()
    plugin = lay(
        tmp_path,
        read(),
        write(R1),
        write(output("y" * 4000) * 8, times=1000),
        read(),
        write(R2),
        read(),
    )
    async with stage.open():
        start = time.monotonic()
        await stage.check(plugin, x="x" * 32 * MIB)
        assert time.monotonic() - start < 15
    assert len(plugin.received) > 32 * MIB


@in_loop
async def test_a_last_line_without_a_newline_is_still_a_frame(tmp_path: Path) -> None:
    # P52
    plugin = lay(tmp_path, *shaken(read(), write(R2[:-1]), leave(0)))
    stage = Stage()
    async with stage.open():
        assert not (await stage.check(plugin)).needs_change


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"jsonrpc":"2.0","id":2}\n', "needs_change"),
        (b'{"jsonrpc":"2.0","id":2,"result":null}\n', "needs_change"),
        (answer(2, needs_change="yes"), "needs_change"),
        (frame({"id": 2, "result": [1]}), "[1]"),
    ],
)
def test_a_result_that_makes_no_sense_is_quoted(tmp_path: Path, line: bytes, words: str) -> None:
    # P86: a result that is missing or null is an empty one, and a check's can't be empty
    @in_loop
    async def test() -> None:
        plugin = lay(tmp_path, *shaken(read(), write(line), read(), write(R3), read()))
        stage = Stage()
        async with stage.open():
            failure = await stage.failure(plugin)
            assert failure.reason is Reason.PLUGIN_PROTOCOL
            assert words in failure.message
            await stage.check(plugin, "two")

    test()


@in_loop
async def test_an_apply_may_answer_nothing(tmp_path: Path) -> None:
    # P86
    stage = Stage()
    plugin = lay(
        tmp_path,
        *shaken(
            read(),
            write(b'{"jsonrpc":"2.0","id":2}\n'),
            read(),
            write(b'{"jsonrpc":"2.0","id":3,"result":null}\n'),
            read(),
        ),
    )
    async with stage.open():
        assert (await stage.apply(plugin)).message == ""
        assert (await stage.apply(plugin, "two")).message == ""


@in_loop
async def test_an_error_in_a_result_is_the_modules_failure(tmp_path: Path) -> None:
    plugin = lay(
        tmp_path,
        *shaken(read(), write(answer(2, needs_change=False, error="no such user")), read()),
    )
    stage = Stage()
    async with stage.open():
        with pytest.raises(ModuleError, match="no such user"):
            await stage.check(plugin)
