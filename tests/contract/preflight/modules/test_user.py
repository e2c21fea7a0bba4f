"""``user`` with the real tools and throw-away names: no account that is there is touched."""

from __future__ import annotations

import pwd
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from preflight.errors import ModuleError, Reason
from tests.support.accounts import (
    Names,
    exists,
    groups_of,
    make_account,
    make_group,
    shadow_of,
    throw_away_names,
    why_no_accounts,
)
from tests.support.modules import Workbench

pytestmark = pytest.mark.xdist_group("accounts")  # the tools lock the same files

PASSWORD = 'it\'s a "$HOME" \\ pässword: 秘密\\'


@pytest.fixture
def names() -> Generator[Names]:
    if why_no_accounts():
        pytest.skip(why_no_accounts())
    with throw_away_names() as given:
        yield given


async def test_an_account_is_made_as_asked_and_then_left_alone(
    bench: Workbench, names: Names
) -> None:
    name, group = names.new(), names.new()
    make_group(group)
    home = str(bench.folder / "home of it")
    first = await bench.converge(
        "user", name=name, home=home, shell="/bin/sh", uid=47123, groups=[group]
    )
    assert [change.path for change in first.changes] == [
        name,
        f"{name} (uid)",
        f"{name} (home)",
        f"{name} (shell)",
        f"{name} (groups)",
    ]
    entry = pwd.getpwnam(name)
    assert (entry.pw_uid, entry.pw_dir, entry.pw_shell) == (47123, home, "/bin/sh")
    assert groups_of(name) == {group}
    assert Path(home).is_dir()


async def test_a_check_costs_one_exec_and_changes_nothing(bench: Workbench, names: Names) -> None:
    name = names.new()
    result = await bench.check("user", name=name, password=PASSWORD, shell="/bin/sh")
    assert (result.needs_change, bench.target.exec_count) == (True, 1)
    assert not exists(name)


async def test_a_system_account_gets_a_low_number_and_no_home(
    bench: Workbench, names: Names
) -> None:
    name = names.new()
    await bench.converge("user", name=name, system=True)
    entry = pwd.getpwnam(name)
    assert entry.pw_uid < 1000
    assert not Path(entry.pw_dir).exists()


async def test_what_differs_is_changed_and_nothing_else(bench: Workbench, names: Names) -> None:
    name, old, new = names.new(), names.new(), names.new()
    make_account(name)
    make_group(old)
    make_group(new)
    await bench.apply("user", name=name, groups=[old])
    first = await bench.converge("user", name=name, groups=[new], shell="/bin/false")
    assert groups_of(name) == {old, new}
    (shell, groups) = first.changes
    assert (shell.before, shell.after) == ("/bin/sh", "/bin/false")
    assert groups.path == f"{name} (groups)"


async def test_a_home_moves_with_what_is_in_it(bench: Workbench, names: Names) -> None:
    name = names.new()
    make_account(name)
    old = Path(pwd.getpwnam(name).pw_dir)
    (old / "letter").write_text("x", encoding="ascii")
    new = bench.folder / "new"
    await bench.converge("user", name=name, home=str(new))
    assert (new / "letter").exists()
    assert not old.exists()


async def test_a_taken_home_is_taken_as_it_is(bench: Workbench, names: Names) -> None:
    name = names.new()
    make_account(name)
    old = Path(pwd.getpwnam(name).pw_dir)
    new = bench.folder / "new"
    new.mkdir()
    (new / "kept").touch()
    await bench.converge("user", name=name, home=str(new))
    assert (new / "kept").exists()
    assert old.is_dir()


async def test_a_password_is_set_compared_and_set_again_when_it_drifts(
    bench: Workbench, names: Names
) -> None:
    name = names.new()
    await bench.converge("user", name=name, password=PASSWORD)
    kept = shadow_of(name)
    assert kept.startswith("$")
    drifted = await bench.converge("user", name=name, password="another one")
    (change,) = drifted.changes
    assert change.path == f"{name} (password)"
    assert "another one" not in (change.after or "")
    assert shadow_of(name) != kept


async def test_a_password_is_in_no_script_and_in_no_change(bench: Workbench, names: Names) -> None:
    name = names.new()
    result = await bench.converge("user", name=name, password=PASSWORD)
    assert PASSWORD not in repr(result)
    assert not [script for script in bench.target.scripts if "pässword" in script]


async def test_without_perl_openssl_compares_what_it_knows(
    bench: Workbench, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, unknown = names.new(), names.new()
    await bench.apply("user", name=unknown, password="s3cret")
    make_account(known)
    hashed = hash_of("s3cret", "abc")
    await bench.apply("user", name=known, password_hash=hashed)
    for tool in ("sh", "getent", "id", "cut", "openssl"):
        (bench.folder / tool).symlink_to(f"/usr/bin/{tool}")
    monkeypatch.setenv("PATH", str(bench.folder))
    assert not (await bench.check("user", name=known, password="s3cret")).needs_change
    assert (await bench.check("user", name=known, password="s3cre")).needs_change
    result = await bench.check("user", name=unknown, password="other")
    if shadow_of(unknown).startswith("$y$"):
        assert not result.needs_change
        assert "can't be compared" in result.message
    else:
        assert result.needs_change


def hash_of(password: str, salt: str) -> str:
    command = ["openssl", "passwd", "-6", "-salt", salt, "-stdin"]
    done = subprocess.run(command, input=password.encode(), capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.mark.parametrize("state", ["!", "*"])
async def test_an_account_without_a_usable_password_gets_one(
    bench: Workbench, names: Names, state: str
) -> None:
    name = names.new()
    make_account(name)
    subprocess.run(["usermod", "-p", state, name], check=True)
    await bench.converge("user", name=name, password=PASSWORD)
    assert shadow_of(name).startswith("$")


@pytest.mark.parametrize("method", ["-1", "-5", "-6"])
async def test_a_hash_is_kept_as_it_is_and_a_plain_password_knows_it(
    bench: Workbench, names: Names, method: str
) -> None:
    name = names.new()
    made = subprocess.run(
        ["openssl", "passwd", method, "-stdin"], input=b"s3cret\n", capture_output=True, check=True
    )
    hashed = made.stdout.decode().strip()
    await bench.converge("user", name=name, password_hash=hashed)
    assert shadow_of(name) == hashed
    assert not (await bench.check("user", name=name, password="s3cret")).needs_change
    assert (await bench.check("user", name=name, password="s3cre")).needs_change
    assert (await bench.check("user", name=name, password_hash=hashed + "x")).needs_change


async def test_a_group_that_is_not_there_is_named_before_anything_is_made(
    bench: Workbench, names: Names
) -> None:
    name, missing = names.new(), names.new()
    for phase in (bench.check, bench.apply):
        with pytest.raises(ModuleError, match=f"can't be in {missing}: no such group"):
            await phase("user", name=name, groups=[missing])
    assert not exists(name)


async def test_a_group_that_an_earlier_account_left_is_taken_again(
    bench: Workbench, names: Names
) -> None:
    name = names.new()
    make_group(name)
    await bench.converge("user", name=name)
    assert exists(name)


async def test_an_account_is_removed_and_its_home_only_when_asked(
    bench: Workbench, names: Names
) -> None:
    kept, gone = names.new(), names.new()
    make_account(kept)
    make_account(gone)
    homes = [Path(pwd.getpwnam(name).pw_dir) for name in (kept, gone)]
    try:
        await bench.converge("user", name=kept, ensure="absent")
        await bench.converge("user", name=gone, ensure="absent", remove_home=True)
        assert [exists(kept), exists(gone)] == [False, False]
        assert [home.exists() for home in homes] == [True, False]
    finally:
        subprocess.run(["rm", "-r", "--", str(homes[0])], check=True)


async def test_a_home_that_belongs_to_the_system_is_never_removed(
    bench: Workbench, names: Names
) -> None:
    name = names.new()
    make_account(name)
    # The home is one that does not exist, so that even a broken guard would remove nothing.
    subprocess.run(["usermod", "-d", f"/usr/{name}", name], check=True)
    for phase in (bench.check, bench.apply):
        with pytest.raises(ModuleError, match="never removed"):
            await phase("user", name=name, ensure="absent", remove_home=True)
    assert exists(name)


async def test_what_the_tools_refuse_is_told_in_their_words(bench: Workbench, names: Names) -> None:
    name = names.new()
    with pytest.raises(ModuleError, match="UID 0 is not unique") as caught:
        await bench.apply("user", name=name, uid=0)
    assert caught.value.reason is Reason.MODULE_ERROR


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "'name' is missing"),
        ({"name": "-x"}, "must be an account's name"),
        ({"name": "1000"}, "must be an account's name"),
        ({"name": "a b"}, "must be an account's name"),
        ({"name": "x", "password": "a\nb"}, "line's end"),
        ({"name": "x", "password": ""}, "empty"),
        ({"name": "x", "password": "a", "password_hash": "$6$a$b"}, "keep one"),
        ({"name": "x", "password_hash": "a:b"}, "no hash"),
        ({"name": "x", "home": "here"}, "must be absolute"),
        ({"name": "x", "shell": "~/sh"}, "write it out"),
        ({"name": "x", "remove_home": True}, "goes with ensure: absent"),
        ({"name": "root", "ensure": "absent"}, "root is never removed"),
    ],
)
async def test_params_that_make_no_sense_fail_in_check(
    bench: Workbench, args: dict[str, object], said: str
) -> None:
    bench.target.forbidden = True
    with pytest.raises(ModuleError, match=said) as caught:
        await bench.check("user", **args)
    assert caught.value.reason is Reason.INVALID_PARAMS
