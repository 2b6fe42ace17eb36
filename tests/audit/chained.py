"""The chains of an installation in memory, and a story that every service writes its part of."""

from typing import Any

from tests.clients import an_input, an_interrupt, paused, started
from tests.router.scenes import ends, fails
from tests.systems import System

from holdshort.contract.chains import Chains

ARGS = '{"amount":950,"to":"ACME"}'
RESULT = "paid 950 to ACME"
CONFIG = """
agents: {default: {}}
teams: {payments: {}, dba: {}}
routes:
  - {tool: transfer_money, team: payments}
  - {reason: "db:*", team: dba}
"""


async def asks(system: System, thread: str = "t", run: str = "r1") -> None:
    """A run that pauses with a tool call for payments and a question for the database team."""
    await system.send("inputs", an_input(thread, run))
    for event in (
        started(thread, run),
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "transfer_money"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": ARGS[:9]},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": ARGS[9:]},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        paused(thread, run, an_interrupt("pay", toolCallId="c1"), an_interrupt("drop", reason="db:drop")),
    ):
        await system.send("agent-events.default", event, key=thread, headers={"holdshort-run": run})


async def brings(system: System, run: str, content: Any = RESULT, thread: str = "t") -> None:
    """The run that answers brings the result of the tool call."""
    event = {"type": "TOOL_CALL_RESULT", "toolCallId": "c1", "messageId": "m2", "content": content}
    await system.send("agent-events.default", event, key=thread, headers={"holdshort-run": run})


async def story(system: System) -> None:
    """Asked, refused, answered, failed, answered again, settled; another thread is abandoned."""
    await asks(system)
    await system.send("inputs", an_input("t", "r2"))
    await system.decide("payments", "t", {"pay": {"approved": True}}, decidedBy="ann")
    await system.decide("payments", "t", {"drop": True})
    await system.decide("dba", "t", {"drop": False}, decidedBy="bob")
    run = system.said("runs.default", "t")[-1].value["runId"]
    await system.send("agent-events.default", started("t", run))
    await brings(system, run)
    await fails(system, run)
    await system.decide("payments", "t", {"pay": {"approved": True}})
    await system.decide("dba", "t", {"drop": False})
    run = system.said("runs.default", "t")[-1].value["runId"]
    await ends(system, run)
    await asks(system, "u")
    generation = str(system.thread("u").generation)
    abandon = {"holdshort-action": "abandon", "holdshort-generation": generation}
    await system.send("resumes", an_input("u", "hs-end"), headers=abandon)


def followed(system: System) -> Chains:
    """Every chain as it became visible, with the newest digests as the positions name them."""
    heads: dict[tuple[str, int], str] = {}
    for service in ("gatekeeper", "router"):
        for said in system.said(f"{service}.positions"):
            heads |= {(service, int(number)): head for number, head in said.value["notes"].items()}
    chains = Chains(dict.fromkeys(range(2), 0), heads)
    for said in system.said("audit"):
        record = said.record
        chains.follow(record.partition, record.offset, record.timestamp, record.key, record.value)
    chains.end()
    return chains


def judged(system: System) -> list[tuple[str, str, str, str | None]]:
    """What was written of each record, without times and without offsets, which markers move."""
    return [
        (one.value["service"], one.value["threadId"], one.value["verdict"], one.value["code"])
        for one in system.said("audit")
    ]
