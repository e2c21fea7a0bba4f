"""What is asked of a plugin, one line each, under ids that never change their meaning.

An id is ``V<protocol version>-<group>-<number>``: a requirement may be added, and one that is
withdrawn takes its id with it. The sources are sections of docs/protocol.md.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Need: TypeAlias = Literal["stated", "params", "batch", "schema"]

NEEDS: dict[Need, str] = {
    "stated": "it states no max_message_bytes: base protocol 2 leaves this open",
    "params": "give --params",
    "batch": "it does not offer preflight-tui/batch",
    "schema": "it gives no schema",
}
"""What a requirement may need before it applies, and the words for when that is missing."""

GROUPS: dict[str, str] = {
    "HS": "handshake",
    "OR": "order",
    "FR": "framing",
    "ID": "ids",
    "SO": "stdout hygiene",
    "OV": "oversize",
    "EO": "end of input",
    "SC": "schema",
    "IM": "idempotence",
    "GR": "grace",
    "CA": "cancel",
    "CO": "cancel at every operation",
    "KO": "kill at every operation",
    "BA": "batch = per item",
}


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to hold; where one of ``after`` is not held, there is nothing to judge here."""

    id: str
    text: str
    source: str
    needs: tuple[Need, ...] = ()
    after: tuple[str, ...] = ("V2-HS-01",)

    @property
    def group(self) -> str:
        """The group's name."""
        return GROUPS[self.id.split("-")[1]]


def _one(id: str, source: str, text: str, *needs: Need, after: str = "V2-HS-01") -> Requirement:
    return Requirement(id=id, source=source, text=text, needs=needs, after=tuple(after.split()))


REQUIREMENTS: tuple[Requirement, ...] = (
    _one("V2-HS-01", "3", "initialize is answered with a result within 10 s", after=""),
    _one("V2-HS-02", "3", "the result has a range of versions with version 2 in it"),
    _one("V2-HS-03", "3", "the name in the result is the file's"),
    _one("V2-HS-04", "2", "version, capabilities and max_message_bytes are of their types"),
    _one("V2-HS-05", "3", "a host of versions 9 to 9 is refused with -32010"),
    _one("V2-HS-06", "1", "unknown members and unknown capabilities of the host are ignored"),
    _one("V2-OR-01", "2", "a call before initialize is refused with -32011; initialize works then"),
    _one("V2-OR-02", "2", "a second initialize is refused with -32011; the session goes on"),
    _one("V2-OR-03", "3", "nothing is sent before initialize is answered"),
    _one("V2-OR-04", "2", "output comes before the result of its call, never after"),
    _one("V2-FR-01", "1", "every frame is a JSON-RPC 2.0 request, notification or response"),
    _one("V2-FR-02", "1", "unknown members and unknown notifications are ignored"),
    _one(
        "V2-FR-03",
        "1",
        "a frame in three pieces and two frames in one piece are understood",
        after="V2-FR-02",
    ),
    _one("V2-FR-04", "1", "\\r\\n is accepted, and blank lines are passed over"),
    _one("V2-FR-05", "1", "a line that is no JSON object ends nothing", "stated"),
    _one("V2-FR-06", "1", "a byte order mark before the first frame is tolerated", "stated"),
    _one("V2-FR-07", "1", "a last line that ends with the stream is a frame", "stated"),
    _one("V2-ID-01", "1", "an integer id is echoed as it came"),
    _one("V2-ID-02", "1", 'string ids, 0, "" and -1 are echoed as they came', "stated"),
    _one("V2-ID-03", "1", "a request is answered once, and nothing that was not asked"),
    _one("V2-ID-04", "2", "an unknown method is refused with -32601; the session goes on"),
    _one("V2-ID-05", "1", "null, boolean, float and structured ids get -32600, null id", "stated"),
    _one("V2-ID-06", "1", "after its answer an id may be used again"),
    _one(
        "V2-ID-07",
        "1",
        "an id in flight gets -32600; the first call goes on",
        "stated",
        "params",
        after="V2-IM-01",
    ),
    _one("V2-SO-01", "1", "stdout carries frames and no other text"),
    _one("V2-OV-01", "1", "a line over its limit gets -32020; the session goes on", "stated"),
    _one("V2-OV-02", "1", "a line of exactly its limit is taken", "stated"),
    _one(
        "V2-OV-03",
        "1",
        "no frame is larger than the host's max_message_bytes",
        "stated",
        "params",
        after="V2-IM-01",
    ),
    _one("V2-EO-01", "5", "with the end of its stdin it exits within 3 s, all its group with it"),
    _one("V2-EO-02", "5", "before initialize too", after="V2-EO-01"),
    _one(
        "V2-EO-03",
        "5",
        "in the middle of a handle operation too",
        "params",
        after="V2-EO-01 V2-IM-01",
    ),
    _one(
        "V2-SC-01",
        "6",
        "its schemas are JSON Schema 2020-12 and refer to nothing outside",
        "schema",
    ),
    _one(
        "V2-SC-02",
        "6",
        "the given params satisfy its params_schema",
        "schema",
        "params",
        after="V2-SC-01",
    ),
    _one("V2-IM-01", "2", "check and apply with the given params succeed", "params"),
    _one("V2-IM-02", "2", "check changes nothing on the target", "params", after="V2-IM-01"),
    _one("V2-IM-03", "2", "after an apply, check finds nothing to do", "params", after="V2-IM-01"),
    _one(
        "V2-IM-04",
        "2",
        "apply a second time succeeds and changes nothing more",
        "params",
        after="V2-IM-01",
    ),
    _one("V2-GR-01", "4", "a cancelled call is answered within 2 s", "params", after="V2-IM-01"),
    _one(
        "V2-GR-02",
        "4",
        "a cancel right behind its request is not lost",
        "stated",
        "params",
        after="V2-GR-01",
    ),
    _one("V2-CA-01", "4", "a cancel for an unknown or finished id is ignored"),
    _one(
        "V2-CA-02",
        "4",
        "the operation a cancelled call waits for is cancelled by its own id",
        "params",
        after="V2-GR-01",
    ),
    _one(
        "V2-CO-01",
        "4",
        "cancelled at any operation, a call is answered within 2 s",
        "params",
        after="V2-GR-01",
    ),
    _one(
        "V2-CO-02",
        "4",
        "cancelled at any operation, the session takes the next call",
        "params",
        after="V2-CO-01",
    ),
    _one(
        "V2-KO-01",
        "5",
        "killed at any operation, the next run ends as an undisturbed one",
        "params",
        after="V2-IM-01 V2-IM-04",
    ),
    _one(
        "V2-BA-01",
        "6",
        "check_batch finds of every item what check finds",
        "batch",
        "params",
        after="V2-IM-01",
    ),
    _one(
        "V2-BA-02",
        "6",
        "apply_batch does with every item what apply does",
        "batch",
        "params",
        after="V2-BA-01",
    ),
    _one(
        "V2-BA-03",
        "6",
        "common is overlaid with an item's own args",
        "batch",
        "params",
        after="V2-BA-01",
    ),
)
"""Every requirement, in the order in which they are judged and shown."""

BY_ID = {one.id: one for one in REQUIREMENTS}
