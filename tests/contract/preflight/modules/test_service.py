"""``service`` against a systemctl of the tests' own: this machine's units are never touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.errors import ModuleError, Reason
from tests.support.fake_systemd import FakeSystemd, first_on_path
from tests.support.modules import Workbench


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSystemd:
    made = FakeSystemd(tmp_path)
    first_on_path(made.bin, monkeypatch)
    return made


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        (("inactive", "disabled"), {"state": "running"}, ("active", "disabled")),
        (("failed", "disabled"), {"state": "running"}, ("active", "disabled")),
        (("active", "enabled"), {"state": "stopped"}, ("inactive", "enabled")),
        (("activating", "enabled"), {"state": "stopped"}, ("inactive", "enabled")),
        (("active", "enabled"), {"state": "disabled"}, ("inactive", "masked")),
        (("inactive", "disabled"), {"startup_type": "automatic"}, ("inactive", "enabled")),
        (("inactive", "enabled-runtime"), {"startup_type": "automatic"}, ("inactive", "enabled")),
        (("active", "enabled"), {"startup_type": "manual"}, ("active", "disabled")),
        (("active", "enabled-runtime"), {"startup_type": "manual"}, ("active", "disabled")),
        (("active", "enabled"), {"startup_type": "disabled"}, ("active", "masked")),
        (("inactive", "masked"), {"startup_type": "manual"}, ("inactive", "disabled")),
        (("inactive", "masked-runtime"), {"startup_type": "manual"}, ("inactive", "disabled")),
        (
            ("inactive", "masked"),
            {"state": "running", "startup_type": "automatic"},
            ("active", "enabled"),
        ),
        (
            ("active", "enabled"),
            {"state": "stopped", "startup_type": "disabled"},
            ("inactive", "masked"),
        ),
    ],
)
async def test_a_unit_is_brought_there_and_stays(
    bench: Workbench,
    systemd: FakeSystemd,
    before: tuple[str, str],
    wanted: dict[str, object],
    after: tuple[str, str],
) -> None:
    systemd.unit("web.service", *before)
    first = await bench.converge("service", name="web", **wanted)
    assert systemd.state("web.service") == after
    was = {change.before for change in first.changes}
    assert was <= set(before)


@pytest.mark.parametrize(
    ("now", "wanted"),
    [
        (("failed", "disabled"), {"state": "stopped"}),
        (("reloading", "enabled"), {"state": "running"}),
        (("inactive", "static"), {"startup_type": "manual"}),
        (("inactive", "indirect"), {"startup_type": "manual"}),
        (("inactive", "linked"), {"startup_type": "manual"}),
        (("failed", "masked"), {"state": "disabled"}),
        (("active", "enabled"), {"state": "running", "startup_type": "automatic"}),
        (("active", "generated"), {"state": "running"}),
        (("inactive", "masked"), {}),
    ],
)
async def test_what_is_as_wanted_costs_one_exec_and_changes_nothing(
    bench: Workbench, systemd: FakeSystemd, now: tuple[str, str], wanted: dict[str, object]
) -> None:
    systemd.unit("web.service", *now)
    result = await bench.check("service", name="web", **wanted)
    assert (result.needs_change, bench.target.exec_count) == (False, 1)
    assert systemd.state("web.service") == now


@pytest.mark.parametrize(
    ("now", "wanted", "said"),
    [
        (("inactive", "static"), {"startup_type": "automatic"}, "no .Install. section"),
        (("inactive", "indirect"), {"startup_type": "automatic"}, "through other units"),
        (("active", "generated"), {"startup_type": "manual"}, "change what makes it"),
        (("active", "transient"), {"startup_type": "automatic"}, "change what makes it"),
        (("active", ""), {"startup_type": "automatic"}, "no unit file"),
        (("inactive", "masked"), {"state": "running"}, "is masked: set startup_type"),
    ],
)
async def test_what_can_never_converge_is_refused_by_check(
    bench: Workbench,
    systemd: FakeSystemd,
    now: tuple[str, str],
    wanted: dict[str, object],
    said: str,
) -> None:
    systemd.unit("web.service", *now)
    with pytest.raises(ModuleError, match=said) as caught:
        await bench.check("service", name="web", **wanted)
    assert caught.value.reason is Reason.MODULE_ERROR


async def test_a_oneshot_that_ends_by_itself_is_not_kept_running(
    bench: Workbench, systemd: FakeSystemd
) -> None:
    systemd.unit("job.service", type="oneshot")
    with pytest.raises(ModuleError, match="oneshot that ends by itself"):
        await bench.check("service", name="job", state="running")
    assert not (await bench.check("service", name="job", state="stopped")).needs_change


async def test_an_alias_is_enabled_by_its_unit_s_own_name(
    bench: Workbench, systemd: FakeSystemd
) -> None:
    systemd.unit("ssh.service")
    systemd.alias("sshd.service", of="ssh.service")
    await bench.converge("service", name="sshd", state="running", startup_type="automatic")
    assert systemd.state("ssh.service") == ("active", "enabled")
    assert systemd.asked("enable") == ["enable -- ssh.service"]


async def test_a_unit_file_that_changed_is_read_again_first(
    bench: Workbench, systemd: FakeSystemd
) -> None:
    systemd.unit("web.service", stale="")
    await bench.converge("service", name="web", state="running")
    assert systemd.asked("daemon-reload") == ["daemon-reload"]
    assert not [line for _, line in bench.lines if "changed on disk" in line]


async def test_a_start_that_fails_says_why_and_shows_the_journal(
    bench: Workbench, systemd: FakeSystemd
) -> None:
    systemd.unit("web.service", broken="")
    with pytest.raises(ModuleError, match=r"Job for web\.service failed") as caught:
        await bench.apply("service", name="web", state="running")
    assert caught.value.reason is Reason.MODULE_ERROR
    assert ("out", "the last line of the journal") in bench.lines


async def test_a_service_that_dies_at_once_is_no_success(
    bench: Workbench, systemd: FakeSystemd
) -> None:
    systemd.unit("web.service", fragile="")
    with pytest.raises(ModuleError, match="was started, and is failed now"):
        await bench.apply("service", name="web", state="running")


async def test_a_unit_that_is_not_there_is_named(bench: Workbench, systemd: FakeSystemd) -> None:
    for phase in (bench.check, bench.apply):
        with pytest.raises(ModuleError, match=r"no unit nope \(not-found\).*not found"):
            await phase("service", name="nope", state="stopped")


async def test_a_machine_that_systemd_does_not_run_lacks_a_prerequisite(
    bench: Workbench, systemd: FakeSystemd
) -> None:
    systemd.shut_down()
    with pytest.raises(ModuleError, match="has not been booted with systemd") as caught:
        await bench.check("service", name="web", state="running")
    assert caught.value.reason is Reason.MISSING_PREREQUISITE


async def test_a_machine_without_systemctl_lacks_a_prerequisite(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.folder / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(bench.folder))
    with pytest.raises(ModuleError, match="there is no systemctl on the target") as caught:
        await bench.check("service", name="web", state="running")
    assert caught.value.reason is Reason.MISSING_PREREQUISITE


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "'name' is missing"),
        ({"name": "-web"}, "must be the name of a unit"),
        ({"name": "a b"}, "must be the name of a unit"),
        ({"name": "w", "state": "restarted"}, "state"),
        ({"name": "w", "state": "running", "startup_type": "disabled"}, "contradict"),
        ({"name": "w", "state": "disabled", "startup_type": "manual"}, "contradict"),
    ],
)
async def test_params_that_make_no_sense_fail_in_check(
    bench: Workbench, args: dict[str, object], said: str
) -> None:
    bench.target.forbidden = True
    with pytest.raises(ModuleError, match=said) as caught:
        await bench.check("service", **args)
    assert caught.value.reason is Reason.INVALID_PARAMS
