"""Host keys: what ``known_hosts`` says of a machine, and what the policy makes of it."""

from __future__ import annotations

import base64
import fcntl
import fnmatch
import hashlib
import hmac
import os
from pathlib import Path

import msgspec

DEFAULT_FILE = "~/.ssh/known_hosts"


class KnownKey(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a ``known_hosts`` file; ``key`` in base64, ``marker`` without its ``@``."""

    line: int
    names: str
    algorithm: str
    key: str
    marker: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a machine's key is taken; ``problem`` says why not, ``learnt`` that it was added."""

    accepted: bool
    problem: str = ""
    learnt: bool = False


class KnownHosts:
    """A ``known_hosts`` file, read once until it changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int] | None = None
        self._plain: dict[str, list[KnownKey]] = {}
        self._patterns: list[KnownKey] = []

    def lookup(self, address: str, port: int) -> list[KnownKey]:
        """Give the lines that are about this machine, in the order of the file."""
        self._read()
        name = host_name(address, port)
        found = list(self._plain.get(name, ()))
        found += [known for known in self._patterns if _matches(known.names, name)]
        return sorted(found, key=lambda known: known.line)

    def add(self, address: str, port: int, algorithm: str, key: str) -> None:
        """Append a key; folder and file are made where they are missing. Raises ``OSError``."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # two runs may learn two machines at the same time
            file.seek(0, os.SEEK_END)
            ends_well = True
            if file.tell():
                file.seek(-1, os.SEEK_END)
                ends_well = file.read(1) == b"\n"
            line = f"{host_name(address, port)} {algorithm} {key}\n"
            file.write(line.encode() if ends_well else b"\n" + line.encode())

    def _read(self) -> None:
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp == self._stamp:
                return
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            stamp, text = None, ""
        self._stamp, self._plain, self._patterns = stamp, {}, []
        for number, line in enumerate(text.splitlines(), 1):
            known = _parse(number, line)
            if known is not None:
                self._index(known)

    def _index(self, known: KnownKey) -> None:
        if any(letter in known.names for letter in "*?!|"):
            self._patterns.append(known)
            return
        for name in known.names.split(","):
            self._plain.setdefault(name.lower(), []).append(known)


_files: dict[Path, KnownHosts] = {}


def known_hosts(path: str) -> KnownHosts:
    """Give the file, shared by all connections."""
    place = Path(path or DEFAULT_FILE).expanduser()
    return _files.setdefault(place, KnownHosts(place))


def host_name(address: str, port: int) -> str:
    """Give a machine's name as ``known_hosts`` spells it."""
    return address.lower() if port == 22 else f"[{address.lower()}]:{port}"


def fingerprint(key: str) -> str:
    """Give the SHA-256 fingerprint of a key's base64 text, as OpenSSH prints it."""
    digest = hashlib.sha256(base64.b64decode(key)).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def judge(
    file: KnownHosts, policy: str, *, address: str, port: int, algorithm: str, key: str
) -> Verdict:
    """Decide about the key that a machine showed, and learn it where the policy is ``accept-new``.

    A machine of which another key is known, even of another kind, has changed: that is refused
    under ``accept-new`` too.
    """
    found = file.lookup(address, port)
    shown = f"{algorithm} {fingerprint(key)}"
    if any(known.marker == "revoked" and known.key == key for known in found):
        return Verdict(accepted=False, problem=f"the host key {shown} is revoked in {file.path}")
    plain = [known for known in found if not known.marker]
    if any(known.key == key for known in plain) or policy == "insecure":
        return Verdict(accepted=True)
    name = host_name(address, port)
    if plain:
        return Verdict(accepted=False, problem=_changed(name, shown, file.path, plain[0]))
    if policy == "strict":
        return Verdict(
            accepted=False,
            problem=f"the host key of {name} is unknown: it shows {shown}, {file.path} has no line "
            "for it and host_key_policy is strict; compare the fingerprint, then add the key",
        )
    try:
        file.add(address, port, algorithm, key)
    except OSError as exc:
        problem = f"can't note the new host key in {file.path}: {exc.strerror or exc}"
        return Verdict(accepted=False, problem=problem)
    return Verdict(accepted=True, learnt=True)


def _changed(name: str, shown: str, path: Path, old: KnownKey) -> str:
    return (
        f"the host key of {name} has changed: it shows {shown}, and {path}:{old.line} knows "
        f"{old.algorithm} {fingerprint(old.key)}; somebody may be listening in, or the machine was "
        "set up anew: then remove that line"
    )


def _parse(number: int, line: str) -> KnownKey | None:
    words = line.split()
    marker = ""
    if words and words[0].startswith("@"):
        marker = words.pop(0)[1:]
    if len(words) < 3 or words[0].startswith("#"):
        return None
    try:
        base64.b64decode(words[2], validate=True)
    except ValueError:
        return None
    return KnownKey(line=number, names=words[0], algorithm=words[1], key=words[2], marker=marker)


def _matches(names: str, name: str) -> bool:
    if names.startswith("|1|"):
        return _matches_hash(names, name)
    found = False
    for pattern in names.lower().split(","):
        negated = pattern.startswith("!")
        # Only * and ? are special in known_hosts; a bracket is the one of [host]:port.
        escaped = pattern.removeprefix("!").replace("[", "[[]")
        if fnmatch.fnmatchcase(name, escaped):
            if negated:
                return False
            found = True
    return found


def _matches_hash(names: str, name: str) -> bool:
    try:
        salt, wanted = (base64.b64decode(part) for part in names[3:].split("|"))
    except ValueError:
        return False
    return hmac.compare_digest(hmac.digest(salt, name.encode(), "sha1"), wanted)
