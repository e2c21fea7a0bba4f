"""``reboot`` against a systemctl and a boot id of the tests' own: nothing is ever rebooted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from preflight.bus import Bus
from preflight.control import RunControl
from preflight.errors import ModuleError, PreflightError, Reason, TargetError, TargetUnreachable
from preflight.modules.reboot import BOOT_ID, RebootModule
from preflight.ports.module import TaskContext
from preflight.ports.target import ExecResult
from tests.support.fake_systemd import FakeSystemd, first_on_path
from tests.support.modules import CountedTarget

PATIENCE_S = 20


class Rebooting(CountedTarget):
    """Does what ``meanwhile`` says to the scripts that hold ``systemctl reboot`` or ``cat``."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []
        self.at_reboot: Callable[[], None] = lambda: None
        self.at_look: Callable[[int], None] = lambda number: None
        self.looks = 0
        self.looked = asyncio.Event()

    async def exec(self, script: str, **more: object) -> ExecResult:
        if "systemctl reboot" in script:
            result = await super().exec(script)
            self.at_reboot()
            return result
        if script.startswith("cat "):
            self.looks += 1
            self.looked.set()
            self.at_look(self.looks)
        return await super().exec(script)


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSystemd:
    made = FakeSystemd(tmp_path)
    made.boot("old", following="new")
    first_on_path(made.bin, monkeypatch)
    return made


def module(systemd: FakeSystemd, flag: Path | None = None) -> RebootModule:
    flags = (str(flag),) if flag is not None else ()
    return RebootModule(boot_id=str(systemd.boot_id), flags=flags, poll_s=0.01)


@asynccontextmanager
async def context(target: CountedTarget) -> AsyncGenerator[TaskContext]:
    bus = Bus("test")
    async with asyncio.timeout(PATIENCE_S), RunControl(bus).scope("there/task") as scope:
        yield TaskContext(
            target=target,
            task="task",
            scope=scope,
            emit=bus.emit,
            output=lambda stream, text: None,
            folder=Path("/"),
        )


def fail(exc: PreflightError) -> None:
    raise exc


async def test_a_reboot_that_is_asked_for_is_done_once(
    systemd: FakeSystemd, tmp_path: Path
) -> None:
    flag, target = tmp_path / "reboot-required", Rebooting()
    flag.touch()
    target.at_reboot = flag.unlink
    reboot = module(systemd, flag)
    async with context(target) as ctx:
        first = await reboot.check({}, ctx)
        assert first.needs_change
        assert str(flag) in first.message
        assert target.exec_count == 1
        assert "rebooted in" in (await reboot.apply({}, ctx)).message
        assert not (await reboot.check({}, ctx)).needs_change
    assert systemd.asked("reboot") == ["reboot"]


@pytest.mark.parametrize(("code", "needed"), [(0, False), (1, True), (2, False)])
async def test_a_system_with_needs_restarting_is_asked(
    systemd: FakeSystemd, code: int, needed: bool
) -> None:
    tool = systemd.bin / "needs-restarting"
    tool.write_text(f"#!/bin/sh\nexit {code}\n", encoding="ascii")
    tool.chmod(0o755)
    async with context(Rebooting()) as ctx:
        result = await module(systemd).check({}, ctx)
    assert result.needs_change is needed
    assert ("can't tell" in result.message) is (code == 2)


async def test_a_check_never_reboots(systemd: FakeSystemd) -> None:
    async with context(Rebooting()) as ctx:
        assert (await module(systemd).check({"condition": "always"}, ctx)).needs_change
    assert systemd.asked("reboot") == []


async def test_a_machine_that_still_answers_with_its_old_boot_id_has_not_rebooted(
    systemd: FakeSystemd,
) -> None:
    target = Rebooting()
    systemd.boot("old", following="old")

    def come_up(number: int) -> None:
        if number == 5:
            systemd.boot("new", following="")

    target.at_look = come_up
    async with context(target) as ctx:
        await module(systemd).apply({"condition": "always"}, ctx)
    assert target.looks == 5


async def test_a_link_that_goes_down_with_the_machine_is_no_failure(systemd: FakeSystemd) -> None:
    target = Rebooting()
    lost = TargetError("the link was lost while the command ran", Reason.UNKNOWN_OUTCOME)
    target.at_reboot = lambda: fail(lost)
    target.at_look = lambda number: (
        fail(TargetUnreachable("connection refused")) if number < 4 else None
    )
    async with context(target) as ctx:
        await module(systemd).apply({"condition": "always"}, ctx)
    assert target.looks == 4


async def test_a_machine_that_never_left_is_a_timeout_that_says_so(systemd: FakeSystemd) -> None:
    systemd.boot("old", following="old")
    async with context(Rebooting()) as ctx:
        with pytest.raises(ModuleError, match="within 1 s: it still has the boot id") as caught:
            await module(systemd).apply({"condition": "always", "timeout": 1}, ctx)
    assert caught.value.reason is Reason.TIMEOUT


async def test_a_machine_that_does_not_come_back_is_a_timeout_with_its_last_word(
    systemd: FakeSystemd,
) -> None:
    target = Rebooting()
    target.at_look = lambda number: fail(TargetUnreachable("no route to host"))
    async with context(target) as ctx:
        with pytest.raises(ModuleError, match="within 300ms: no route to host") as caught:
            await module(systemd).apply({"condition": "always", "timeout": "300ms"}, ctx)
    assert caught.value.reason is Reason.TIMEOUT


async def test_a_reboot_that_is_refused_is_told_in_systemd_s_words(systemd: FakeSystemd) -> None:
    (systemd.bin / "systemctl").write_text(
        "#!/bin/sh\necho 'Failed to reboot: Access denied' >&2; exit 1\n", encoding="ascii"
    )
    async with context(Rebooting()) as ctx:
        with pytest.raises(ModuleError, match="Failed to reboot: Access denied") as caught:
            await module(systemd).apply({"condition": "always"}, ctx)
    assert caught.value.reason is Reason.MODULE_ERROR


async def test_the_waiting_can_be_cancelled(systemd: FakeSystemd) -> None:
    target = Rebooting()
    systemd.boot("old", following="old")
    async with context(target) as ctx, asyncio.TaskGroup() as group:
        waiting = group.create_task(module(systemd).apply({"condition": "always"}, ctx))
        await target.looked.wait()
        waiting.cancel()
    assert waiting.cancelled()


async def test_the_engine_s_own_kernel_is_never_rebooted(systemd: FakeSystemd) -> None:
    own = Path(BOOT_ID)
    if not own.exists():
        pytest.skip(f"there is no {BOOT_ID} here")
    systemd.boot_id.write_text(own.read_text(encoding="ascii"), encoding="ascii")
    async with context(Rebooting()) as ctx:
        for phase in (module(systemd).check, module(systemd).apply):
            with pytest.raises(ModuleError, match="engine's own kernel") as caught:
                await phase({"condition": "always"}, ctx)
            assert caught.value.reason is Reason.UNSUPPORTED_ON_RUNTIME
    assert systemd.asked("reboot") == []


@pytest.mark.parametrize(
    "args", [{"condition": "maybe"}, {"timeout": 0}, {"timeout": "soon"}, {"delay": 5}]
)
async def test_params_that_make_no_sense_fail_in_check(
    systemd: FakeSystemd, args: dict[str, object]
) -> None:
    target = Rebooting()
    target.forbidden = True
    async with context(target) as ctx:
        with pytest.raises(ModuleError) as caught:
            await module(systemd).check(args, ctx)
    assert caught.value.reason is Reason.INVALID_PARAMS
