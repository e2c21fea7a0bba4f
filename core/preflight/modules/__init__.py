"""Built-in modules, one file each, and the one table of them.

They reach a target only through its handle, with POSIX shell scripts: the same code serves every
transport that has a POSIX shell.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from preflight.modules.directory import DirectoryModule, DirectoryParams
from preflight.modules.file import FileModule, FileParams
from preflight.modules.powershell import PowershellModule, PowershellParams
from preflight.modules.reboot import RebootModule, RebootParams
from preflight.modules.service import ServiceModule, ServiceParams
from preflight.modules.shell import ShellModule, ShellParams
from preflight.modules.system_package import SystemPackageModule, SystemPackageParams
from preflight.modules.user import UserModule, UserParams
from preflight.modules.wait import WaitModule, WaitParams
from preflight.ports.module import Module, Requirements


class Builtin(NamedTuple):
    """A built-in: what its params must be, what does the work, and what that needs."""

    params: type[msgspec.Struct]
    module: Module
    requires: Requirements = Requirements()


_ROOT = Requirements(root=True)

BUILTINS: dict[str, Builtin] = {
    "directory": Builtin(DirectoryParams, DirectoryModule()),
    "file": Builtin(FileParams, FileModule()),
    "powershell": Builtin(PowershellParams, PowershellModule()),
    "reboot": Builtin(RebootParams, RebootModule(), Requirements(root=True, remote=True)),
    "service": Builtin(ServiceParams, ServiceModule(), _ROOT),
    "shell": Builtin(ShellParams, ShellModule()),
    "system_package": Builtin(SystemPackageParams, SystemPackageModule(), _ROOT),
    "user": Builtin(UserParams, UserModule(), _ROOT),
    "wait": Builtin(WaitParams, WaitModule()),
}
