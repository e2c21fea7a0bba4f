"""Whether a batch is the sum of its items: the same outcomes as one call an item."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from preflight.verify.kit import BATCH, Kit, Scenario
from preflight.verify.talk import CallEnd, Fault, Talk, key
from preflight.verify.watch import Frame, error_code, members

Outcome = tuple[object, bool]  # needs_change, and whether it failed
Args = Mapping[str, object]


def checks(kit: Kit) -> None:
    """Check three items, the second of which has no args."""
    items: list[Args] = [kit.subject.params or {}, {}, kit.subject.params or {}]
    _compare(_singly(kit, "check", items), _batch(kit, "check", {}, items))


def applies(kit: Kit) -> None:
    """Apply the same items, and compare the target too.

    The one without args only where check refuses it: what it would do by itself nobody asked for.
    """
    [(_, refused)] = _singly(kit, "check", [{}])
    bad: list[Args] = [{}] if refused else []
    items: list[Args] = [kit.subject.params or {}, *bad, kit.subject.params or {}]
    singly = _singly(kit, "apply", items)
    state = kit.target.state()
    _compare(singly, _batch(kit, "apply", {}, items))
    if state is not None and state != kit.target.state():
        raise Fault("apply_batch left the target otherwise than apply item by item")


def overlaid(kit: Kit) -> None:
    """Give all args in common, then one of them wrong in common and right in its item."""
    params = dict(kit.subject.params or {})
    own = dict(list(params.items())[:1])
    alone = _singly(kit, "check", [params])
    _compare(alone, _batch(kit, "check", params, [{}]))
    _compare(alone, _batch(kit, "check", {**params, **dict.fromkeys(own)}, [own]))


def _singly(kit: Kit, method: str, items: list[Args]) -> list[Outcome]:
    with kit.ready() as talk:
        return [_outcome(method, talk.call(method, {"args": dict(args)})) for args in items]


def _outcome(method: str, end: CallEnd) -> Outcome:
    found = end.result.get("needs_change") if method == "check" and not end.error else None
    return found, bool(end.error)


def _batch(kit: Kit, method: str, common: Args, items: list[Args]) -> list[Outcome]:
    asked = [{"index": n, "args": dict(args)} for n, args in enumerate(items)]
    params = {"common": dict(common), "items": asked, "concurrency": 1}
    with kit.ready(capabilities=[BATCH]) as talk:
        end = talk.call(f"{method}_batch", params)
        if error_code(end.answer or {}) is not None or end.result.get("error"):
            raise Fault(f"the batch as a whole failed: {json.dumps(end.answer)[:300]}")
        results = _results(talk, end)
        wrong = [index for index in results if index not in range(len(items))]
        if wrong:
            raise Fault(f"a result has the index {key(wrong[0])}, which was not asked for")
        missing = [str(n) for n in range(len(items)) if n not in results]
        if missing:
            raise Fault(f"no result for item {missing[0]}")
        return [
            (
                None if method == "apply" or one.get("error") else one.get("needs_change"),
                bool(one.get("error")),
            )
            for one in (results[n] for n in range(len(items)))
        ]


def _results(talk: Talk, end: CallEnd) -> dict[object, Frame]:
    """Give each index its first result, whether it came as progress or at the end."""
    found: dict[object, Frame] = {}
    said = [one.get("results") for one in talk.progress if key(one.get("id")) == key(end.id)]
    for results in [*said, end.result.get("results")]:
        for one in cast("list[object]", results) if isinstance(results, list) else []:
            found.setdefault(members(one).get("index"), members(one))
    return found


def _compare(singly: list[Outcome], batch: list[Outcome]) -> None:
    for index, (one, other) in enumerate(zip(singly, batch, strict=True)):
        if one != other:
            raise Fault(f"item {index}: alone {_words(one)}, in the batch {_words(other)}")


def _words(outcome: Outcome) -> str:
    needs_change, failed = outcome
    return "it fails" if failed else f"needs_change is {key(needs_change)}"


SCENARIOS: dict[str, Scenario] = {
    "V2-BA-01": checks,
    "V2-BA-02": applies,
    "V2-BA-03": overlaid,
}
