"""Which machines are logged in to, with what, before anything is contacted."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path

import asyncssh
import pytest

from preflight.errors import TargetUnreachable
from preflight.model.inventory import Host, Jump
from preflight.targets.ssh_auth import DEFAULT_KEYS, find_proof
from preflight.targets.ssh_route import route_to


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / ".ssh").mkdir()
    return tmp_path


def write_key(path: Path, *, mode: int = 0o600) -> str:
    key = asyncssh.generate_private_key("ssh-ed25519")  # pyright: ignore[reportUnknownMemberType]  # asyncssh
    path.write_bytes(key.export_private_key())
    path.chmod(mode)
    return key.get_fingerprint()


def config(home: Path, text: str) -> None:
    (home / ".ssh" / "config").write_text(text, encoding="utf-8")


def test_nothing_but_a_name_is_enough(home: Path) -> None:
    (end,) = route_to(Host(name="web"))
    assert str(end) == ":22"
    (end,) = route_to(Host(name="web", address="web.example", port=22))
    assert (end.address, end.port, end.username) == ("web.example", 22, getpass.getuser())
    assert (end.policy, end.timeout) == ("accept-new", 30.0)
    assert end.hosts.path == home / ".ssh" / "known_hosts"
    assert end.proof.empty


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert str(route_to(Host(name="x", address="fe80::1", port=2200))[0]) == "[fe80::1]:2200"


def test_default_keys_are_offered_in_openssh_order_and_unusable_ones_are_not(home: Path) -> None:
    prints = [write_key(home / ".ssh" / name) for name in ("id_ecdsa", "id_ed25519")]
    (home / ".ssh" / "id_rsa").write_text("no key", encoding="ascii")
    assert [key.get_fingerprint() for key in find_proof().keys] == prints
    assert DEFAULT_KEYS[0] == "id_rsa"


def test_default_keys_are_not_offered_beside_a_password_or_a_named_key(home: Path) -> None:
    write_key(home / ".ssh" / "id_ed25519")
    named = write_key(home / "named")
    assert find_proof(password="p").keys == []
    assert [key.get_fingerprint() for key in find_proof(private_key="~/named").keys] == [named]


def test_a_named_key_is_offered_alone_an_agents_else(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_key(home / "named")
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(home / "agent"))
        monkeypatch.setenv("SSH_AUTH_SOCK", str(home / "agent"))
        assert find_proof().agent == str(home / "agent")
        assert find_proof(private_key=str(home / "named")).agent == ""
        assert find_proof(agent="").agent == ""
    monkeypatch.setenv("SSH_AUTH_SOCK", str(home / "gone"))
    assert find_proof().agent == ""


@pytest.mark.parametrize("what", ["missing", "no key", "wrong mode"])
def test_a_named_key_that_can_not_be_used_is_an_error_that_names_it(home: Path, what: str) -> None:
    path = home / "key"
    if what == "no key":
        path.write_text("no key", encoding="ascii")
        path.chmod(0o600)
    elif what == "wrong mode":
        write_key(path, mode=0o640)
    with pytest.raises(TargetUnreachable, match=str(path)):
        find_proof(private_key=str(path))


def test_a_key_written_into_the_inventory_may_be_indented(home: Path) -> None:
    wanted = write_key(home / "key")
    text = "\n  " + (home / "key").read_text(encoding="ascii")
    assert find_proof(private_key=text).keys[0].get_fingerprint() == wanted
    with pytest.raises(TargetUnreachable, match="private_key in the inventory"):
        find_proof(private_key="-----BEGIN OPENSSH PRIVATE KEY-----\nnonsense\n")


def test_a_jump_host_is_first_and_inherits_nothing() -> None:
    jump = Jump(address="gate.example", username="j", password="jp", host_key_policy="strict")
    host = Host(name="x", address="in.example", port=2222, username="u", password="p", jump=jump)
    gate, end = route_to(host)
    assert (str(gate), gate.username, gate.policy) == ("gate.example:22", "j", "strict")
    assert (str(end), end.username, end.policy) == ("in.example:2222", "u", "accept-new")
    assert (gate.proof.password, end.proof.password) == ("jp", "p")


def test_ssh_config_fills_what_is_left_out_and_nothing_else(home: Path) -> None:
    wanted = write_key(home / "key")
    config(
        home,
        f"Host web\n  HostName 10.0.0.5\n  Port 2200\n  User conf\n  IdentityFile {home}/key\n"
        f"  UserKnownHostsFile {home}/kh\n  HostKeyAlias web-alias\n",
    )
    (end,) = route_to(Host(name="web", address="web", port=22))
    assert (str(end), end.username, end.known_as) == ("10.0.0.5:2200", "conf", "web-alias")
    assert [key.get_fingerprint() for key in end.proof.keys] == [wanted]
    assert end.hosts.path == home / "kh"
    other = write_key(home / "other")
    host = Host(
        name="web",
        address="web",
        port=2300,
        username="inv",
        private_key=f"{home}/other",
        known_hosts_file=f"{home}/mine",
    )
    (end,) = route_to(host)
    assert (str(end), end.username, end.hosts.path) == ("10.0.0.5:2300", "inv", home / "mine")
    assert [key.get_fingerprint() for key in end.proof.keys] == [other]
    (end,) = route_to(Host(name="web", address="web", port=22, ssh_config=False))
    assert (str(end), end.username) == ("web:22", getpass.getuser())


def test_proxy_jump_may_be_several_and_nested(home: Path) -> None:
    config(
        home,
        "Host in\n  ProxyJump a@one:2201,two\nHost two\n  HostName two.example\n  User b\n"
        "  ProxyJump zero\n",
    )
    route = route_to(Host(name="in", address="in", port=22))
    assert [str(end) for end in route] == ["one:2201", "zero:22", "two.example:22", "in:22"]
    assert [end.username for end in route][:3] == ["a", getpass.getuser(), "b"]


def test_a_proxy_jump_in_a_circle_is_an_error(home: Path) -> None:
    config(home, "Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n")
    with pytest.raises(TargetUnreachable, match="circle"):
        route_to(Host(name="a", address="a", port=22))


def test_an_ssh_config_with_errors_is_an_error_and_can_be_switched_off(home: Path) -> None:
    config(home, "Host x\n  Port many\n")
    with pytest.raises(TargetUnreachable, match=r"\.ssh/config can't be used"):
        route_to(Host(name="x", address="x", port=22))
    assert route_to(Host(name="x", address="x", port=22, ssh_config=False))
    assert os.environ["HOME"] == str(home)
