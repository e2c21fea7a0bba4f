"""Files larger than a message, through both sides."""

from __future__ import annotations

from pathlib import Path

from preflight.model.settings import Settings
from tests.support.loop import in_loop
from tests.support.stage import Stage
from tests.wire.together.stand import lay_sdk

BIG = """
def check(self, ctx, args, handle):
    import hashlib
    with open(args["there"], "rb") as file:
        handle.put_file(args["here"], file)
    total = hashlib.sha256()

    class Sink:
        size = 0
        def write(self, data):
            Sink.size += len(data)
            total.update(data)

    rest = handle.get_file(args["here"], into=Sink())
    with open(args["there"], "rb") as file:
        same = total.digest() == hashlib.file_digest(file, "sha256").digest()
    peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return CheckResult(same and rest == b"", f"{Sink.size} {peak[0].split()[1]}")

def apply(self, ctx, args, handle):
    return ApplyResult()
"""


@in_loop
async def test_100_mib_go_and_come_through_a_limit_of_one(tmp_path: Path) -> None:
    size = 100 * 1024 * 1024 + 17
    there, here = tmp_path / "there", tmp_path / "here"
    with there.open("wb") as file:
        for number in range(101):
            file.write(bytes([number, 7, 0, 255]) * (1 << 18))
        file.truncate(size)
    plugin = lay_sdk(tmp_path, BIG)
    stage = Stage(Settings(max_message_bytes=1024 * 1024))
    async with stage.open():
        result = await stage.check(plugin, there=str(there), here=str(here))
    assert result.needs_change
    got, peak_kib = map(int, result.message.split())
    assert got == size
    assert peak_kib < 60 * 1024, "the plugin held the file in memory"
    assert here.stat().st_size == size
    here.unlink()
    there.unlink()


@in_loop
async def test_what_a_command_prints_comes_byte_for_byte_and_changes_are_seen(
    tmp_path: Path,
) -> None:
    body = """
    def check(self, ctx, args, handle):
        raw = handle.run_command(r"printf '\\377\\000x'").stdout_bytes
        return CheckResult(raw == b"\\xff\\x00x", changes=[Change("/x", None, "y")])

    def apply(self, ctx, args, handle):
        return ApplyResult()
    """
    stage = Stage()
    async with stage.open():
        result = await stage.check(lay_sdk(tmp_path, body))
    assert result.needs_change
    assert [(one.path, one.before, one.after) for one in result.changes] == [("/x", None, "y")]
