"""What the two sides agree on in ``initialize``."""

from __future__ import annotations

from preflight_sdk.errors import INVALID_PARAMS, VERSION_MISMATCH, InvalidMessage
from preflight_sdk.results import TargetInfo

PROTOCOL_VERSION = 2
MIN_PROTOCOL_VERSION = 2
DEFAULT_LIMIT = 64 * 1024 * 1024
"""Units: bytes of one line; also what a peer accepts that states nothing."""

LEAST_LIMIT = 4096
"""A peer that states less is sent up to this all the same: an error has to fit."""


class Agreement:
    """The outcome of a handshake that succeeded."""

    __slots__ = ("capabilities", "info", "peer_limit", "version")

    def __init__(
        self, version: int, capabilities: frozenset[str], info: TargetInfo, peer_limit: int
    ) -> None:
        self.version = version
        self.capabilities = capabilities
        self.info = info
        self.peer_limit = peer_limit


def agree(params: dict[str, object], ours: tuple[str, ...]) -> Agreement:
    """Negotiate with what the host's ``initialize`` states.

    Raises: InvalidMessage, -32602 for malformed params, -32010 without a common version.
    """
    target = params.get("target")
    if not (target is None or isinstance(target, dict)):
        raise InvalidMessage(INVALID_PARAMS, f"target {_short(target)} is not an object")
    theirs = params.get("capabilities")
    names: list[object] = theirs if isinstance(theirs, list) else []  # pyright: ignore[reportUnknownVariableType]
    common = frozenset(ours).intersection(name for name in names if isinstance(name, str))
    info = TargetInfo.from_wire(target or {})  # pyright: ignore[reportUnknownArgumentType]
    return Agreement(_version(params), common, info, _peer_limit(params))


def _version(params: dict[str, object]) -> int:
    ours = f"this plugin speaks {MIN_PROTOCOL_VERSION}..{PROTOCOL_VERSION}"
    if params.get("protocol_version") is None:
        raise InvalidMessage(VERSION_MISMATCH, f"the host reported no protocol_version; {ours}")
    high = _integer(params, "protocol_version")
    low = (
        high
        if params.get("min_protocol_version") is None
        else _integer(params, "min_protocol_version")
    )
    if low > high:
        raise InvalidMessage(
            INVALID_PARAMS, f"min_protocol_version {low} is above protocol_version {high}"
        )
    best = min(high, PROTOCOL_VERSION)
    if best < max(low, MIN_PROTOCOL_VERSION):
        raise InvalidMessage(
            VERSION_MISMATCH, f"no common protocol version: the host speaks {low}..{high}, {ours}"
        )
    return best


def _integer(params: dict[str, object], name: str) -> int:
    value = params[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidMessage(INVALID_PARAMS, f"{name} {_short(value)} is not an integer")
    return value


def _peer_limit(params: dict[str, object]) -> int:
    stated = params.get("max_message_bytes")
    if isinstance(stated, bool) or not isinstance(stated, int) or stated <= 0:
        return DEFAULT_LIMIT
    return max(stated, LEAST_LIMIT)


def _short(value: object) -> str:
    return repr(value)[:80]
