"""`signage_sync` against a real shell and real files, cancelled and killed at every op."""

from __future__ import annotations

import hashlib
import os
import subprocess
from binascii import b2a_base64
from pathlib import Path

import pytest

from preflight_sdk import CheckResult, RunResult, TargetInfo
from preflight_sdk.testing import FakeTarget, Harness, Op, load

PLUGIN = load(Path(__file__).resolve().parents[3] / "plugins" / "preflight-plugin-signage_sync")
STAGING = ".signage_sync.staging"
ODD = 'a b/it\'s $(touch hacked) `x` "q" \\ é.txt'


class ShellTarget(FakeTarget):
    """This machine's own shell and files, for scripts that only a shell can prove."""

    def __init__(self) -> None:
        super().__init__()
        self.on_run("", self.run_here)

    def do(self, op: Op) -> dict[str, object]:
        match op.method:
            case "put_file":
                Path(op.path).write_bytes(op.data)
                return {}
            case "get_file":
                data = b2a_base64(Path(op.path).read_bytes(), newline=False)
                return {"data": data.decode()}
            case _:
                return super().do(op)

    @staticmethod
    def run_here(script: str) -> RunResult:
        done = subprocess.run(
            ["sh", "-s"],
            input=script,
            capture_output=True,
            encoding="utf-8",
            timeout=20,
            check=False,
        )
        return RunResult(done.stdout, done.stderr, done.returncode)


class World:
    """A source, a target folder, and the harness between them."""

    def __init__(self, tmp_path: Path, *, allow_cleanup: bool = False) -> None:
        self.source = tmp_path / "source"
        self.dest = tmp_path / "on target" / "it's here"
        self.source.mkdir(exist_ok=True)
        self.harness = Harness(PLUGIN.SignageSync, ShellTarget(), allow_cleanup=allow_cleanup)
        self.args: dict[str, object] = {"source": str(self.source), "dest": str(self.dest)}

    def write(self, folder: Path, files: dict[str, bytes]) -> None:
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)

    def wanted(self) -> dict[str, bytes]:
        return contents(self.source)

    def found(self) -> dict[str, bytes]:
        return contents(self.dest)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.write(world.source, {"menu.txt": b"new", "video/one.mp4": b"\x00" * 5000, ODD: b"odd"})
    world.write(
        world.dest, {"menu.txt": b"old", "gone/old.png": b"x", "keep": b"k", "-rf": b"option"}
    )
    world.write(world.source, {"keep": b"k", "empty": b""})
    return world


def test_it_brings_the_folder_over_and_is_then_content(world: World) -> None:
    assert world.harness.check(world.args).needs_change
    outcome = world.harness.apply(world.args)
    assert outcome.error == ""
    assert world.found() == world.wanted()
    assert not (world.dest / "gone").exists()
    assert not (world.dest / STAGING).exists()
    again = world.harness.check(world.args)
    assert not again.needs_change
    assert again.result is not None
    assert again.result.message == "0 to send, 0 to remove, 5 as wanted"
    assert not list(Path.cwd().glob("hacked"))


def test_it_batches_its_commands(world: World) -> None:
    outcome = world.harness.apply(world.args)
    assert [op.method for op in outcome.ops] == ["run_command", "run_command"] + [
        "put_file"
    ] * 4 + ["run_command"]
    assert [line.partition("]")[0] for line in outcome.lines] == ["[1/4", "[2/4", "[3/4", "[4/4"]


def test_check_changes_nothing_and_says_what_would(world: World) -> None:
    before = world.found()
    outcome = world.harness.check(world.args)
    assert world.found() == before
    assert "send   menu.txt" in outcome.lines
    assert "remove gone/old.png" in outcome.lines
    assert len(outcome.ops) == 1


def test_the_sources_permissions_come_along_but_nobody_else_may_write(world: World) -> None:
    (world.source / "menu.txt").chmod(0o600)
    (world.source / "empty").chmod(0o777)
    world.harness.apply(world.args)
    modes = {name: (world.dest / name).stat().st_mode & 0o777 for name in ("menu.txt", "empty")}
    assert modes == {"menu.txt": 0o600, "empty": 0o755}


def test_a_missing_dest_is_made(world: World, tmp_path: Path) -> None:
    args = {**world.args, "dest": str(tmp_path / "new" / "er")}
    assert world.harness.check(args).needs_change
    assert not (tmp_path / "new").exists()
    world.harness.apply(args)
    assert contents(tmp_path / "new" / "er") == world.wanted()


def test_links_and_folders_in_the_way_are_replaced_and_not_followed(
    world: World, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"p")
    (world.dest / "menu.txt").unlink()
    (world.dest / "menu.txt").symlink_to(outside)
    (world.dest / "video").write_bytes(b"a file where a folder belongs")
    world.write(world.dest, {"empty/was": b"a folder where a file belongs"})
    (world.dest / "dangling").symlink_to(tmp_path / "nowhere")
    outcome = world.harness.apply(world.args)
    assert outcome.error == ""
    assert world.found() == world.wanted()
    assert not os.path.lexists(world.dest / "dangling")
    assert contents(outside) == {"precious": b"p"}


@pytest.mark.parametrize("strike", ["cancel_at", "cancel_after", "kill_at"])
@pytest.mark.parametrize("number", range(1, 8))
def test_stopped_at_any_op_no_file_is_half_written_and_the_next_run_finishes(
    world: World, strike: str, number: int
) -> None:
    before, wanted = world.found(), world.wanted()
    outcome = world.harness.apply(world.args, **{strike: number})
    assert outcome.killed if strike == "kill_at" else outcome.cancelled
    for name, data in world.found().items():
        if not name.startswith(STAGING):
            assert data in (before.get(name), wanted.get(name)), name
    assert world.harness.apply(world.args).error == ""
    assert world.found() == wanted
    assert not (world.dest / STAGING).exists()


@pytest.mark.parametrize("number", range(1, 8))
def test_a_cancel_removes_what_was_staged_where_the_host_allows_it(
    tmp_path: Path, world: World, number: int
) -> None:
    world = World(tmp_path, allow_cleanup=True)
    outcome = world.harness.apply(world.args, cancel_after=number)
    assert outcome.cancelled
    assert not (world.dest / STAGING).exists()


def test_a_cancel_that_cannot_clean_up_says_what_happens_to_the_rest(world: World) -> None:
    outcome = world.harness.apply(world.args, cancel_at=4)
    assert outcome.lines[-1] == "cancelled: the next sync removes what was staged"


def test_a_failed_transfer_is_reported_and_leaves_nothing(world: World) -> None:
    def full(script: str) -> RunResult:
        return RunResult(stderr="disk full\n", exit_code=1)

    world.harness.target.on_run("trap 'exit 143'", full)
    outcome = world.harness.apply(world.args)
    assert outcome.error == "the finish failed on the target: disk full"
    assert not (world.dest / STAGING).exists()
    assert world.found()["menu.txt"] == b"old"


def test_a_large_folder_sends_its_last_script_as_a_file(world: World) -> None:
    world.write(world.source, {f"{'n' * 60}/{n:04}.txt": b"%d" % n for n in range(700)})
    outcome = world.harness.apply(world.args)
    assert outcome.error == ""
    assert max(len(op.script) for op in outcome.ops) < 64 * 1024
    assert world.found() == world.wanted()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": None}, "source is required"),
        ({"dest": ""}, "dest is required"),
        ({"dest": 7}, "dest is required"),
        ({"source": "/no/such"}, "source '/no/such' is not a folder on this controller"),
        ({"dest": "relative"}, "dest must be an absolute path below /, not 'relative'"),
        ({"dest": "/"}, "dest must be an absolute path below /"),
        ({"dest": "//x/.."}, "dest must be an absolute path below /"),
        ({"extra": 1}, "unknown params: extra; signage_sync has source and dest"),
    ],
)
def test_bad_params_are_said_clearly_and_nothing_is_run(
    world: World, change: dict[str, object], words: str
) -> None:
    args = {**world.args, **change}
    for outcome in (world.harness.check(args), world.harness.apply(args)):
        assert words in outcome.error
        assert outcome.result is not None
        assert outcome.ops == []


def test_a_dest_that_is_a_file_is_an_error(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    outcome = world.harness.check({**world.args, "dest": str(tmp_path / "file")})
    assert outcome.error.endswith("file is not a folder")


def test_a_name_that_cannot_travel_is_named(world: World) -> None:
    (world.source / "two\nlines").write_bytes(b"")
    assert "'two\\nlines' in source: rename it" in world.harness.check(world.args).error


def test_a_name_with_a_line_end_on_the_target_is_removed(world: World) -> None:
    (world.dest / "two\nlines\\").write_bytes(b"x")
    assert world.harness.apply(world.args).error == ""
    assert world.found() == world.wanted()


def test_a_windows_target_is_refused(world: World) -> None:
    windows = TargetInfo(runtime_kind="windows-powershell")
    harness = Harness(PLUGIN.SignageSync, ShellTarget(), info=windows)
    assert "needs a posix-shell target" in harness.check(world.args).error


def test_the_hash_is_sha256(world: World) -> None:
    digest = hashlib.sha256(b"k").hexdigest()
    outcome = world.harness.check(world.args)
    assert outcome.needs_change
    assert PLUGIN.parse_inventory(f"{digest}  ./keep\n") == {"keep": digest}


def test_a_check_names_each_file_that_changes_by_its_hash(world: World) -> None:
    result = world.harness.check(world.args).result
    assert isinstance(result, CheckResult)
    found = {one.path.removeprefix(f"{world.dest}/"): one for one in result.changes}
    assert set(found) == {"menu.txt", "video/one.mp4", ODD, "empty", "gone/old.png", "-rf"}
    old, new = (hashlib.sha256(text).hexdigest() for text in (b"old", b"new"))
    assert (found["menu.txt"].before, found["menu.txt"].after) == (f"sha256 {old}", f"sha256 {new}")
    assert found["gone/old.png"].after is None
    assert found["empty"].before is None
