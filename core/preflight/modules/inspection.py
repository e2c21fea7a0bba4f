"""What is at a path of a target, found with one script."""

from __future__ import annotations

import shlex

import msgspec

from preflight.errors import ModuleError
from preflight.ports.module import TaskContext

MAX_SHOWN_BYTES = 64 * 1024
"""A larger file is not fetched to show what would change in it."""

GUARDED = 3
"""The exit code of a script that refuses to remove a path."""

_LOOK = r"""
LC_ALL=C; export LC_ALL
if [ -d "$p" ]; then kind=directory
elif [ -f "$p" ]; then kind=file
elif [ -e "$p" ]; then kind=other
else kind=missing
fi
[ -L "$p" ] && echo link=yes
echo "kind=$kind"
if [ "$kind" != missing ]; then
  echo "stat=$(stat -L -c '%a %U %G %u %g %s' -- "$p" 2>/dev/null ||
    stat -L -f '%Lp %Su %Sg %u %g %z' "$p" 2>/dev/null)"
fi
"""
_HASH = r"""
sum() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum
  elif command -v shasum >/dev/null 2>&1; then shasum -a 256
  elif command -v openssl >/dev/null 2>&1; then openssl dgst -sha256 -r
  fi
}
if [ "$kind" = file ]; then
  [ -r "$p" ] || { echo "unreadable=yes"; exit 0; }
  hash=$(sum <"$p"); hash=${hash%% *}
  echo "sha256=$hash"
  size=$(wc -c <"$p")
  if [ "$hash" != "$wanted" ] && [ "$size" -le "$most" ]; then
    echo "content:"
    cat <"$p"
  fi
fi
"""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a path is: ``kind`` is file, directory, other or missing, seen through links.

    ``content`` is there for a small file whose hash is not the wanted one; ``sha256`` is empty
    where the target has nothing to hash with.
    """

    kind: str = "missing"
    link: bool = False
    mode: int = -1
    owner: str = ""
    group: str = ""
    uid: str = ""
    gid: str = ""
    sha256: str = ""
    unreadable: bool = False
    content: bytes | None = None

    @property
    def exists(self) -> bool:
        """Whether anything is there, a link that leads nowhere included."""
        return self.kind != "missing" or self.link


async def look(
    path: str, ctx: TaskContext, *, wanted_sha256: str | None = None, guard: str = ""
) -> Found:
    """Look at ``path``; with a wanted hash a file's content is looked at too. One exec.

    ``guard`` is a script that goes before, and exits with ``GUARDED`` to refuse the path.
    """
    lines = [f"p={shlex.quote(path if path.startswith('/') else './' + path)}", _LOOK]
    if wanted_sha256 is not None:
        lines = [f"wanted={wanted_sha256}", f"most={MAX_SHOWN_BYTES}", *lines, _HASH]
    result = await ctx.exec("\n".join([guard, *lines]) + "\nexit 0\n")
    if result.exit_code == GUARDED:
        raise guarded(path)
    if result.exit_code != 0:
        raise ModuleError(f"can't look at {path}: {result.error_text.strip()[-200:]}")
    head, marker, content = result.stdout.partition(b"content:\n")
    found = dict(line.split("=", 1) for line in head.decode().splitlines() if "=" in line)
    mode, owner, group, uid, gid, _size = [*found.get("stat", "").split(), *[""] * 6][:6]
    return Found(
        kind=found.get("kind", "missing"),
        link=found.get("link") == "yes",
        mode=int(mode, 8) if mode else -1,
        owner=owner,
        group=group,
        uid=uid,
        gid=gid,
        sha256=found.get("sha256", ""),
        unreadable=found.get("unreadable") == "yes",
        content=content if marker else None,
    )


def guarded(path: str) -> ModuleError:
    """Make the error for a path that leads to what must never be removed."""
    return ModuleError(f"{path} leads to a directory that is never removed as a whole")
