"""The methods of the plugin protocol v2: what goes over the wire, typed.

Source: docs/protocol.md. Strict when sending, lenient when reading: unknown members are ignored.
"""

from __future__ import annotations

from typing import TypeGuard, cast

import msgspec

from preflight.errors import PluginError, Reason
from preflight.events import Capabilities, Change, TargetInfo
from preflight.rpc.machine import DEFAULT_LIMIT
from preflight.rpc.messages import decode

HOST_VERSIONS = (2, 2)
"""The lowest and the highest protocol version that this host speaks."""

PARAMS_SCHEMA = "preflight-tui/params-schema"
RUN_DATA = "preflight-tui/run-data"
BATCH = "preflight-tui/batch"
PARENT = "preflight-tui/parent"
BYTES = "preflight-tui/bytes"
DIFF = "preflight-tui/diff"
CHUNKS = "preflight-tui/chunks"

HOST_CAPABILITIES: tuple[str, ...] = (
    PARAMS_SCHEMA,
    RUN_DATA,
    BATCH,
    PARENT,
    BYTES,
    DIFF,
    CHUNKS,
)
"""The optional features that this host offers. Source: docs/protocol.md, Extensions."""

_LONGEST_TEXT = 200  # characters of a name or a version, as is shown and quoted


class CheckAnswer(msgspec.Struct, frozen=True):
    """The result of ``check``; a non-empty ``error`` is the module's failure."""

    needs_change: bool
    message: str = ""
    error: str = ""
    changes: list[Change] = []


class ApplyAnswer(msgspec.Struct, frozen=True):
    """The result of ``apply``; a non-empty ``error`` is the module's failure."""

    message: str = ""
    error: str = ""


class BatchResult(msgspec.Struct, frozen=True):
    """What became of one item of a batch; a non-empty ``error`` is that item's failure."""

    index: int
    needs_change: bool = False
    message: str = ""
    error: str = ""
    changes: list[Change] = []


class BatchAnswer(msgspec.Struct, frozen=True):
    """The result of a batch; a non-empty ``error`` fails all items that were not reported."""

    results: list[BatchResult] = []
    error: str = ""


class ProgressParams(msgspec.Struct, frozen=True):
    """Items of the batch ``id`` that have ended."""

    id: int
    results: list[BatchResult]


class ConfigureAnswer(msgspec.Struct, frozen=True):
    """The result of ``configure``; a non-empty ``error`` refuses the data."""

    error: str = ""


class RunData(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change in a run: sent once, after ``initialize``."""

    id: str = ""
    playbook: str = ""
    project: str = ""
    environment: str = ""
    dry_run: bool = False


class OutputParams(msgspec.Struct, frozen=True):
    """One line that the plugin shows; ``index`` is the item's in a batch."""

    line: str
    index: int | None = None
    parent: int | None = None


class CancelParams(msgspec.Struct, frozen=True):
    """Which request the sender abandons."""

    id: int | str


class RunCommandParams(msgspec.Struct, frozen=True):
    """A script for the target's native shell."""

    script: str
    parent: int | None = None


class PutFileParams(msgspec.Struct, frozen=True):
    """Bytes for a file on the target; JSON carries them in base64.

    With ``offset`` it is a piece, and the file is whole with the one that is ``final``.
    """

    path: str
    data: bytes
    offset: int | None = None
    final: bool = False
    parent: int | None = None


class GetFileParams(msgspec.Struct, frozen=True):
    """A file of the target to read; with ``offset`` a piece of it."""

    path: str
    offset: int | None = None
    max_bytes: int | None = None
    parent: int | None = None


class Handshake(msgspec.Struct, frozen=True, kw_only=True):
    """What was agreed: the plugin's own words, and what both sides have."""

    name: str
    version: str
    protocol_version: int
    capabilities: Capabilities
    max_message_bytes: int
    params_schema: dict[str, object] | None = None
    config_schema: dict[str, object] | None = None

    def has(self, capability: str) -> bool:
        """Tell whether both sides list a capability."""
        return capability in self.capabilities.negotiated


def initialize_params(
    info: TargetInfo,
    *,
    max_message_bytes: int,
    versions: tuple[int, int] = HOST_VERSIONS,
    capabilities: tuple[str, ...] = HOST_CAPABILITIES,
) -> bytes:
    """Write the params of ``initialize``; every key of the target is there, empty or not."""
    return msgspec.json.encode(
        {
            "protocol_version": versions[1],
            "min_protocol_version": versions[0],
            "capabilities": list(capabilities),
            "max_message_bytes": max_message_bytes,
            "target": msgspec.to_builtins(info),
        }
    )


def read_handshake(
    raw: msgspec.Raw,
    *,
    path: str,
    versions: tuple[int, int] = HOST_VERSIONS,
    capabilities: tuple[str, ...] = HOST_CAPABILITIES,
) -> Handshake:
    """Read the answer to ``initialize`` and agree on a version.

    Raises :class:`PluginError` with ``plugin_protocol``: no overlap names both ranges, a value
    that makes no sense is quoted.
    """
    try:
        answer = decode(raw, dict[str, object])
    except ValueError as exc:
        raise _protocol_error(f"{path} answered initialize with {_quote(raw)}: {exc}") from exc
    version = _agreed(answer, path, versions)
    listed = answer.get("capabilities")
    offered = {item for item in _items(listed) if isinstance(item, str)}
    limit = answer.get("max_message_bytes")
    return Handshake(
        name=_text(answer.get("name")),
        version=_text(answer.get("version")),
        protocol_version=version,
        capabilities=Capabilities(
            host=sorted(capabilities),
            plugin=sorted(offered),
            negotiated=sorted(offered & set(capabilities)),
        ),
        max_message_bytes=limit if _is_int(limit) and limit > 0 else DEFAULT_LIMIT,
        params_schema=_schema(answer, "params_schema", offered),
        config_schema=_schema(answer, "config_schema", offered),
    )


def _schema(answer: dict[str, object], name: str, offered: set[str]) -> dict[str, object] | None:
    schema = answer.get(name)
    if PARAMS_SCHEMA not in offered or not isinstance(schema, dict):
        return None
    return cast("dict[str, object]", schema)


def _agreed(answer: dict[str, object], path: str, versions: tuple[int, int]) -> int:
    low, high = versions
    highest = answer.get("protocol_version")
    lowest = answer.get("min_protocol_version", highest)
    if highest is None:
        raise _protocol_error(
            f"{path} reported none of its protocol versions, this host speaks {low} to {high}; "
            "rebuild the plugin with an SDK of protocol 2"
        )
    if not _is_int(highest) or not _is_int(lowest):
        odd = lowest if _is_int(highest) else highest
        raise _protocol_error(f"{path} reported the protocol version {odd!r}, not a whole number")
    if lowest > highest:
        raise _protocol_error(
            f"{path} reported a malformed range: protocol versions {lowest} to {highest}"
        )
    if lowest > high or highest < low:
        cure = "upgrade host" if lowest > high else "rebuild the plugin with a newer SDK"
        raise _protocol_error(
            f"{path} speaks protocol {lowest} to {highest}, this host {low} to {high}: "
            f"no common version; {cure}"
        )
    return min(high, highest)


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(value: object) -> str:
    return value[:_LONGEST_TEXT] if isinstance(value, str) else ""


def _items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _quote(raw: msgspec.Raw) -> str:
    return bytes(raw)[:100].decode("utf-8", "replace")


def _protocol_error(message: str) -> PluginError:
    return PluginError(Reason.PLUGIN_PROTOCOL, message)
