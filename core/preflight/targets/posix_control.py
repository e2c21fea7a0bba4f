"""The program that stands by on a POSIX target to end operations, and does so when the link dies.

Text only; :mod:`preflight.targets.ssh_kill` runs it and talks to it. What it may signal, and what
never, is decided by :mod:`preflight.targets.posix_kill`.
"""

from __future__ import annotations

from preflight.targets.posix_kill import WALK

BEAT_S = 10.0
"""Seconds between two heartbeats of the controller. Source: ssh.md 6.3, point 7."""
MISSED_BEATS = 4
"""So many intervals without a heartbeat mean that the controller is gone."""

_MAIN = r"""
set -f
LC_ALL=C
export LC_ALL
IFS=' '
trap '' HUP INT TERM PIPE

pf_say() { printf '\036%s %s\n' "$pf_token" "$*"; }

pf_stat $$ || { pf_say N; exit 0; }
pf_born=$pf_start
pf_safe=" 1 2 $$ "
pf_up=$PPID
while pf_stat "$pf_up"; do
  pf_safe="$pf_safe$pf_up "
  pf_up=$pf_ppid
done

# Registered operations, " op:leader:start", and what the controller asks for.
pf_serve() {
  { IFS=' ' read -r pf_me pf_rest; } </proc/self/stat && pf_safe="$pf_safe$pf_me "
  pf_ops= pf_missed=0 pf_quit=
  while IFS=' ' read -r pf_verb pf_a pf_b pf_c; do
    case $pf_verb in
      H) pf_missed=0 ;;
      T)
        pf_missed=$((pf_missed + 1))
        [ "$pf_missed" -lt "$pf_limit" ] || break
        ;;
      W) if pf_stat "$pf_a"; then pf_shell=$pf_a pf_shell_start=$pf_start; fi ;;
      R) if pf_ours "$pf_b" "$pf_a"; then pf_ops="$pf_ops $pf_a:$pf_b:$pf_since"; fi ;;
      E) pf_forget "$pf_a" ;;
      K)
        pf_number "$pf_c" || pf_c=0
        pf_look "$pf_a" "$pf_b"
        pf_end "$pf_a" "$pf_b" "$pf_since" "$pf_c" </dev/null &
        ;;
      Q) pf_quit=yes; break ;;
      Z) break ;;
    esac
  done
  if [ -z "$pf_quit" ]; then pf_orphaned; fi
}

pf_forget() {
  pf_kept=
  for pf_row in $pf_ops; do
    case $pf_row in "$1":*) ;; *) pf_kept="$pf_kept $pf_row" ;; esac
  done
  pf_ops=$pf_kept
}

# Sets pf_since and pf_b for op $1: as registered, as its leader $2 says of itself, or by its mark.
pf_look() {
  for pf_row in $pf_ops; do
    case $pf_row in "$1:$2":*) pf_since=${pf_row##*:}; return ;; esac
  done
  if ! pf_ours "$2" "$1"; then pf_b=- && pf_oldest_carrier "$1"; fi
}

# The controller is gone: ends what is registered, and what the work shell is waiting for.
pf_orphaned() {
  if pf_number "$pf_shell" && pf_stat "$pf_shell" && [ "$pf_start" = "$pf_shell_start" ]; then
    pf_snapshot "$pf_born"
    for pf_row in $pf_rows; do
      IFS=:
      set -- $pf_row
      IFS=' '
      [ "$2" = "$pf_shell" ] || continue
      case "$pf_ops " in *":$1:$4 "*) continue ;; esac
      pf_a=$(grep -a -o -e "$pf_mark=[0-9a-f]*" "$pf_proc/$1/environ" 2>/dev/null | head -n 1)
      pf_ops="$pf_ops ${pf_a#*=}:$1:$4"
    done
  fi
  for pf_row in $pf_ops; do
    IFS=:
    set -- $pf_row
    IFS=' '
    pf_end "${1:--}" "$2" "$3" 100 </dev/null &
  done
  wait
}

exec 3>&1
# One shell passes the controller's lines on and one ticks: plain sh can't read with a time limit.
{
  (
    trap 'if [ -n "$pf_sleep" ]; then kill "$pf_sleep"; fi; exit 0' TERM
    while :; do
      sleep "$pf_beat" &
      pf_sleep=$!
      wait "$pf_sleep"
      pf_sleep=
      echo T || exit 0
    done
  ) </dev/null 2>/dev/null &
  pf_ticker=$!
  pf_say C >&3
  while IFS= read -r pf_line; do printf '%s\n' "$pf_line" || break; done
  kill "$pf_ticker"
  wait "$pf_ticker"
  echo Z
} 2>/dev/null | pf_serve 2>/dev/null
exit 0
"""


def control_program(token: str, *, beat_s: float = BEAT_S) -> str:
    """Give the program; it answers on stdout in lines that begin with 0x1e and ``token``.

    Answers: ``C`` when it listens; ``N`` where there is no ``/proc`` and nothing can be found;
    ``D op how survivor…`` for each op that it ended, ``how`` being ``none``, ``SIGTERM`` or
    ``SIGKILL``. It reads lines: ``W pid`` names the work shell, ``R op leader`` and ``E op``
    register an op and forget it, ``K op leader hundredths`` ends one after that grace, ``H`` is a
    heartbeat, ``Q`` lets it leave in peace. An end of file without ``Q``, or no heartbeat for
    ``MISSED_BEATS`` times ``beat_s`` seconds, ends every op that runs.
    """
    settings = f"pf_token={token} pf_beat={beat_s:g} pf_limit={MISSED_BEATS}"
    return f"{WALK}{settings}{_MAIN}"
