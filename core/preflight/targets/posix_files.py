"""Scripts of the POSIX dialect that read and replace files; paths come in as variables.

A file is written beside its place and renamed over it, so that nobody ever sees half of one.
"""

from __future__ import annotations

# $P the path, $M the mode or nothing, $T the name of the temporary file.
# A link stays a link: its target is replaced. Says "mode owner" of what is there, or nothing.
_RESOLVE = r"""
umask 022
die() { printf '%s\n' "$1" >&2; exit 90; }
path=$P
if [ -L "$path" ]; then
  path=$(readlink -f -- "$path") || die 'is a link that leads nowhere'
fi
if [ -d "$path" ]; then die 'Is a directory'; fi
old=
if [ -e "$path" ]; then
  [ -f "$path" ] || die 'is not a regular file'
  old=$(stat -c '%a %u:%g' -- "$path" 2>/dev/null || stat -f '%Lp %u:%g' -- "$path" 2>/dev/null)
fi
case $path in */*) folder=${path%/*} ;; *) folder=. ;; esac
[ -d "${folder:-/}" ] || mkdir -p -- "${folder:-/}" || exit 91
temporary=${folder:-}/$T
"""

_COMMIT = r"""
mode=${M:-${old%% *}}
chmod "${mode:-644}" "$temporary" || exit 92
if [ -n "$old" ] && chown "${old##* }" "$temporary" 2>/dev/null; then
  chmod "${mode:-644}" "$temporary" || exit 92
fi
mv -f -- "$temporary" "$path" || exit 93
"""

WRITE = (
    _RESOLVE
    + r"""
trap 'rm -f -- "$temporary"' EXIT
trap 'exit 94' HUP INT TERM
(umask 077; cat >"$temporary") || exit 95
"""
    + _COMMIT
)
"""Writes stdin to a file, in one operation."""

PREPARE = (
    _RESOLVE
    + r"""
if [ -n "$old" ] && [ "$(wc -c <"$path")" -eq "$S" ]; then
  sum=$(sha256sum <"$path" 2>/dev/null || shasum -a 256 <"$path" 2>/dev/null)
  if [ "${sum%% *}" = "$H" ]; then
    if [ -n "$M" ]; then chmod "$M" "$path" || exit 92; fi
    echo same
    exit 0
  fi
fi
case $temporary in /*) ;; *) temporary=$PWD/$temporary ;; esac
(umask 077; : >"$temporary") || exit 95
printf '%s\n' "$temporary"
"""
)
"""Makes an empty temporary file for content that comes by another way, and says its path; says
``same`` where size ``$S`` and SHA-256 ``$H`` are those of the file already."""

COMMIT = (
    _RESOLVE
    + r"""
trap 'rm -f -- "$temporary"' EXIT
[ "$(wc -c <"$temporary")" -eq "$S" ] || die 'the transfer is incomplete'
"""
    + _COMMIT
)
"""Puts the temporary file in its place."""

APPEND = 'cat >>"$P"'
"""Adds stdin to a file."""

REMOVE = 'rm -f -- "$P"'
"""Removes a file, or does nothing."""

READ = r"""
die() { printf '%s\n' "$1" >&2; exit 90; }
[ -d "$P" ] && die 'Is a directory'
if [ -e "$P" ] && [ ! -f "$P" ]; then die 'is not a regular file'; fi
if [ -n "$L" ]; then
  size=$(wc -c <"$P") || exit 91
  size=$((size))
  if [ "$size" -gt "$L" ]; then printf "%s\n" "$size"; exit 96; fi
fi
exec cat <"$P"
"""
"""Prints a file; where it has more bytes than ``$L`` only their number, with exit code 96."""

TOO_LONG = 96
"""The exit code of :data:`READ` for a file that is longer than it may be."""
