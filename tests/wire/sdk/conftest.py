"""Starts small plugins, each written for one test, under the fake host."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.support.fake_host import FakeHost

if TYPE_CHECKING:
    from collections.abc import Iterator

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"

SCRIPT = """\
import os, signal, subprocess, sys, threading, time
sys.path.insert(0, {plugins!r})
from preflight_sdk import *

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

def gate():
    signal.sigwait([signal.SIGUSR1])

{top}

class Demo:
    name = "demo"
    version = "0.1.0"

{start}
    def check(self, ctx, args, handle):
{check}
        return CheckResult(False)

    def apply(self, ctx, args, handle):
{apply}
        return ApplyResult("applied")

serve(Demo, {options})
"""


class Spawn(Protocol):
    """Writes a plugin from the bodies of its methods, and starts it."""

    def __call__(
        self,
        check: str = "pass",
        apply: str = "pass",
        *,
        top: str = "",
        start: str = "",
        options: str = "",
        reads: bool = True,
        initialize: bool = True,
    ) -> FakeHost: ...


@pytest.fixture(scope="session")
def plugin_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the SDK is compiled once for all tests."""
    kept_back = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    env = {name: text for name, text in os.environ.items() if name not in kept_back}
    env["PYTHONPYCACHEPREFIX"] = str(tmp_path_factory.mktemp("pycache"))
    return env


@pytest.fixture
def spawn(tmp_path: Path, plugin_env: dict[str, str]) -> Iterator[Spawn]:
    """Start plugins; their whole sessions are killed afterwards, and looked for."""
    hosts: list[FakeHost] = []

    def start_plugin(
        check: str = "pass",
        apply: str = "pass",
        *,
        top: str = "",
        start: str = "",
        options: str = "",
        reads: bool = True,
        initialize: bool = True,
    ) -> FakeHost:
        script = tmp_path / f"preflight-plugin-demo{len(hosts)}"
        hook = f"    def start(self, ctx, info):\n{indented(start)}" if start else ""
        text = SCRIPT.format(
            plugins=str(PLUGINS),
            top=textwrap.dedent(top),
            start=hook,
            check=indented(check),
            apply=indented(apply),
            options=options,
        )
        script.write_text(text, encoding="utf-8")
        host = FakeHost([sys.executable, str(script)], cwd=tmp_path, env=plugin_env, reads=reads)
        hosts.append(host)
        if initialize:
            assert "result" in host.initialize()
        return host

    yield start_plugin
    for host in hosts:
        host.kill()


def indented(body: str) -> str:
    """A method's body at its place in the script."""
    return textwrap.indent(textwrap.dedent(body).strip(), "        ")
