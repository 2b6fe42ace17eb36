"""Router 4, in records: what came to nothing is shown again, never silently repeated, and not for ever."""

import pytest
from tests.clients import a_resume, an_interrupt, paused, started
from tests.router.scenes import (
    NO,
    YES,
    acts,
    answers,
    approval,
    code,
    config,
    deeds,
    ends,
    fails,
    minute,
    on,
    passes,
    pause,
    question,
    receipts,
    runs,
)
from tests.systems import System

PLAIN = config('reason: "p:*", team: payments', 'reason: "d:*", team: dba')
TWO_PEOPLE = config(
    'reason: "p:*", team: payments, quorum: 2', more="trust_principal: [inputs, decisions.payments]"
)


async def both_say_yes(s: System, **more: str) -> str:
    """Two teams agree; the run id of the batch."""
    await s.decide("payments", "t", {"a": YES}, **more)
    await s.decide("dba", "t", {"b": YES})
    run: str = runs(s)[-1].value["runId"]
    return run


@on(PLAIN)
async def test_after_a_failure_people_see_what_they_had_answered_and_confirm_it_in_one_move(
    s: System,
) -> None:
    await pause(s, question("a", "p:x"), question("b", "d:x"))
    await fails(s, await both_say_yes(s, decidedBy="ann"))

    shown = approval(s, "payments", "a")
    assert (shown["attempt"], shown["problem"]) == (2, None)
    assert (shown["previous"]["payload"], shown["previous"]["decidedBy"]) == (YES, "ann")
    await acts(s, "payments", "confirm", "a", decidedBy="kim")
    await s.decide("dba", "t", {"b": NO})

    assert answers(runs(s)[-1]) == {"a": YES, "b": NO}
    assert runs(s)[-1].value["resume"][0]["metadata"]["holdshort"]["decidedBy"] == "kim"
    assert len({one.value["runId"] for one in runs(s)}) == 2


@on(PLAIN)
async def test_an_answer_to_an_earlier_attempt_does_not_count_for_the_next(s: System) -> None:
    """Its author saw the same question, but not that the answer before may have been used."""
    await pause(s, question("a", "p:x"), question("b", "d:x"))
    first = approval(s, "payments", "a")
    await fails(s, await both_say_yes(s))
    seen = {"seen": {"a": first["digest"]}}
    assert approval(s, "payments", "a")["digest"] == first["digest"]

    late = await s.decide("payments", "t", {"a": YES}, attempt=1, decisionId="late", **seen)
    held = await acts(s, "payments", "claim", "a", attempt=1, decidedBy="ann")
    repeated = await s.decide("payments", "t", {"a": YES}, attempt=2, decisionId="late", **seen)

    assert (code(late), code(held)) == ("STALE_ATTEMPT", "STALE_ATTEMPT")
    assert (repeated["verdict"], code(repeated)) == ("duplicate", "STALE_ATTEMPT")
    assert repeated["problems"][0]["path"] == "/decisionId", "it says something else than the first"
    assert approval(s, "payments", "a")["claim"] is None
    await s.decide("payments", "t", {"a": YES}, attempt=2, **seen)
    await s.decide("dba", "t", {"b": NO}, attempt=2)
    assert answers(runs(s)[-1]) == {"a": YES, "b": NO}


@on(TWO_PEOPLE)
async def test_a_late_voice_of_an_earlier_attempt_does_not_complete_the_quorum_of_the_next(s: System) -> None:
    await pause(s, question("a", "p:x"))

    async def votes(by: str, attempt: int) -> str | None:
        return code(
            await s.decide("payments", "t", {"a": YES}, attempt=attempt, headers={"holdshort-principal": by})
        )

    await votes("ann", 1)
    await votes("bob", 1)
    await fails(s, runs(s)[0].value["runId"])
    assert await votes("ann", 2) is None

    assert await votes("cid", 1) == "STALE_ATTEMPT"
    assert len(runs(s)) == 1
    assert await votes("cid", 2) is None
    assert len(runs(s)) == 2


@on(PLAIN)
async def test_who_does_not_say_the_attempt_means_the_open_one(s: System) -> None:
    """As plain AG-UI must: it has no word for it."""
    await pause(s, question("a", "p:x"), question("b", "d:x"))
    await fails(s, await both_say_yes(s))
    bare = [{"interruptId": "a", "status": "resolved", "payload": NO}]

    assert code(await s.send_decision("payments", "t", bare, bare=True)) is None
    assert code(await s.decide("dba", "t", {"b": NO})) is None
    assert answers(runs(s)[-1]) == {"a": NO, "b": NO}


@on(PLAIN)
async def test_a_late_answer_to_what_is_answered_again_is_told_the_answer(s: System) -> None:
    await pause(s, question("a", "p:x"), question("b", "d:x"))
    await fails(s, await both_say_yes(s))
    await s.decide("payments", "t", {"a": NO}, attempt=2, decidedBy="ann")

    late = await s.decide("payments", "t", {"a": YES}, attempt=1)

    assert code(late) == "ALREADY_DECIDED"
    assert late["entries"][0]["decided"]["decidedBy"] == "ann"


@on(PLAIN)
async def test_an_answer_that_did_not_see_that_the_tool_has_had_a_result_does_not_count(s: System) -> None:
    await s.send("inputs", {"threadId": "t", "runId": "r1", "messages": []})
    events = "agent-events.default"
    await s.send(events, started("t", "r1"))
    call = {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"}
    await s.send(events, call, key="t")
    await s.send(events, paused("t", "r1", an_interrupt("a", reason="p:x", toolCallId="c1")))
    assert approval(s, "payments", "a")["attempted"] is False
    result = {"type": "TOOL_CALL_RESULT", "toolCallId": "c1", "messageId": "m", "content": "paid"}
    await s.send(events, result, key="t", headers={"holdshort-run": "r1"})

    shown = approval(s, "payments", "a")
    assert (shown["attempt"], shown["attempted"], shown["previous"]) == (2, True, None)
    assert code(await s.decide("payments", "t", {"a": YES}, attempt=1)) == "STALE_ATTEMPT"
    assert code(await s.decide("payments", "t", {"a": NO}, attempt=2)) is None


@on(PLAIN)
async def test_there_is_nothing_to_confirm_the_first_time(s: System) -> None:
    await pause(s, question("a", "p:x"))

    assert code(await acts(s, "payments", "confirm", "a")) == "NOTHING_TO_CONFIRM"


@on(PLAIN)
async def test_a_lost_run_is_asked_about_again(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await s.decide("payments", "t", {"a": YES})
    await passes(20)  # the start lease

    assert approval(s, "payments", "a")["attempt"] == 2


@on(PLAIN)
async def test_what_was_attempted_is_said(s: System) -> None:
    await s.send("inputs", {"threadId": "t", "runId": "r1", "messages": []})
    events = "agent-events.default"
    await s.send(events, started("t", "r1"))
    call = {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"}
    await s.send(events, call, key="t")
    await s.send(
        events, paused("t", "r1", an_interrupt("a", reason="p:x", toolCallId="c1"), question("b", "d:x"))
    )
    await s.decide("payments", "t", {"a": YES}, decisionId="early")
    assert s.asked("payments") == {}

    result = {"type": "TOOL_CALL_RESULT", "toolCallId": "c1", "messageId": "m", "content": "paid"}
    await s.send(events, result, key="t", headers={"holdshort-run": "r1"})

    shown = approval(s, "payments", "a")
    assert (shown["attempt"], shown["attempted"], shown["previous"]["payload"]) == (2, True, YES)
    assert approval(s, "dba", "b")["attempt"] == 2


@on(config('reason: "p:*", team: payments, retry: 1'))
async def test_a_batch_is_sent_again_by_itself_as_often_as_the_route_says(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await s.decide("payments", "t", {"a": YES})
    await fails(s, runs(s)[0].value["runId"])
    assert len(runs(s)) == 2
    assert s.asked("payments") == {}
    assert answers(runs(s)[1]) == {"a": YES}

    await fails(s, runs(s)[1].value["runId"])

    assert len(runs(s)) == 2
    assert approval(s, "payments", "a")["attempt"] == 3
    assert deeds(s, "sent_again", "shown_again") == ["sent_again", "shown_again"]


@on(config("tool: pay, team: payments, retry: 3"))
async def test_it_is_not_sent_again_by_itself_once_something_was_attempted(s: System) -> None:
    await s.send("inputs", {"threadId": "t", "runId": "r1", "messages": []})
    events = "agent-events.default"
    await s.send(events, started("t", "r1"))
    call = {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"}
    await s.send(events, call, key="t")
    await s.send(events, paused("t", "r1", an_interrupt("a", toolCallId="c1")))
    await s.decide("payments", "t", {"a": YES})
    run = runs(s)[0].value["runId"]
    await s.send(events, started("t", run))
    result = {"type": "TOOL_CALL_RESULT", "toolCallId": "c1", "messageId": "m", "content": "paid"}
    await s.send(events, result, key="t", headers={"holdshort-run": run})
    await fails(s, run)

    assert len(runs(s)) == 1
    assert approval(s, "payments", "a")["attempted"] is True


@on(config('reason: "p:*", team: payments, retry: 9', more="max_attempts: 3"))
async def test_after_so_many_runs_the_pause_is_given_up(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await s.decide("payments", "t", {"a": YES}, decisionId="mine")
    for _ in range(3):
        await fails(s, runs(s)[-1].value["runId"])

    assert len(runs(s)) == 3
    assert s.pause("t") is None
    assert s.thread("t").gone[0].how == "abandoned"
    assert s.asked("payments") == {}
    assert code(receipts(s, "payments", "mine")[-1]) == "ABANDONED"


@on(config('reason: "p:*", team: payments, ttl: 30m', more="limits: {input: 6KiB}"))
async def test_a_batch_that_is_too_large_stays_gathered_and_somebody_is_told(s: System) -> None:
    await pause(s, question("a", "p:x"))
    receipt = await s.decide("payments", "t", {"a": {"approved": True, "text": "x" * 5000}})

    assert receipt["batch"] == {"complete": True, "waitingFor": [], "runId": None}
    assert s.asked("payments") == {}
    assert deeds(s, "held") == ["held"]
    await passes(31)
    assert s.pause("t") is None
    assert s.thread("t").gone[0].how == "abandoned"


@on(config('reason: "p:*", team: payments', more="limits: {input: 6KiB}"))
async def test_a_context_that_is_too_large_is_left_out_and_marked(s: System) -> None:
    await pause(s, question("a", "p:x"), messages=[{"id": "m", "role": "user", "content": "x" * 5000}])
    await s.decide("payments", "t", {"a": YES})

    (batch,) = runs(s)
    assert batch.value["messages"] == []
    assert batch.value["resume"][0]["metadata"]["holdshort"]["context"] == "incomplete"
    forwarded = [one.value for one in s.said("audit") if one.value["verdict"] == "forwarded"]
    assert [one["code"] for one in forwarded] == ["INCOMPLETE_CONTEXT"]


@on(config('reason: "p:*", team: payments, ttl: 30m', agents="{default: {}, replaying: {resume: replay}}"))
async def test_an_agent_that_replays_waits_for_its_context_but_not_for_ever(s: System) -> None:
    await s.send("inputs", {"threadId": "t", "runId": "r1"}, headers={"holdshort-agent": "replaying"})
    events = "agent-events.replaying"
    await s.send(events, started("t", "r1"))
    await s.send(events, {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}, key="t")
    await s.send(events, paused("t", "r1", question("a", "p:x")))
    await s.decide("payments", "t", {"a": YES})
    assert deeds(s, "held") == ["held"]
    await passes(31)

    assert runs(s, agent="replaying") == []
    assert s.thread("t").gone[0].how == "abandoned"


CHAT = config(
    'reason: "chat:*", team: ops, answer_by: anyone', 'reason: "soft:*", team: dba, answer_by: anyone'
)


@on(CHAT)
async def test_whose_answer_did_not_count_is_told_so(s: System) -> None:
    await pause(s, question("a", "chat:x"), question("b", "soft:x"))
    await s.decide("ops", "t", {"a": YES}, decisionId="mine")
    await s.send("inputs", a_resume("t", "r2", {"a": False, "b": True}))
    await ends(s, "r2")

    told = receipts(s, "ops", "mine")
    assert [one["verdict"] for one in told] == ["accepted", "refused"]
    assert code(told[-1]) == "ANSWERED_ELSEWHERE"
    assert s.asked("dba") == {}


@on(PLAIN)
async def test_whose_answer_counted_is_not_told_otherwise(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await s.decide("payments", "t", {"a": YES}, decisionId="mine")
    await ends(s, runs(s)[0].value["runId"])

    assert [one["verdict"] for one in receipts(s, "payments", "mine")] == ["accepted"]


@on(PLAIN)
async def test_a_question_said_differently_is_another_and_old_answers_are_told_so(s: System) -> None:
    await pause(s, question("a", "p:x"), question("b", "d:x"))
    await s.decide("payments", "t", {"a": YES}, decisionId="mine")
    again = paused("t", "r1", question("a", "p:x", message="more"), question("b", "d:x"))
    await s.send("agent-events.default", again)

    assert code(receipts(s, "payments", "mine")[-1]) == "STALE_GENERATION"
    shown = approval(s, "payments", "a")
    assert (shown["attempt"], shown["previous"], shown["generation"]) == (1, None, s.thread("t").generation)
    assert len([one for one in s.said("approvals.payments") if one.value is None]) == 1


@on(PLAIN)
async def test_an_operator_ends_a_pause_and_everybody_is_told(s: System) -> None:
    await pause(s, question("a", "p:x"), question("b", "d:x"))
    await s.decide("payments", "t", {"a": YES}, decisionId="mine")
    generation = str(s.thread("t").generation)
    headers = {"holdshort-action": "abandon", "holdshort-generation": generation}
    await s.send("resumes", {"threadId": "t", "runId": "x"}, headers=headers)

    assert code(receipts(s, "payments", "mine")[-1]) == "ABANDONED"
    assert s.asked("dba") == {}


@on(config('reason: "p:*", team: payments', more="limits: {payload: 4KiB, entries: 8KiB}"))
async def test_what_the_gate_refuses_as_expired_goes_again_without_it(s: System) -> None:
    await pause(s, question("a", "p:x", expiresAt=minute(2)), question("b", "p:x"))
    await s.stop("gatekeeper")
    await s.decide("payments", "t", {"a": YES, "b": YES}, decisionId="mine")
    assert len(s.said("resumes")) == 1
    await passes(3)
    await s.start("gatekeeper")

    # The record was appended in time, so the gate takes it although it reads it late.
    assert answers(runs(s)[0]) == {"a": YES, "b": YES}


@pytest.mark.parametrize("code_", ["INVALID_PAYLOAD", "SCHEMA_REFUSED"])
def test_a_refusal_about_the_answers_is_shown_with_the_questions(code_: str) -> None:
    from tests.router.pauses import a_pause, refused, shown, turned

    after = turned(refused(a_pause("a", "b"), code_))

    assert [one["problem"] for one in shown(after)] == [code_, code_]
    assert [one["previous"]["payload"] for one in shown(after)] == [YES, YES]


@pytest.mark.parametrize("code_", ["TOO_LARGE", "UNKNOWN_AGENT", "INVALID_RESUME", "MALFORMED_INPUT"])
def test_a_refusal_that_people_cannot_mend_holds_the_batch(code_: str) -> None:
    from tests.router.pauses import a_pause, refused, shown, turned

    after = turned(refused(a_pause("a", "b"), code_))

    assert shown(after) == []
    assert after.gathering.held == code_
    assert after.gathering.complete
