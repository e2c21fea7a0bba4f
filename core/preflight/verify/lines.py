"""What a plugin makes of single lines: how they are cut, what they hold, and their ids."""

from __future__ import annotations

import json
import time

from preflight.verify.kit import Kit, NotApplicable, Scenario
from preflight.verify.talk import Fault, initialize_params, is_answer, key, line
from preflight.verify.watch import error_code

_PIECE_S = 0.02  # between the pieces of a frame, so that they are read one by one

_REFUSAL_S = 3.0  # for a refusal that needs no work

_NO_OBJECTS = (b"this is no JSON\n", b"[]\n", b"42\n", b'{"jsonrpc":\n', b"\xff\xfe\n")
_STRANGE_IDS: tuple[object, ...] = (None, True, 1.5, {}, [1])


def unknown(kit: Kit) -> None:
    """Send a notification and members that nobody knows."""
    with kit.ready() as talk:
        talk.send({"method": "zz/nothing", "params": {"x": 1}})
        talk.expect(7, "check")
        talk.send({"id": 7, "zz": [1], "method": "check", "params": {**kit.params, "zz": None}})
        talk.answer_to(7)


def pieces(kit: Kit) -> None:
    """Cut one frame into three, then put two into one."""
    with kit.ready() as talk:
        frame = line({"id": 7, "method": "check", "params": kit.params})
        talk.expect(7, "check")
        for piece in (frame[:9], frame[9:-2], frame[-2:]):
            talk.send_raw(piece)
            time.sleep(_PIECE_S)
        talk.answer_to(7)
        talk.expect(8, "check")
        second = line({"id": 8, "method": "check", "params": kit.params})
        talk.send_raw(line({"method": "zz/nothing"}) + second)
        talk.answer_to(8)


def line_ends(kit: Kit) -> None:
    """Send blank lines, and a frame that ends as on Windows."""
    with kit.ready() as talk:
        frame = line({"id": 7, "method": "check", "params": kit.params})
        talk.expect(7, "check")
        talk.send_raw(b"\n   \n\r\n" + frame[:-1] + b"\r\n")
        talk.answer_to(7)


def no_objects(kit: Kit) -> None:
    """Send lines that are no frames at all."""
    with kit.ready() as talk:
        for one in _NO_OBJECTS:
            talk.send_raw(one)
        kit.alive(talk, "after lines that are no JSON objects")


def byte_order_mark(kit: Kit) -> None:
    """Begin with a byte order mark."""
    with kit.start() as talk:
        talk.expect(1, "initialize")
        first = line({"id": 1, "method": "initialize", "params": initialize_params()})
        talk.send_raw(b"\xef\xbb\xbf" + first)
        if error_code(talk.answer_to(1)) is not None:
            raise Fault("initialize behind a byte order mark was refused")


def last_line(kit: Kit) -> None:
    """End the stream where a newline should be."""
    with kit.start() as talk:
        talk.expect(1, "initialize")
        frame = line({"id": 1, "method": "initialize", "params": initialize_params()})
        talk.send_raw(frame[:-1])
        talk.driver.close_stdin()
        talk.answer_to(1)


def integer_ids(kit: Kit) -> None:
    """Ask with integers; what comes back is watched."""
    with kit.ready() as talk:
        for id in (7, 2_147_483_647):
            talk.call("check", kit.params, id=id)


def other_ids(kit: Kit) -> None:
    """Ask with the ids that are rare."""
    with kit.ready() as talk:
        for id in (0, "", "abc", "7", -1):
            talk.call("check", kit.params, id=id)


def unknown_method(kit: Kit) -> None:
    """Ask for what no plugin does."""
    with kit.ready() as talk:
        code = error_code(talk.answer_to(talk.ask("zz/no_such_method")))
        if code != -32601:
            raise Fault(f"an unknown method got {'a result' if code is None else code}")
        kit.alive(talk, "after an unknown method")


def strange_ids(kit: Kit) -> None:
    """Ask with what can't be an id."""
    with kit.ready() as talk:
        for id in _STRANGE_IDS:
            talk.expect(id, "check")
            talk.send({"id": id, "method": "check", "params": kit.params})
            found = talk.until(lambda frame: is_answer(frame, None, any_id=True))
            talk.forget(id)
            if found is None or found["id"] is not None or error_code(found) != -32600:
                raise Fault(f"the id {key(id)} was answered with {json.dumps(found)[:200]}")


def id_again(kit: Kit) -> None:
    """Use an id again once it was answered."""
    with kit.ready() as talk:
        for _ in range(2):
            talk.call("check", kit.params, id=7)


def id_in_flight(kit: Kit) -> None:
    """Use an id again before it was answered."""
    plain = kit.plain
    if plain is None or not plain.places:
        raise NotApplicable("its check and apply make no handle operation with these params")
    first = plain.places[0].method
    with kit.ready() as talk:
        held = talk.call(first, kit.params, hold_at=1, id=7).held
        if held is None:
            raise NotApplicable("it made no handle operation this time")
        talk.send({"id": 7, "method": "check", "params": kit.params})
        code = error_code(talk.answer_to(7, _REFUSAL_S))
        if code != -32600:
            raise Fault(f"a second request 7 got {'a result' if code is None else code}")
        talk.expect(7, first)
        talk.serve(held)
        if error_code(talk.answer_to(7)) is not None:
            raise Fault("the first call did not go on to its result")


def idle_cancel(kit: Kit) -> None:
    """Cancel what is not there, and what is over."""
    with kit.ready() as talk:
        for id in (424242, 424242):
            talk.send({"method": "cancel", "params": {"id": id}})
        talk.call("check", kit.params, id=7)
        talk.send({"method": "cancel", "params": {"id": 7}})
        kit.alive(talk, "after a cancel for what is not in flight")


SCENARIOS: dict[str, Scenario] = {
    "V2-FR-02": unknown,
    "V2-FR-03": pieces,
    "V2-FR-04": line_ends,
    "V2-FR-05": no_objects,
    "V2-FR-06": byte_order_mark,
    "V2-FR-07": last_line,
    "V2-ID-01": integer_ids,
    "V2-ID-02": other_ids,
    "V2-ID-04": unknown_method,
    "V2-ID-05": strange_ids,
    "V2-ID-06": id_again,
    "V2-ID-07": id_in_flight,
    "V2-CA-01": idle_cancel,
}
