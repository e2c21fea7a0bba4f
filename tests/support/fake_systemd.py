"""A ``systemctl`` that keeps its units as files, first on PATH: what systemd would say and do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# A unit is a folder with the files active, enabled and load; an alias is a link to one.
_SYSTEMCTL = r"""#!/bin/sh
units='{units}'
echo "$*" >>'{log}'
said() { echo "$1" >&2; exit "$2"; }
if [ -e "$units/.down" ]; then
  said "System has not been booted with systemd as init system (PID 1). Can't operate." 1
fi
verb=$1; shift
runtime=
while [ "$1" != -- ] && [ "$#" -gt 0 ]; do
  [ "$1" = --runtime ] && runtime=-runtime
  shift
done
[ "$1" = -- ] && shift
name=$1
case $name in *.*) ;; *) name=$name.service ;; esac
[ -L "$units/$name" ] && alias=yes
unit=$(readlink "$units/$name" || echo "$name")
u=$units/$unit
has() { cat "$u/$1" 2>/dev/null; }
masked() { case $(has enabled) in masked*) true ;; *) false ;; esac; }
case $verb in
  reboot) cat "$units/.next-boot" >"$units/.boot"; exit 0 ;;
  daemon-reload) rm -f "$units"/*/stale; exit 0 ;;
  show)
    echo "Id=$unit"
    if [ ! -d "$u" ]; then
      echo LoadState=not-found; echo ActiveState=inactive
      echo 'LoadError=org.freedesktop.systemd1.NoSuchUnit "Unit '"$unit"' not found."'
      exit 0
    fi
    if masked; then echo LoadState=masked; else echo "LoadState=loaded"; fi
    echo "ActiveState=$(has active)"; echo "UnitFileState=$(has enabled)"
    [ -e "$u/stale" ] && echo NeedDaemonReload=yes
    echo "Type=$(has type || echo simple)"; echo "RemainAfterExit=no"; exit 0 ;;
  is-enabled) [ -n "$alias" ] && { echo alias; exit 0; }; has enabled; exit 0 ;;
  is-active) has active; exit 0 ;;
  status) echo "the last line of the journal"; exit 3 ;;
esac
[ -e "$u/stale" ] && echo "Warning: The unit file changed on disk." >&2
case $verb in
  start)
    masked && said "Failed to start $unit: Unit $unit is masked." 1
    if [ -e "$u/broken" ]; then
      echo failed >"$u/active"
      echo "Job for $unit failed because the control process exited with error code." >&2
      said "See \"systemctl status $unit\" for details." 1
    fi
    if [ -e "$u/fragile" ]; then echo failed >"$u/active"; else echo active >"$u/active"; fi ;;
  stop) echo inactive >"$u/active" ;;
  enable)
    [ -n "$alias" ] && said "Failed to enable unit: Refusing to operate on alias name." 1
    masked && said "Failed to enable unit: Unit file $unit is masked." 1
    [ "$(has enabled)" = static ] || echo enabled >"$u/enabled" ;;
  disable) [ "$(has enabled)" = "enabled$runtime" ] && echo disabled >"$u/enabled" ;;
  mask) echo masked >"$u/enabled" ;;
  unmask) [ "$(has enabled)" = "masked$runtime" ] && echo disabled >"$u/enabled" ;;
  *) said "Unknown command verb $verb." 1 ;;
esac
exit 0
"""


class FakeSystemd:
    """The units, and the log of what was asked."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self._units = folder / "units"
        self._log = folder / "log"
        self.boot_id = self._units / ".boot"
        for made in (self.bin, self._units):
            made.mkdir()
        self._log.touch()
        text = _SYSTEMCTL.replace("{units}", str(self._units)).replace("{log}", str(self._log))
        (self.bin / "systemctl").write_text(text, encoding="utf-8")
        (self.bin / "systemctl").chmod(0o755)

    def unit(
        self, name: str, active: str = "inactive", enabled: str = "disabled", **more: str
    ) -> None:
        """Make a unit; ``more`` are files such as ``type`` or ``broken``."""
        place = self._units / name
        place.mkdir()
        for key, value in {"active": active, "enabled": enabled, **more}.items():
            if value or key not in ("enabled",):
                (place / key).write_text(value, encoding="utf-8")

    def alias(self, name: str, of: str) -> None:
        """Give a unit another name."""
        (self._units / name).symlink_to(of)

    def state(self, name: str) -> tuple[str, str]:
        """What a unit is now: whether it runs, and what it does at boot."""
        place = self._units / name
        active, enabled = ((place / one).read_text().strip() for one in ("active", "enabled"))
        return active, enabled

    def boot(self, now: str, following: str) -> None:
        """Set the boot id, and the one after the next reboot."""
        self.boot_id.write_text(f"{now}\n", encoding="ascii")
        (self._units / ".next-boot").write_text(f"{following}\n", encoding="ascii")

    def shut_down(self) -> None:
        """Be a machine that systemd does not run."""
        (self._units / ".down").touch()

    def asked(self, verb: str) -> list[str]:
        """Every call with that verb."""
        lines = self._log.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.split(" ", 1)[0] == verb]


def first_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let programs in ``folder`` be found before all others."""
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
