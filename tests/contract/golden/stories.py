"""What is done to a real installation while its topics are recorded: one function a history.

Each step is over when the gate has dealt with it, so that the order of judging is that of the log.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from tests.clients import an_input, an_interrupt, finished, paused, started

TEAMS = """
agents: {default: {}, other: {}}
teams: {payments: {}, dba: {}}
routes:
  - {tool: transfer_money, team: payments}
  - {reason: "db:*", team: dba}
  - {reason: input_required, team: dba, answer_by: anyone}
"""
CLIENTS = """
agents: {default: {}, old: {legacy_interrupts: true}, strange: {foreign_run_ids: true}}
run_lease: 3s
start_lease: 3s
limits: {remembered: 3, interrupts: 8, payload: 2KiB}
"""
BOOLEAN = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}


class Stage(Protocol):
    """A running installation as a story sees it."""

    async def say(self, topic: str, value: Any, *, key: str = "", **headers: str) -> None:
        """Send a record and wait until it has been judged; `run=` is the header `holdshort-run`."""

    async def lost(self, thread: str) -> None:
        """Wait until the run in flight has been given up."""

    def admission(self, agent: str, run: str) -> str:
        """The admission of a run as its agent was told it."""

    def generation(self, thread: str) -> int:
        """The generation of the pause that was last opened."""


def answers(by_id: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [
        {"interruptId": id_, "status": "resolved", "payload": payload, **more}
        for id_, payload in by_id.items()
    ]


def cancels(*ids: str) -> list[dict[str, Any]]:
    return [{"interruptId": id_, "status": "cancelled"} for id_ in ids]


async def teams(stage: Stage) -> None:
    """Two teams' questions, answered as the router does: refused, answered, failed, and abandoned."""
    say = stage.say
    await say("inputs", an_input("t", "r1"), principal="ada")
    echo = stage.admission("default", "r1")
    for event in (
        started("t", "r1"),
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m2", "delta": "one moment"},
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "transfer_money"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"amount":950}'},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m1", "role": "user", "content": "please"}]},
        {"type": "STATE_SNAPSHOT", "snapshot": {"step": 1}},
        paused("t", "r1", an_interrupt("pay", toolCallId="c1", responseSchema=BOOLEAN),
               {"id": "drop", "reason": "db:drop", "message": "Drop orders?"}),
    ):  # fmt: skip
        await say("agent-events.default", event, key="t", run="r1", admission=echo)
    await say("inputs", an_input("t", "r2"))
    await say("inputs", an_input("t", "r2", resume=answers({"pay": {"approved": True}, "drop": True})))
    generation = str(stage.generation("t"))
    batch = answers({"pay": {"approved": True}, "drop": False}, metadata={"holdshort": {"team": "payments"}})
    await say("resumes", an_input("t", "hs-0", resume=batch), generation="7")
    await say("resumes", an_input("t", "hs-0", resume=batch[:1]), generation=generation)
    await say("resumes", an_input("t", "hs-0", parentRunId="r1", resume=batch), generation=generation)
    await say("agent-events.default", started("t", "hs-0"))
    for event in ({"type": "TOOL_CALL_RESULT", "toolCallId": "c1", "messageId": "m3", "content": "paid"},
                  {"type": "RUN_ERROR", "message": "the bank is closed"}):  # fmt: skip
        await say("agent-events.default", event, key="t")
    await say("inputs", an_input("t", "late", resume=answers({"pay": {"approved": True}, "drop": False})))
    await say("resumes", an_input("t", "hs-end"), action="abandon", generation=generation)
    await say("resumes", an_input("t", "hs-end"), action="abandon", generation=generation)


async def clients(stage: Stage) -> None:
    """Plain AG-UI clients and agents of every habit, with what goes wrong between them."""
    await _answers(stage)
    await _runs(stage)
    await _oddities(stage)


async def _answers(stage: Stage) -> None:
    say, bound = stage.say, {"id": "a", "reason": "confirmation", "responseSchema": BOOLEAN}
    timed = {"id": "b", "reason": "confirmation", "expiresAt": "2020-01-01T00:00:00Z"}
    await say("inputs", an_input("t", "r1"))
    await say("inputs", an_input("t", "r2"))
    await say("agent-events.default", started("t", "r1"))
    await say("agent-events.default", paused("t", "r1", bound, timed))
    await say("agent-events.default", paused("t", "r1", bound, timed))
    await say("inputs", an_input("t", "r2", resume=answers({"a": {"approved": True}})))
    both = {"a": {"approved": True}, "b": 1}
    await say("inputs", an_input("t", "r2", resume=answers({**both, "z": 1})))
    await say("inputs", an_input("t", "r2", resume=answers(both)))
    await say("inputs", an_input("t", "r2", resume=[*answers({"a": 5}), *cancels("b")]))
    final = an_input("t", "r2", resume=[*answers({"a": {"approved": True}}), *cancels("b")])
    await say("inputs", final)
    await say("inputs", final)
    await say("inputs", an_input("t", "r3", resume=cancels("a", "b")))
    await say("agent-events.default", started("t", "r2"))
    await say("agent-events.default", finished("t", "r2"))
    await say("inputs", {**final, "runId": "r4"})
    await say("inputs", an_input("t", "r5", resume=answers({"a": {"approved": False}, "b": 1})))
    await say("inputs", an_input("t", "r6", resume=cancels("a")))


async def _runs(stage: Stage) -> None:
    say = stage.say
    await say("agent-events.default", paused("u", "x", an_interrupt("a")))
    await say("agent-events.default", paused("u", "x", an_interrupt("a", message="sure?")))
    await say("inputs", an_input("u", "y", resume=answers({"a": None})))
    await say("agent-events.default", started("u", "y"))
    await stage.lost("u")
    await say("agent-events.default", finished("u", "y"))
    await say("inputs", an_input("u", "z", forwardedProps={"command": {"resume": 1}}))
    await say("inputs", an_input("u", "z"), agent="nobody")
    await say("inputs", an_input("v", "r1"), agent="strange")
    echo = stage.admission("strange", "r1")
    await say("agent-events.strange", paused("v", "its-own", an_interrupt("a")), admission=echo)
    await say("agent-events.default", finished("v", "its-own"))
    await say("resumes", an_input("v", "hs-1"), action="abandon", generation=str(stage.generation("v")))


async def _oddities(stage: Stage) -> None:
    say = stage.say
    await say("inputs", an_input("w", "r1"), agent="old")
    await say("agent-events.old", {"type": "CUSTOM", "name": "on_interrupt", "value": {"q": 1}}, key="w")
    await say("agent-events.old", started("w", "r1"))
    await say("agent-events.old", {"type": "CUSTOM", "name": "on_interrupt", "value": {"q": 1}}, key="w")
    await say("agent-events.old", {"type": "CUSTOM", "name": "holdshort:heartbeat", "value": None}, key="w")
    await say("agent-events.old", {"type": "RUN_FINISHED", "threadId": "w", "runId": "r1"})
    await say("inputs", an_input("w", "r2", resume=answers({"legacy-0": "yes"})))
    await say("agent-events.old", {"type": "RUN_FINISHED", "runId": "r2", "outcome": []}, key="w")
    await say("inputs", b'{"threadId":"w","runId":"r3","x":NaN}', key="w")
    await say("inputs", an_input("w", "r4"), key="elsewhere")
    await say("agent-events.old", b"[1]", key="w")
    unusable = an_interrupt("a", responseSchema={"$ref": "https://example.org/x"})
    await say("agent-events.default", paused("x", "r1", unusable))
    await say("inputs", an_input("x", "r2", resume=answers({"a": 1})))
    await say("inputs", an_input("x", "r2", resume=answers({"a": "x" * 3000})))
    await say("inputs", an_input("x", "r2", resume=cancels("a")))


STORIES: dict[str, tuple[str, Callable[[Stage], Awaitable[None]]]] = {
    "teams": (TEAMS, teams),
    "clients": (CLIENTS, clients),
}
