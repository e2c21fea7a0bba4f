"""The same work for each tool: directories on many targets, as each tool's users write it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.sshd import Sshd

ROOT = Path(__file__).parents[2]

# What somebody would write who knows asyncssh and needs nothing of what a tool does.
_FLOOR = """
import asyncio, asyncssh, sys
async def main(port, account, key, count, paths):
    slots, key = asyncio.Semaphore(10), asyncssh.read_private_key(key)
    options = asyncssh.SSHClientConnectionOptions(
        username=account, client_keys=[key], known_hosts=None, config=None, agent_path=None)
    async def one():
        async with slots:
            there = await asyncssh.connect("127.0.0.1", port, options=options)
        async with there:
            for path in paths:
                await there.run(f"[ -d {path} ] || mkdir {path}", check=True)
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(one())
asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5:]))
"""


@dataclass(frozen=True)
class Job:
    """So many targets behind a port, the directories that they shall have, and where to work."""

    server: Sshd
    port: int
    count: int
    paths: list[str]
    folder: Path


@dataclass(frozen=True)
class Peer:
    """A tool: ``command`` prepares its files and gives what to run."""

    name: str
    command: Callable[[Job], list[str]]
    env: dict[str, str]


def peers() -> list[Peer]:
    """The tools that are there: ``PREFLIGHT_BENCH_BIN`` names a folder with more of them."""
    more = os.environ.get("PREFLIGHT_BENCH_BIN", "")
    path = os.pathsep.join(filter(None, [more, os.environ.get("PATH", "")]))
    found = [Peer("preflight-tui", _ours, {}), Peer("plain asyncssh", _floor, {})]
    pyinfra = shutil.which("pyinfra", path=path)
    if pyinfra:
        found.append(Peer("pyinfra", lambda job: _pyinfra(pyinfra, job), {}))
    ansible = shutil.which("ansible-playbook", path=path)
    if ansible:
        found.append(Peer("ansible", lambda job: _ansible(ansible, job), _tuned()))
        strategies = sorted(Path(ansible).parent.parent.glob("lib/*/site-packages/ansible_mitogen"))
        if strategies:
            env = _tuned() | {
                "ANSIBLE_STRATEGY": "mitogen_free",
                "ANSIBLE_STRATEGY_PLUGINS": str(strategies[0] / "plugins" / "strategy"),
            }
            found.append(Peer("ansible+mitogen", lambda job: _ansible(ansible, job), env))
    return found


def _names(job: Job) -> list[str]:
    return [f"target-{number:03}" for number in range(job.count)]


def _ours(job: Job) -> list[str]:
    usual: dict[str, object] = {
        "address": "127.0.0.1",
        "port": job.port,
        "username": job.server.me,
        "private_key": str(job.server.key_file),
        "known_hosts_file": str(job.folder / "known_hosts"),
        "ssh_config": False,
    }
    hosts = [{**usual, "name": name} for name in _names(job)]
    tasks = [{"name": path, "directory": {"path": path}} for path in job.paths]
    (job.folder / "preflight.yml").write_text(json.dumps({"inventory": {"hosts": hosts}}))
    (job.folder / "site.yml").write_text(json.dumps({"tasks": tasks}))
    return [sys.executable, "-m", "preflight_tui", "--no-ui", "apply", "site.yml"]


def _floor(job: Job) -> list[str]:
    arguments = [str(job.port), job.server.me, str(job.server.key_file), str(job.count)]
    return [sys.executable, "-c", _FLOOR, *arguments, *job.paths]


def _pyinfra(program: str, job: Job) -> list[str]:
    data = {
        "ssh_hostname": "127.0.0.1",
        "ssh_port": job.port,
        "ssh_user": job.server.me,
        "ssh_key": str(job.server.key_file),
        "ssh_strict_host_key_checking": "off",
        "ssh_known_hosts_file": str(job.folder / "known_hosts_pyinfra"),
    }
    hosts = [(name, data) for name in _names(job)]
    (job.folder / "inventory.py").write_text(f"targets = {hosts!r}\n")
    lines = ["from pyinfra.operations import files"]
    lines += [f"files.directory(path={path!r})" for path in job.paths]
    (job.folder / "deploy.py").write_text("\n".join(lines) + "\n")
    return [program, "-y", "--parallel", "50", "inventory.py", "deploy.py"]


def _ansible(program: str, job: Job) -> list[str]:
    shared = (
        f"ansible_host=127.0.0.1 ansible_port={job.port} ansible_user={job.server.me} "
        f"ansible_ssh_private_key_file={job.server.key_file} "
        "ansible_python_interpreter=/usr/bin/python3"
    )
    (job.folder / "hosts.ini").write_text("".join(f"{name} {shared}\n" for name in _names(job)))
    tasks = [{"file": {"path": path, "state": "directory"}} for path in job.paths]
    play = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    (job.folder / "play.yml").write_text(json.dumps(play))
    return [program, "-i", "hosts.ini", "play.yml"]


def _tuned() -> dict[str, str]:
    return {
        "ANSIBLE_FORKS": "50",
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_HOST_KEY_CHECKING": "0",
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=60s "
        "-o UserKnownHostsFile=/dev/null",
        "ANSIBLE_STRATEGY": "free",
        "ANSIBLE_DISPLAY_OK_HOSTS": "0",
        "ANSIBLE_LOCALHOST_WARNING": "0",
    }
