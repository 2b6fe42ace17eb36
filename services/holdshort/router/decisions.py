"""Decisions of teams: read, and judged entry by entry against what is open. Pure.

The order of judgement is router.md 3: whose question it is, whether it is the one that is open, whether its
author saw it as it is, whether the answer fits; and the first decision stands.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

import msgspec

from holdshort.contract import resume as batch
from holdshort.contract.canon import digest_of, sha256
from holdshort.contract.codes import Code
from holdshort.contract.messages import usable
from holdshort.contract.resume import Entry, Problem
from holdshort.contract.rules import Limits, Rules
from holdshort.contract.schemas import MAX_PROBLEMS
from holdshort.contract.state import Interrupt, Pause
from holdshort.router.codes import DecisionCode
from holdshort.router.gathering import Answer, Asked, Gathering


class Decision(NamedTuple):
    """One record of `decisions.<team>`; a bare AG-UI resume has no generation and says nothing it saw."""

    decision_id: str
    thread: str
    generation: int | None
    entries: list[Entry]
    decided_by: str | None
    decided_at: Any
    comment: str | None
    seen: dict[str, str]


class Judged(NamedTuple):
    """What was said of one entry; with an answer, it counts."""

    interrupt_id: str
    verdict: Literal["accepted", "refused", "duplicate"]
    code: str | None = None
    problems: tuple[Problem, ...] = ()
    answer: Answer | None = None


class Misread(NamedTuple):
    """A decision that cannot be judged, and why; its author can be told."""

    decision_id: str
    generation: int | None
    code: str
    problems: tuple[Problem, ...] = ()


class _Form(msgspec.Struct, frozen=True, rename="camel"):
    """A decision.v1 beside its entries; a bare AG-UI object has none of it."""

    decision_id: str
    generation: int
    action: str = "decide"
    decided_by: str | None = None
    decided_at: str | int | float | None = None
    comment: str | None = None
    seen: dict[str, str] = {}


COMMENT_BYTES: Final = 4096
METADATA_BYTES: Final = 4096
MOMENT_BYTES: Final = 64


def read_decision(value: dict[str, Any], place: str, limits: Limits) -> Decision | Misread:
    """Read a decision.v1 or a bare AG-UI object; `place` names one without an id of its own.

    Our own form is read strictly: what is not understood of it might have been a condition.
    """
    form = _read_form(value, place)
    if isinstance(form, Misread):
        return form
    decision_id = form.decision_id if form else place
    generation = form.generation if form else None
    if form and form.action != "decide":
        return Misread(decision_id, generation, DecisionCode.UNKNOWN_ACTION)
    entries, problems = batch.read_entries(value.get("resume"), from_clients=False)
    if not entries and not problems:
        problems = [Problem(Code.INVALID_RESUME, path="/resume", message="must hold an entry")]
    problems = problems or batch.answered_twice(entries) or list(_too_large(entries, form, limits))
    if problems:
        return Misread(decision_id, generation, problems[0].code, tuple(problems[:MAX_PROBLEMS]))
    return Decision(
        decision_id=decision_id,
        thread=value["threadId"],
        generation=generation,
        entries=entries,
        decided_by=usable(form.decided_by) if form else None,
        decided_at=form.decided_at if form else None,
        comment=usable(form.comment) if form else None,
        seen=form.seen if form else {},
    )


def _read_form(value: dict[str, Any], place: str) -> _Form | Misread | None:
    """The members of our own form; None for a bare object."""
    if "v" not in value:
        return None
    named = usable(value.get("decisionId"))
    known = named if named and len(named) <= MOMENT_BYTES else place
    if value["v"] != 1 or isinstance(value["v"], bool):
        problem = Problem(Code.INVALID_RESUME, path="/v", message="version 1 is what is known here")
        return Misread(known, None, DecisionCode.MALFORMED_DECISION, (problem,))
    try:
        form = msgspec.convert(value, _Form)
    except msgspec.ValidationError as error:
        problem = Problem(Code.INVALID_RESUME, message=str(error))
        return Misread(known, None, DecisionCode.MALFORMED_DECISION, (problem,))
    return form if usable(form.decision_id) else msgspec.structs.replace(form, decision_id=place)


def _too_large(entries: list[Entry], form: _Form | None, limits: Limits) -> Iterator[Problem]:
    """What would not fit into a gathering or a batch; everything that is kept has a limit."""
    if len(entries) > limits.interrupts:
        yield _over("/resume", limits.interrupts, "entries")
    for path, text, most in _texts(form, limits):
        if len(str(text or "").encode()) > most:
            yield _over(path, most)
    for number, entry in enumerate(entries):
        place = f"/resume/{number}"
        if len(entry.interrupt_id.encode()) > limits.id:
            yield _over(f"{place}/interruptId", limits.id)
        if entry.payload is not batch.ABSENT and len(msgspec.json.encode(entry.payload)) > limits.payload:
            yield _over(f"{place}/payload", limits.payload)
        if len(msgspec.json.encode(entry.metadata)) > METADATA_BYTES:
            yield _over(f"{place}/metadata", METADATA_BYTES)


def _texts(form: _Form | None, limits: Limits) -> Iterator[tuple[str, Any, int]]:
    if form is not None:
        yield "/decisionId", form.decision_id, limits.id
        yield "/decidedBy", form.decided_by, limits.id
        yield "/decidedAt", form.decided_at, MOMENT_BYTES
        yield "/comment", form.comment, COMMENT_BYTES


def _over(path: str, most: int, unit: str = "bytes") -> Problem:
    return Problem(Code.TOO_LARGE, path=path, message=f"more than {most} {unit}")


def judge_decision(
    decision: Decision, team: str, pause: Pause | None, gathering: Gathering | None, now: int, rules: Rules
) -> list[Judged]:
    """What is said of each entry; one bad entry refuses that entry only."""
    bench = _Bench(decision, team, pause, gathering, now, rules, batch.Work(rules.limits.work))
    return [_judge(entry, bench) for entry in decision.entries]


class _Bench(NamedTuple):
    """What every entry of one decision is judged by."""

    decision: Decision
    team: str
    pause: Pause | None
    gathering: Gathering | None
    now: int
    rules: Rules
    work: batch.Work


def _judge(entry: Entry, bench: _Bench) -> Judged:
    id_, decision, pause, gathering = entry.interrupt_id, bench.decision, bench.pause, bench.gathering
    if pause is None or gathering is None or not gathering.is_of(pause):
        return Judged(id_, "refused", DecisionCode.STALE_GENERATION)
    asked = gathering.one(id_)
    stale = decision.generation is not None and decision.generation != pause.generation
    if asked is None or asked.team != bench.team:
        code = DecisionCode.STALE_GENERATION if stale else DecisionCode.NOT_YOUR_INTERRUPT
        return Judged(id_, "refused", code)
    interrupt = next(one for one in pause.interrupts if one.id == id_)
    if stale or (decision.generation is None and interrupt.reused):
        return Judged(id_, "refused", DecisionCode.STALE_GENERATION)
    if id_ in decision.seen and decision.seen[id_] != seen_digest(interrupt):
        return Judged(id_, "refused", DecisionCode.SEEN_SOMETHING_ELSE)
    answer = _answer(entry, decision, bench.team)
    if asked.answer is not None:
        return _decided_already(asked, answer)
    if pause.status == "resuming":
        return Judged(id_, "refused", DecisionCode.ANSWERED_ELSEWHERE)
    return _fitting(entry, interrupt, answer, bench)


def _fitting(entry: Entry, interrupt: Interrupt, answer: Answer, bench: _Bench) -> Judged:
    """By the gate's own code: what it would refuse later is refused here, while its author still listens."""
    if problems := tuple(_unfit(entry, interrupt, bench)):
        return Judged(entry.interrupt_id, "refused", problems[0].code, problems)
    gathered = bench.gathering.size if bench.gathering else 0
    if gathered + answer.size > bench.rules.limits.entries:
        return Judged(entry.interrupt_id, "refused", Code.TOO_LARGE)
    return Judged(entry.interrupt_id, "accepted", answer=answer)


def _decided_already(asked: Asked, answer: Answer) -> Judged:
    assert asked.answer is not None
    if asked.answer.digest == answer.digest:
        return Judged(asked.interrupt_id, "duplicate")
    return Judged(asked.interrupt_id, "refused", DecisionCode.ALREADY_DECIDED)


def _unfit(entry: Entry, interrupt: Interrupt, bench: _Bench) -> Iterator[Problem]:
    yield from batch.expired([entry], [interrupt], bench.now)
    check_unusable = bench.rules.unusable_schema == "cancel_only"
    yield from batch.payload_problems(entry, interrupt, bench.work, check_unusable=check_unusable)


def _answer(entry: Entry, decision: Decision, team: str) -> Answer:
    payload: Any = msgspec.UNSET
    if entry.resolved and entry.payload is not batch.ABSENT:
        payload = msgspec.Raw(msgspec.json.encode(entry.payload))
    own = {name: one for name, one in entry.metadata.items() if not name.startswith("holdshort")}
    return Answer(
        status="resolved" if entry.resolved else "cancelled",
        payload=payload,
        metadata=msgspec.Raw(msgspec.json.encode(own)) if own else None,
        digest=batch.digests([entry]).strict or sha256(msgspec.json.encode(entry.payload)),
        decision_id=decision.decision_id,
        team=team,
        decided_by=decision.decided_by,
        decided_at=decision.decided_at,
        comment=decision.comment,
    )


def seen_digest(interrupt: Interrupt) -> str:
    """The digest of what is shown for an interrupt: descriptor, tool and arguments."""
    tool = msgspec.to_builtins(interrupt.tool) if interrupt.tool else None
    shown = {"descriptor": batch.described(interrupt), "tool": tool}
    return digest_of(shown)
