"""``become`` as it is written, and as it is meant: a map of settings, or ``None`` for off."""

from __future__ import annotations

from typing import cast

import msgspec

Written = bool | dict[str, object] | None


class BecomeFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a ``become`` map."""

    enabled: bool = True
    user: str = ""
    password: str = ""
    method: str = ""
    load_profile: bool = False


def merge_become(base: dict[str, object] | None, written: object) -> dict[str, object] | None:
    """Lay what a task says over what it inherits.

    ``false`` and ``enabled: false`` switch it off with all that was inherited; ``true`` alone
    switches it on; nothing, or an empty map, leaves it as it is.
    """
    if written is None or written == {}:
        return base
    if isinstance(written, bool):
        return (base or {}) if written else None
    if not isinstance(written, dict):
        return base
    fields = cast("dict[str, object]", written)
    if fields.get("enabled") is False:
        return None
    merged = {**(base or {}), **fields}
    if merged.get("enabled") is True:
        del merged["enabled"]
    return merged
