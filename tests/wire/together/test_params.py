"""Params and config against the plugin's own schema, before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.errors import PluginError, Reason
from preflight.plugins.protocol import RunData
from tests.support.fake_plugin import eof, frame, lay, read, shaken, write
from tests.support.loop import in_loop
from tests.support.stage import Stage
from tests.wire.together.stand import lay_sdk, notes, with_run, work

TOP = """
from dataclasses import dataclass, field
from typing import Literal
from preflight_sdk.params import load

@dataclass
class Params:
    count: int = field(metadata={"minimum": 1})
    mode: Literal["a", "b"] = "a"

@dataclass
class Config:
    url: str
"""
DECLARED = """
params, config = Params, Config

def check(self, ctx, args, handle):
    note("check")
    return CheckResult(False, f"{load(Params, args)} {ctx.config}")

def apply(self, ctx, args, handle):
    return ApplyResult()
"""


@in_loop
async def test_params_that_break_the_derived_schema_are_never_sent(tmp_path: Path) -> None:
    plugin = lay_sdk(tmp_path, DECLARED, top=TOP)
    stage = with_run(Stage(), RunData(), {"url": "u"})
    async with stage.open():
        with pytest.raises(PluginError) as failed:
            await stage.check(plugin, count=0, mode="c", more=1)
        assert failed.value.reason is Reason.PLUGIN_INVALID_PARAMS
        for pointer in ("/count", "/mode", "more"):
            assert pointer in failed.value.message
        good = await stage.check(plugin, count=3)
        assert "count=3, mode='a') {'url': 'u'}" in good.message
        answers = await work(stage, plugin, "check", [{"count": 1}, {"count": "x"}, {"count": 2}])
        assert sorted(one.index for one in answers if one.failure is None) == [0, 2]
    assert notes(plugin) == ["check"] * 3


@in_loop
async def test_config_that_breaks_its_schema_is_refused(tmp_path: Path) -> None:
    plugin = lay_sdk(tmp_path, DECLARED, top=TOP)
    stage = with_run(Stage(), RunData(), {"ur": "u"})
    async with stage.open():
        with pytest.raises(PluginError) as failed:
            await stage.check(plugin, count=1)
    assert failed.value.reason is Reason.PLUGIN_CONFIGURE
    assert notes(plugin) == []


@in_loop
async def test_a_schema_that_is_none_is_a_warning_and_checks_nothing(tmp_path: Path) -> None:
    handshake = frame(
        {
            "id": 1,
            "result": {
                "protocol_version": 2,
                "name": "demo",
                "version": "1",
                "capabilities": ["preflight-tui/params-schema"],
                "params_schema": {"type": "nonsense"},
            },
        }
    )
    said = frame({"id": 2, "result": {"needs_change": True}})
    plugin = lay(tmp_path, *shaken(read(), write(said), eof(), handshake=handshake))
    stage = Stage()
    async with stage.open():
        assert (await stage.check(plugin, anything=1)).needs_change
    assert len(stage.warnings("bad_schema")) == 1


@in_loop
async def test_bad_params_are_not_on_the_wire(tmp_path: Path) -> None:
    handshake = frame(
        {
            "id": 1,
            "result": {
                "protocol_version": 2,
                "name": "demo",
                "version": "1",
                "capabilities": ["preflight-tui/params-schema"],
                "params_schema": {"required": ["x"]},
            },
        }
    )
    plugin = lay(tmp_path, *shaken(eof(), handshake=handshake))
    stage = Stage()
    async with stage.open():
        assert (await stage.failure(plugin)).reason is Reason.PLUGIN_INVALID_PARAMS
    assert [line["method"] for line in plugin.lines] == ["initialize"]
