"""Which plugins there are: files by name in three places, nothing is started.

Source: seed 1, sections Discovery, File Naming and Registration Rules.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

PREFIX = "preflight-plugin-"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One executable with the prefix; ``problem`` says why it can't be used, with the cure.

    ``pin`` is the SHA-256 that its file must have; empty for one that is not pinned.
    """

    name: str
    path: Path
    source: str
    problem: str = ""
    world_writable: bool = False
    pin: str = ""


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A file that has the prefix and is no plugin; it is never started."""

    path: Path
    why: str


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that is searched; ``source`` says which one it is, in words."""

    folder: Path
    source: str


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, in the order of the search."""

    places: list[Place]
    plugins: list[Found]
    skipped: list[Skipped]

    def get(self, name: str) -> Found | None:
        """Give the plugin of that name; of several that clash, the first."""
        return next((found for found in self.plugins if found.name == name), None)


def default_places(
    extra: Sequence[Path] = (), *, only_extra: bool = False, working: Path | None = None
) -> list[Place]:
    """Give the folders in the order of the search: ``extra`` first, then the seed's three."""
    places = [Place(folder=folder, source="--plugin-dir") for folder in extra]
    if not only_extra:
        beside = Path(sys.argv[0]).resolve().parent
        places += [
            Place(folder=beside, source="beside the executable"),
            Place(folder=Path.home() / ".preflight" / "plugins", source="user"),
            Place(folder=(working or Path.cwd()) / "plugins", source="working directory"),
        ]
    return places


def discover(
    places: Sequence[Place], *, builtins: Iterable[str], windows: bool = os.name == "nt"
) -> Discovery:
    """Search the places; a clash refuses *all* files of that name, since none has precedence.

    The same file found twice (a link, or a folder listed twice) counts once.
    """
    plugins: list[Found] = []
    skipped: list[Skipped] = []
    seen: set[tuple[str, int, int]] = set()
    for place in places:
        for path in _candidates(place.folder):
            name = _name(path, windows)
            status = _status(path)
            why = _why_not(path, status, windows)
            if status is None or why:
                skipped.append(Skipped(path=path, why=why))
                continue
            identity = (name, status.st_dev, status.st_ino)
            if identity in seen:
                continue
            seen.add(identity)
            plugins.append(
                Found(
                    name=name,
                    path=path,
                    source=place.source,
                    world_writable=_is_world_writable(path, status),
                )
            )
    return Discovery(
        places=list(places), plugins=_refuse_clashes(plugins, set(builtins)), skipped=skipped
    )


def _candidates(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.name.startswith(PREFIX))
    except OSError:
        return []


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _why_not(path: Path, status: os.stat_result | None, windows: bool) -> str:
    if status is None:
        return "a link to nothing" if path.is_symlink() else "can't be read"
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    name = _name(path, windows)
    if windows and path.suffix.lower() != ".exe":
        return "does not end in .exe"
    if not name:
        return "no name after the prefix"
    if not windows and "." in name:
        return "a dot in the name: an executable is named preflight-plugin-<name>"
    if not windows and not os.access(path, os.X_OK):
        return f"not executable: chmod +x {path}"
    return ""


def _name(path: Path, windows: bool) -> str:
    name = path.name.removeprefix(PREFIX)
    return name[: -len(".exe")] if windows and name.lower().endswith(".exe") else name


def _is_world_writable(path: Path, status: os.stat_result) -> bool:
    """Tell whether anybody may change the file or replace it, where it is or where it lies."""
    if status.st_mode & stat.S_IWOTH:
        return True
    folders = [_status(folder) for folder in {path.parent, path.resolve().parent}]
    return any(
        folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX
        for folder in folders
        if folder is not None
    )


def _refuse_clashes(plugins: list[Found], builtins: set[str]) -> list[Found]:
    by_name: dict[str, list[Found]] = {}
    for found in plugins:
        by_name.setdefault(found.name, []).append(found)
    result: list[Found] = []
    for found in plugins:
        problem = ""
        others = [one.path for one in by_name[found.name] if one.path != found.path]
        if found.name in builtins:
            problem = f"{found.path}: {found.name} is a built-in module; rename the plugin"
        elif others:
            both = " and ".join(str(path) for path in [found.path, *others])
            problem = f"name conflict: {found.name} is both {both}; rename or remove one"
        result.append(msgspec.structs.replace(found, problem=problem) if problem else found)
    return result
