"""How an operation's processes are found on a POSIX target, and how each is signalled: text only.

Plain ``sh`` with ``cat``, ``grep`` and ``sleep``. It signals single pids, never a group, and a pid
only when all of this holds: it is a number above 1; it is neither this shell nor one of its
ancestors; it started no earlier than the operation, read from ``/proc`` again right before the
signal, which also closes the reuse of a pid; and it is the operation's leader (a child of the work
shell, or marked), in its group, carries its mark in the environment, or descends from one of
those. A walk that starts from group 0 reaches a whole machine, because pid 1 of a container is in
it: no number below 2 is ever taken for a group or a parent (docs/adr/0006).
"""

from __future__ import annotations

MARK = "PREFLIGHT_OP"
"""The environment variable that everything an operation starts inherits, with the op's id."""

WALK = r"""
pf_mark=PREFLIGHT_OP
pf_newline='
'
pf_proc=/proc
pf_safe=' 1 2 '
pf_floor=0
pf_shell=
pf_shell_start=

# A pid or group that may be used at all: digits only, above 1.
pf_number() {
  case $1 in '' | 0* | 1 | *[!0-9]*) return 1 ;; esac
  [ "${#1}" -le 10 ]
}

# The text of a stat file: what follows the last ')' can't be forged by a process's name.
pf_fields() {
  case $1 in *') '*) ;; *) return 1 ;; esac
  set -- ${1##*') '}
  [ $# -ge 20 ] || return 1
  pf_state=$1 pf_ppid=$2 pf_pgrp=$3 pf_start=${20}
  case $pf_ppid$pf_pgrp$pf_start in *[!0-9]*) return 1 ;; esac
}

pf_stat() {
  pf_number "$1" || return 1
  pf_text=
  {
    while IFS= read -r pf_part || [ -n "$pf_part" ]; do
      pf_text="$pf_text $pf_part"
    done <"$pf_proc/$1/stat"
  } 2>/dev/null
  pf_fields "$pf_text"
}

# Everything that is not older than $1, as " pid:ppid:group:start:state" in pf_rows.
pf_snapshot() {
  pf_oldest=$1 pf_rows=
  set +f
  pf_all=$(cat "$pf_proc"/[0-9]*/stat 2>/dev/null)
  set -f
  IFS=$pf_newline
  set -- $pf_all
  IFS=' '
  for pf_row do
    pf_pid=${pf_row%% *}
    pf_number "$pf_pid" && pf_fields "$pf_row" || continue
    [ "$pf_start" -ge "$pf_oldest" ] || continue
    case $pf_safe in *" $pf_pid "*) continue ;; esac
    case $pf_state in Z | X) continue ;; esac
    pf_rows="$pf_rows $pf_pid:$pf_ppid:$pf_pgrp:$pf_start:$pf_state"
  done
}

# An operation's id, 16 hexadecimal digits: a shorter one would be the beginning of others.
pf_id() {
  case $1 in *[!0-9a-f]*) return 1 ;; esac
  [ "${#1}" -eq 16 ]
}

# The pids of pf_rows whose environment carries the op's mark, in pf_marked.
pf_carriers() {
  pf_marked=' '
  pf_id "$1" || return 0
  pf_files=
  for pf_row in $pf_rows; do pf_files="$pf_files $pf_proc/${pf_row%%:*}/environ"; done
  [ -n "$pf_files" ] || return
  for pf_file in $(grep -l -F -e "$pf_mark=$1" $pf_files 2>/dev/null | tr '\n' ' '); do
    pf_file=${pf_file%/environ}
    pf_marked="$pf_marked${pf_file##*/} "
  done
}

# op, leader or -, oldest, known " pid pid ": all that belongs to the op, " pid:start:group".
pf_find() {
  pf_leader=- pf_set=$4 pf_found=
  if pf_number "$2"; then pf_leader=$2; fi
  pf_snapshot "$3"
  pf_carriers "$1"
  pf_more=yes
  while [ -n "$pf_more" ]; do
    pf_more=
    for pf_row in $pf_rows; do
      IFS=:
      set -- $pf_row
      IFS=' '
      case $pf_found in *" $1:"*) continue ;; esac
      pf_related "$1" "$2" "$3" && pf_stat "$1" || continue
      [ "$pf_start" = "$4" ] && pf_related "$1" "$pf_ppid" "$pf_pgrp" || continue
      pf_set="$pf_set$1 "
      pf_found="$pf_found $1:$4:$pf_pgrp"
      pf_more=yes
    done
  done
}

# pid, ppid, group: is it known or marked, the leader, of its group or a found leader's, or the
# child of a found one? Asked twice: a row of the snapshot may have been forged by a name with a
# newline in it, what pf_stat reads may not.
pf_related() {
  case "$pf_set$pf_marked" in *" $1 "*) return 0 ;; esac
  if [ "$1" = "$pf_leader" ] || [ "$3" = "$pf_leader" ]; then return 0; fi
  if pf_number "$2"; then case $pf_set in *" $2 "*) return 0 ;; esac; fi
  if pf_number "$3"; then case $pf_set in *" $3 "*) return 0 ;; esac; fi
  return 1
}

# signal, "pid:start:group": looks once more, then signals this one pid.
pf_send() {
  pf_name=$1
  IFS=:
  set -- $2
  IFS=' '
  pf_stat "$1" || return 0
  [ "$pf_start" = "$2" ] && [ "$pf_pgrp" = "$3" ] && [ "$pf_start" -ge "$pf_floor" ] || return 0
  case $pf_safe in *" $1 "*) return 0 ;; esac
  kill -s "$pf_name" "$1" 2>/dev/null
}

# Those of pf_found that still run, in pf_left; a zombie doesn't.
pf_alive() {
  pf_left=
  for pf_row in $pf_found; do
    pf_pid=${pf_row%%:*} pf_rest=${pf_row#*:}
    pf_stat "$pf_pid" && [ "$pf_start" = "${pf_rest%%:*}" ] || continue
    case $pf_state in Z | X) continue ;; esac
    pf_left="$pf_left $pf_pid"
  done
  [ -n "$pf_left" ]
}

# Waits until none of pf_found runs, at most so many hundredths of a second.
pf_wait() {
  pf_budget=$1 pf_nap=1
  while pf_alive; do
    [ "$pf_budget" -gt 0 ] || return 1
    if sleep "0.0$pf_nap" 2>/dev/null; then
      pf_budget=$((pf_budget - pf_nap - 1))
    else
      sleep 1
      pf_budget=$((pf_budget - 100))
    fi
    if [ "$pf_nap" -lt 5 ]; then pf_nap=$((pf_nap + 1)); fi
  done
}

# Is $1 the leader of the op $2? Its start is in pf_since then. It is a child of the work shell
# that is younger than this shell, or it carries the op's mark, whatever its age.
pf_ours() {
  pf_stat "$1" || return 1
  case $pf_safe in *" $1 "*) return 1 ;; esac
  pf_since=$pf_start pf_parent=$pf_ppid
  if pf_number "$pf_shell" && [ "$pf_parent" = "$pf_shell" ] && [ "$pf_since" -ge "$pf_born" ]; then
    if pf_stat "$pf_shell" && [ "$pf_start" = "$pf_shell_start" ]; then return 0; fi
  fi
  pf_id "$2" && grep -q -F -e "$pf_mark=$2" "$pf_proc/$1/environ" 2>/dev/null
}

# The start of the oldest process that carries the mark of op $1, in pf_since; else pf_born.
pf_oldest_carrier() {
  pf_since=$pf_born
  pf_snapshot 0
  pf_carriers "$1"
  for pf_row in $pf_rows; do
    IFS=:
    set -- $pf_row
    IFS=' '
    case $pf_marked in *" $1 "*) if [ "$4" -lt "$pf_since" ]; then pf_since=$4; fi ;; esac
  done
}

# op, leader or -, oldest, grace in hundredths of a second: TERM, grace, KILL; says what is left.
pf_end() {
  pf_op=$1 pf_head=$2 pf_floor=$3 pf_how=none pf_known=' ' pf_left=
  pf_find "$pf_op" "$pf_head" "$pf_floor" ' '
  if [ -n "$pf_found" ] && [ "$4" -gt 0 ]; then
    pf_how=SIGTERM
    for pf_row in $pf_found; do pf_send TERM "$pf_row"; done
    pf_wait "$4"
  fi
  for pf_round in 1 2 3; do
    pf_alive
    pf_known="${pf_left:+$pf_left} "
    pf_find "$pf_op" "$pf_head" "$pf_floor" "$pf_known"
    [ -n "$pf_found" ] || break
    pf_how=SIGKILL
    for pf_row in $pf_found; do pf_send KILL "$pf_row"; done
    pf_wait 70
  done
  pf_alive
  pf_say D "$pf_op" "$pf_how$pf_left"
}
"""
