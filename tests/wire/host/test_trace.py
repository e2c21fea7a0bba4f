"""The wire trace: every frame, in order, without secrets; and the same as events."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

import pytest

from preflight.errors import ConfigError
from preflight.events import Diagnostic, WireFrame
from preflight.plugins.pool import PluginPool
from preflight.plugins.trace import WireTrace
from tests.support.fake_plugin import R1, R2, answer, lay, output, read, request, shaken, write
from tests.support.stage import Stage

SECRET = 'hun"ter2é'


def traced(stage: Stage, path: Path) -> WireTrace:
    trace = WireTrace(path, emit=stage.bus.emit, mask=stage.bus.mask)
    stage.pool = PluginPool(target="box", emit=stage.bus.emit, settings=stage.settings, trace=trace)
    return trace


def entries(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


async def test_every_frame_is_there_with_direction_time_size_plugin_target_and_task(
    tmp_path: Path,
) -> None:
    op = request(7, "get_file", path=str(tmp_path / "gone"))
    plugin = lay(
        tmp_path,
        *shaken(read(), write(b"not JSON\n" + output("hi") + op), read(), write(R2)),
    )
    stage = Stage()
    trace = traced(stage, tmp_path / "trace")
    async with stage.open():
        await stage.check(plugin)
    trace.close()
    first, *found = entries(tmp_path / "trace")
    assert first == {"trace": 1}
    assert [one["dir"] for one in found] == ["out", "in", "out", "in", "in", "in", "out", "in"]
    sent = [one["frame"] for one in found if one["dir"] == "out"]
    assert sent == plugin.lines
    assert found[1]["frame"] == json.loads(R1)
    assert (found[3]["text"], found[3]["bytes"]) == ("not JSON", 8)
    assert found[5]["bytes"] == len(op) - 1
    times = [float(str(one["t_ms"])) for one in found]
    assert times == sorted(times)
    assert {(one["plugin"], one["target"]) for one in found} == {("demo", "box")}
    assert [one["task"] for one in found] == ["", "", *["one"] * 6]
    assert stat.S_IMODE((tmp_path / "trace").stat().st_mode) == 0o600


async def test_the_same_frames_are_events_with_answers_timed(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(output("x" * 5000) + R2)))
    stage = Stage()
    trace = traced(stage, tmp_path / "trace")
    async with stage.open():
        await stage.check(plugin)
    trace.close()
    frames = stage.of(WireFrame)
    assert [(one.dir, one.kind, one.id) for one in frames] == [
        ("out", "initialize", 1),
        ("in", "result", 1),
        ("out", "check", 2),
        ("in", "output", None),
        ("in", "result", 2),
    ]
    assert [one.took_ms is not None for one in frames] == [False, True, False, False, True]
    assert (len(frames[3].preview), frames[3].bytes) == (1024, len(output("x" * 5000)) - 1)


async def test_without_a_trace_no_frame_is_an_event(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(R2)))
    stage = Stage()
    async with stage.open():
        await stage.check(plugin)
    assert stage.of(WireFrame) == []


async def test_a_secret_is_masked_however_json_or_base64_writes_it(tmp_path: Path) -> None:
    data = base64.b64encode(f"password={SECRET}".encode()).decode()
    escaped = json.dumps({"jsonrpc": "2.0", "method": "output", "params": {"line": SECRET}})
    put = request(7, "put_file", path=str(tmp_path / "made"), data=data)
    noise = f"my {SECRET}\n".encode()
    plugin = lay(
        tmp_path, *shaken(read(), write(noise + escaped.encode() + b"\n" + put), read(), write(R2))
    )
    stage = Stage()
    stage.bus.hide(SECRET)
    trace = traced(stage, tmp_path / "trace")
    async with stage.open():
        await stage.check(plugin, password=SECRET)
    trace.close()
    text = (tmp_path / "trace").read_text("utf-8")
    written = "".join(one.preview for one in stage.of(WireFrame))
    for form in (SECRET, json.dumps(SECRET)[1:-1], data, SECRET.replace('"', '\\"')):
        assert form not in text
        assert form not in written
    assert text.count("******") == 4
    assert (tmp_path / "made").read_bytes() == f"password={SECRET}".encode()


def test_a_file_that_cant_be_made_is_a_problem_of_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--trace-wire"):
        WireTrace(tmp_path / "no" / "where", emit=lambda event: None, mask=str)


async def test_a_full_disk_ends_the_trace_and_not_the_run(tmp_path: Path) -> None:
    plugin = lay(tmp_path, *shaken(read(), write(answer(2, needs_change=True))))
    stage = Stage()
    traced(stage, Path("/dev/full"))
    async with stage.open():
        assert (await stage.check(plugin)).needs_change
    (told,) = stage.of(Diagnostic)
    assert "the wire trace /dev/full ends here" in told.summary
