"""Deadlines of a pause: nothing waits for ever (router 5). Pure.

A missing answer has a moment at which the router fills it in, and before that moments at which people are
reminded and another team is asked. They follow from the gathering alone, so a restored one is complete.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from holdshort.contract.resume import Entry, digests
from holdshort.contract.routes import PLAIN
from holdshort.contract.rules import AgentRules, Rules
from holdshort.contract.state import Pause
from holdshort.router.codes import DecisionCode
from holdshort.router.gathering import MEMORY_MS, Answer, Asked, Cause, Gathering
from holdshort.router.turn import Turn

# Frameworks that take a cancel for a default answer, or hand the node something truthy (notes/agui.md 6.19).
UNSAFE_FRAMEWORKS: Final = ("langgraph", "crewai")

LEAST_MARGIN_MS = 3_000  # two seconds by which deadlines fire late, and the way of the batch to the gate

_replace = msgspec.structs.replace


def cancel_is_unsafe(pause: Pause, rules: Rules) -> bool:
    """Whether the agent of a pause may take a cancel for a yes."""
    reasons = (_reasons.decode(bytes(one.descriptor)).reason for one in pause.interrupts)
    return takes_cancel_for_yes(rules.agent(pause.agent), reasons)


def takes_cancel_for_yes(agent: AgentRules, reasons: Iterable[str]) -> bool:
    """Declared, or by the framework that one of its reasons names (router 5)."""
    if agent.cancel is not None:
        return agent.cancel == "unsafe"
    return agent.legacy_interrupts or any(_framework(reason) in UNSAFE_FRAMEWORKS for reason in reasons)


class _Reason(msgspec.Struct, frozen=True):
    reason: str = ""


_reasons = msgspec.json.Decoder(_Reason)


def _framework(reason: str) -> str:
    return reason.replace(".", ":").partition(":")[0].lower()


# -- when ---------------------------------------------------------------------------------------------------


def fill_at(gathering: Gathering, asked: Asked, rules: Rules) -> int:
    """When a missing answer is filled in: what the approval shows as its deadline.

    A batch is judged when it arrives, so the earliest expiry of all its interrupts, less a margin, is the
    deadline of each. `wait` waits for that expiry itself. What had expired when it was put is not waited for.
    """
    policy, put = asked.put, gathering.last_put
    if asked.expires_at is not None and asked.expires_at <= put:
        return put
    expiries = [one for other in gathering.asked if (one := other.expires_at) is not None and one > put]
    hard = min([gathering.opened_at + policy.ttl_ms, *expiries])
    if policy.on_deadline == "wait":
        return hard
    early = [one - _margin(gathering, one, rules) for one in expiries]
    own = [] if policy.deadline_ms is None else [put + policy.deadline_ms]
    return min([hard, *early, *own])


def _margin(gathering: Gathering, expiry: int, rules: Rules) -> int:
    """Of a short time to answer, a quarter: people shall have most of it.

    But what they answer must arrive before the expiry: a deadline fires late (engine 4).
    """
    left = expiry - gathering.last_put
    return max(min(rules.deadline_margin_ms, left // 4), min(LEAST_MARGIN_MS, left // 2))


def _end(gathering: Gathering, asked: Asked) -> int:
    return gathering.opened_at + asked.put.ttl_ms


def due(gathering: Gathering, rules: Rules) -> int | None:
    """The earliest moment at which something is to be done; None while an answer is under way."""
    if gathering.closed_at is not None:
        return gathering.closed_at + MEMORY_MS
    if gathering.held is not None and not (gathering.resuming or gathering.abandoned):
        return max(_end(gathering, one) for one in gathering.asked)
    if gathering.settled:
        return None
    if not gathering.asked:
        return gathering.opened_at + PLAIN.ttl_ms
    return min((at for one in gathering.asked for at in _moments(gathering, one, rules)), default=None)


def _moments(gathering: Gathering, asked: Asked, rules: Rules) -> Iterator[int]:
    if asked.answer is not None:
        return
    yield _end(gathering, asked) if asked.overdue else fill_at(gathering, asked, rules)
    if (at := _remind_at(gathering, asked)) is not None:
        yield at
    if (at := _escalate_at(gathering, asked)) is not None:
        yield at


def _remind_at(gathering: Gathering, asked: Asked) -> int | None:
    after = asked.put.remind_ms
    return None if after is None or asked.reminded else gathering.last_put + after


def _escalate_at(gathering: Gathering, asked: Asked) -> int | None:
    after = asked.put.escalate_ms
    if after is None or asked.put.escalate_to is None or asked.escalated:
        return None
    return gathering.last_put + after


# -- what ---------------------------------------------------------------------------------------------------


def fire(turn: Turn) -> None:
    """Do what is due at `turn.now`, if nothing is under way."""
    gathering = turn.gathering
    if gathering.held is not None and not gathering.resuming:
        if (at := due(gathering, turn.rules)) is not None and at <= turn.now:
            abandon(turn, "TTL")
        return
    if not turn.open:
        return
    if not gathering.asked and turn.now >= gathering.opened_at + PLAIN.ttl_ms:
        abandon(turn, "TTL")  # it was opened sealed: there is nothing to answer
    for asked in gathering.asked:
        if asked.answer is not None:
            continue
        at = _end(gathering, asked) if asked.overdue else fill_at(gathering, asked, turn.rules)
        if at <= turn.now:
            _fill(turn, asked)
        else:
            _urge(turn, asked)


def _fill(turn: Turn, asked: Asked) -> None:
    """Nobody has answered in time: the configured answer, or a cancel where that denies."""
    expired = asked.expires_at is not None and asked.expires_at <= turn.now
    attempted = asked.interrupt_id in turn.pause.attempted  # then nobody knows what a yes would do
    answers = asked.put.on_deadline == "answer" and asked.fallback is not msgspec.UNSET
    if answers and not expired and not attempted:
        fill(turn, asked, "deadline", answering=True)
    elif not cancel_is_unsafe(turn.pause, turn.rules):
        fill(turn, asked, "deadline")
    elif turn.now >= _end(turn.gathering, asked):
        abandon(turn, "CANCEL_UNSAFE")
    else:
        turn.put(_replace(asked, overdue=True))
        turn.does("overdue", asked, code="CANCEL_UNSAFE")


def _urge(turn: Turn, asked: Asked) -> None:
    at = _remind_at(turn.gathering, asked)
    if at is not None and at <= turn.now:
        asked = _replace(asked, reminded=True)
        turn.put(asked)
        turn.does("reminded", asked)
    at = _escalate_at(turn.gathering, asked)
    if at is not None and at <= turn.now:
        to = asked.put.escalate_to
        assert to is not None
        asked = moved(asked, to, escalated=True)
        turn.put(asked)
        turn.does("escalated", asked)


def moved(asked: Asked, team: str, *, escalated: bool = False) -> Asked:
    """Another team's question now; who has voted has voted, a claim is over."""
    return _replace(
        asked, team=team, moved_from=asked.team, claim=None, escalated=asked.escalated or escalated
    )


def fill(turn: Turn, asked: Asked, cause: Cause, *, answering: bool = False) -> None:
    """The router's own answer; whoever had voted is told that it came to nothing."""
    told = {"denial": DecisionCode.CANCELLED_BY_DENIAL}.get(cause, DecisionCode.DEADLINE_PASSED)
    turn.overrule(asked, told)
    turn.put(_replace(asked, answer=own_answer(asked, cause, answering=answering), votes=(), claim=None))
    turn.does("answered" if answering else "cancelled", asked, code=cause.upper())


def own_answer(asked: Asked, cause: Cause, *, answering: bool) -> Answer:
    """An answer that nobody gave: the fallback, or a cancel."""
    payload = asked.fallback if answering else msgspec.UNSET
    value = msgspec.json.decode(payload) if payload is not msgspec.UNSET else msgspec.UNSET
    digest = digests([Entry(asked.interrupt_id, answering, value, {})]).strict
    assert digest is not None, "a fallback has been checked when the pause opened"
    return Answer(
        status="resolved" if answering else "cancelled",
        payload=payload,
        digest=digest,
        decision_id=f"router:{cause}",
        team=asked.team,
        cause=cause,
    )


def abandon(turn: Turn, why: str) -> None:
    """Ask the gate to end the pause: nothing is forwarded; the rest follows when it has."""
    if not turn.gathering.abandoned:
        turn.gathering = _replace(turn.gathering, abandoned=True)
        turn.does("abandoned", code=why)
