"""Every error that the engine raises on purpose, and the closed list of reasons."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a task, a target or a plugin did not do what was asked; stable, for machines.

    The value is what events carry; the meaning of each is in ``docs/errors.md``.
    """

    UNKNOWN_MODULE = "unknown_module"
    UNSUPPORTED_ON_RUNTIME = "unsupported_on_runtime"
    MISSING_PREREQUISITE = "missing_prerequisite"
    INVALID_PARAMS = "invalid_params"
    TEMPLATE_ERROR = "template_error"
    SECRET_ERROR = "secret_error"
    MODULE_ERROR = "module_error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    TARGET_UNREACHABLE = "target_unreachable"
    TARGET_ERROR = "target_error"
    UNKNOWN_OUTCOME = "unknown_outcome"
    REQUIRES_ROOT = "requires-root-violation"
    SUDO_MISSING = "sudo-missing"
    SUDO_PASSWORD_REQUIRED = "sudo-password-required"
    SUDO_AUTH_FAILED = "sudo-auth-failed"
    PLUGIN_START = "plugin_start"
    PLUGIN_INIT_TIMEOUT = "plugin_init_timeout"
    PLUGIN_PROTOCOL = "plugin_protocol"
    PLUGIN_NAME_MISMATCH = "plugin_name_mismatch"
    PLUGIN_BECOME = "plugin_become"
    PLUGIN_CRASHED = "plugin_crashed"
    PLUGIN_MESSAGE_TOO_LARGE = "plugin_message_too_large"
    PLUGIN_INVALID_PARAMS = "plugin_invalid_params"
    PLUGIN_CONFIGURE = "plugin_configure"
    TAG_FILTERED = "tag-filtered"
    WHEN_FALSE = "when-condition-false"
    DEPENDENCY_FAILED = "dependency-failed"
    ALREADY_SATISFIED = "already-satisfied"


class PreflightError(Exception):
    """The root: a stable ``reason`` for machines, a ``message`` of one sentence for people."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Problem:
    """One thing that is wrong in a file: where, and what to do about it."""

    __slots__ = ("column", "file", "line", "message", "pointer")

    def __init__(
        self, message: str, *, file: str = "", line: int = 0, column: int = 0, pointer: str = ""
    ) -> None:
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.pointer = pointer

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place += f":{self.line}" + (f":{self.column}" if self.column else "")
        where = f"{place}: " if place else ""
        at = f"at {self.pointer}: " if self.pointer else ""
        return f"{where}{at}{self.message}"

    def __repr__(self) -> str:
        return f"Problem({str(self)!r})"


class ConfigError(Exception):
    """The command line, the playbook or the configuration is wrong; nothing was contacted.

    Carries *all* problems that were found, in the order of the file.
    """

    def __init__(self, problems: list[Problem] | str) -> None:
        self.problems = [Problem(problems)] if isinstance(problems, str) else problems
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ModuleError(PreflightError):
    """The module did its work and says that the desired state can't be had."""

    def __init__(self, message: str, reason: Reason = Reason.MODULE_ERROR) -> None:
        super().__init__(reason, message)


class TargetError(PreflightError):
    """The machine refused or failed an operation; it was reached."""

    def __init__(self, message: str, reason: Reason = Reason.TARGET_ERROR) -> None:
        super().__init__(reason, message)


class TargetUnreachable(PreflightError):
    """The machine can't be talked to."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.TARGET_UNREACHABLE, message)


class PluginError(PreflightError):
    """A plugin, or the wire to it, failed."""
