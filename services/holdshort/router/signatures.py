"""Signed decisions: whether a signature says what the decision says, and whose it is (router 3). Pure."""

from collections.abc import Collection
from typing import Any, NamedTuple

from holdshort.contract import resume as batch
from holdshort.contract.resume import Entry
from holdshort.contract.rules import Rules
from holdshort.contract.state import Interrupt, Pause
from holdshort.contract.statement import SIGNATURE, Signed, Statement, payload_digest, read_signed
from holdshort.router.codes import DecisionCode
from holdshort.router.decisions import Decision
from holdshort.router.records import seen_digest


class Proved(NamedTuple):
    """What a signature proves: who decided. A code says that it proves nothing."""

    decider: str | None = None
    code: DecisionCode | None = None


def prove(
    entry: Entry, decision: Decision, team: str, pause: Pause, interrupt: Interrupt, now: int, rules: Rules
) -> Proved:
    """The person who has signed exactly this answer to exactly this question, in this decision.

    Each way to be wrong has a code of its own; the keys are the team's, so nobody signs for another team.
    """
    signed = read_signed(entry.metadata.get(SIGNATURE))
    if signed is None:
        return Proved(code=DecisionCode.SIGNATURE_FORGED)
    key = rules.team(team).keys.get(signed.key_id)
    if key is None or (key.until is not None and now >= key.until):
        return Proved(code=DecisionCode.UNKNOWN_KEY)
    if not signed.verified(key.public) or signed.statement.decided_by != key.decider:
        return Proved(code=DecisionCode.SIGNATURE_FORGED)
    said = _as_it_stands(entry, decision, pause, interrupt, rules)
    if code := _difference(signed, said):
        return Proved(code=code)
    return Proved(decider=key.decider)


def _as_it_stands(
    entry: Entry, decision: Decision, pause: Pause, interrupt: Interrupt, rules: Rules
) -> dict[str, Any]:
    """The statement that the decision makes without a signature."""
    answered = entry.resolved and entry.payload is not batch.ABSENT
    return {
        "aud": rules.installation,
        "thread_id": decision.thread,
        "generation": pause.generation,
        "interrupted_run_id": pause.run_id,
        "interrupt_id": entry.interrupt_id,
        "digest": seen_digest(interrupt),
        "status": "resolved" if entry.resolved else "cancelled",
        "payload_digest": payload_digest(entry.payload) if answered else None,
        "decided_by": decision.decided_by,
        "decided_at": decision.decided_at,
        "decision_id": decision.decision_id,
    }


_TARGET = ("aud", "thread_id", "generation", "interrupted_run_id", "interrupt_id", "digest")
_CONTENT = ("status", "payload_digest", "decided_by", "decided_at")


def _difference(signed: Signed, said: dict[str, Any]) -> DecisionCode | None:
    statement = signed.statement
    if _differs(statement, said, _TARGET):
        return DecisionCode.SIGNATURE_RETARGETED
    if _differs(statement, said, ("decision_id",)):
        return DecisionCode.SIGNATURE_REPLAYED
    if _differs(statement, said, _CONTENT):
        return DecisionCode.SIGNATURE_EDITED
    return None


def _differs(statement: Statement, said: dict[str, Any], members: Collection[str]) -> bool:
    return any(getattr(statement, name) != said[name] for name in members)
