"""An agent and an approver are tested without Kafka, from the question to the finished run."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import (
    BaseEvent,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TextMessageChunkEvent,
    ToolCallArgsEvent,
    ToolCallStartEvent,
)
from tests.schemas.catalogue import Schema

from holdshort.sdk.agent import AgentWorker
from holdshort.sdk.approver import Approval, Approver, Decision, answer, approve, confirm, deny
from holdshort.sdk.testing import RefusedError, an_approval, an_input, decide, run_agent

worker = AgentWorker("billing")
app = Approver("payments")


@worker.on_run
async def run(input: RunAgentInput) -> AsyncIterator[BaseEvent]:  # noqa: A002 - as the README writes it
    """Asks before it pays."""
    ids = {"thread_id": input.thread_id, "run_id": input.run_id}
    if not input.resume:
        args = json.dumps({"amount": 50})
        yield ToolCallStartEvent(tool_call_id="c1", tool_call_name="transfer_money")
        yield ToolCallArgsEvent(tool_call_id="c1", delta=args)
        question = Interrupt(id="int-c1", reason="tool_call", tool_call_id="c1", message="Pay 50?")
        yield RunFinishedEvent(**ids, outcome=RunFinishedInterruptOutcome(interrupts=[question]))
        return
    payload: Any = input.resume[0].payload
    said = "paid" if payload["approved"] else "not paid"
    yield TextMessageChunkEvent(message_id=f"{input.run_id}-said", delta=said)
    yield RunFinishedEvent(**ids)


@app.on(tool="transfer_money")
async def small_amounts(approval: Approval) -> Decision | None:
    return approve(by="limits") if approval.args["amount"] < 100 else None


async def test_a_conversation_from_the_question_to_the_end() -> None:
    said = await run_agent(worker, an_input("pay ann 50"))

    assert said.types == [
        "RUN_STARTED",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "MESSAGES_SNAPSHOT",
        "RUN_FINISHED",
    ]
    assert said.outcome == "interrupt"

    [question] = said.approvals("payments")
    decision = await app.decide(question)
    assert decision is not None
    after = await run_agent(worker, said.resumed({question.interrupt_id: decision}))

    assert after.outcome == "success"
    assert after.transcript.messages[-1]["content"] == "paid"


async def test_the_resumed_input_is_as_the_router_writes_it() -> None:
    said = await run_agent(worker, an_input("pay"))
    resumed = said.resumed({"int-c1": deny()}, run="again")

    assert resumed["parentRunId"] == "run"
    assert resumed["messages"] == said.events[-2]["messages"]
    assert resumed["resume"] == [
        {"interruptId": "int-c1", "status": "resolved", "payload": {"approved": False}}
    ]
    assert RunAgentInput.model_validate(resumed).run_id == "again"


async def test_an_input_may_be_a_model_and_an_agent_a_function() -> None:
    input_ = RunAgentInput.model_validate(an_input("pay"))

    assert (await run_agent(run, input_)).outcome == "interrupt"


async def test_a_failing_agent_is_seen_as_its_clients_see_it() -> None:
    async def failing(input_: RunAgentInput) -> AsyncIterator[BaseEvent]:
        if input_.messages:
            raise RuntimeError
        yield RunFinishedEvent(thread_id="never", run_id="never")

    said = await run_agent(failing, an_input("pay"))

    assert said.types == ["RUN_STARTED", "RUN_ERROR"]
    assert said.outcome == "error"
    assert said.interrupts == []


async def test_a_large_amount_is_left_to_people() -> None:
    assert await decide(app, an_approval(tool="transfer_money", args={"amount": 5000})) is None


@pytest.mark.parametrize(
    "approval",
    [
        an_approval(),
        an_approval(
            tool="t", args={"a": 1}, team="payments", thread="x", attempt=3, deadline=1_796_000_000_000
        ),
        an_approval(interrupt={"id": "i", "reason": "payments:x", "metadata": {}}),
    ],
)
def test_questions_of_tests_are_like_those_of_the_router(approval: Approval) -> None:
    wire = approval.model_dump(by_alias=True, mode="json", exclude_none=False)
    for name in ("openedAt", "deadline"):
        at = getattr(approval, {"openedAt": "opened_at", "deadline": "deadline"}[name])
        wire[name] = at and int(at.timestamp() * 1000)

    assert Schema("approval.v1").problems(wire) == []


STRICT = {
    "id": "int-1",
    "reason": "tool_call",
    "responseSchema": {
        "type": "object",
        "properties": {"approved": {"type": "boolean"}, "limit": {"type": "integer", "maximum": 10}},
        "required": ["approved"],
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize(
    ("decision", "members", "refusal"),
    [
        (answer({"approved": "yes"}), {}, "INVALID_PAYLOAD: int-1/approved: "),
        (answer({"approved": True, "limit": 11}), {}, "INVALID_PAYLOAD: int-1/limit: "),
        (answer(None), {}, "INVALID_PAYLOAD: int-1: "),
        (confirm(), {}, "NOTHING_TO_CONFIRM: "),
        (approve(), {"signature": "required"}, "SIGNATURE_REQUIRED: "),
        (
            approve(),
            {"interrupt": {**STRICT, "expiresAt": "2020-01-01T00:00:00Z"}},
            "INTERRUPT_EXPIRED: int-1",
        ),
    ],
)
async def test_a_decision_that_the_router_would_refuse_fails_the_test(
    decision: Decision, members: dict[str, Any], refusal: str
) -> None:
    strict = Approver("payments")

    @strict.on()
    async def always(_: Approval) -> Decision:
        return decision

    with pytest.raises(RefusedError, match=f"^{refusal}"):
        await decide(strict, an_approval(**{"interrupt": STRICT, **members}))


async def test_answers_that_would_not_reach_the_agent_fail_the_test() -> None:
    said = await run_agent(worker, an_input("pay ann 50"))

    for answers, refusal in (
        ({}, "PARTIAL_RESUME"),
        ({"int-c1": approve(), "x": deny()}, "UNKNOWN_INTERRUPT_ID"),
    ):
        with pytest.raises(RefusedError, match=f"^{refusal}: "):
            said.resumed(answers)
