"""The POSIX shell dialect: the probe, the facts, and how their answers are read.

Knows nothing of transports: it makes scripts and reads their output.
"""

from __future__ import annotations

import msgspec

from preflight.events import TargetInfo

PROBE = r"""
LC_ALL=C; export LC_ALL
say() { printf '%s=%s\n' "$1" "$2"; }
say hostname "$(hostname 2>/dev/null || uname -n 2>/dev/null)"
say kernel "$(uname -s 2>/dev/null)"
say arch "$(uname -m 2>/dev/null)"
for f in /etc/os-release /usr/lib/os-release; do
  if [ -r "$f" ]; then
    ( . "$f"; say name "${ID:-}"; say version "${VERSION_ID:-}" )
    break
  fi
done
if command -v apt-get >/dev/null 2>&1; then say package_manager apt
elif command -v dnf >/dev/null 2>&1; then say package_manager dnf
fi
[ -d /run/systemd/system ] && say init systemd
say uid "$(id -u 2>/dev/null)"
command -v sudo >/dev/null 2>&1 && say sudo yes
exit 0
"""

FACTS = r"""
LC_ALL=C; export LC_ALL
printf 'cpus=%s\n' "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 0)"
if [ -r /proc/meminfo ]; then
  while read -r key value unit; do
    case $key in
      MemTotal:) printf 'memory_total_kb=%s\n' "$value" ;;
      MemAvailable:) printf 'memory_available_kb=%s\n' "$value" ;;
    esac
  done </proc/meminfo
fi
df -Pkl 2>/dev/null | while read -r device blocks used free share path; do
  case $device in
    /dev/*|overlay) printf 'disk=%s %s %s %s\n' "$blocks" "$used" "$free" "$path" ;;
  esac
done
echo env:
env -0 2>/dev/null || env
"""

_FAMILIES = {"Linux": "linux", "Darwin": "darwin"}
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "i386": "386"}
_KB_PER_GB = 1024 * 1024


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe found: the info that plugins get, and what only the engine needs."""

    info: TargetInfo = TargetInfo()
    uid: int = -1
    sudo: bool = False


def read_probe(text: str) -> Probe:
    """Read the probe's answer; unknown keys are passed over, missing ones stay empty."""
    found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    uid = found.get("uid", "")
    return Probe(
        info=TargetInfo(
            family=_FAMILIES.get(found.get("kernel", ""), "unknown"),
            name=found.get("name", ""),
            version=found.get("version", ""),
            arch=found.get("arch", ""),
            hostname=found.get("hostname", ""),
            package_manager=found.get("package_manager", ""),
            init=found.get("init", ""),
            runtime_kind="posix-shell",
        ),
        uid=int(uid) if uid.isdigit() else -1,
        sudo=found.get("sudo") == "yes",
    )


def read_facts(info: TargetInfo, text: str) -> dict[str, object]:
    """Build the fact tree from the facts script's answer.

    Shape: ``hostname``, ``os`` {family, name, version, build, arch, hostname, package_manager,
    init}, ``disks`` [{path, total_gb, used_gb, free_gb}] in GiB, ``memory`` {total_gb,
    available_gb}, ``cpus``, ``env``. ``os.arch`` is normalised (amd64, arm64, 386).
    """
    head, _, environment = text.partition("env:\n")
    numbers = {"cpus": 0, "memory_total_kb": 0, "memory_available_kb": 0}
    disks: list[dict[str, object]] = []
    for line in head.splitlines():
        key, _, value = line.partition("=")
        if key == "disk":
            disks.append(_disk(value))
        elif key in numbers and value.isdigit():
            numbers[key] = int(value)
    return {
        "hostname": info.hostname,
        "os": {
            "family": info.family,
            "name": info.name,
            "version": info.version,
            "build": 0,
            "arch": _ARCHITECTURES.get(info.arch, info.arch),
            "hostname": info.hostname,
            "package_manager": info.package_manager,
            "init": info.init,
        },
        "disks": disks,
        "memory": {
            "total_gb": _gb(numbers["memory_total_kb"]),
            "available_gb": _gb(numbers["memory_available_kb"]),
        },
        "cpus": numbers["cpus"],
        "env": _environment(environment),
    }


def _disk(value: str) -> dict[str, object]:
    blocks, used, free, path = value.split(" ", 3)
    return {
        "path": path,
        "total_gb": _gb(int(blocks)),
        "used_gb": _gb(int(used)),
        "free_gb": _gb(int(free)),
    }


def _gb(kb: int) -> float:
    return round(kb / _KB_PER_GB, 2)


def _environment(text: str) -> dict[str, str]:
    separator = "\0" if "\0" in text else "\n"
    entries = (entry.split("=", 1) for entry in text.split(separator) if "=" in entry)
    return {entry[0]: entry[1] for entry in entries}
