"""A Windows machine behind OpenSSH: recognised, and refused as long as its shell is not spoken."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from preflight.errors import Reason, TargetError
from preflight.model.inventory import Host
from preflight.targets.ssh import SshTarget


class _Anybody(asyncssh.SSHServer):
    def begin_auth(self, username: str) -> bool:
        return False


@asynccontextmanager
async def windows(version: str) -> AsyncGenerator[int]:
    """A server that answers every command as PowerShell behind OpenSSH would."""

    def answer(process: asyncssh.SSHServerProcess[str]) -> None:
        if "OSVersion.Platform" in (process.command or ""):
            process.stdout.write("Win32NT\r\n")
            process.exit(0)
        else:
            process.stderr.write('exec : Die Benennung "exec" wurde nicht als Cmdlet erkannt\r\n')
            process.exit(1)

    key = asyncssh.generate_private_key("ssh-ed25519")  # pyright: ignore[reportUnknownMemberType]  # asyncssh
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_factory=_Anybody,
        server_host_keys=[key],
        server_version=version,
        process_factory=answer,
    )
    async with server:
        yield server.get_port()


@pytest.mark.parametrize("version", ["OpenSSH_for_Windows_9.5", "Some_Windows_Server_1.0"])
async def test_it_is_recognised_and_every_operation_is_refused(version: str, folder: Path) -> None:
    async with windows(version) as port:
        host = Host(
            name="w",
            address="127.0.0.1",
            port=port,
            username="u",
            password="p",
            known_hosts_file=str(folder / "known_hosts"),
            ssh_config=False,
        )
        async with SshTarget(host) as target:
            assert target.info.runtime_kind == "windows-powershell"
            assert target.info.family == "windows"
            for operation in (
                target.exec("echo"),
                target.put_file("x", b""),
                target.get_file("x"),
            ):
                with pytest.raises(TargetError) as caught:
                    await operation
                assert caught.value.reason is Reason.UNSUPPORTED_ON_RUNTIME
            facts = await target.facts()
            assert facts["disks"] == []
