"""Runs every requirement that applies against one plugin, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Literal

import msgspec

from preflight.verify.driver import Driver
from preflight.verify.requirements import BY_ID, NEEDS, REQUIREMENTS, Need, Requirement
from preflight.verify.talk import Fault, Talk
from preflight.verify.targets import KitTarget, MemoryTarget, OpFailed
from preflight.verify.watch import Frame, Watch, error_code, members

Status = Literal["passed", "failed", "n/a"]
BATCH = "preflight-tui/batch"
SCHEMA = "preflight-tui/params-schema"


class NotApplicable(Exception):
    """The requirement can't be judged with this plugin; the text says why."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one requirement; ``seen`` is the fault, or why it was not judged."""

    requirement: Requirement
    status: Status
    seen: str = ""
    frames: list[str] = []


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The plugin to judge, and what it may work on. ``name`` is what its file says, if it does."""

    command: Sequence[str]
    name: str
    environment: Mapping[str, str]
    params: Mapping[str, object] | None = None
    target: KitTarget = msgspec.field(default_factory=MemoryTarget)


class Place(msgspec.Struct, frozen=True):
    """One operation of an undisturbed run: the ``number``-th of ``method``, counted from 1."""

    method: str
    number: int

    def __str__(self) -> str:
        return f"{self.method}, operation {self.number}"


class Plain(msgspec.Struct, frozen=True, kw_only=True):
    """An undisturbed run: how many operations each call has, and how the target is afterwards."""

    check_ops: int
    apply_ops: int
    after: bool
    state: dict[str, bytes] | None

    @property
    def places(self) -> list[Place]:
        """Name every operation at which the run can be stopped."""
        counts = (("check", self.check_ops), ("apply", self.apply_ops))
        return [Place(method, n + 1) for method, count in counts for n in range(count)]


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """How a call took a cancel at one of its operations; ``later`` is why the next one failed."""

    op: str
    answered: bool
    abandoned: bool
    later: str
    frames: list[str]


class Kit:
    """What the scenarios share: the subject, what it said of itself, and an undisturbed run."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.target = subject.target
        self.watch = Watch()
        self.handshake: Frame = {}
        self.plain: Plain | None = None
        self.talks: list[Talk] = []
        self.stops: dict[Place, Stop] = {}

    @property
    def params(self) -> dict[str, object]:
        """What the calls carry."""
        return {"args": dict(self.subject.params or {})}

    @property
    def limit(self) -> int:
        """The largest message that the plugin states to take."""
        stated = self.handshake.get("max_message_bytes")
        return stated if isinstance(stated, int) and not isinstance(stated, bool) else 0

    def offers(self, capability: str) -> bool:
        """Tell whether the plugin lists a capability."""
        listed = self.handshake.get("capabilities")
        return isinstance(listed, list) and capability in listed

    @contextlib.contextmanager
    def start(self, *, limit: int = 0, reset: bool = True) -> Generator[Talk]:
        """Start a process, not shaken hands with, on a target as at the beginning."""
        if reset:
            try:
                self.target.reset()
            except OpFailed as exc:
                raise NotApplicable(str(exc)) from exc
        try:
            driver = Driver(self.subject.command, self.subject.environment)
        except OSError as exc:
            raise Fault(f"it can't be started: {exc.strerror or exc}") from exc
        with driver:
            talk = Talk(driver, self.target, self.watch, limit)
            self.talks.append(talk)
            yield talk

    @contextlib.contextmanager
    def ready(self, *, reset: bool = True, limit: int = 0, **over: object) -> Generator[Talk]:
        """Start a process and shake hands. Raises :class:`Fault`."""
        with self.start(reset=reset, limit=limit) as talk:
            answer = talk.initialize(**over)
            if error_code(answer) is not None:
                raise Fault(f"initialize was refused: {json.dumps(answer.get('error'))}")
            yield talk

    def alive(self, talk: Talk, why: str) -> None:
        """Hold that the session takes a call as before. Raises :class:`Fault`."""
        try:
            talk.call("check", self.params)
        except Fault as exc:
            raise Fault(f"{why}, the next check was not answered: {exc}") from exc

    def missing(self, need: Need) -> bool:
        """Tell whether what a requirement needs is not there."""
        match need:
            case "stated":
                return self.limit <= 0
            case "params":
                return self.subject.params is None
            case "batch":
                return not self.offers(BATCH)
            case "schema":
                return not self.schemas()

    def schemas(self) -> dict[str, Frame]:
        """Give the schemas of the handshake that are in force."""
        names = ("params_schema", "config_schema") if self.offers(SCHEMA) else ()
        return {name: members(self.handshake[name]) for name in names if name in self.handshake}


Scenario = Callable[[Kit], None]


def verify(
    subject: Subject,
    scenarios: Mapping[str, Scenario],
    *,
    on_verdict: Callable[[Verdict], None] = lambda verdict: None,
) -> list[Verdict]:
    """Judge every requirement; those that are held at all times are judged last, in their place.

    ``on_verdict`` is told of each as it is known.
    """
    kit = Kit(subject)
    known: dict[str, Verdict] = {}

    def judge(requirement: Requirement) -> None:
        if requirement.id in known:
            return
        for id in requirement.after:
            judge(BY_ID[id])
        scenario = scenarios.get(requirement.id, _nothing)
        known[requirement.id] = _judge(kit, requirement, scenario, known)
        if requirement.id in scenarios:
            on_verdict(known[requirement.id])

    for requirement in REQUIREMENTS:
        judge(requirement)
    for requirement in REQUIREMENTS:
        seen = kit.watch.faults.get(requirement.id)
        if seen is not None and known[requirement.id].status != "failed":
            known[requirement.id] = Verdict(
                requirement=requirement, status="failed", seen=seen.words, frames=seen.frames
            )
    if known["V2-OR-04"].status == "passed" and not kit.watch.output_count:
        order = known["V2-OR-04"].requirement
        known[order.id] = Verdict(requirement=order, status="n/a", seen="it sent no output")
    return [known[requirement.id] for requirement in REQUIREMENTS]


def _nothing(kit: Kit) -> None:
    """Stand for a requirement that is watched in all scenarios."""


def _judge(
    kit: Kit, requirement: Requirement, scenario: Scenario, known: Mapping[str, Verdict]
) -> Verdict:
    why = _why_not(kit, requirement, known)
    if why:
        return Verdict(requirement=requirement, status="n/a", seen=why)
    kit.talks.clear()
    try:
        scenario(kit)
    except NotApplicable as exc:
        return Verdict(requirement=requirement, status="n/a", seen=str(exc))
    except Fault as exc:
        frames = exc.frames or (kit.talks[-1].log.frames if kit.talks else [])
        return Verdict(requirement=requirement, status="failed", seen=str(exc), frames=frames)
    return Verdict(requirement=requirement, status="passed")


def _why_not(kit: Kit, requirement: Requirement, known: Mapping[str, Verdict]) -> str:
    before = [known[id] for id in requirement.after]
    for one in before:
        if one.status == "failed":
            return f"not judged, since {one.requirement.id} failed"
    for need in requirement.needs:
        if kit.missing(need):
            return NEEDS[need]
    return next((one.seen for one in before if one.status == "n/a"), "")
