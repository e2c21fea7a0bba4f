"""Where things end: the size of a line, the end of the input, and what a schema allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from preflight.verify.kit import Kit, NotApplicable, Scenario
from preflight.verify.talk import Fault, Talk, line
from preflight.verify.watch import error_code

EXIT_S = 3.0
"""Seconds from the end of stdin to the exit. Source: docs/protocol.md 5."""

_MARGIN_S = 0.5  # for a machine that has other things to do
_LARGE_S = 60.0  # for an answer to megabytes, which take their time through a pipe
_MOST_BYTES = 256 * 1024 * 1024  # a limit above this is not tried
_SMALL_BYTES = 4096  # the smallest limit that a host may state and still get every error


def over_limit(kit: Kit) -> None:
    """Send a request of one byte more than it takes."""
    code = _padded(kit, kit.limit + 1)
    if code != -32020:
        raise Fault(f"a request over the limit got {'a result' if code is None else code}")


def at_limit(kit: Kit) -> None:
    """Send a request of exactly what it takes."""
    if _padded(kit, kit.limit) == -32020:
        raise Fault(f"a request of {kit.limit} bytes was refused as too large")


def small_host(kit: Kit) -> None:
    """Be a host that takes little; what is too large is watched."""
    with kit.ready(limit=_SMALL_BYTES, max_message_bytes=_SMALL_BYTES) as talk:
        talk.call("check", kit.params)
        if kit.plain is not None:
            talk.call("apply", kit.params)


def end_idle(kit: Kit) -> None:
    """End its input while it has nothing to do."""
    with kit.ready() as talk:
        _end(talk)


def end_at_once(kit: Kit) -> None:
    """End its input before it was asked anything."""
    with kit.start() as talk:
        _end(talk)


def end_in_op(kit: Kit) -> None:
    """End its input while it waits for the target."""
    if kit.plain is None or not kit.plain.places:
        raise NotApplicable("its check and apply make no handle operation with these params")
    with kit.ready() as talk:
        talk.call(kit.plain.places[0].method, kit.params, hold_at=1)
        _end(talk)


def schemas(kit: Kit) -> None:
    """Hold its schemas against the standard, and look where they refer to."""
    from jsonschema import Draft202012Validator  # dear to import, and few plugins have a schema
    from jsonschema.exceptions import SchemaError

    for name, schema in kit.schemas().items():
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as exc:
            raise Fault(f"{name} is no schema: {exc.message[:300]}") from exc
        outside = [ref for ref in _refs(schema) if not ref.startswith("#")]
        if outside:
            raise Fault(f"{name} refers outside itself: {outside[0]}")


def params(kit: Kit) -> None:
    """Hold the given params against its schema."""
    from jsonschema import Draft202012Validator

    schema = kit.schemas().get("params_schema")
    if schema is None:
        raise NotApplicable("it gives no params_schema")
    if schema.get("additionalProperties") is True:
        raise NotApplicable("its params_schema takes anything at the top")
    given = cast("dict[str, str]", kit.params["args"])  # JSON, whatever its values are
    for wrong in Draft202012Validator(schema).iter_errors(given):  # pyright: ignore[reportUnknownMemberType]  # half typed
        raise Fault(f"{wrong.json_path}: {wrong.message[:300]}")


def _padded(kit: Kit, size: int) -> object:
    """Send a check of ``size`` bytes by an unknown member; give the error's code."""
    if kit.limit > _MOST_BYTES:
        raise NotApplicable(f"its limit of {kit.limit} bytes is too large to be tried")
    with kit.ready() as talk:
        frame = line({"id": 7, "method": "check", "params": kit.params, "pad": ""})
        if size < len(frame):
            raise NotApplicable(f"its limit of {kit.limit} bytes is below every frame")
        pad = b"x" * (size - (len(frame) - 1))
        talk.expect(7, "check")
        talk.send_raw(frame[:-3] + pad + frame[-3:])
        code = error_code(talk.answer_to(7, _LARGE_S))
        kit.alive(talk, f"after a line of {size} bytes")
        return code


def _end(talk: Talk) -> None:
    talk.driver.close_stdin()
    if not talk.driver.wait(EXIT_S + _MARGIN_S):
        raise Fault(f"it still runs {EXIT_S:g} s after the end of its stdin")
    if left := talk.driver.leftovers():
        raise Fault(f"it left processes of its group behind: {left}")


def _refs(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in cast("dict[str, object]", value).items():
            if name in ("$ref", "$dynamicRef") and isinstance(inner, str):
                yield inner
            else:
                yield from _refs(inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _refs(inner)


SCENARIOS: dict[str, Scenario] = {
    "V2-OV-01": over_limit,
    "V2-OV-02": at_limit,
    "V2-OV-03": small_host,
    "V2-EO-01": end_idle,
    "V2-EO-02": end_at_once,
    "V2-EO-03": end_in_op,
    "V2-SC-01": schemas,
    "V2-SC-02": params,
}
