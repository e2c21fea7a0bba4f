"""``system_package`` with the real apt on an archive of the tests' own, and with a scripted dnf."""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path

import pytest

from preflight.errors import ModuleError, Reason
from tests.support.deb_archive import DebArchive, why_no_apt
from tests.support.modules import Workbench


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DebArchive:
    if why_no_apt():
        pytest.skip(why_no_apt())
    folder = tmp_path / "archive"
    folder.mkdir()
    return DebArchive(folder, monkeypatch)


def packages(*names: str, **fields: object) -> list[dict[str, object]]:
    return [{"name": name, **fields} for name in names]


async def test_packages_are_installed_at_once_and_then_left_alone(
    bench: Workbench, archive: DebArchive
) -> None:
    archive.sell("pfone", "1.0")
    archive.sell("pftwo", "2.0")
    first = await bench.converge("system_package", packages=packages("pfone", "pftwo"))
    assert archive.states() == {"pfone": "ii 1.0", "pftwo": "ii 2.0"}
    assert [change.path for change in first.changes] == ["pfone", "pftwo"]
    assert archive.calls("install") == 1
    assert [line for _, line in bench.lines if "pfone" in line]


async def test_a_check_costs_one_exec_and_fetches_nothing(
    bench: Workbench, archive: DebArchive
) -> None:
    archive.sell("pfone", "1.0")
    result = await bench.check("system_package", packages=packages("pfone"))
    assert (result.needs_change, bench.target.exec_count) == (True, 1)
    assert not archive.log.exists()


async def test_the_index_is_refreshed_once_and_only_where_it_has_to_be(
    bench: Workbench, archive: DebArchive
) -> None:
    archive.sell("pfone", "1.0")
    archive.sell("pftwo", "2.0")
    await bench.converge("system_package", packages=packages("pfone"))
    await bench.converge("system_package", packages=packages("pftwo"))
    assert archive.calls("update") == 1
    archive.sell("pfnew", "1.0")
    await bench.converge("system_package", packages=packages("pfnew"))
    assert archive.calls("update") == 2


async def test_an_index_that_names_what_is_gone_is_refreshed_once(
    bench: Workbench, archive: DebArchive
) -> None:
    archive.sell("pfone", "1.0")
    archive.sell("pftwo", "1.0")
    await bench.converge("system_package", packages=packages("pfone"))
    archive.take_back("pftwo", "1.0")
    archive.sell("pftwo", "1.1")
    await bench.converge("system_package", packages=packages("pftwo"))
    assert archive.states()["pftwo"] == "ii 1.1"
    assert archive.calls("update") == 2


async def test_a_version_is_exact_and_may_be_an_older_one(
    bench: Workbench, archive: DebArchive
) -> None:
    archive.sell("pfone", "1.0")
    archive.sell("pfone", "2.0")
    await bench.converge("system_package", packages=packages("pfone"))
    assert archive.states() == {"pfone": "ii 2.0"}
    older = await bench.converge("system_package", packages=packages("pfone", version=1.0))
    assert archive.states() == {"pfone": "ii 1.0"}
    assert [(one.before, one.after) for one in older.changes] == [("2.0", "1.0")]


async def test_what_left_its_configuration_is_not_there(
    bench: Workbench, archive: DebArchive
) -> None:
    archive.sell("pfone", "1.0")
    await bench.converge("system_package", packages=packages("pfone"))
    await bench.converge("system_package", packages=packages("pfone", ensure="absent"))
    assert archive.states() == {"pfone": "rc 1.0"}
    await bench.converge("system_package", packages=packages("pfone"))
    assert archive.states() == {"pfone": "ii 1.0"}


async def test_one_task_may_remove_and_install(bench: Workbench, archive: DebArchive) -> None:
    archive.sell("pfone", "1.0")
    archive.sell("pftwo", "1.0", Conflicts="pfone")
    await bench.converge("system_package", packages=packages("pfone"))
    both = [*packages("pfone", ensure="absent"), *packages("pftwo")]
    await bench.converge("system_package", packages=both)
    assert archive.states()["pftwo"] == "ii 1.0"


async def test_a_package_that_reads_its_input_swallows_nothing(
    bench: Workbench, archive: DebArchive
) -> None:
    archive.sell("pfone", "1.0", postinst='[ "$(cat | wc -c)" = 0 ]')
    archive.sell("pftwo", "1.0", postinst='[ "$(cat | wc -c)" = 0 ]')
    await bench.converge("system_package", packages=packages("pfone", "pftwo"))
    assert set(archive.states().values()) == {"ii 1.0"}


async def test_lines_come_while_a_package_is_still_being_set_up(
    bench: Workbench, archive: DebArchive
) -> None:
    go = archive.content / "go"
    wait = f"echo here I am; while [ ! -e {go} ]; do sleep 0.02; done"
    archive.sell("pfone", "1.0", postinst=wait)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        running = group.create_task(
            bench.converge("system_package", packages=packages("pfone")),
        )
        await bench.line("here I am")
        assert not running.done()
        go.touch()


async def test_a_lock_that_another_holds_is_waited_for(
    bench: Workbench, archive: DebArchive
) -> None:
    archive.sell("pfone", "1.0")
    lock = os.open(archive.admin / "lock-frontend", os.O_RDWR | os.O_CREAT, 0o640)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            group.create_task(bench.converge("system_package", packages=packages("pfone")))
            await bench.line("Could not get lock")
            fcntl.lockf(lock, fcntl.LOCK_UN)
    finally:
        os.close(lock)
    assert archive.states() == {"pfone": "ii 1.0"}


async def test_a_lock_that_is_never_let_go_is_an_error(
    bench: Workbench, archive: DebArchive
) -> None:
    archive.sell("pfone", "1.0")
    with open(archive.admin / "lock-frontend", "w", encoding="ascii") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        with pytest.raises(ModuleError, match=r"Could not get lock|Unable to acquire"):
            await bench.apply("system_package", packages=packages("pfone"), lock_timeout="1s")


async def test_a_package_that_nobody_sells_is_told_in_apt_s_words(
    bench: Workbench, archive: DebArchive
) -> None:
    archive.sell("pfone", "1.0")
    with pytest.raises(ModuleError, match="Unable to locate package pfnone") as caught:
        await bench.apply("system_package", packages=packages("pfnone"))
    assert caught.value.reason is Reason.MODULE_ERROR
    assert archive.calls("update") == 1


async def test_a_name_that_others_provide_is_no_package(
    bench: Workbench, archive: DebArchive
) -> None:
    archive.sell("pfone", "1.0", Provides="pfvirtual")
    with pytest.raises(ModuleError, match="pfvirtual is not installed: is it a name that other"):
        await bench.apply("system_package", packages=packages("pfvirtual"))


_DNF = r"""#!/bin/sh
echo "$*" >>'{folder}/calls'
while [ "$1" != -- ]; do
  case $1 in install|remove|downgrade) verb=$1 ;; esac
  shift
done
shift
cat >/dev/null
for spec; do
  name=${spec%%-*}
  version=${spec#"$name"}; version=${version#-}
  case $verb in
    remove) rm -f "{folder}/db/$name" ;;
    install) [ -e "{folder}/db/$name" ] || echo "${version:-2.0-1}" >"{folder}/db/$name" ;;
    downgrade) echo "$version-1" >"{folder}/db/$name" ;;
  esac
  case $name in no*) echo "Error: Unable to find a match: $name" >&2; exit 1 ;; esac
done
echo Complete!
"""
_RPM = r"""#!/bin/sh
format=
while [ "$1" != -- ]; do
  case $1 in --qf) format=$2; shift ;; esac
  shift
done
shift
name=${1%%-*}
version=$(cat "{folder}/db/$name" 2>/dev/null) || { echo "package $1 is not installed"; exit 1; }
case $version- in "${1#"$name"-}"-*) ;; *) [ "$1" = "$name" ] || exit 1 ;; esac
echo "package=ii |(none):$version.noarch|$name"
"""


@pytest.fixture
def dnf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with dnf and without apt: the folder has its database and its log."""
    place = tmp_path / "dnf"
    (place / "db").mkdir(parents=True)
    (place / "bin").mkdir()
    for name, text in (("dnf", _DNF), ("rpm", _RPM)):
        (place / "bin" / name).write_text(text.replace("{folder}", str(place)), encoding="utf-8")
        (place / "bin" / name).chmod(0o755)
    only_tools(place / "bin", monkeypatch)
    return place


def only_tools(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be found but what is in the folder, and a few usual tools."""
    for tool in ("sh", "cat", "rm", "grep", "tee", "mktemp", "date", "sleep"):
        (folder / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("PATH", str(folder))


async def test_dnf_installs_removes_and_goes_back(bench: Workbench, dnf: Path) -> None:
    await bench.converge("system_package", packages=packages("one", "two"))
    assert (dnf / "db/one").read_text().strip() == "2.0-1"
    await bench.converge("system_package", packages=packages("one", version="1.5"))
    assert (dnf / "db/one").read_text().strip() == "1.5-1"
    await bench.converge("system_package", packages=packages("one", ensure="absent"))
    calls = (dnf / "calls").read_text().splitlines()
    assert [call.split(" -- ")[1] for call in calls] == ["one two", "one-1.5", "one-1.5", "one"]


@pytest.mark.parametrize("version", ["2.0", "2.0-1", "0:2.0", "0:2.0-1", "2.0-1.noarch"])
async def test_dnf_s_versions_may_leave_out_what_is_usual(
    bench: Workbench, dnf: Path, version: str
) -> None:
    (dnf / "db/one").write_text("2.0-1\n", encoding="ascii")
    result = await bench.check("system_package", packages=packages("one", version=version))
    assert not result.needs_change
    other = await bench.check("system_package", packages=packages("one", version=f"1{version}"))
    assert other.needs_change


async def test_dnf_s_own_words_tell_what_is_wrong(bench: Workbench, dnf: Path) -> None:
    with pytest.raises(ModuleError, match="dnf failed: Error: Unable to find a match: nothing"):
        await bench.apply("system_package", packages=packages("nothing"))


async def test_a_machine_with_neither_lacks_a_prerequisite(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    only_tools(tmp_path / "bin", monkeypatch)
    with pytest.raises(ModuleError, match="needs apt or dnf") as caught:
        await bench.check("system_package", packages=packages("one"))
    assert caught.value.reason is Reason.MISSING_PREREQUISITE


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "'packages' is missing"),
        ({"packages": []}, "must be a list that is not empty"),
        ({"packages": ["vim"]}, "packages/0"),
        ({"packages": [{"name": "a-"}]}, "must be the name of a package"),
        ({"packages": [{"name": "-a"}]}, "must be the name of a package"),
        ({"packages": [{"name": "a b"}]}, "must be the name of a package"),
        ({"packages": [{"name": "a", "version": "1 2"}]}, "not the version"),
        ({"packages": [{"name": "a"}, {"name": "a", "ensure": "absent"}]}, "named twice"),
        ({"packages": [{"name": "a", "version": "1", "ensure": "absent"}]}, "leave its version"),
    ],
)
async def test_params_that_make_no_sense_fail_in_check(
    bench: Workbench, args: dict[str, object], said: str
) -> None:
    bench.target.forbidden = True
    with pytest.raises(ModuleError, match=said) as caught:
        await bench.check("system_package", **args)
    assert caught.value.reason is Reason.INVALID_PARAMS
