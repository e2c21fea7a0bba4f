"""Real plugins of the SDK under the real host, on this machine."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from preflight.errors import PreflightError
from preflight.plugins.discovery import Found
from preflight.plugins.pool import PluginPool
from preflight.plugins.protocol import RunData
from preflight.ports.module import Item, ItemAnswer
from tests.support.fake_plugin import FakePlugin
from tests.support.stage import Stage, found_at

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"

_SCRIPT = """\
#!{python}
import os, signal, sys, threading, time
sys.path.insert(0, {plugins!r})
from preflight_sdk import *

HERE = {here!r}

def note(text):
    with open(HERE + ".notes", "a") as file:
        file.write(text + "\\n")

{top}

class Demo:
    name = "demo"
    version = "1"

{body}

if __name__ == "__main__":
    serve(Demo{options})
"""


def lay_sdk(folder: Path, body: str, *, top: str = "", options: str = "") -> Found:
    """Lay down a plugin whose class has this body."""
    path = folder / "preflight-plugin-demo"
    text = _SCRIPT.format(
        python=sys.executable,
        plugins=str(PLUGINS),
        here=str(path),
        top=top,
        body=textwrap.indent(textwrap.dedent(body), "    "),
        options=f", {options}" if options else "",
    )
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return found_at(path)


def notes(found: Found) -> list[str]:
    """What the plugin's processes noted."""
    place = Path(f"{found.path}.notes")
    return place.read_text("utf-8").splitlines() if place.exists() else []


def with_run(stage: Stage, run: RunData, config: Mapping[str, object] | None = None) -> Stage:
    """The stage, its plugins told of this run."""
    stage.pool = PluginPool(
        target="box",
        emit=stage.bus.emit,
        settings=stage.settings,
        run=run,
        config_of=lambda plugin: config or {},
    )
    return stage


async def work(
    stage: Stage,
    plugin: Found | FakePlugin,
    method: str,
    args: Sequence[dict[str, object]],
    *,
    concurrency: int = 1,
    shared: frozenset[str] = frozenset(),
) -> list[ItemAnswer]:
    """Check or apply many items; their answers as they came."""
    answers: list[ItemAnswer] = []
    await work_into(answers, stage, plugin, method, args, concurrency=concurrency, shared=shared)
    return answers


async def work_into(
    answers: list[ItemAnswer],
    stage: Stage,
    plugin: Found | FakePlugin,
    method: str,
    args: Sequence[dict[str, object]],
    *,
    concurrency: int = 1,
    shared: frozenset[str] = frozenset(),
) -> None:
    """The same, into a list that keeps what came before an end of another kind."""
    items = [Item(index, one) for index, one in enumerate(args)]
    async with stage.control.scope("box/one") as scope:
        module = stage.module(plugin)
        call = module.check_items if method == "check" else module.apply_items
        ctx = stage.context(scope)
        await call(items, ctx, answers.append, shared=shared, concurrency=concurrency)


def words(answers: Sequence[ItemAnswer]) -> list[tuple[int, bool, str, str, str]]:
    """What can be compared of answers, by index."""
    return sorted(
        (one.index, one.needs_change, one.message, *_failure(one.failure)) for one in answers
    )


def _failure(failure: PreflightError | None) -> tuple[str, str]:
    return ("", "") if failure is None else (str(failure.reason), failure.message)
