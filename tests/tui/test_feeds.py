"""Where lines come from: a file, a paced file, memory; and the bridge that never falls behind."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.views.clock import EngineClock
from preflight.views.store import Store
from preflight_tui.bridge import FULL_BYTES, Bridge
from preflight_tui.feeds import (
    RECORD_NAME,
    FileFeed,
    FileRecord,
    LinkFeed,
    MemoryFeed,
    PacedFeed,
)
from tests.tui.harness import scene_lines


async def all_of(feed: FileFeed | PacedFeed | LinkFeed) -> list[bytes]:
    return [line async for batch in feed.batches() for line in batch]


@pytest.mark.parametrize("end", [b"\n", b"", b'\n{"type":"task_out'])
async def test_a_file_gives_its_lines_and_a_last_one_that_was_cut_off(
    tmp_path: Path, end: bytes
) -> None:
    path = tmp_path / RECORD_NAME
    lines = scene_lines("running")
    path.write_bytes(b"\n".join(lines) + end)
    rest = [end[1:]] if len(end) > 1 else []
    assert await all_of(FileFeed(path)) == [*lines, *rest]


async def test_a_file_that_is_not_there_gives_nothing(tmp_path: Path) -> None:
    assert await all_of(FileFeed(tmp_path / "absent")) == []


async def test_a_record_is_read_at_any_place(tmp_path: Path) -> None:
    path = tmp_path / RECORD_NAME
    path.write_bytes(b"0123456789")
    record = FileRecord(path)
    assert record.read(3, 4) == b"3456"
    assert record.read(8, 10) == b"89"
    assert record.read(20, 10) == b""
    record.close()
    assert record.read(0, 1) == b"0"
    record.close()
    assert FileRecord(tmp_path / "absent").read(0, 1) == b""


async def test_a_run_without_an_engine_is_read_from_its_record(tmp_path: Path) -> None:
    lines = scene_lines("green")
    (tmp_path / RECORD_NAME).write_bytes(b"\n".join(lines) + b"\n")
    feed = LinkFeed(tmp_path)
    assert not feed.live
    assert await all_of(feed) == lines


async def test_a_paced_replay_takes_the_time_of_the_run_divided_by_its_speed(
    tmp_path: Path,
) -> None:
    path = tmp_path / RECORD_NAME
    lines = scene_lines("running")
    path.write_bytes(b"\n".join(lines) + b"\n")
    began = time.monotonic()
    assert await all_of(PacedFeed(path, 50)) == lines
    assert time.monotonic() - began >= 9.0 / 50


async def test_a_bridge_stops_reading_a_feed_that_is_faster_than_it() -> None:
    feed = MemoryFeed([], live=True)
    bridge = Bridge(Store(EngineClock()), feed, feed.record)
    batch = [b"x" * 1000] * 100
    for _ in range(200):
        feed.push(batch)
    feed.end()
    task = asyncio.ensure_future(bridge.pump())
    async with asyncio.timeout(10):
        while bridge.behind_bytes <= FULL_BYTES:  # noqa: ASYNC110  # nothing tells that it is full
            await asyncio.sleep(0)
        assert bridge.behind_bytes <= FULL_BYTES + 100_000
        while not bridge.ended or bridge.behind_bytes:
            bridge.drain(1.0)
            await asyncio.sleep(0)
        await task
    assert bridge.store.unknown == 20_000


@given(st.lists(st.integers(min_value=0, max_value=400), max_size=8))
def test_a_record_cut_at_any_byte_opens(cuts: list[int]) -> None:
    whole = b"\n".join(scene_lines("lost")) + b"\n"
    for cut in cuts:
        store = Store(EngineClock())
        store.feed_all(whole[: len(whole) * cut // 400].split(b"\n"))
        assert store.unknown <= 2
