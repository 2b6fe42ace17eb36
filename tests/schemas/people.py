"""Histories of the router alone: quorums, signatures, claims, deadlines, what it does by itself."""

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.schemas.both import Both, approved, question, rules

from holdshort.contract.routes import Policy, Route, RouteTable
from holdshort.contract.rules import Limits, Rules, SigningKey, TeamRules
from holdshort.sdk.approvals import Approval
from holdshort.sdk.signing import Signer

HOUR: Final = 3600
HOUR_MS: Final = 3600_000
SCHEMA: Final = {"type": "object", "required": ["approved"]}
EVERYTHING: Final = Policy(
    priority=5,
    ttl_ms=40 * HOUR_MS,
    deadline_ms=10 * HOUR_MS,
    remind_ms=HOUR_MS,
    escalate_ms=2 * HOUR_MS,
    escalate_to="security",
    on_deadline="answer",
    answer=msgspec.Raw(b'{"approved":false,"why":"nobody"}'),
    quorum=2,
    groups=("leads",),
    denial="counts",
    on_denial="cancel_rest",
    requester_may_decide=False,
    signature="required",
    retry=1,
    overflow_to="security",
    on_overflow="answer",
)


def _key(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(name.encode().ljust(32)[:32])


def _team(max_open: int | None = None) -> TeamRules:
    keys = {
        name: SigningKey(public=_key(name).public_key().public_bytes_raw(), decider=name)
        for name in ("ann", "bob")
    }
    return TeamRules(max_open=max_open, keys=keys, groups={"leads": frozenset({"ann", "bob"})})


def routed(policy: Policy, **changes: Any) -> Rules:
    """Payments' questions are put in this way."""
    routes = [
        Route(name="refunds", team="payments", reason="payments:*", policy=policy),
        Route(name="graphs", team="payments", reason="langgraph:*", policy=policy),
        Route(name="access", team="security", reason="security:*"),
    ]
    teams = {"payments": _team(changes.pop("max_open", None)), "security": _team()}
    trusted = frozenset({"inputs", "decisions.payments"})
    return rules(routes=RouteTable(routes), teams=teams, trust_principal=trusted, **changes)


def asked(both: Both, *questions: dict[str, Any]) -> None:
    """Somebody asks, and the run pauses."""
    given: dict[str, Any] = {"messages": [], "tools": [], "context": [], "state": {}, "forwardedProps": {}}
    value = {"threadId": "t", "runId": "r1", **given}
    both.write("inputs", value, "t", {"holdshort-principal": "zoe"})
    both.starts("r1")
    both.interrupts("r1", *questions)


def signs(both: Both, name: str, action: str = "decide", team: str = "payments") -> None:
    """A signed decision about the question that this team was shown last."""
    shown = [one for one in both.logs[f"approvals.{team}"] if one.value][-1]
    approval = Approval.model_validate_json(shown.value or b"")
    entry = approved(approval.interrupt_id, metadata={"desk": 4})
    record = {
        "v": 1,
        "decisionId": f"{name}-{both.now}",
        "threadId": "t",
        "generation": approval.generation,
        "attempt": approval.attempt,
        "action": action,
        "resume": [entry if action == "decide" else {"interruptId": approval.interrupt_id}],
        "decidedBy": name,
        "decidedAt": datetime.fromtimestamp(both.now / 1000, UTC).isoformat(),
        "comment": "seen",
        "seen": {approval.interrupt_id: approval.digest},
    }
    answers = action in ("decide", "confirm")
    value = Signer(_key(name), name, name).signed(record, approval) if answers else record
    both.write(f"decisions.{team}", orjson.dumps(value), "t")


def a_route_that_says_everything() -> Both:
    """Signed by two, tried twice, shown again, urged, answered by nobody, given up."""
    both = Both(routed(EVERYTHING, max_attempts=4))
    asked(both, question("a", responseSchema=SCHEMA, expiresAt="2027-01-01"))
    signs(both, "ann", "claim")
    signs(both, "ann")
    signs(both, "bob", "claim")
    signs(both, "bob", "release")
    signs(both, "bob")
    both.event("RUN_ERROR", both.forwarded(), message="it broke")
    both.event("RUN_ERROR", both.forwarded(), message="it broke again")
    signs(both, "ann", "confirm")
    both.passes(1.1 * HOUR)
    both.passes(1.1 * HOUR)
    both.passes(9 * HOUR)
    both.event("RUN_ERROR", both.forwarded(), message="it broke with the router's answer")
    both.passes(11 * HOUR)
    both.event("RUN_ERROR", both.forwarded(), message="it broke for good")
    return both


def half_a_quorum() -> Both:
    """By people whom an edge has authenticated; then the others are denied, and with it this."""
    both = Both(routed(Policy(quorum=2)))
    asked(both, question("a"), question("b", reason="security:x"))
    generation = both.threads[b"t"].generation
    both.decides(
        "payments",
        by="ann",
        v=1,
        decisionId="d1",
        generation=generation,
        comment="fine",
        decidedAt="2026-11-30T12:00:00Z",
        resume=[approved("a", metadata={"desk": 4})],
    )
    both.passes(8 * 24 * HOUR)
    return both


def more_than_a_team_takes() -> Both:
    both = Both(routed(Policy(on_overflow="cancel"), max_open=1))
    asked(both, question("a"), question("b"), question("c", reason="security:x"))
    return both


def a_cancel_that_may_mean_yes() -> Both:
    """Overdue, too late to be sent, given up."""
    both = Both(routed(Policy(deadline_ms=HOUR_MS, on_deadline="wait")))
    asked(
        both,
        question("a", reason="langgraph:x", expiresAt="2026-12-01T00:00:00Z"),
        question("b", reason="langgraph:x"),
    )
    both.decides("payments", resume=[approved("a")])
    both.passes(300 * HOUR)
    return both


def an_answer_that_expired() -> Both:
    both = Both(routed(Policy(on_deadline="wait")))
    asked(both, question("a", expiresAt="2026-12-01T00:00:00Z"), question("b", reason="security:x"))
    both.decides("payments", resume=[approved("a")])
    both.passes(300 * HOUR)
    return both


def an_answer_of_the_routers_own_that_does_not_fit() -> Both:
    both = Both(routed(Policy(on_deadline="answer", answer=msgspec.Raw(b"1"), ttl_ms=HOUR_MS)))
    asked(both, question("a", responseSchema=SCHEMA))
    both.passes(2 * HOUR)
    return both


def a_route_that_the_router_does_not_know() -> Both:
    both = Both(routed(EVERYTHING))
    both.router.rules = rules(routes=RouteTable())
    asked(both, question("a"))
    both.decides("payments", by="ann", resume=[approved("a")])
    return both


def answers_that_the_gate_does_not_take() -> Both:
    """It has less time to check them than the router."""
    both = Both(routed(Policy()))
    both.gate.rules = routed(Policy(), limits=Limits(work=0))
    asked(both, question("a", responseSchema=SCHEMA))
    both.decides("payments", resume=[approved("a")])
    return both


PEOPLE: Final = (
    a_cancel_that_may_mean_yes,
    a_route_that_says_everything,
    a_route_that_the_router_does_not_know,
    an_answer_of_the_routers_own_that_does_not_fit,
    an_answer_that_expired,
    answers_that_the_gate_does_not_take,
    half_a_quorum,
    more_than_a_team_takes,
)
