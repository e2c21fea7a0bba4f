"""``powershell`` with a pwsh that reads sh, and with the real one where there is one."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from preflight.errors import ModuleError, Reason
from tests.support.fake_systemd import first_on_path
from tests.support.modules import Workbench

# It is called as the real one, and wraps a check as the real wrapper does; the language is sh.
_PWSH = r"""#!/bin/sh
printf '%s\n' "$*" >>'{log}'
[ "$1 $2 $3" = "-NoProfile -NonInteractive -File" ] || exit 64
file=$4; shift 4
dir=$(dirname "$file")
printf '%s\n' "$dir" >'{log}.folder'
[ "$(stat -c %a "$dir")" = 700 ] || exit 65
run() { grep -v LASTEXITCODE "$dir/script.ps1" >"$dir/plain"; sh "$dir/plain" "$@"; }
case $file in
  */check.ps1)
    mark=$(sed -n "s/.*'\(preflight-[0-9a-f]*:\)'.*/\1/p" "$file")
    run >"$dir/out" || exit
    sed '$d' "$dir/out"
    [ ! -s "$dir/out" ] || echo "$mark$(tail -n 1 "$dir/out")" ;;
  *) run "$@" ;;
esac
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the calls of pwsh are noted."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "calls"
    (folder / "pwsh").write_text(_PWSH.replace("{log}", str(log)), encoding="utf-8")
    (folder / "pwsh").chmod(0o755)
    first_on_path(folder, monkeypatch)
    return log


def folder_of(log: Path) -> Path:
    return Path(log.with_name(f"{log.name}.folder").read_text(encoding="utf-8").strip())


@pytest.mark.usefixtures("log")
async def test_without_a_condition_it_is_always_to_be_run_and_costs_nothing(
    bench: Workbench,
) -> None:
    result = await bench.check("powershell", script="echo hi")
    assert (result.needs_change, bench.target.exec_count) == (True, 0)


async def test_args_and_variables_arrive_as_they_are_and_the_script_is_no_argument(
    bench: Workbench, log: Path
) -> None:
    odd = ["$HOME", '"q"', "it's", "a\nb", "", 5, True]
    env = {"A": "x y'z"}
    script = 'printf "[%s]\\n" "$@"; echo "$A"; pwd; cat; echo secret >/dev/null'
    where = bench.folder / "a folder"
    where.mkdir()
    await bench.apply("powershell", script=script, args=odd, env=env, working_dir=str(where))
    text = "\n".join(line for _, line in bench.lines)
    assert text == f"[$HOME]\n[\"q\"]\n[it's]\n[a\nb]\n[]\n[5]\n[true]\nx y'z\n{where}"
    assert "secret" not in log.read_text(encoding="utf-8")
    assert not folder_of(log).exists()


@pytest.mark.usefixtures("log")
async def test_one_line_of_output_is_the_message(bench: Workbench) -> None:
    assert (await bench.apply("powershell", script="echo version 7")).message == "version 7"


@pytest.mark.usefixtures("log")
async def test_an_exit_code_fails_the_task_with_the_last_error(bench: Workbench) -> None:
    with pytest.raises(ModuleError, match="the script ended with exit code 3: bad") as caught:
        await bench.apply("powershell", script="echo good; echo bad >&2; exit 3")
    assert caught.value.reason is Reason.MODULE_ERROR


async def test_a_program_s_exit_code_is_the_script_s(bench: Workbench) -> None:
    """Where the real one is not there: the line that does it is in what it is given."""
    seen = bench.folder / "pwsh"
    seen.write_text('#!/bin/sh\ncat "$4"\n', encoding="ascii")
    seen.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        first_on_path(bench.folder, patch)
        await bench.apply("powershell", script="git status")
    assert [line for _, line in bench.lines] == [
        "git status",
        "if ($LASTEXITCODE) { exit $LASTEXITCODE }",
    ]


@pytest.mark.usefixtures("log")
async def test_a_script_file_is_the_controller_s(bench: Workbench) -> None:
    (bench.folder / "s.ps1").write_bytes(b"\xef\xbb\xbfecho from a file: $1\n")
    assert (await bench.apply("powershell", file="s.ps1", args=["x"])).message == "from a file: x"
    for phase in (bench.check, bench.apply):
        with pytest.raises(ModuleError, match="No such file") as caught:
            await phase("powershell", file="nope.ps1")
        assert caught.value.reason is Reason.INVALID_PARAMS


@pytest.mark.usefixtures("log")
async def test_a_check_script_decides_until_it_is_done(bench: Workbench) -> None:
    made = bench.folder / "made"
    check = f"echo looking; [ -e {made} ] && echo false || echo true"
    await bench.converge("powershell", script=f"touch {made}", check_script=check)
    assert bench.lines.count(("out", "looking")) == 2


@pytest.mark.usefixtures("log")
async def test_a_check_script_may_answer_with_a_map(bench: Workbench) -> None:
    check = """echo '{"needs_change": true, "message": "two are missing"}'"""
    result = await bench.check("powershell", script="x", check_script=check, creates="/")
    assert (result.needs_change, result.message) == (True, "two are missing")


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("true", "printed nothing"),
        ("echo '\"maybe\"'", 'ended with "maybe"'),
        ("echo '{\"needs_change\": 1}'", "a map with needs_change"),
        ("echo no >&2; exit 4", "check_script ended with exit code 4: no"),
    ],
)
@pytest.mark.usefixtures("log")
async def test_a_check_script_that_answers_nothing_sensible_is_an_error(
    bench: Workbench, check: str, said: str
) -> None:
    with pytest.raises(ModuleError, match=said) as caught:
        await bench.check("powershell", script="x", check_script=check)
    assert caught.value.reason is Reason.MODULE_ERROR


@pytest.mark.usefixtures("log")
async def test_creates_is_looked_for_in_the_working_dir(bench: Workbench) -> None:
    where = str(bench.folder)
    await bench.converge("powershell", script="touch m", creates="m", working_dir=where)
    assert bench.target.exec_count == 3


@pytest.mark.usefixtures("log")
async def test_a_working_dir_that_is_not_there_is_named(bench: Workbench) -> None:
    with pytest.raises(ModuleError, match="working_dir /no/such can't be entered"):
        await bench.apply("powershell", script="x", working_dir="/no/such")


async def test_a_cancelled_script_leaves_nothing_behind(bench: Workbench, log: Path) -> None:
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        running = group.create_task(bench.apply("powershell", script="echo up; sleep 300"))
        await bench.line("up")
        running.cancel()
    assert running.cancelled()
    assert not folder_of(log).exists()


async def test_a_machine_without_powershell_lacks_a_prerequisite(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.folder / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(bench.folder))
    for run in (
        bench.apply("powershell", script="x"),
        bench.check("powershell", script="x", check_script="y"),
    ):
        with pytest.raises(ModuleError, match="there is no pwsh on the target") as caught:
            await run
        assert caught.value.reason is Reason.MISSING_PREREQUISITE


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "either script or file"),
        ({"script": "a", "file": "b"}, "either script or file"),
        ({"script": ""}, "must be a script that is not empty"),
        ({"script": "a", "env": {"A-B": "c"}}, "not the name of a variable"),
        ({"script": "a", "args": "b"}, "must be a list"),
        ({"script": "a", "creates": "~/x"}, "write it out"),
    ],
)
async def test_params_that_make_no_sense_fail_in_check(
    bench: Workbench, args: dict[str, object], said: str
) -> None:
    bench.target.forbidden = True
    with pytest.raises(ModuleError, match=said) as caught:
        await bench.check("powershell", **args)
    assert caught.value.reason is Reason.INVALID_PARAMS


@pytest.mark.skipif(shutil.which("pwsh") is None, reason="pwsh is not installed here")
@pytest.mark.timeout(120)
async def test_the_real_one_does_all_of_this(bench: Workbench) -> None:
    made = bench.folder / "made"
    check = f"'looking'; @{{ needs_change = -not (Test-Path '{made}'); message = 'm' }}"
    script = f"New-Item '{made}' | Out-Null; \"$($args[0])|$env:A\""
    first = await bench.check("powershell", script=script, check_script=check)
    assert (first.needs_change, first.message) == (True, "m")
    done = await bench.apply("powershell", script=script, args=["it's $x"], env={"A": "é"})
    assert done.message == "it's $x|é"
    assert not (await bench.check("powershell", script=script, check_script=check)).needs_change
    with pytest.raises(ModuleError, match="exit code 3"):
        await bench.apply("powershell", script="sh -c 'exit 3'")
