from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from preflight.errors import ModuleError, Reason
from tests.support.modules import Workbench


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


async def test_an_open_port_is_seen_with_one_exec(bench: Workbench, port: int) -> None:
    result = await bench.check("wait", condition="port_open", target=f"127.0.0.1:{port}")
    assert (result.needs_change, bench.target.exec_count) == (False, 1)


async def test_a_bare_port_is_the_targets_own(bench: Workbench, port: int) -> None:
    assert not (await bench.check("wait", condition="port_open", target=port)).needs_change


async def test_a_check_never_waits(bench: Workbench, closed_port: int) -> None:
    async with asyncio.timeout(5):
        result = await bench.check(
            "wait", condition="port_open", target=f"localhost:{closed_port}", timeout="1h"
        )
    assert result.needs_change


async def test_the_target_itself_looks_until_the_file_is_there(bench: Workbench) -> None:
    place = bench.folder / "it's there"
    args: dict[str, object] = {"condition": "file_exists", "target": str(place), "interval": "50ms"}
    assert (await bench.check("wait", **args)).needs_change
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        waiting = group.create_task(bench.apply("wait", **args))
        await bench.target.started(2)
        place.touch()
    assert waiting.result().message == f"{place} is there"
    assert bench.target.exec_count == 2


async def test_in_vain_is_a_timeout_that_says_for_what(bench: Workbench, closed_port: int) -> None:
    with pytest.raises(ModuleError, match=f"in vain until port localhost:{closed_port}") as caught:
        await bench.apply(
            "wait",
            condition="port_open",
            target=f"localhost:{closed_port}",
            timeout="100ms",
            interval="100ms",
        )
    assert caught.value.reason is Reason.TIMEOUT


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"target": "a:1"}, "'condition' is missing"),
        ({"condition": "port_opn", "target": "a:1"}, "did you mean 'port_open'"),
        ({"condition": "port_open", "target": "nocolon"}, "is not host:port"),
        ({"condition": "port_open", "target": "a:0"}, "from 1 to 65535"),
        ({"condition": "port_open", "target": "::1:80"}, "in brackets"),
        ({"condition": "port_open", "target": ":80"}, "is not host:port"),
        ({"condition": "port_open", "target": "-x:80"}, "is not host:port"),
        ({"condition": "file_exists", "target": "/x", "timeout": "soon"}, "such as 90s"),
        ({"condition": "file_exists", "target": "~/x"}, "write it out"),
    ],
)
async def test_params_that_make_no_sense_fail_in_check(
    bench: Workbench, args: dict[str, object], said: str
) -> None:
    with pytest.raises(ModuleError, match=said) as caught:
        await bench.check("wait", **args)
    assert caught.value.reason is Reason.INVALID_PARAMS
