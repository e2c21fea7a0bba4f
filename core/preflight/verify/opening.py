"""How a session begins: the handshake, and what may not come before or after it."""

from __future__ import annotations

import json
from typing import cast

from preflight.verify.kit import SCHEMA, Kit, NotApplicable, Scenario
from preflight.verify.talk import Fault
from preflight.verify.watch import Frame, error_code, members

_LISTEN_S = 0.2  # for what comes behind an answer, and should not


def handshake(kit: Kit) -> None:
    """Shake hands, and remember what the plugin says of itself.

    A plugin gives its schemas only to a host that lists them.
    """
    with kit.start() as talk:
        answer = talk.initialize(capabilities=[SCHEMA])
        _refuse_error(answer)
        kit.handshake = members(answer.get("result"))


def versions(kit: Kit) -> None:
    """Hold the range against version 2."""
    high = kit.handshake.get("protocol_version")
    low = kit.handshake.get("min_protocol_version", high)
    if not _is_int(high) or not _is_int(low):
        raise Fault(f"protocol_version {json.dumps(high)}, min_protocol_version {json.dumps(low)}")
    if not int(str(low)) <= 2 <= int(str(high)):
        raise Fault(f"it speaks versions {low} to {high}, and not 2")


def name(kit: Kit) -> None:
    """Hold the name against the file's."""
    if not kit.subject.name:
        raise NotApplicable("the file is not named preflight-plugin-<name>")
    said = kit.handshake.get("name")
    if said != kit.subject.name:
        raise Fault(f"it says {json.dumps(said)}, the file says {json.dumps(kit.subject.name)}")


def types(kit: Kit) -> None:
    """Hold the other members against their types."""
    said = kit.handshake
    listed = said.get("capabilities")
    if not isinstance(said.get("version"), str):
        raise Fault(f"version is no string: {json.dumps(said.get('version'))}")
    if listed is not None and not _is_texts(listed):
        raise Fault(f"capabilities are no list of strings: {json.dumps(listed)}")
    if "max_message_bytes" in said and kit.limit <= 0:
        raise Fault(f"max_message_bytes is {json.dumps(said['max_message_bytes'])}")


def no_overlap(kit: Kit) -> None:
    """Offer a version that nobody speaks."""
    with kit.start() as talk:
        answer = talk.initialize(protocol_version=9, min_protocol_version=9)
        if error_code(answer) != -32010:
            raise Fault(f"it answered {json.dumps(answer)[:300]}")


def unknown_members(kit: Kit) -> None:
    """Offer what no plugin knows."""
    with kit.ready(capabilities=["zz/nobody-has-it"], zz={"y": [1, None]}) as talk:
        kit.alive(talk, "after a handshake with unknown members")


def call_first(kit: Kit) -> None:
    """Call before the handshake."""
    with kit.start() as talk:
        code = error_code(talk.answer_to(talk.ask("check", kit.params)))
        if code != -32011:
            raise Fault(f"a check before initialize got {_code_words(code)}")
        _refuse_error(talk.initialize())


def second_handshake(kit: Kit) -> None:
    """Shake hands twice."""
    with kit.ready() as talk:
        code = error_code(talk.initialize())
        if code != -32011:
            raise Fault(f"a second initialize got {_code_words(code)}")
        kit.alive(talk, "after a second initialize")


def late_output(kit: Kit) -> None:
    """Listen behind the answers; what comes is watched."""
    with kit.ready() as talk:
        for method in ("check", "apply") if kit.subject.params is not None else ("check",):
            talk.call(method, kit.params)
            talk.listen(_LISTEN_S)


def _refuse_error(answer: Frame) -> None:
    if error_code(answer) is not None:
        raise Fault(f"initialize was refused: {json.dumps(answer.get('error'))}")


def _code_words(code: object) -> str:
    return "a result" if code is None else f"the error {code}"


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: object) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(one, str) for one in cast("list[object]", value))


SCENARIOS: dict[str, Scenario] = {
    "V2-HS-01": handshake,
    "V2-HS-02": versions,
    "V2-HS-03": name,
    "V2-HS-04": types,
    "V2-HS-05": no_overlap,
    "V2-HS-06": unknown_members,
    "V2-OR-01": call_first,
    "V2-OR-02": second_handshake,
    "V2-OR-04": late_output,
}
