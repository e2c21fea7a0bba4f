"""The example plugins as a host starts them: executables, with nothing installed."""

from __future__ import annotations

import base64
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_host import PATIENCE_S, FakeHost, Frame, members, wait_pidfd
from tests.wire.sdk.conftest import PLUGINS
from tests.wire.sdk.test_handshake import error_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def probe(plugin_env: dict[str, str]) -> Iterator[FakeHost]:
    with FakeHost([str(PLUGINS / "preflight-plugin-slow_probe")], env=plugin_env) as host:
        host.initialize()
        yield host


def probing(host: FakeHost, mode: str, seconds: float) -> Frame:
    """Start an apply; its run_command."""
    host.request(2, "apply", {"args": {"mode": mode, "seconds": seconds}})
    assert host.frame()["params"] == {"line": f"probe starts: {seconds:g} s, {mode}"}
    return host.frame()


def lines_until_answer(host: FakeHost) -> tuple[list[str], Frame]:
    *rest, answer = host.until_answer(2)
    params = [members(f["params"]) for f in rest if f["method"] == "output"]
    return [str(p["line"]) for p in params], answer


@pytest.mark.parametrize(
    "name", sorted(path.name for path in PLUGINS.glob("preflight-plugin-*")), ids=str
)
def test_an_example_is_an_executable_that_reports_its_files_name(
    name: str, tmp_path: Path, plugin_env: dict[str, str]
) -> None:
    env = {key: plugin_env[key] for key in ("PATH", "PYTHONPYCACHEPREFIX")}
    with FakeHost([str(PLUGINS / name)], env=env, cwd=tmp_path) as host:
        result = members(host.initialize()["result"])
        assert result["name"] == name.removeprefix("preflight-plugin-")
        host.check(2, nonsense=1)
        assert "unknown params: nonsense" in str(host.frame()["result"])
        host.close_stdin()
        assert host.wait() == 0


def test_a_polite_probe_unwinds_at_once_and_its_clean_up_is_seen(probe: FakeHost) -> None:
    op = probing(probe, "polite", 30)
    started = time.monotonic()
    probe.cancel()
    assert probe.frame()["params"] == {"id": op["id"]}
    lines, answer = lines_until_answer(probe)
    assert time.monotonic() - started < 1
    assert lines == ["cleaned up"]
    assert error_of(answer)[0] == -32800


def test_a_late_probe_takes_its_time_inside_the_grace_window(probe: FakeHost) -> None:  # P69
    probing(probe, "late", 30)
    started = time.monotonic()
    probe.cancel()
    lines, answer = lines_until_answer(probe)
    assert 1.4 < time.monotonic() - started < 2
    assert lines == ["cancel noticed: cleaning up for 1.5 s", "cleaned up"]
    assert error_of(answer)[0] == -32800


def test_a_stubborn_probe_goes_on_until_it_is_killed(probe: FakeHost) -> None:  # P68
    probing(probe, "stubborn", 30)
    probe.cancel()
    probe.out.wait_for(b"cancel noticed and ignored")
    assert [f["method"] for f in probe.fence()] == ["cancel", "output"]
    assert probe.process.poll() is None


def test_a_probe_reports_each_second_and_the_targets_output(probe: FakeHost) -> None:
    op = probing(probe, "polite", 1)
    assert probe.frame()["params"] == {"line": "probing: 1 s"}
    probe.ran(op, "probe: shell 7, child 8\n")
    lines, answer = lines_until_answer(probe)
    assert "probe: shell 7, child 8" in lines
    assert answer["result"] == {"message": "probed for 1 s"}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"mode": "rude"}, "mode must be one of polite, late, stubborn, not 'rude'"),
        ({"mode": []}, "mode must be one of"),
        ({"seconds": "3"}, "seconds must be a number, not '3'"),
        ({"seconds": True}, "seconds must be a number, not True"),
        ({"seconds": -1}, "seconds must be at least 0, not -1"),
        ({"seconds": 1e9}, "seconds must be at most 3600"),
    ],
)
def test_bad_params_of_a_probe_are_said_clearly(
    probe: FakeHost, args: dict[str, object], words: str
) -> None:
    for key, method in ((2, "check"), (3, "apply")):
        probe.request(key, method, {"args": args})
        assert words in str(probe.frame()["result"])


def test_the_probes_script_has_a_child_and_takes_it_along(probe: FakeHost) -> None:
    params = members(probing(probe, "polite", 60)["params"])
    with subprocess.Popen(
        ["sh", "-c", str(params["script"])], stdout=subprocess.PIPE, start_new_session=True
    ) as shell:
        assert shell.stdout is not None
        words = shell.stdout.readline().split()
        assert int(words[2].rstrip(b",")) == shell.pid
        child = os.pidfd_open(int(words[4]))
        shell.terminate()
        assert shell.wait(PATIENCE_S) == 143
    try:
        assert wait_pidfd(child)
    finally:
        os.close(child)


def test_signage_sync_works_over_the_wire(tmp_path: Path, plugin_env: dict[str, str]) -> None:
    source, dest = tmp_path / "source", tmp_path / "dest"
    source.mkdir()
    (source / "menu.txt").write_bytes(b"new")
    with FakeHost([str(PLUGINS / "preflight-plugin-signage_sync")], env=plugin_env) as host:
        host.initialize()
        host.request(2, "apply", {"args": {"source": str(source), "dest": str(dest)}})
        while "method" in (frame := host.frame()):
            carry_out(host, frame)
    assert frame["result"] == {"message": "1 to send, 0 to remove, 0 as wanted"}
    assert [(path.name, path.read_bytes()) for path in dest.iterdir()] == [("menu.txt", b"new")]


def carry_out(host: FakeHost, frame: Frame) -> None:
    """Be the target, with this machine's own shell and files."""
    params = members(frame["params"])
    if frame["method"] == "run_command":
        script = ["sh", "-c", str(params["script"])]
        done = subprocess.run(script, capture_output=True, encoding="utf-8", check=False)
        host.ran(frame, done.stdout, exit_code=done.returncode)
    elif frame["method"] == "put_file":
        Path(str(params["path"])).write_bytes(base64.b64decode(str(params["data"])))
        host.answer(frame, {})
