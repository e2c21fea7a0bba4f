from __future__ import annotations

import pytest

from preflight.errors import ModuleError, Reason
from tests.support.modules import Workbench


async def test_args_arrive_as_they_are(bench: Workbench) -> None:
    args = ["$HOME", '"q"', "it's", "a\nb", "`id`", "*", "", 5, True, 1.5]
    await bench.apply("shell", cmd="printf", args=["[%s]\n", *args])
    text = "\n".join(line for _, line in bench.lines)
    assert text == '[$HOME]\n["q"]\n[it\'s]\n[a\nb]\n[`id`]\n[*]\n[]\n[5]\n[true]\n[1.5]'


async def test_both_streams_are_the_tasks_output(bench: Workbench) -> None:
    await bench.apply("shell", cmd="sh", args=["-c", "echo a; echo b >&2; echo c"])
    assert [one for one in bench.lines if one[0] == "out"] == [("out", "a"), ("out", "c")]
    assert ("err", "b") in bench.lines


async def test_env_and_working_dir_are_the_commands(bench: Workbench) -> None:
    script = ["-c", 'printf "%s" "$A=$B" >m; pwd']
    env = {"A": "x y'z", "B": True}
    await bench.apply("shell", cmd="sh", args=script, env=env, working_dir=str(bench.folder))
    assert (bench.folder / "m").read_text(encoding="utf-8") == "x y'z=true"


async def test_without_creates_it_is_always_to_be_run_and_costs_nothing(bench: Workbench) -> None:
    result = await bench.check("shell", cmd="echo", args=["hi"])
    assert (result.needs_change, result.message) == (True, "would run echo hi")
    assert bench.target.exec_count == 0


async def test_creates_is_looked_for_in_the_working_dir(bench: Workbench) -> None:
    args: dict[str, object] = {
        "cmd": "touch",
        "args": ["made here"],
        "creates": "made here",
        "working_dir": str(bench.folder),
    }
    await bench.converge("shell", **args)
    assert bench.target.exec_count == 3
    missing = await bench.check("shell", **{**args, "working_dir": "/no/such/folder"})
    assert missing.needs_change


async def test_one_line_of_output_is_the_message(bench: Workbench) -> None:
    assert (await bench.apply("shell", cmd="echo", args=["version 3"])).message == "version 3"
    result = await bench.apply("shell", cmd="printf", args=["a\\nb\\n"])
    assert result.message.startswith("ran printf")


async def test_a_failure_names_the_code_and_the_last_error_line(bench: Workbench) -> None:
    with pytest.raises(ModuleError, match=r"ended with exit code 3: last$") as caught:
        await bench.apply("shell", cmd="sh", args=["-c", "echo first >&2; echo last >&2; exit 3"])
    assert caught.value.reason is Reason.MODULE_ERROR


@pytest.mark.parametrize(
    ("cmd", "cure"),
    [
        ("/bin/echo hi", r"write cmd: /bin/echo and args: \[hi\]"),
        ("echo a | wc -l", r"args: \[-c, '…'\]"),
        ("no-such-program", "install it"),
        ("it's odd", r"args: \[-c, '…'\]"),
    ],
)
async def test_an_executable_that_is_not_there_names_the_cure(
    bench: Workbench, cmd: str, cure: str
) -> None:
    with pytest.raises(ModuleError, match=cure):
        await bench.apply("shell", cmd=cmd)


async def test_a_commands_own_127_is_its_own(bench: Workbench) -> None:
    with pytest.raises(ModuleError, match="exit code 127: mine"):
        await bench.apply("shell", cmd="sh", args=["-c", "echo mine >&2; exit 127"])


async def test_a_working_dir_that_is_not_there_is_named(bench: Workbench) -> None:
    with pytest.raises(ModuleError, match="working_dir /no/such can't be entered"):
        await bench.apply("shell", cmd="true", working_dir="/no/such")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "'cmd' is missing"),
        ({"cmd": ""}, "must be an executable"),
        ({"cmd": "x", "args": "a b"}, "must be a list"),
        ({"cmd": "x", "env": {"A-B": "c"}}, "not the name of a variable"),
        ({"cmd": "x\0"}, "NUL"),
        ({"cmd": "x", "working_dir": "~/x"}, "write it out"),
    ],
)
async def test_params_that_make_no_sense_fail_in_check(
    bench: Workbench, args: dict[str, object], said: str
) -> None:
    with pytest.raises(ModuleError, match=said) as caught:
        await bench.check("shell", **args)
    assert caught.value.reason is Reason.INVALID_PARAMS
