from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from preflight.errors import ModuleError, PreflightError, Reason, TargetError
from preflight.events import Change
from tests.support.modules import Workbench


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


async def test_a_file_is_made_with_its_parents_and_then_left_alone(bench: Workbench) -> None:
    dest = bench.folder / "a" / "b.txt"
    first = await bench.converge("file", dest=str(dest), content="x\n", mode="0600")
    assert dest.read_text(encoding="utf-8") == "x\n"
    assert mode(dest) == 0o600
    assert first.changes[0] == Change(path=str(dest), before=None, after="x\n")


async def test_a_check_costs_one_exec_and_a_satisfied_file_no_more(bench: Workbench) -> None:
    dest = bench.folder / "f"
    dest.write_bytes(b"x" * 300_000)
    (bench.folder / "src").write_bytes(b"x" * 300_000)
    result = await bench.check("file", dest=str(dest), src="src", mode="0644")
    assert (result.needs_change, bench.target.exec_count, bench.target.put_count) == (False, 1, 0)


async def test_a_diff_shows_small_text_and_hashes_of_all_else(bench: Workbench) -> None:
    dest = bench.folder / "f"
    dest.write_text("old\n", encoding="utf-8")
    small = await bench.check("file", dest=str(dest), content="new\n")
    assert small.changes == [Change(path=str(dest), before="old\n", after="new\n")]
    dest.write_bytes(b"x" * 70_000)
    large = await bench.check("file", dest=str(dest), content="new\n")
    digest = hashlib.sha256(b"x" * 70_000).hexdigest()
    assert large.changes[0].before == f"sha256 {digest}"
    dest.write_bytes(b"\x00\xff")
    binary = await bench.check("file", dest=str(dest), content="n")
    assert "2 bytes" in (binary.changes[0].before or "")


async def test_the_content_marker_in_a_content_changes_nothing(bench: Workbench) -> None:
    dest = bench.folder / "f"
    dest.write_text("kind=missing\ncontent:\nx\n", encoding="utf-8")
    result = await bench.check("file", dest=str(dest), content="y")
    assert result.changes[0].before == "kind=missing\ncontent:\nx\n"


@pytest.mark.parametrize("written", ["0640", "640", 640, "0o640"])
async def test_a_mode_is_octal_as_it_is_written(bench: Workbench, written: str | int) -> None:
    dest = bench.folder / "f"
    dest.write_text("x", encoding="utf-8")
    dest.chmod(0o600)
    first = await bench.converge("file", dest=str(dest), mode=written)
    assert mode(dest) == 0o640
    assert first.changes == [Change(path=f"{dest} (mode)", before="0600", after="0640")]
    assert bench.target.put_count == 0


async def test_rewriting_keeps_the_mode_that_is_not_asked_for(bench: Workbench) -> None:
    dest = bench.folder / "f"
    dest.write_text("x", encoding="utf-8")
    dest.chmod(0o755)
    await bench.converge("file", dest=str(dest), content="y")
    assert mode(dest) == 0o755


async def test_owner_and_group_are_names_or_numbers(bench: Workbench) -> None:
    dest = bench.folder / "f"
    await bench.converge("file", dest=str(dest), content="x", owner=os.getuid(), group=os.getgid())
    with pytest.raises(ModuleError, match="rights"):
        await bench.apply("file", dest=str(dest), owner="nobody-of-that-name")


async def test_names_with_quotes_dashes_and_newlines_are_only_names(bench: Workbench) -> None:
    dest = bench.folder / "- 'a' \"b\" $(touch x) `c`\nd;"
    await bench.converge("file", dest=str(dest), content="x", mode="0600")
    await bench.converge("file", dest=str(dest), ensure="absent")
    assert os.listdir(bench.folder) == []


async def test_a_relative_source_is_beside_the_playbook(bench: Workbench) -> None:
    (bench.folder / "files").mkdir()
    (bench.folder / "files" / "s").write_bytes(b"\x00\r\n\xff")
    dest = bench.folder / "f"
    await bench.converge("file", dest=str(dest), src="files/s")
    assert dest.read_bytes() == b"\x00\r\n\xff"


async def test_a_template_of_the_controller_is_rendered(bench: Workbench) -> None:
    (bench.folder / "t").write_text("{% if true %}hi {{ vars.who }}{% endif %}\n", encoding="utf-8")
    dest = bench.folder / "f"
    await bench.converge("file", dest=str(dest), content_template="t")
    assert dest.read_text(encoding="utf-8") == "hi Bo"


async def test_a_template_that_fails_names_its_file(bench: Workbench) -> None:
    (bench.folder / "t").write_text("{{ vars.nope }}", encoding="utf-8")
    with pytest.raises(PreflightError, match=r"content_template t: .*vars\.nope") as caught:
        await bench.check("file", dest="/x", content_template="t")
    assert caught.value.reason is Reason.TEMPLATE_ERROR


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"dest": "/x", "src": "nope"}, "No such file"),
        ({"dest": "/x", "content_template": "nope"}, "No such file"),
        ({"dest": "/x", "src": "a", "content": "b"}, "keep one"),
        ({"dest": "/x", "ensure": "absent", "content": "b"}, "contradict"),
        ({"dest": "~/x", "content": "b"}, "write it out"),
        ({"dest": "/x/", "content": "b"}, "names a folder"),
        ({"dest": "/x", "mode": "u+x"}, "octal"),
        ({"dest": "/x", "mode": 888}, "octal"),
        ({"dest": "/x", "mod": "0644"}, "did you mean 'mode'"),
        ({}, "'dest' is missing"),
    ],
)
async def test_params_that_make_no_sense_fail_in_check(
    bench: Workbench, args: dict[str, object], said: str
) -> None:
    with pytest.raises(ModuleError, match=said) as caught:
        await bench.check("file", **args)
    assert caught.value.reason is Reason.INVALID_PARAMS


async def test_a_directory_is_never_taken_for_a_file(bench: Workbench) -> None:
    place = bench.folder / "d"
    place.mkdir()
    for args in ({"content": "x"}, {"ensure": "absent"}):
        with pytest.raises(ModuleError, match="is a directory"):
            await bench.check("file", dest=str(place), **args)
    assert place.is_dir()


async def test_removing_a_link_leaves_what_it_leads_to(bench: Workbench) -> None:
    (bench.folder / "kept").mkdir()
    for name, to in (("good", "kept"), ("dangling", "nowhere")):
        link = bench.folder / name
        link.symlink_to(to)
        await bench.converge("file", dest=str(link), ensure="absent")
        assert not link.is_symlink()
    assert (bench.folder / "kept").is_dir()


async def test_a_parent_that_is_a_file_is_an_error(bench: Workbench) -> None:
    (bench.folder / "f").touch()
    with pytest.raises(TargetError):
        await bench.apply("file", dest=str(bench.folder / "f" / "g"), content="x")


@pytest.mark.parametrize("content", [5, True, "", "ünï\r\n", "no newline"])
async def test_content_is_written_as_it_is(bench: Workbench, content: str | int) -> None:
    dest = bench.folder / "f"
    await bench.converge("file", dest=str(dest), content=content)
    text = "true" if content is True else str(content)
    assert dest.read_bytes() == text.encode()
