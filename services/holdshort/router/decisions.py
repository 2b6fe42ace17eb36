"""Decisions of teams: read, and judged entry by entry against what is open. Pure.

The order of judgement is router.md 3: whose question it is, whether it is the one that is open, whether its
author saw it as it is, whether the answer fits; and the first decision stands.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from holdshort.contract import resume as batch
from holdshort.contract.canon import digest_of, sha256
from holdshort.contract.codes import Code
from holdshort.contract.messages import usable
from holdshort.contract.resume import Entry, Problem
from holdshort.contract.rules import Rules
from holdshort.contract.state import Interrupt, Pause
from holdshort.router.codes import DecisionCode
from holdshort.router.gathering import Answer, Asked, Gathering


class Decision(NamedTuple):
    """One record of `decisions.<team>`; a bare AG-UI resume has no generation and says nothing it saw."""

    decision_id: str
    thread: str
    generation: int | None
    action: str
    entries: list[Entry]
    decided_by: str | None
    decided_at: Any
    comment: str | None
    seen: dict[str, Any]


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
    problems: tuple[Problem, ...]


def read_decision(value: dict[str, Any], place: str) -> Decision | Misread:
    """Read a decision.v1 or a bare AG-UI object; `place` names one without an id of its own."""
    decision_id = usable(value.get("decisionId")) or place
    generation = value.get("generation")
    generation = generation if isinstance(generation, int) and not isinstance(generation, bool) else None
    action = value.get("action", "decide")
    if action != "decide":
        return Misread(decision_id, generation, DecisionCode.UNKNOWN_ACTION, ())
    entries, problems = batch.read_entries(value.get("resume"), from_clients=False)
    if not problems and not entries:
        problems = [Problem(Code.INVALID_RESUME, path="/resume", message="must hold an entry")]
    if not problems:
        problems = batch.answered_twice(entries)
    if problems:
        return Misread(decision_id, generation, problems[0].code, tuple(problems))
    seen = value.get("seen")
    return Decision(
        decision_id=decision_id,
        thread=value["threadId"],
        generation=generation,
        action=action,
        entries=entries,
        decided_by=usable(value.get("decidedBy")),
        decided_at=value.get("decidedAt"),
        comment=usable(value.get("comment")),
        seen=seen if isinstance(seen, dict) else {},
    )


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
    if problems := tuple(_unfit(entry, interrupt, bench)):
        return Judged(id_, "refused", problems[0].code, problems)
    return Judged(id_, "accepted", answer=answer)


def _decided_already(asked: Asked, answer: Answer) -> Judged:
    assert asked.answer is not None
    if asked.answer.digest == answer.digest:
        return Judged(asked.interrupt_id, "duplicate")
    return Judged(asked.interrupt_id, "refused", DecisionCode.ALREADY_DECIDED)


def _unfit(entry: Entry, interrupt: Interrupt, bench: _Bench) -> Iterator[Problem]:
    """By the gate's own code: what it would refuse later is refused here, while its author still listens."""
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
