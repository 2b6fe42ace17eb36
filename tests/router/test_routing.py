"""The router, in records: what is asked of whom, what counts, and the one batch that goes back."""

from collections.abc import Callable, Coroutine
from functools import wraps
from hashlib import sha256
from typing import Any

from tests.clients import Json, a_resume, an_input, an_interrupt, finished, paused, started
from tests.systems import System, system
from tests.virtual import in_virtual_time

CONFIG = """
agents: {default: {}, replaying: {resume: replay}}
teams: {payments: {}, dba: {}, ops: {}}
default_team: ops
routes:
  - {tool: transfer_money, team: payments}
  - {tool: migrate_database, team: dba}
  - {reason: "chat:*", team: ops, answer_by: anyone}
"""
SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "editedArgs": {"type": "object"}},
    "required": ["approved"],
}

YES = {"approved": True}

Scenario = Callable[[System], Coroutine[Any, Any, None]]


def routed(scenario: Scenario) -> Callable[[], None]:
    """A test in virtual time on a running system."""

    @wraps(scenario)
    def test() -> None:
        async def main() -> None:
            async with system(CONFIG) as installation:
                await scenario(installation)

        in_virtual_time(main())

    del test.__wrapped__  # pytest would ask for the scenario's argument
    return test


async def pay_and_migrate(s: System, thread: str = "t", agent: str = "default") -> None:
    """A run that asks for two things at once, owned by two teams."""
    await s.send("inputs", an_input(thread, "r1"), headers={"holdshort-agent": agent})
    events = f"agent-events.{agent}"
    calls: list[Json] = []
    for call, tool, args in (
        ("c1", "transfer_money", '{"amount": 50}'),
        ("c2", "migrate_database", '{"to": "v2"}'),
    ):
        await s.send(events, {"type": "RUN_STARTED", "threadId": thread, "runId": "r1"})
        await s.send(
            events, {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": tool}, key=thread
        )
        await s.send(events, {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": args}, key=thread)
        function = {"name": tool, "arguments": args}
        calls.append({"id": call, "type": "function", "function": function})
    messages = [*an_input(thread, "r1")["messages"], {"id": "m2", "role": "assistant", "toolCalls": calls}]
    await s.send(events, {"type": "MESSAGES_SNAPSHOT", "messages": messages}, key=thread)
    pay = an_interrupt("pay", toolCallId="c1", responseSchema=SCHEMA)
    await s.send(events, paused(thread, "r1", pay, an_interrupt("migrate", toolCallId="c2")))


@routed
async def test_each_team_gets_exactly_its_question(s: System) -> None:
    await pay_and_migrate(s)

    assert list(s.asked("payments")) == ["pay"]
    assert list(s.asked("dba")) == ["migrate"]
    approval = s.asked("payments")["pay"]
    assert approval["tool"] == {"callId": "c1", "name": "transfer_money", "args": '{"amount": 50}'}
    assert approval["interrupt"]["responseSchema"] == SCHEMA
    assert approval["batch"] == {"total": 2, "yours": 1}


@routed
async def test_one_complete_batch_goes_back_in_the_order_of_the_interrupts(s: System) -> None:
    await pay_and_migrate(s)
    await s.decide("dba", "t", {"migrate": False}, decisionId="d1", decidedBy="kim")
    receipt = await s.decide("payments", "t", {"pay": {"approved": True}}, decisionId="d2")

    runs = s.said("runs.default", "t")
    assert len(runs) == 2
    batch = runs[1].value
    assert [(entry["interruptId"], entry["payload"]) for entry in batch["resume"]] == [
        ("pay", {"approved": True}),
        ("migrate", False),
    ]
    assert batch["resume"][1]["metadata"]["holdshort"] == {
        "team": "dba",
        "decisionId": "d1",
        "decidedBy": "kim",
    }
    assert receipt["batch"] == {"complete": True, "waitingFor": [], "runId": batch["runId"]}
    assert batch["parentRunId"] == "r1"
    assert batch["messages"][1]["toolCalls"][0]["id"] == "c1"
    assert runs[1].headers["holdshort-generation"] == str(s.thread("t").generation)


@routed
async def test_what_a_team_says_beside_its_answer_goes_back_with_it_also_after_a_restart(s: System) -> None:
    await pay_and_migrate(s)
    said = {"note": "hello", "desk": {"number": 4}}
    pays = {"interruptId": "pay", "status": "resolved", "payload": {"approved": True}, "metadata": said}
    await s.send_decision("payments", "t", [pays], bare=True)
    await s.restart("router")
    await s.decide("dba", "t", {"migrate": False})

    (entry, _) = s.said("runs.default", "t")[1].value["resume"]
    assert {**entry["metadata"], **said} == entry["metadata"]


@routed
async def test_nothing_goes_back_before_every_team_has_answered(s: System) -> None:
    await pay_and_migrate(s)
    receipt = await s.decide("payments", "t", {"pay": {"approved": True}})

    assert receipt["batch"] == {"complete": False, "waitingFor": ["dba"], "runId": None}
    assert s.said("resumes") == []
    assert s.asked("payments") == {}
    assert list(s.asked("dba")) == ["migrate"]


@routed
async def test_an_answer_that_breaks_the_schema_gets_a_receipt_saying_where(s: System) -> None:
    await pay_and_migrate(s)
    receipt = await s.decide("payments", "t", {"pay": {"approved": "yes"}})

    assert receipt["verdict"] == "refused"
    entry = receipt["entries"][0]
    assert (entry["code"], entry["problems"][0]["path"]) == ("INVALID_PAYLOAD", "/approved")
    assert list(s.asked("payments")) == ["pay"]


@routed
async def test_a_team_cannot_answer_for_another(s: System) -> None:
    await pay_and_migrate(s)
    receipt = await s.decide("dba", "t", {"pay": {"approved": True}, "migrate": True})

    verdicts = {entry["interruptId"]: entry["code"] for entry in receipt["entries"]}
    assert verdicts == {"pay": "NOT_YOUR_INTERRUPT", "migrate": None}


@routed
async def test_the_first_decision_stands_and_the_same_again_is_a_duplicate(s: System) -> None:
    await pay_and_migrate(s)
    await s.decide("payments", "t", {"pay": {"approved": True}})
    other = await s.decide("payments", "t", {"pay": {"approved": False}})
    same = await s.decide("payments", "t", {"pay": {"approved": True}})

    assert other["entries"][0]["code"] == "ALREADY_DECIDED"
    assert same["verdict"] == "duplicate"


@routed
async def test_the_same_decision_id_gets_the_same_receipt(s: System) -> None:
    await pay_and_migrate(s)
    first = await s.decide("payments", "t", {"pay": {"approved": 1}}, decisionId="d")
    again = await s.decide("payments", "t", {"pay": {"approved": 1}}, decisionId="d")

    assert again == first | {"verdict": "duplicate"}
    assert list(s.asked("payments")) == ["pay"]


@routed
async def test_the_same_decision_id_does_not_hide_a_contradiction(s: System) -> None:
    await pay_and_migrate(s)
    first = await s.decide("payments", "t", {"pay": {"approved": True}}, decisionId="d")
    other = await s.decide("payments", "t", {"pay": {"approved": False}}, decisionId="d")

    assert (other["verdict"], other["entries"]) == ("duplicate", first["entries"])
    assert [one["code"] for one in other["problems"]] == ["ALREADY_DECIDED"]


@routed
async def test_a_decision_for_another_generation_is_stale(s: System) -> None:
    await pay_and_migrate(s)
    receipt = await s.decide("payments", "t", {"pay": {"approved": True}}, generation=7)

    assert receipt["entries"][0]["code"] == "STALE_GENERATION"


@routed
async def test_a_decision_about_something_else_than_was_seen_is_refused(s: System) -> None:
    await pay_and_migrate(s)
    digest = s.asked("payments")["pay"]["digest"]
    other = await s.decide("payments", "t", {"pay": {"approved": True}}, seen={"pay": "0" * 64})
    right = await s.decide("payments", "t", {"pay": {"approved": True}}, seen={"pay": digest})

    assert other["entries"][0]["code"] == "SEEN_SOMETHING_ELSE"
    assert right["verdict"] == "accepted"


@routed
async def test_questions_are_withdrawn_when_the_pause_is_answered_elsewhere(s: System) -> None:
    await s.send("inputs", an_input("t", "r1"))
    await s.send("agent-events.default", started("t", "r1"))
    await s.send("agent-events.default", paused("t", "r1", an_interrupt("i", reason="chat:hello")))
    assert list(s.asked("ops")) == ["i"]

    await s.send("inputs", a_resume("t", "r2", {"i": True}))

    assert s.asked("ops") == {}
    receipt = await s.decide("ops", "t", {"i": False})
    assert receipt["entries"][0]["code"] == "ANSWERED_ELSEWHERE"
    assert s.said("resumes") == []


@routed
async def test_questions_come_back_when_somebody_elses_answer_came_to_nothing(s: System) -> None:
    await s.send("inputs", an_input("t", "r1"))
    await s.send("agent-events.default", started("t", "r1"))
    await s.send("agent-events.default", paused("t", "r1", an_interrupt("i", reason="chat:hello")))
    await s.send("inputs", a_resume("t", "r2", {"i": True}))
    failed = {"type": "RUN_ERROR", "message": "no"}
    await s.send("agent-events.default", failed, key="t", headers={"holdshort-run": "r2"})

    assert list(s.asked("ops")) == ["i"]
    receipt = await s.decide("ops", "t", {"i": False})
    assert receipt["verdict"] == "accepted"
    assert len(s.said("runs.default", "t")) == 3


@routed
async def test_a_batch_whose_run_failed_is_asked_again_with_the_answers_given(s: System) -> None:
    await pay_and_migrate(s)
    await s.decide("dba", "t", {"migrate": True})
    await s.decide("payments", "t", {"pay": {"approved": True}})
    run = s.said("runs.default", "t")[1].value["runId"]
    await s.send("agent-events.default", started("t", run))
    await s.send(
        "agent-events.default",
        {"type": "RUN_ERROR", "message": "no"},
        key="t",
        headers={"holdshort-run": run},
    )

    approval = s.asked("payments")["pay"]
    assert (approval["attempt"], approval["previous"]["payload"]) == (2, {"approved": True})
    await s.decide("dba", "t", {"migrate": True})
    await s.decide("payments", "t", {"pay": {"approved": False}})
    runs = [one.value["runId"] for one in s.said("runs.default", "t")]
    assert len(runs) == len(set(runs)) == 3


@routed
async def test_an_agent_that_replays_is_not_resumed_with_incomplete_messages(s: System) -> None:
    await s.send("inputs", an_input("t", "r1"), headers={"holdshort-agent": "replaying"})
    await s.send("agent-events.replaying", started("t", "r1"))
    text = {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
    await s.send("agent-events.replaying", text, key="t")
    await s.send("agent-events.replaying", paused("t", "r1", an_interrupt("i", reason="x:y")))
    receipt = await s.decide("ops", "t", {"i": True})

    assert receipt["batch"] == {"complete": True, "waitingFor": [], "runId": None}
    assert s.said("resumes") == []


@routed
async def test_a_resumed_run_that_pauses_again_is_another_generation(s: System) -> None:
    await pay_and_migrate(s)
    first = s.thread("t").generation
    await s.decide("dba", "t", {"migrate": True})
    await s.decide("payments", "t", {"pay": {"approved": True}})
    run = s.said("runs.default", "t")[1].value["runId"]
    await s.send("agent-events.default", started("t", run))
    await s.send("agent-events.default", paused("t", run, an_interrupt("pay", reason="x:y")))

    assert s.asked("ops")["pay"]["generation"] == first + 1
    bare = await s.decide("ops", "t", {"pay": True}, bare=True)
    addressed = await s.decide("ops", "t", {"pay": True}, generation=first + 1)
    assert bare["entries"][0]["code"] == "STALE_GENERATION"
    assert addressed["verdict"] == "accepted"


@routed
async def test_everything_survives_a_restart_of_either_service(s: System) -> None:
    await pay_and_migrate(s)
    await s.restart("router")
    assert list(s.asked("payments")) == ["pay"]
    await s.decide("payments", "t", {"pay": {"approved": True}})
    await s.restart("gatekeeper")
    await s.restart("router")
    assert s.asked("payments") == {}
    await s.decide("dba", "t", {"migrate": True})

    assert len(s.said("runs.default", "t")) == 2
    assert len(s.said("approvals.payments")) == 2


@routed
async def test_a_bare_resume_of_plain_ag_ui_counts_for_what_is_open(s: System) -> None:
    await pay_and_migrate(s)
    receipt = await s.decide("payments", "t", {"pay": {"approved": True}}, bare=True)

    assert receipt["verdict"] == "accepted"
    assert receipt["decisionId"].startswith("decisions.payments/")


@routed
async def test_a_decision_of_an_unknown_version_is_not_guessed_at(s: System) -> None:
    await pay_and_migrate(s)
    newer = await s.decide("payments", "t", {"pay": {"approved": True}}, v=2)
    text = await s.decide("payments", "t", {"pay": {"approved": True}}, generation="1")
    seen = await s.decide("payments", "t", {"pay": {"approved": True}}, seen=["pay"])

    assert {one["code"] for one in (newer, text, seen)} == {"MALFORMED_DECISION"}
    assert list(s.asked("payments")) == ["pay"]


@routed
async def test_what_a_decision_may_hold_is_limited(s: System) -> None:
    await pay_and_migrate(s)
    long_id = await s.decide("payments", "t", {"pay": {"approved": True}}, decisionId="d" * 1_000_000)
    comment = await s.decide("payments", "t", {"pay": {"approved": True}}, comment="c" * 900_000)
    payload = await s.decide("payments", "t", {"pay": {"approved": True, "x": "y" * 70_000}})

    assert {one["code"] for one in (long_id, comment, payload)} == {"TOO_LARGE"}
    assert len(s.said("gathering", "t")[-1].record.value or b"") < 5_000


@routed
async def test_many_receipts_do_not_outgrow_a_record(s: System) -> None:
    await pay_and_migrate(s)
    for number in range(80):
        await s.decide("payments", "t", {"x" * 500 + str(number): 1}, decisionId="d" * 500 + str(number))

    assert len(s.said("gathering", "t")[-1].record.value or b"") < 200_000
    assert (await s.decide("payments", "t", {"pay": {"approved": True}}))["verdict"] == "accepted"


@routed
async def test_every_judgement_of_a_decision_is_in_the_audit_and_chained(s: System) -> None:
    await pay_and_migrate(s)
    await s.decide("dba", "t", {"pay": {"approved": True}, "migrate": True}, decidedBy="kim")
    await s.decide("payments", "t", {"pay": {"approved": True}}, v=7)

    records = [one for one in s.said("audit", "t") if one.value["service"] == "router"]
    first, second = (one.value for one in records)
    assert [entry["verdict"] for entry in first["entries"]] == ["refused", "accepted"]
    assert first["entries"][1]["decidedBy"] == "kim"
    assert (second["verdict"], second["code"]) == ("refused", "MALFORMED_DECISION")
    assert second["previous"] == sha256(records[0].record.value or b"").hexdigest()


@routed
async def test_a_client_that_sees_the_end_agrees_that_nothing_is_open(s: System) -> None:
    await pay_and_migrate(s)
    await s.decide("dba", "t", {"migrate": True})
    await s.decide("payments", "t", {"pay": {"approved": True}})
    run = s.said("runs.default", "t")[1].value["runId"]
    await s.send("agent-events.default", started("t", run))
    await s.send("agent-events.default", finished("t", run))

    assert s.pause("t") is None
    shown = [one.value["type"] for one in s.said("events", "t")][-2:]
    assert shown == ["RUN_STARTED", "RUN_FINISHED"]


@routed
async def test_a_bare_resume_that_says_a_word_of_ours_does_not_count(s: System) -> None:
    """Unheeded, a condition would be none: a claim would approve."""
    await pay_and_migrate(s)
    bare = {"threadId": "t", "resume": [{"interruptId": "pay", "status": "resolved", "payload": YES}]}
    words: Json = {
        "action": "claim",
        "attempt": 1,
        "generation": s.thread("t").generation,
        "seen": {"pay": "0" * 64},
        "decidedBy": "zoe",
        "decidedAt": None,
        "comment": "no",
        "decisionId": "d",
    }
    for name, word in words.items():
        await s.send("decisions.payments", {**bare, name: word})
        assert s.said("receipts.payments", "t")[-1].value["code"] == "MALFORMED_DECISION", name

    assert "pay" in s.asked("payments")


@routed
async def test_a_decision_in_which_a_name_stands_twice_does_not_count(s: System) -> None:
    """Every parser must read the same answer in it."""
    await pay_and_migrate(s)
    in_payload = b'{"interruptId":"pay","status":"resolved","payload":{"approved":true,"approved":false}}'
    yes, no = b'{"interruptId":"pay","status":"resolved"}', b'{"interruptId":"pay","status":"cancelled"}'
    for members in (b'"resume":[%s]' % in_payload, b'"resume":[%s],"resume":[%s]' % (yes, no)):
        await s.send("decisions.payments", b'{"threadId":"t",%s}' % members, key="t")
        assert s.said("receipts.payments", "t")[-1].value["code"] == "MALFORMED_DECISION"

    assert "pay" in s.asked("payments")
