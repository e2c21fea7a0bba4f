"""Host keys: what a ``known_hosts`` file says, and what each policy makes of it."""

from __future__ import annotations

import base64
import hmac
import os
from pathlib import Path

import pytest

from preflight.targets.ssh_hostkeys import KnownHosts, Verdict, fingerprint, judge

KEY = base64.b64encode(b"key one").decode()
OTHER = base64.b64encode(b"key two").decode()


def file_of(folder: Path, *lines: str) -> KnownHosts:
    path = folder / "known_hosts"
    path.write_text("\n".join(lines), encoding="ascii")
    return KnownHosts(path)


def judged(file: KnownHosts, policy: str, *, port: int = 22, key: str = KEY) -> Verdict:
    return judge(file, policy, address="Web.example", port=port, algorithm="ssh-ed25519", key=key)


def hashed(name: str) -> str:
    salt = b"0123456789abcdefghij"
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    "names",
    [
        "web.example",
        "other,WEB.example",
        "*.example",
        "w?b.example,!db.example",
        hashed("web.example"),
    ],
)
def test_a_known_key_is_taken_however_its_line_names_the_machine(
    tmp_path: Path, names: str
) -> None:
    file = file_of(tmp_path, "# a comment", "", f"{names} ssh-ed25519 {KEY} me@here")
    assert judged(file, "strict") == Verdict(accepted=True)


@pytest.mark.parametrize(
    "names",
    ["[web.example]:22", "db.example", "*.example,!web.example", "web.examplex", "web?example"],
)
def test_another_machines_line_says_nothing(tmp_path: Path, names: str) -> None:
    file = file_of(tmp_path, f"{names} ssh-ed25519 {OTHER}")
    expected = names == "web?example"  # a question mark is any one letter, a dot too
    assert ("has changed" in judged(file, "strict").problem) == expected


def test_a_port_is_part_of_the_name(tmp_path: Path) -> None:
    file = file_of(
        tmp_path, f"web.example ssh-ed25519 {OTHER}", f"[web.example]:2222 ssh-ed25519 {KEY}"
    )
    assert judged(file, "strict", port=2222).accepted
    assert not judged(file, "strict", port=22).accepted
    assert "is unknown" in judged(file, "strict", port=2223).problem


def test_one_of_several_keys_is_enough(tmp_path: Path) -> None:
    file = file_of(tmp_path, f"web.example ssh-rsa {OTHER}", f"web.example ssh-ed25519 {KEY}")
    assert judged(file, "strict").accepted


@pytest.mark.parametrize("policy", ["accept-new", "strict"])
def test_a_key_of_another_kind_is_a_change_and_names_the_line(tmp_path: Path, policy: str) -> None:
    file = file_of(tmp_path, "# one", f"web.example ssh-rsa {OTHER}")
    verdict = judged(file, policy)
    assert not verdict.accepted
    assert f"{file.path}:2 knows ssh-rsa {fingerprint(OTHER)}" in verdict.problem
    assert fingerprint(KEY) in verdict.problem
    assert file.path.read_text(encoding="ascii").count("\n") == 1


def test_a_revoked_key_is_refused_under_every_policy(tmp_path: Path) -> None:
    file = file_of(tmp_path, f"@revoked * ssh-ed25519 {KEY}")
    for policy in ("accept-new", "strict", "insecure"):
        assert "revoked" in judged(file, policy).problem
    assert judged(file, "insecure", key=OTHER).accepted


def test_insecure_takes_any_key_and_notes_none(tmp_path: Path) -> None:
    file = file_of(tmp_path, f"web.example ssh-ed25519 {OTHER}")
    assert judged(file, "insecure") == Verdict(accepted=True)
    assert KEY not in file.path.read_text(encoding="ascii")


def test_a_new_key_is_added_on_a_line_of_its_own_and_then_known(tmp_path: Path) -> None:
    file = file_of(tmp_path, f"db.example ssh-ed25519 {OTHER}")  # its last line has no newline
    assert judged(file, "accept-new") == Verdict(accepted=True, learnt=True)
    assert judged(file, "accept-new") == Verdict(accepted=True)
    assert judged(file, "strict").accepted
    lines = file.path.read_text(encoding="ascii").splitlines()
    assert lines == [f"db.example ssh-ed25519 {OTHER}", f"web.example ssh-ed25519 {KEY}"]
    assert "has changed" in judged(file, "accept-new", key=OTHER).problem


def test_what_others_add_is_seen(tmp_path: Path) -> None:
    file = file_of(tmp_path, "")
    assert "is unknown" in judged(file, "strict").problem
    file.path.write_text(f"web.example ssh-ed25519 {KEY}\n", encoding="ascii")
    assert judged(file, "strict").accepted


def test_a_file_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="ascii")
    file = KnownHosts(tmp_path / "file" / "known_hosts")
    assert "can't note the new host key" in judged(file, "accept-new").problem


def test_lines_that_make_no_sense_are_passed_over(tmp_path: Path) -> None:
    file = file_of(tmp_path, "x", "web.example ssh-ed25519 ***", "@what", "|1|a ssh-rsa " + KEY)
    assert "is unknown" in judged(file, "strict").problem
    assert os.listdir(tmp_path) == ["known_hosts"]
