"""What a target knows of an account, found with one script; a password goes in by stdin only."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from preflight.modules.answers import NEED, expect, fields
from preflight.ports.module import TaskContext

# crypt() knows the salt's own method, whichever the system has; openssl knows three of them.
_HASH = r"""
crypted() {
  if command -v perl >/dev/null 2>&1; then
    { printf '%s\n' "$password" "$1"; } |
      perl -e 'chomp(my ($p, $s) = <STDIN>); print crypt($p, $s) // ""' 2>/dev/null
    return
  fi
  command -v openssl >/dev/null 2>&1 || return
  kind=${1#\$}; kind=${kind%%\$*}; salt=${1#\$*\$}; salt=${salt%\$*}
  case $kind-$salt in
    *rounds=*) ;;
    1-*|5-*|6-*)
      printf '%s\n' "$password" | openssl passwd "-$kind" -salt "$salt" -stdin 2>/dev/null ;;
  esac
}
"""
_LOOK = r"""
need getent useradd usermod userdel
for group in $groups; do
  getent group "$group" >/dev/null || echo "nogroup=$group"
done
entry=$(getent passwd "$name") || exit 0
echo "entry=$entry"
home=$(printf '%s\n' "$entry" | cut -d: -f6)
[ -d "$home" ] && echo home=yes
echo "groups=$(id -nG -- "$name")"
[ -n "$kind" ] || exit 0
IFS= read -r password
shadow=$(getent shadow "$name" | cut -d: -f2)
case $kind-$shadow in
  hash-"$password") echo password=same ;;
  hash-*|plain-|plain-"!"*|plain-"*"*) echo password=other ;;
  *)
    made=$(crypted "$shadow")
    case $made in
      "$shadow") echo password=same ;;
      ""|"*"*) echo password=unknown ;;
      *) echo password=other ;;
    esac ;;
esac
exit 0
"""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An account; ``password`` is ``same``, ``other`` or ``unknown``, and empty when not asked.

    ``no_groups`` are groups that were asked for and that do not exist.
    """

    exists: bool = False
    uid: str = ""
    home: str = ""
    home_exists: bool = False
    shell: str = ""
    groups: list[str] = []
    no_groups: list[str] = []
    password: str = ""


async def look(
    name: str, ctx: TaskContext, *, groups: Sequence[str] = (), kind: str = "", password: str = ""
) -> Found:
    """Look at an account; ``kind`` says what ``password`` is: ``plain``, ``hash``, or nothing."""
    listed = " ".join(groups)  # no name holds a blank or what a shell would expand
    head = f"name={shlex.quote(name)}\ngroups={shlex.quote(listed)}\nkind={kind}\n"
    result = await ctx.exec(f"{NEED}{head}{_HASH}{_LOOK}", stdin=f"{password}\n".encode())
    expect(result, f"can't look at the account {name}")
    found = fields(result.text)
    missing = [line.partition("=")[2] for line in result.text.splitlines() if _no_group(line)]
    entry = found.get("entry", "").split(":")
    if len(entry) < 7:
        return Found(no_groups=missing)
    return Found(
        exists=True,
        uid=entry[2],
        home=entry[5],
        home_exists=found.get("home") == "yes",
        shell=entry[6],
        groups=found.get("groups", "").split(),
        no_groups=missing,
        password=found.get("password", ""),
    )


def _no_group(line: str) -> bool:
    return line.startswith("nogroup=")
