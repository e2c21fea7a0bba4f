"""What handlers return, and what the host tells them: plain values."""

from __future__ import annotations


class _Value:
    """Equality and repr from the slots; ``dataclasses`` costs a third of the start budget."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__slots__))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({inside})"


class CheckResult(_Value):
    """Whether ``apply`` has anything to do; a non-empty ``error`` fails the task."""

    __slots__ = ("error", "message", "needs_change")

    def __init__(self, needs_change: bool, message: str = "", *, error: str = "") -> None:
        self.needs_change = needs_change
        self.message = message
        self.error = error

    def to_wire(self) -> dict[str, object]:
        """The result object of protocol v2."""
        wire: dict[str, object] = {"needs_change": bool(self.needs_change)}
        return _with_text(wire, self.message, self.error)


class ApplyResult(_Value):
    """What was done; a non-empty ``error`` fails the task."""

    __slots__ = ("error", "message")

    def __init__(self, message: str = "", *, error: str = "") -> None:
        self.message = message
        self.error = error

    def to_wire(self) -> dict[str, object]:
        """The result object of protocol v2."""
        return _with_text({}, self.message, self.error)


class RunResult(_Value):
    """How a script ended on the target; an exit code other than 0 is a result, not an error."""

    __slots__ = ("exit_code", "stderr", "stdout")

    def __init__(self, stdout: str = "", stderr: str = "", exit_code: int = 0) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.exit_code = exit_code

    @property
    def ok(self) -> bool:
        """True when the script ended with 0."""
        return self.exit_code == 0


class TargetInfo(_Value):
    """What the host knows about the target; what it does not know is an empty string.

    ``runtime_kind`` is ``posix-shell`` or ``windows-powershell``: the language of
    ``run_command``.
    """

    __slots__ = (
        "arch",
        "family",
        "hostname",
        "init",
        "name",
        "package_manager",
        "runtime_kind",
        "version",
    )

    def __init__(
        self,
        *,
        family: str = "",
        name: str = "",
        version: str = "",
        arch: str = "",
        hostname: str = "",
        package_manager: str = "",
        init: str = "",
        runtime_kind: str = "",
    ) -> None:
        self.family = family
        self.name = name
        self.version = version
        self.arch = arch
        self.hostname = hostname
        self.package_manager = package_manager
        self.init = init
        self.runtime_kind = runtime_kind

    @classmethod
    def from_wire(cls, wire: dict[str, object]) -> TargetInfo:
        """The eight keys of ``initialize``; a missing or non-string one is empty."""
        known = {name: text for name in cls.__slots__ if isinstance(text := wire.get(name), str)}
        return cls(**known)


def _with_text(wire: dict[str, object], message: str, error: str) -> dict[str, object]:
    if message:
        wire["message"] = str(message)
    if error:
        wire["error"] = str(error)
    return wire
