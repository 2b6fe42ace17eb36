"""Agents and approvers in your own tests, without Kafka: inputs and questions in, events and decisions out.

    said = await run_agent(worker, an_input("pay ann 50"))
    [question] = said.approvals()
    decision = await app.decide(question)
    after = await run_agent(worker, said.resumed({question.interrupt_id: decision}))
    assert after.outcome == "success"

What is said is exactly what the worker would publish, snapshots and made-up endings included; an answer that
the router would refuse for what it says fails the test, with the router's code.
"""

import asyncio
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import orjson

from holdshort.contract import resume as batch
from holdshort.contract.canon import digest_of
from holdshort.contract.rules import Limits
from holdshort.contract.state import Interrupt
from holdshort.contract.statement import SIGNATURE, shown_digest
from holdshort.sdk.agent import AgentWorker
from holdshort.sdk.approvals import ABSENT, Approval, Decision
from holdshort.sdk.approver import Approver
from holdshort.sdk.conduct import Function, Habits, Voice, conduct
from holdshort.sdk.runs import Run
from holdshort.sdk.transcript import Transcript

Json = Any


class RefusedError(ValueError):
    """An answer that the router would refuse; the text is its code, and where and why."""


class Said(NamedTuple):
    """What one run said: its events as they would stand in `agent-events.<agent>`, and its input."""

    input: dict[str, Json]
    events: list[dict[str, Json]]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def outcome(self) -> str:
        """How it ended: success, interrupt, cancelled, or error."""
        last = self.events[-1]
        if last["type"] == "RUN_ERROR":
            return "error"
        return str((last.get("outcome") or {"type": "success"})["type"])

    @property
    def interrupts(self) -> list[dict[str, Json]]:
        """What it waits for; empty unless its outcome is interrupt."""
        outcome = self.events[-1].get("outcome") or {}
        return list(outcome.get("interrupts", []))

    @property
    def transcript(self) -> Transcript:
        """The conversation after the run, as a client has it."""
        transcript = Transcript(list(self.input.get("messages") or []), self.input.get("state"))
        for event in self.events:
            transcript.fold(event)
        return transcript

    def approvals(self, team: str = "team") -> list[Approval]:
        """Its interrupts as a team would be asked them."""
        calls = {
            call["id"]: call["function"]
            for message in self.transcript.messages
            for call in message.get("toolCalls") or ()
        }
        asked = []
        for one in self.interrupts:
            function = calls.get(one.get("toolCallId"), {"name": None, "arguments": None})
            asked.append(
                an_approval(
                    tool=function["name"],
                    args=function["arguments"],
                    interrupt=one,
                    team=team,
                    thread=self.input["threadId"],
                    interruptedRunId=self.input["runId"],
                )
            )
        return asked

    def resumed(self, answers: Mapping[str, Decision], *, run: str = "resumed") -> dict[str, Json]:
        """The input that goes on from here with these answers, as the router writes it.

        Raises RefusedError for answers that would not get so far: too few, too many, or such as do not fit.
        """
        transcript = self.transcript
        ids = [one["id"] for one in self.interrupts]
        given = [batch.Entry(id_, True, batch.ABSENT, {}) for id_ in answers]
        _let_pass([*batch.unknown(given, ids), *batch.unanswered(given, ids)])
        entries = [_entry(one, answers[one["id"]]) for one in self.interrupts]
        return {
            **self.input,
            "runId": run,
            "parentRunId": self.input["runId"],
            "messages": transcript.snapshot(),
            "state": transcript.state,
            "resume": entries,
        }


def _entry(descriptor: Mapping[str, Json], decision: Decision) -> dict[str, Json]:
    """What an agent is told; a claim is no answer, and a confirm stands for one that must be given here."""
    if decision.action != "decide":
        raise ValueError(f"a {decision.action} is not what an agent is resumed with: give the answer itself")
    _fits(descriptor, decision)
    entry: dict[str, Json] = {"interruptId": descriptor["id"], "status": decision.status}
    return entry if decision.payload is ABSENT else {**entry, "payload": decision.payload}


def _fits(descriptor: Mapping[str, Json], decision: Decision) -> None:
    """By the router's own code: its expiry, and its payload against the schema. Raises RefusedError."""
    payload = batch.ABSENT if decision.payload is ABSENT else decision.payload
    entry = batch.Entry(descriptor["id"], decision.status == "resolved", payload, {})
    asked = Interrupt(id=descriptor["id"], descriptor=msgspec.Raw(orjson.dumps(descriptor)))
    work = batch.Work(Limits().work)
    _let_pass(batch.expired([entry], [asked], int(datetime.now(UTC).timestamp() * 1000)))
    _let_pass(batch.payload_problems(entry, asked, work, check_unusable=True))


def _let_pass(problems: Sequence[batch.Problem]) -> None:
    for one in problems[:1]:
        raise RefusedError(f"{one.code}: {one.interrupt_id}{one.path or ''}: {one.message}".rstrip(": "))


async def run_agent(agent: AgentWorker | Function, input_: Any) -> Said:
    """Run an agent's function once, with the habits of its worker; `input_` is a RunAgentInput or a dict."""
    function = agent.function if isinstance(agent, AgentWorker) else agent
    habits = agent.habits if isinstance(agent, AgentWorker) else Habits()
    assert function is not None, "an agent needs a function: @worker.on_run"
    value = _encoded(input_)
    parsed: dict[str, Json] = orjson.loads(value)
    said = Said(parsed, [])

    async def send(event: bytes) -> "asyncio.Future[None]":
        said.events.append(json.loads(event))
        confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        confirmed.set_result(None)
        return confirmed

    run = Run(parsed["threadId"], parsed["runId"], "inputs/0/0", None, 0, 0, value)
    await conduct(run, function, Voice(send, habits.publish_deadline), habits)
    return said


def _encoded(input_: Any) -> bytes:
    if isinstance(input_, Mapping):
        return orjson.dumps(input_)
    return bytes(input_.model_dump_json(by_alias=True, exclude_none=True), "utf-8")


async def decide(
    app: Approver, approval: Approval | Mapping[str, Json], *, place: str | None = None
) -> dict[str, Json] | None:
    """The decision.v1 that the app would publish for this question; None if it leaves it to others.

    `place` is where it was read (`partition/offset`): read there again, it gets the same `decisionId`.
    Raises RefusedError for an answer that the router would refuse: it does not fit, confirms nothing, or has
    no signature where one is required.
    """
    asked = approval if isinstance(approval, Approval) else Approval.model_validate(approval)
    decision = await app.decide(asked)
    if decision is None:
        return None
    record = app.record(asked, decision, datetime.now(UTC), place)
    if decision.action in ("decide", "confirm"):
        signed = SIGNATURE in (record["resume"][0].get("metadata") or {})
        if asked.signature == "required" and not signed:
            raise RefusedError("SIGNATURE_REQUIRED: the route takes signed decisions only")
    if decision.action == "confirm" and asked.previous is None:
        raise RefusedError("NOTHING_TO_CONFIRM: nothing was decided before")
    if decision.action == "decide":
        _fits(asked.interrupt, decision)
    return record


# -- what is asked ------------------------------------------------------------------------------------------


def an_input(text: str, *, thread: str = "thread", run: str = "run", **members: Json) -> dict[str, Json]:
    """A RunAgentInput in which a person says this."""
    return {
        "threadId": thread,
        "runId": run,
        "messages": [{"id": f"{run}-1", "role": "user", "content": text}],
        "state": {},
        "tools": [],
        "context": [],
        "forwardedProps": {},
        **members,
    }


def an_approval(
    *,
    reason: str = "tool_call",
    tool: str | None = None,
    args: Mapping[str, Json] | str | None = None,
    interrupt: Mapping[str, Json] | None = None,
    team: str = "team",
    thread: str = "thread",
    **members: Json,
) -> Approval:
    """A question as a team is asked it: about a tool call with these arguments (a mapping, or JSON text).

    `interrupt` is the agent's whole descriptor, if more than a reason matters; `members` are others of
    approval.v1, such as `attempt`, `deadline` (ms since the epoch) or `previous`.
    """
    called = {"toolCallId": "call"} if tool else {}
    descriptor = dict(interrupt or {"id": "int-call", "reason": reason, **called})
    text = args if isinstance(args, str) or args is None else orjson.dumps(args).decode()
    call = {"callId": descriptor.get("toolCallId", "call"), "name": tool, "args": text} if tool else None
    asked = {
        "approvalId": _name_of(thread, descriptor["id"]),
        "threadId": thread,
        "generation": 1,
        "attempt": 1,
        "interruptedRunId": "run",
        "agent": "agent",
        "requester": None,
        "team": team,
        "route": team,
        "interrupt": descriptor,
        "tool": call,
        "attempted": False,
        "openedAt": int(datetime.now(UTC).timestamp() * 1000),
        "deadline": None,
        "priority": 0,
        "batch": {"total": 1, "yours": 1},
        "quorum": {"need": 1, "have": 0},
        "claim": None,
        "previous": None,
        "digest": shown_digest(descriptor, call),
    }
    return Approval.model_validate(asked | members)


def _name_of(thread: str, interrupt_id: str) -> str:
    name = digest_of([thread, 1, interrupt_id])
    return urlsafe_b64encode(bytes.fromhex(name)).decode()[:22]
