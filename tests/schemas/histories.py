"""Histories of gate and router, each with a point: together they write every member of every record."""

from collections.abc import Callable
from typing import Any, Final

import orjson
from tests.schemas.both import Both, approved, cancelled, few_pauses, question, rules
from tests.schemas.people import PEOPLE

from holdshort.contract.routes import RouteTable

DAY: Final = 24 * 3600
SCHEMA: Final = {"type": "object", "required": ["approved"]}


def a_pause_of_two_teams() -> Both:
    """Two teams answer; one of them only bare AG-UI; the run that answers ends well."""
    both = Both(rules(trust_principal=frozenset({"inputs"})))
    asked = {"threadId": "t", "runId": "r1", "messages": [], "tools": [], "context": [], "state": {}}
    both.write("inputs", {**asked, "forwardedProps": {}}, "t", {"holdshort-principal": "ann@example.com"})
    both.starts("r1")
    both.event("MESSAGES_SNAPSHOT", "r1", messages=[])
    both.event("STATE_SNAPSHOT", "r1", snapshot={"step": 1})
    both.event("TEXT_MESSAGE_CONTENT", "r1", messageId="m", delta="one moment")
    both.event("STATE_DELTA", "r1", delta=[])
    both.calls("r1", "c1", "transfer_money", '{"amount": 5}')
    both.interrupts(
        "r1",
        question("a", reason="tool_call", toolCallId="c1", responseSchema=SCHEMA, expiresAt="2027-01-01"),
        question("b", reason="security:access"),
        question("c", reason="chat:hello"),
    )
    both.decides("payments", **told(both), resume=[approved("a", metadata={"desk": 4})])
    both.decides("security", resume=[cancelled("b"), approved("c")])
    answering = both.forwarded()
    both.starts(answering)
    both.event("TOOL_CALL_RESULT", answering, toolCallId="c1", messageId="m", content="done")
    both.finishes(answering)
    return both


def told(both: Both, **changes: Any) -> dict[str, Any]:
    """The members of a decision of our own form, about everything that is open."""
    pause = both.threads[b"t"].pause
    assert pause is not None
    approvals = [
        record for topic, log in both.logs.items() if topic.startswith("approvals.") for record in log
    ]
    values = [orjson.loads(record.value) for record in approvals if record.value]
    return {
        "v": 1,
        "decisionId": f"d-{both.now}",
        "generation": pause.generation,
        "decidedBy": "ann@example.com",
        "decidedAt": "2026-11-30T12:00:00Z",
        "comment": "as agreed",
        "seen": {one["interrupt"]["id"]: one["digest"] for one in values},
        **changes,
    }


def decisions_of_every_kind() -> Both:
    """Accepted, refused entry by entry, refused as a whole, said again, dead."""
    both = paused("a", "b")
    both.decides("payments", **told(both, decisionId="d1"), resume=[approved("a"), approved("nobody's")])
    both.decides("payments", **told(both, decisionId="d1"), resume=[approved("a")])
    both.decides("payments", **told(both), resume=[approved("a")])
    both.decides("payments", **told(both), resume=[cancelled("a")])
    both.decides("payments", **told(both, generation=7), resume=[approved("b")])
    both.decides("payments", **told(both, seen={"b": "0" * 64}), resume=[approved("b")])
    both.decides("payments", **told(both), resume=[approved("b", payload=1)])
    both.decides("payments", **told(both), resume=[approved("b", payload=2**60)])
    both.decides("security", **told(both), resume=[approved("b")])
    both.decides("payments", **told(both, action="claim"), resume=[approved("b")])
    both.decides("payments", **told(both), resume=[])
    both.decides("payments", **told(both), resume="yes")
    both.decides("payments", **told(both), resume=[approved("b"), cancelled("b")])
    both.decides("payments", resume=[approved("b")], padding="x" * 2**20)
    both.write("decisions.payments", b"not JSON", "t")
    both.write("decisions.payments", {"threadId": "another", "resume": []}, "t")
    return both


def paused(*ids: str, **members: Any) -> Both:
    both = Both()
    both.asks("r1")
    both.starts("r1")
    both.interrupts("r1", *(question(id_, responseSchema=SCHEMA, **members) for id_ in ids))
    return both


def an_answer_that_came_too_late() -> Both:
    both = paused("a", expiresAt="2020-01-01T00:00:00Z")
    both.decides("payments", **told(both), resume=[approved("a")])
    both.decides("payments", **told(both), resume=[cancelled("a")])
    return both


def a_question_that_can_only_be_cancelled() -> Both:
    both = Both()
    both.asks("r1")
    both.interrupts("r1", question("a", responseSchema={"$ref": "https://example.com/schema"}))
    both.decides("payments", **told(both), resume=[approved("a")])
    return both


def a_run_that_failed_with_the_answer() -> Both:
    """Asked again, each with its previous answer."""
    both = paused("a", "b")
    answers = [approved("a", payload={"approved": None}, metadata={"desk": 4}), cancelled("b")]
    both.decides("payments", **told(both), resume=answers)
    both.event("RUN_ERROR", both.forwarded(), message="it broke")
    both.decides("payments", **told(both), resume=[approved("a")])
    return both


def a_run_that_was_lost_with_the_answer() -> Both:
    both = paused("a")
    both.decides("payments", **told(both), resume=[approved("a")])
    both.passes(3600)
    return both


def a_run_that_was_lost() -> Both:
    """All of it is kept as long as it may come back."""
    both = Both()
    both.asks("r1")
    both.starts("r1")
    both.event("MESSAGES_SNAPSHOT", "r1", messages=[])
    both.event("STATE_SNAPSHOT", "r1", snapshot={})
    both.event("STATE_DELTA", "r1", delta=[])
    both.calls("r1", "c1", "transfer_money", "x" * 70_000)
    both.calls("r1", "c2", "transfer_money", "{}")
    both.passes(3600)
    return both


def a_batch_that_is_held() -> Both:
    """The agent is not configured any more."""
    both = paused("a")
    both.gate.rules = rules(agents={})
    both.decides("payments", **told(both), resume=[approved("a")])
    return both


def a_question_said_differently() -> Both:
    both = paused("a")
    both.interrupts("r1", question("a", message="something else"))
    both.decides("payments", **told(both), resume=[approved("a")])
    return both


def a_pause_that_was_abandoned() -> Both:
    both = paused("a")
    both.abandons()
    return both


def everything_forgotten() -> Both:
    both = paused("a")
    both.abandons()
    both.passes(2 * DAY)
    return both


def a_thread_forgotten_on_request() -> Both:
    both = paused("a")
    both.forgets()
    return both


def an_id_used_again() -> Both:
    both = paused("a")
    both.decides("payments", **told(both), resume=[approved("a")])
    answering = both.forwarded()
    both.starts(answering)
    both.interrupts(answering, question("a"))
    both.decides("payments", resume=[approved("a")])
    both.decides("payments", **told(both), resume=[approved("a")])
    return both


def a_pause_too_many() -> Both:
    both = Both(few_pauses(1))
    for thread in ("t", "u"):
        both.asks("r1", thread=thread)
        both.interrupts("r1", question("a"), thread=thread)
    return both


def answered_by_the_client_first() -> Both:
    """A question that both may answer: the team comes while the client's answer is with the agent."""
    both = Both()
    both.asks("r1")
    both.interrupts("r1", question("a", reason="chat:hello"))
    both.asks("r2", resume=[approved("a")])
    both.decides("security", **told(both), resume=[approved("a")])
    return both


def plain_ag_ui() -> Both:
    """Without routes the client answers, for which the router does nothing; then its input comes again."""
    both = Both(rules(routes=RouteTable()))
    both.asks("r1")
    both.starts("r1")
    both.interrupts("r1", question("a"))
    both.asks("r2")
    both.asks("r3", resume=[])
    both.asks("r4", resume=[approved("a", payload=None)])
    both.asks("r5")
    both.finishes("r4")
    both.asks("r4", resume=[approved("a", payload=None)])
    return both


def runs_outside_the_gate() -> Both:
    """One whose tool call was never seen, so that it is anybody's; and calls that go on while it waits."""
    both = Both()
    both.event("RUN_STARTED", "o1", runId="o1")
    both.calls("o1", "c1", "transfer_money", '{"amount": 1}')
    both.interrupts(
        "o1", question("a", reason="tool_call", toolCallId="c1"), question("b", reason="tool_call")
    )
    both.calls("o1", "c2", "look_up", "{}")
    both.event("TOOL_CALL_RESULT", "o1", toolCallId="c1", messageId="m", content="done")
    return both


def legacy_pauses() -> Both:
    """Of an agent that is declared to pause so, and of one that is not; one too large to keep."""
    both = Both()
    for thread, agent, value in (
        ("t", "legacy", "sure?"),
        ("u", "default", "?"),
        ("w", "legacy", "x" * 300_000),
    ):
        where = {"thread": thread, "agent": agent}
        headers = {"holdshort-agent": agent}
        both.write("inputs", {"threadId": thread, "runId": "r1", "messages": []}, thread, headers)
        both.starts("r1", **where)
        both.event("CUSTOM", "r1", name="on_interrupt", value=value, **where)
        both.finishes("r1", **where)
    return both


def refused_from_the_router() -> Both:
    both = paused("a")
    both.resumes("hs-old", 5, resume=[approved("a")])
    both.resumes("hs-none", None, resume=[approved("a")])
    return both


def what_cannot_be_used() -> Both:
    """Dead letters of every kind of sender, one too large to be written again, one sent again before."""
    both = paused("a")
    both.write("inputs", b"\xff", "t", {"mine": "yes", "holdshort-dead-letter-attempts": "2"})
    both.write("inputs", None, None)
    both.write("inputs", {"threadId": "another", "runId": "r9"}, "t")
    both.write("inputs", b"x" * 2**21, "t")
    both.write("inputs", {"threadId": "t", "runId": "r" * 600}, "t")
    both.write("agent-events.default", b"[]", "t")
    both.write("agent-events.default", b"{}", b"\xff")
    both.interrupts("nobody's")
    both.event("RUN_FINISHED", "r9", agent="legacy", runId="r9")
    both.asks("r2")
    return both


def broken_outcomes() -> Both:
    both = Both()
    both.asks("r1")
    both.interrupts("r1")
    both.asks("r2")
    both.interrupts("r2", question("a" * 600))
    both.asks("r3")
    both.finishes("r3", outcome={"type": "cancelled"})
    return both


HISTORIES: Final[tuple[Callable[[], Both], ...]] = (
    a_batch_that_is_held,
    a_pause_of_two_teams,
    a_pause_that_was_abandoned,
    a_thread_forgotten_on_request,
    a_pause_too_many,
    a_question_said_differently,
    a_question_that_can_only_be_cancelled,
    a_run_that_failed_with_the_answer,
    a_run_that_was_lost,
    a_run_that_was_lost_with_the_answer,
    an_answer_that_came_too_late,
    an_id_used_again,
    answered_by_the_client_first,
    broken_outcomes,
    decisions_of_every_kind,
    everything_forgotten,
    legacy_pauses,
    plain_ag_ui,
    refused_from_the_router,
    runs_outside_the_gate,
    what_cannot_be_used,
    *PEOPLE,
)
