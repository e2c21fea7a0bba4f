"""How apt and dnf are asked and told: scripts, and what their answers mean.

Each script starts with ``NEED`` and the variables that it names; ``$lock`` is how many seconds
another package manager may hold its lock.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

FIND = r"""
if command -v apt-get >/dev/null 2>&1 && command -v dpkg-query >/dev/null 2>&1; then manager=apt
elif command -v dnf >/dev/null 2>&1 && command -v rpm >/dev/null 2>&1; then manager=dnf
else echo "apt-get and no dnf" >&2; exit 124
fi
echo "manager=$manager"
"""
"""Says which one there is."""

LOOK = r"""
for name; do
  if [ "$manager" = apt ]; then
    dpkg-query -W -f 'package=${db:Status-Abbrev}|${Version}|'"$name"'\n' -- "$name" 2>/dev/null
  else
    rpm -q --qf 'package=ii |%{EPOCH}:%{VERSION}-%{RELEASE}.%{ARCH}|'"$name"'\n' -- "$name" |
      grep '^package='
  fi
done
exit 0
"""
"""Says of each of ``"$@"`` its state and version; of one that is not there, nothing."""

# A tool's stderr is looked at, and still seen as it comes; nothing can read the script's stdin.
_ATTEMPT = r"""
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM HUP INT
end=$(( $(date +%s) + lock ))
once() {
  { { "$@" </dev/null 2>&1 >&3; echo $? >"$work/code"; } | tee "$work/said" >&2; } 3>&1
  read -r code <"$work/code"
  return "$code"
}
attempt() {
  until once "$@"; do
    grep -q -e 'Could not get lock' -e 'Unable to acquire' -e 'Unable to lock' "$work/said" ||
      return "$code"
    if [ "$(date +%s)" -ge "$end" ]; then
      echo "another package manager has held its lock for $lock s" >&2
      return "$code"
    fi
    sleep 1
  done
}
"""

_APT = r"""
export DEBIAN_FRONTEND=noninteractive APT_LISTCHANGES_FRONTEND=none NEEDRESTART_MODE=l
apt() {
  apt-get -y -q -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confdef \
    -o Dpkg::Options::=--force-confold "$@"
}
install() { apt install --no-install-recommends $downgrades -- "$@"; }
if [ -n "$removed" ]; then
  attempt apt remove -- $removed || exit "$code"
fi
[ "$#" -gt 0 ] || exit 0
fresh=
if ! apt-get -s -q install --no-install-recommends $downgrades -- "$@" </dev/null >/dev/null 2>&1
then
  attempt apt update || exit "$code"
  fresh=yes
fi
attempt install "$@" && exit 0
if [ -z "$fresh" ] && grep -q -e 'Failed to fetch' -e 'Unable to fetch' "$work/said"; then
  attempt apt update || exit "$code"
  attempt install "$@" && exit 0
fi
exit "$code"
"""

_DNF = r"""
if [ -n "$removed" ]; then
  attempt dnf -y remove -- $removed || exit "$code"
fi
[ "$#" -gt 0 ] || exit 0
attempt dnf -y --setopt=install_weak_deps=False install -- "$@" || exit "$code"
for pinned in $downgrades; do
  rpm -q -- "$pinned" >/dev/null 2>&1 && continue
  attempt dnf -y downgrade -- "$pinned" || exit "$code"
done
exit 0
"""

TELLING = ("E: ", "Error: ", "error: ")
"""How the lines begin in which apt and dnf say what is wrong."""


def look_for(names: Sequence[str]) -> str:
    """Make the script that looks at ``names``."""
    return f"set -- {shlex.join(names)}\n{FIND}{LOOK}"


def change(
    manager: str, *, install: Sequence[tuple[str, str]], remove: Sequence[str], lock_s: int
) -> str:
    """Make the script that installs names, each with a version or without, and removes others."""
    between = "=" if manager == "apt" else "-"
    wanted = [f"{name}{between}{version}" if version else name for name, version in install]
    pinned = [text for text, (_, version) in zip(wanted, install, strict=True) if version]
    downgrades = " ".join(pinned) if manager == "dnf" else "--allow-downgrades" if pinned else ""
    head = (
        f"lock={lock_s}\nremoved={shlex.quote(' '.join(remove))}\n"
        f"downgrades={shlex.quote(downgrades)}\nset -- {shlex.join(wanted)}\n"
    )
    return head + _ATTEMPT + (_APT if manager == "apt" else _DNF)


def has_version(manager: str, found: str, wanted: str) -> bool:
    """Tell whether what is installed is the wanted version.

    With dnf the epoch, the release and the architecture may be left out.
    """
    if manager == "apt":
        return found == wanted
    epoch, _, rest = found.partition(":")
    without_arch = rest.rpartition(".")[0]
    known = {rest, without_arch, without_arch.rpartition("-")[0]}
    number = "0" if epoch == "(none)" else epoch
    return wanted in known | {f"{number}:{one}" for one in known}
