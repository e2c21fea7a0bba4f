"""How the plugin takes a cancel: in time, with its own cancel to the host, and at any operation."""

from __future__ import annotations

from preflight.verify.kit import Kit, NotApplicable, Place, Scenario, Stop
from preflight.verify.talk import Fault, Talk, is_answer, is_op, key, line
from preflight.verify.watch import Frame
from preflight.verify.work import NO_OPS, hold

GRACE_S = 2.0
"""Seconds a cancelled call has to answer. Source: docs/protocol.md 4."""

_MARGIN_S = 0.5  # for a machine that has other things to do
_MOST_PLACES = 60  # a plugin with more operations is stopped at the first ones only


def in_time(kit: Kit) -> None:
    """Cancel at the first operation and wait for the answer."""
    stop = _stop(kit, _places(kit)[0])
    if not stop.answered:
        raise Fault(f"cancelled at {stop.op}, it gave no answer for {GRACE_S:g} s", stop.frames)


def right_behind(kit: Kit) -> None:
    """Send a request and its cancel in one write."""
    method = _places(kit)[0].method
    with kit.ready() as talk:
        talk.expect(7, method)
        request = line({"id": 7, "method": method, "params": kit.params})
        talk.send_raw(request + line({"method": "cancel", "params": {"id": 7}}))
        if not _answered(talk, 7, None):
            raise Fault(f"no answer for {GRACE_S:g} s: the cancel was lost")


def own_cancel(kit: Kit) -> None:
    """Look whether the operation was given up on the wire."""
    stop = _stop(kit, _places(kit)[0])
    if not stop.abandoned:
        raise Fault(f"cancelled at {stop.op}, it sent no cancel for that operation", stop.frames)


def anywhere_in_time(kit: Kit) -> None:
    """Cancel at every operation."""
    for place in _places(kit):
        stop = _stop(kit, place)
        if not stop.answered:
            raise Fault(f"cancelled at {stop.op}, no answer for {GRACE_S:g} s", stop.frames)


def anywhere_then_next(kit: Kit) -> None:
    """Look whether every session went on."""
    for place in _places(kit):
        stop = _stop(kit, place)
        if stop.later:
            raise Fault(f"cancelled at {stop.op}: {stop.later}", stop.frames)


def _places(kit: Kit) -> list[Place]:
    places = kit.plain.places[:_MOST_PLACES] if kit.plain is not None else []
    if not places:
        raise NotApplicable(NO_OPS)
    return places


def _stop(kit: Kit, place: Place) -> Stop:
    """Cancel at a place, once: other scenarios look at other sides of the same cancel."""
    if place not in kit.stops:
        with kit.ready() as talk:
            kit.stops[place] = _cancel(kit, talk, place)
    return kit.stops[place]


def _cancel(kit: Kit, talk: Talk, place: Place) -> Stop:
    held = hold(talk, kit, place)
    if held.held is None:
        return Stop(op=str(place), answered=True, abandoned=True, later="", frames=[])
    talk.send({"method": "cancel", "params": {"id": held.id}})
    answered = _answered(talk, held.id, held.held)
    later = ""
    if answered and not any(one.later for one in kit.stops.values()):  # told once is enough
        try:
            kit.alive(talk, "cancelled")
        except Fault as exc:
            later = str(exc)
    return Stop(
        op=f"{place} ({held.held['method']})",
        answered=answered,
        abandoned=key(held.held["id"]) in talk.abandoned,
        later=later,
        frames=talk.log.frames,
    )


def _answered(talk: Talk, id: object, held: Frame | None) -> bool:
    """Wait for the answer as a host does: an abandoned operation is answered, a new one refused."""
    waiting = [held] if held is not None else []
    talk.refuses = held is not None

    def stop(frame: Frame) -> bool:
        if held is None and is_op(frame):
            waiting.append(frame)
            return True
        for op in [one for one in waiting if key(one["id"]) in talk.abandoned]:
            waiting.remove(op)
            talk.refuse(op, -32800, "cancelled")
        return is_answer(frame, id)

    found = talk.until(stop, GRACE_S + _MARGIN_S)
    while found is not None and is_op(found):
        found = talk.until(stop, GRACE_S + _MARGIN_S)
    talk.refuses = False
    return found is not None


SCENARIOS: dict[str, Scenario] = {
    "V2-GR-01": in_time,
    "V2-GR-02": right_behind,
    "V2-CA-02": own_cancel,
    "V2-CO-01": anywhere_in_time,
    "V2-CO-02": anywhere_then_next,
}
