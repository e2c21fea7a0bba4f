"""What handlers return, and what the host tells them: plain values."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


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
        shown = [name for name in self.__slots__ if name[0] != "_"]
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__name__}({inside})"


class Change(_Value):
    """One thing that ``apply`` would change; text is shown as a diff, None means absent."""

    __slots__ = ("after", "before", "path")

    def __init__(self, path: str, before: str | None, after: str | None) -> None:
        self.path = path
        self.before = before
        self.after = after

    def to_wire(self) -> dict[str, object]:
        """The entry of ``changes``."""
        sides = {"before": self.before, "after": self.after}
        return {
            "path": str(self.path),
            **{name: None if text is None else str(text) for name, text in sides.items()},
        }


class CheckResult(_Value):
    """Whether ``apply`` has anything to do; a non-empty ``error`` fails the task.

    ``changes`` are shown where the host knows how; they never take part in an outcome.
    """

    __slots__ = ("changes", "error", "message", "needs_change")

    def __init__(
        self,
        needs_change: bool,
        message: str = "",
        *,
        error: str = "",
        changes: Iterable[Change] = (),
    ) -> None:
        self.needs_change = needs_change
        self.message = message
        self.error = error
        self.changes = tuple(changes)

    def to_wire(self, *, diff: bool = False) -> dict[str, object]:
        """The result object of protocol v2, with the ``changes`` if the host takes them."""
        wire: dict[str, object] = {"needs_change": bool(self.needs_change)}
        _with_text(wire, self.message, self.error)
        if diff and self.changes:
            wire["changes"] = [change.to_wire() for change in self.changes]
        return wire


class ApplyResult(_Value):
    """What was done; a non-empty ``error`` fails the task."""

    __slots__ = ("error", "message")

    def __init__(self, message: str = "", *, error: str = "") -> None:
        self.message = message
        self.error = error

    def to_wire(self, *, diff: bool = False) -> dict[str, object]:
        """The result object of protocol v2."""
        return _with_text({}, self.message, self.error)


class RunResult(_Value):
    """How a script ended on the target; an exit code other than 0 is a result, not an error."""

    __slots__ = ("_raw_stderr", "_raw_stdout", "exit_code", "stderr", "stdout")

    def __init__(
        self,
        stdout: str = "",
        stderr: str = "",
        exit_code: int = 0,
        *,
        stdout_bytes: bytes | None = None,
        stderr_bytes: bytes | None = None,
    ) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.exit_code = exit_code
        self._raw_stdout = _unlike(stdout, stdout_bytes)
        self._raw_stderr = _unlike(stderr, stderr_bytes)

    @property
    def ok(self) -> bool:
        """True when the script ended with 0."""
        return self.exit_code == 0

    @property
    def stdout_bytes(self) -> bytes:
        """What was printed, byte for byte; a host without ``bytes`` gives only the text's."""
        return _bytes_of(self.stdout, self._raw_stdout)

    @property
    def stderr_bytes(self) -> bytes:
        """The same of stderr."""
        return _bytes_of(self.stderr, self._raw_stderr)


class Item(_Value):
    """One item of a batch: its number in the task, and its args with the common ones in it."""

    __slots__ = ("args", "index")

    def __init__(self, index: int, args: dict[str, object]) -> None:
        self.index = index
        self.args = args


class RunInfo(_Value):
    """The run that this plugin serves; what the host does not say is empty."""

    __slots__ = ("dry_run", "environment", "id", "playbook", "project")

    def __init__(
        self,
        *,
        id: str = "",
        playbook: str = "",
        project: str = "",
        environment: str = "",
        dry_run: bool = False,
    ) -> None:
        self.id = id
        self.playbook = playbook
        self.project = project
        self.environment = environment
        self.dry_run = dry_run

    @classmethod
    def from_wire(cls, wire: dict[str, object]) -> RunInfo:
        """The members of ``run`` in ``configure``; a missing or odd one is empty."""
        names = ("id", "playbook", "project", "environment")
        known = {name: text for name in names if isinstance(text := wire.get(name), str)}
        return cls(**known, dry_run=wire.get("dry_run") is True)


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


def _unlike(text: str, raw: bytes | None) -> bytes | None:
    """The bytes, if they are other than the text's: so equal results are equal."""
    return None if raw is None or raw == _bytes_of(text, None) else raw


def _bytes_of(text: str, raw: bytes | None) -> bytes:
    return text.encode("utf-8", "surrogatepass") if raw is None else raw


def _with_text(wire: dict[str, object], message: str, error: str) -> dict[str, object]:
    if message:
        wire["message"] = str(message)
    if error:
        wire["error"] = str(error)
    return wire
