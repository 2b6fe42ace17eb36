"""Decisions judged entry by entry against what is open, in the order of router.md 3. Pure.

`RULES` is that order: the first rule that has something to say decides, and one bad entry refuses that entry
only. What every rule lets through is then done: an answer counts, or is a voice of a quorum; a claim holds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, assert_never

import msgspec

from holdshort.contract import resume as batch
from holdshort.contract.canon import sha256
from holdshort.contract.codes import Code
from holdshort.contract.resume import Entry, Problem
from holdshort.contract.rules import Rules
from holdshort.contract.state import Interrupt, Pause
from holdshort.contract.statement import SIGNATURE
from holdshort.contract.times import read_time
from holdshort.router import quorum
from holdshort.router.codes import DecisionCode
from holdshort.router.decisions import Decision, Judged
from holdshort.router.gathering import Answer, Asked, Claim, Gathering, with_asked
from holdshort.router.records import seen_digest
from holdshort.router.signatures import prove

_replace = msgspec.structs.replace


def judge_decision(
    decision: Decision, team: str, pause: Pause | None, gathering: Gathering | None, now: int, rules: Rules
) -> tuple[list[Judged], Gathering | None]:
    """What is said of each entry, and the gathering with what was accepted."""
    bench = Bench(decision, team, pause, now, rules, batch.Work(rules.limits.work))
    found: list[Judged] = []
    for entry in decision.entries:
        judged = _judge(entry, bench, gathering)
        if judged.asked is not None and gathering is not None:
            gathering = with_asked(gathering, judged.asked)
        found.append(judged)
    return found, gathering


class Bench(NamedTuple):
    """What every entry of one decision is judged by."""

    decision: Decision
    team: str
    pause: Pause | None
    now: int
    rules: Rules
    work: batch.Work


@dataclass(slots=True)
class Case:
    """One entry before its judges; `decider` and `proof` are who decides, as far as is known yet."""

    entry: Entry
    decision: Decision
    team: str
    pause: Pause
    gathering: Gathering
    asked: Asked
    interrupt: Interrupt
    now: int
    rules: Rules
    work: batch.Work
    decider: str | None = None
    proof: Any = None
    answer: Answer = field(init=False)

    @property
    def answers(self) -> bool:
        """Whether it answers the question, rather than to hold it."""
        return self.decision.action in ("decide", "confirm")

    def refused(
        self, code: str, *, problems: tuple[Problem, ...] = (), decided: Answer | None = None
    ) -> Judged:
        return Judged(self.entry.interrupt_id, "refused", code, problems, decided=decided)


def _judge(entry: Entry, bench: Bench, gathering: Gathering | None) -> Judged:
    decision, team, pause, now, rules, work = bench
    id_ = entry.interrupt_id
    if pause is None or gathering is None or not gathering.is_of(pause):
        return _too_late(id_, decision, team, gathering)
    asked = gathering.one(id_)
    if asked is None or asked.team != team:
        stale = asked is None and _is_stale(entry, decision, pause)
        code = DecisionCode.STALE_GENERATION if stale else DecisionCode.NOT_YOUR_INTERRUPT
        return Judged(id_, "refused", code)
    interrupt = next(one for one in pause.interrupts if one.id == id_)
    entry = _confirming(entry, asked) if decision.action == "confirm" else entry
    case = Case(entry, decision, team, pause, gathering, asked, interrupt, now, rules, work)
    case.decider = decision.decided_by
    case.proof = "principal" if decision.principal else None
    for rule in RULES:
        if (judged := rule(case)) is not None:
            return judged
    return _done(case)


def _too_late(id_: str, decision: Decision, team: str, gathering: Gathering | None) -> Judged:
    """Nothing of the kind is open; who decided is told to the team whose question it was."""
    asked = gathering.one(id_) if gathering is not None else None
    own = asked is not None and asked.team == team
    same = gathering is not None and decision.generation == gathering.generation
    decided = asked.answer if asked is not None and own and same else None
    return Judged(id_, "refused", DecisionCode.STALE_GENERATION, decided=decided)


def _confirming(entry: Entry, asked: Asked) -> Entry:
    """The answer of the attempt before, said again: its metadata, too, but for a signature."""
    previous = asked.previous
    if previous is None:
        return entry
    payload = batch.ABSENT if previous.payload is msgspec.UNSET else msgspec.json.decode(previous.payload)
    own = {} if previous.metadata is msgspec.UNSET else msgspec.json.decode(previous.metadata)
    return Entry(entry.interrupt_id, previous.status == "resolved", payload, {**own, **entry.metadata})


# -- the rules, in their order ------------------------------------------------------------------------------


def _is_stale(entry: Entry, decision: Decision, pause: Pause) -> bool:
    """Whether it means another generation; a bare object means the open one, or the one that it echoes."""
    if decision.generation is not None:
        return decision.generation != pause.generation
    return bool(entry.generations) and entry.generations != {pause.generation}


def _of_the_open_pause(case: Case) -> Judged | None:
    stale = _is_stale(case.entry, case.decision, case.pause)
    reused = {one.id for one in case.pause.interrupts if one.reused}
    said = case.decision.generation is not None or bool(case.entry.generations)
    if stale or (not said and any(entry.interrupt_id in reused for entry in case.decision.entries)):
        return case.refused(DecisionCode.STALE_GENERATION)
    return None


def _as_last_put(case: Case) -> Judged | None:
    """Who decided on an earlier attempt did not know that it came to nothing, and what may have happened.

    Only what is still asked can be meant wrongly; of what is answered, its author is told the answer.
    """
    attempt = case.decision.attempt
    if case.asked.answer is None and attempt not in (None, case.gathering.attempt):
        return case.refused(DecisionCode.STALE_ATTEMPT)
    return None


def _not_claimed(case: Case) -> Judged | None:
    holder = case.asked.claimed_by(case.now)
    if holder is not None and holder != case.decider:
        return case.refused(DecisionCode.CLAIMED)
    return None


def _as_seen(case: Case) -> Judged | None:
    seen = case.decision.seen.get(case.entry.interrupt_id)
    if seen is not None and seen != seen_digest(case.interrupt):
        return case.refused(DecisionCode.SEEN_SOMETHING_ELSE)
    return None


def _by_somebody_who_may(case: Case) -> Judged | None:
    """The team is proved by the topic; a person by an authenticating edge or a signature, if it matters."""
    policy = case.asked.put
    if case.asked.unknown_route:
        return case.refused(DecisionCode.UNKNOWN_ROUTE)
    if case.answers and (code := _signature(case)) is not None:
        return case.refused(code)
    if case.decision.action == "claim" and case.decider is None:
        return case.refused(DecisionCode.DECIDER_NOT_PROVEN)
    if not case.answers or not policy.needs_proof:
        return None
    if case.proof is None:
        return case.refused(DecisionCode.DECIDER_NOT_PROVEN)
    if not policy.requester_may_decide and case.pause.principal in (None, case.decider):
        return case.refused(DecisionCode.REQUESTER_MAY_NOT_DECIDE)
    return None


def _signature(case: Case) -> DecisionCode | None:
    if SIGNATURE not in case.entry.metadata:
        required = case.asked.put.signature == "required"
        return DecisionCode.SIGNATURE_REQUIRED if required else None
    if case.decision.decision_id in case.asked.spent:
        return DecisionCode.SIGNATURE_REPLAYED
    proved = prove(case.entry, case.decision, case.team, case.pause, case.interrupt, case.now, case.rules)
    if proved.code is not None:
        return proved.code
    if _signed_before_it_was_put(case):
        return DecisionCode.SIGNATURE_REPLAYED
    case.decider, case.proof = proved.decider, "signature"
    return None


def _signed_before_it_was_put(case: Case) -> bool:
    """A question put again takes what was signed since: the statement says when, but not which attempt.

    A `decidedAt` that is no time cannot show that it is of this attempt.
    """
    if not case.gathering.put_at:
        return False
    signed_at = read_time(case.decision.decided_at)
    return signed_at is None or signed_at < case.gathering.put_at * 1000


def _fitting(case: Case) -> Judged | None:
    """By the gate's own code: what it would refuse later is refused here, while its author still listens."""
    if not case.answers:
        return None
    if case.decision.action == "confirm" and case.asked.previous is None:
        return case.refused(DecisionCode.NOTHING_TO_CONFIRM)
    if problems := tuple(_unfit(case)):
        return case.refused(problems[0].code, problems=problems)
    case.answer = _answer(case)
    return None


def _unfit(case: Case) -> Iterator[Problem]:
    yield from batch.expired([case.entry], [case.interrupt], case.now)
    check_unusable = case.rules.unusable_schema == "cancel_only"
    yield from batch.payload_problems(case.entry, case.interrupt, case.work, check_unusable=check_unusable)


def _answer(case: Case) -> Answer:
    entry, decision = case.entry, case.decision
    payload: Any = msgspec.UNSET
    if entry.resolved and entry.payload is not batch.ABSENT:
        payload = msgspec.Raw(msgspec.json.encode(entry.payload))
    own = {name: one for name, one in entry.metadata.items() if not name.startswith("holdshort")}
    signature = entry.metadata.get(SIGNATURE)
    return Answer(
        status="resolved" if entry.resolved else "cancelled",
        payload=payload,
        metadata=msgspec.Raw(msgspec.json.encode(own)) if own else msgspec.UNSET,
        digest=batch.digests([entry]).strict or sha256(msgspec.json.encode(entry.payload)),
        decision_id=decision.decision_id,
        team=case.team,
        decided_by=case.decider,
        decided_at=decision.decided_at,
        comment=decision.comment,
        proof=case.proof,
        signature=signature if case.proof == "signature" else None,
    )


def _not_decided(case: Case) -> Judged | None:
    """The first decision stands; who comes second is told what it was, and whose."""
    asked = case.asked
    if asked.answer is not None:
        if case.answers and asked.answer.digest == case.answer.digest:
            return Judged(asked.interrupt_id, "duplicate", decided=asked.answer)
        return case.refused(DecisionCode.ALREADY_DECIDED, decided=asked.answer)
    if case.pause.status == "resuming":
        return case.refused(DecisionCode.ANSWERED_ELSEWHERE)
    if case.gathering.abandoned:
        return case.refused(Code.ABANDONED)
    if case.answers and case.gathering.size + case.answer.size > case.rules.limits.entries:
        return case.refused(Code.TOO_LARGE)
    return None


RULES: Final[tuple[Callable[[Case], Judged | None], ...]] = (
    _of_the_open_pause,  # behind the team's ownership, without which there is no case
    _as_last_put,
    _not_claimed,
    _as_seen,
    _by_somebody_who_may,
    _fitting,
    _not_decided,
)


# -- what is done -------------------------------------------------------------------------------------------


def _done(case: Case) -> Judged:
    match case.decision.action:
        case "decide" | "confirm":
            return _voted(case)
        case "claim":
            assert case.decider is not None
            claim = Claim(case.decider, case.now + case.rules.claim_lease_ms)
            return Judged(case.asked.interrupt_id, "accepted", asked=_replace(case.asked, claim=claim))
        case "release":
            if case.asked.claimed_by(case.now) is None:
                return Judged(case.asked.interrupt_id, "duplicate")
            return Judged(case.asked.interrupt_id, "accepted", asked=_replace(case.asked, claim=None))
        case never:
            assert_never(never)


def _voted(case: Case) -> Judged:
    """An answer decides, or is one voice of a quorum."""
    asked, answer, policy = case.asked, case.answer, case.asked.put
    if policy.quorum <= 1 and not policy.groups:
        decided = _replace(asked, answer=answer, claim=None)
        return Judged(asked.interrupt_id, "accepted", asked=decided, answer=answer)
    if (own := quorum.own_vote(asked.votes, answer.decided_by)) is not None:
        if own.digest == answer.digest:
            return Judged(asked.interrupt_id, "duplicate", decided=own)
        return case.refused(DecisionCode.ALREADY_DECIDED, decided=own)._replace(own_voice=True)
    if (other := quorum.disagreeing(asked.votes, answer)) is not None:
        return case.refused(DecisionCode.QUORUM_DISAGREES, decided=other)
    votes = (*asked.votes, answer)
    groups = case.rules.team(case.team).groups
    if quorum.decided(votes, answer, policy, groups):
        alike = tuple(one for one in asked.votes if one.digest == answer.digest)
        after = _replace(asked, answer=answer, votes=alike, claim=None)
    else:
        after = _replace(asked, votes=votes, claim=None)
    return Judged(asked.interrupt_id, "accepted", asked=after, answer=answer)
