"""Whether the plugin's work can be repeated: undisturbed, and after a kill at any operation."""

from __future__ import annotations

import json

from preflight.verify.kit import Kit, NotApplicable, Place, Plain, Scenario
from preflight.verify.talk import CallEnd, Fault, Talk

NO_OPS = "its check and apply make no handle operation with these params"

_MOST_PLACES = 60  # a plugin with more operations is stopped at the first ones only


def run_once(kit: Kit) -> None:
    """Check, apply and check again; later scenarios are compared with this."""
    with kit.ready() as talk:
        found = _succeed(talk, kit, "check")
        if found.result.get("needs_change") is False:
            raise NotApplicable("check finds nothing to do: give --params that need a change")
        done = _succeed(talk, kit, "apply")
        state = kit.target.state()
        after = _succeed(talk, kit, "check").result["needs_change"]
        kit.plain = Plain(
            check_ops=found.op_count,
            apply_ops=done.op_count,
            after=after is True,
            state=state,
        )


def check_only_looks(kit: Kit) -> None:
    """Compare the target before and after a check."""
    with kit.ready() as talk:
        before = kit.target.state()
        if before is None:
            raise NotApplicable("what is on a real target can't be compared")
        _succeed(talk, kit, "check")
        if changed := _difference(before, kit.target.state()):
            raise Fault(f"check changed {changed}")


def settled(kit: Kit) -> None:
    """Look at what the undisturbed run's last check found."""
    plain = _plain(kit)
    if plain.after and not plain.check_ops:
        raise NotApplicable("its check looks at nothing on the target")
    if plain.after:
        with kit.ready() as talk:
            for method in ("check", "apply", "check"):
                talk.call(method, kit.params)
            raise Fault("check says needs_change right after the apply that it asked for")


def apply_again(kit: Kit) -> None:
    """Apply twice and compare the target."""
    with kit.ready() as talk:
        _succeed(talk, kit, "check")
        _succeed(talk, kit, "apply")
        once = kit.target.state()
        _succeed(talk, kit, "apply")
        if changed := _difference(once, kit.target.state()):
            raise Fault(f"the second apply changed {changed}")


def killed_anywhere(kit: Kit) -> None:
    """Kill the process at every operation, and let a new one do the work."""
    places = _plain(kit).places[:_MOST_PLACES]
    if not places:
        raise NotApplicable(NO_OPS)
    for place in places:
        with kit.ready() as talk:
            hold(talk, kit, place)
        with kit.ready(reset=False) as talk:
            try:
                _recover(talk, kit)
            except Fault as exc:
                words = f"after a kill at {place}: {exc}"
                raise Fault(words, exc.frames or talk.log.frames) from exc


def hold(talk: Talk, kit: Kit, place: Place) -> CallEnd:
    """Work up to a place of the undisturbed run, and leave its operation unanswered."""
    if place.method == "apply":
        talk.call("check", kit.params)
    return talk.call(place.method, kit.params, hold_at=place.number)


def _recover(talk: Talk, kit: Kit) -> None:
    plain = _plain(kit)
    if _succeed(talk, kit, "check").result["needs_change"]:
        _succeed(talk, kit, "apply")
    if changed := _difference(plain.state, kit.target.state()):
        raise Fault(f"the next run left this otherwise than an undisturbed one: {changed}")
    if _succeed(talk, kit, "check").result["needs_change"] is not plain.after:
        raise Fault("the next run's last check found otherwise than an undisturbed one's")


def _succeed(talk: Talk, kit: Kit, method: str) -> CallEnd:
    end = talk.call(method, kit.params)
    if end.error:
        raise Fault(f"{method} failed: {end.error}", talk.log.frames)
    if method == "check" and not isinstance(end.result.get("needs_change"), bool):
        raise Fault(f"check answered {json.dumps(end.result)[:300]}", talk.log.frames)
    return end


def _plain(kit: Kit) -> Plain:
    if kit.plain is None:
        raise NotApplicable("there was no undisturbed run to compare with")
    return kit.plain


def _difference(one: dict[str, bytes] | None, other: dict[str, bytes] | None) -> str:
    """Name the files that differ; empty when none does, or nobody can know."""
    if one is None or other is None:
        return ""
    names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    return ", ".join(names[:5])


SCENARIOS: dict[str, Scenario] = {
    "V2-IM-01": run_once,
    "V2-IM-02": check_only_looks,
    "V2-IM-03": settled,
    "V2-IM-04": apply_again,
    "V2-KO-01": killed_anywhere,
}
