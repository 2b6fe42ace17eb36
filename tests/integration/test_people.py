"""Routing to people on a real Kafka: deadlines that read the log, quorums, claims, and kills in between."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.clients import Json, Seen, Wire, an_input, an_interrupt, paused, started
from tests.installations import Installation, installed

pytestmark = [pytest.mark.broker, pytest.mark.system]

CONFIG = """
agents: {default: {}}
teams: {payments: {}, dba: {}, ops: {}}
trust_principal: [inputs, decisions.payments]
routes:
  - {reason: "soon:*", team: dba, deadline: 4s, remind_after: 1s, escalate_after: 2s, escalate_to: ops}
  - {reason: "two:*", team: payments, quorum: 2}
  - {reason: "pay:*", team: payments}
"""


async def pause(wire: Wire, thread: str, *asked: Json) -> None:
    """A run of a plain agent pauses; returns when the teams have been asked."""
    wire.send("inputs", an_input(thread, "r1"))
    wire.send("agent-events.default", started(thread, "r1"))
    wire.send("agent-events.default", paused(thread, "r1", *asked))
    await wire.until(lambda seen: len(shown(seen, thread)) >= len(asked), why="nobody was asked")


def shown(seen: list[Seen], thread: str) -> list[Seen]:
    """Approvals of a thread, as they were written."""
    found = [one for one in seen if one.topic.startswith("approvals.") and one.value is not None]
    return [one for one in found if one.value["threadId"] == thread]


def generation(wire: Wire, thread: str) -> int:
    found: int = shown(wire.seen, thread)[-1].value["generation"]
    return found


async def decides(wire: Wire, team: str, thread: str, by: str, id_: str, **more: Any) -> Json:
    """A decision by somebody whom an edge has authenticated; returns its receipt."""
    name = f"{by}-{id_}-{len(wire.of(f'receipts.{team}'))}"
    entry = {"interruptId": id_, "status": "resolved", "payload": {"approved": True}}
    decision = {
        "v": 1,
        "decisionId": name,
        "threadId": thread,
        "generation": generation(wire, thread),
        "decidedBy": by,
        "resume": [entry],
        **more,
    }
    wire.send(f"decisions.{team}", decision, headers={"holdshort-principal": by})
    await wire.until(receipt_of(team, name), why="no receipt")
    return next(one.value for one in wire.of(f"receipts.{team}") if one.value["decisionId"] == name)


def receipt_of(team: str, name: str) -> Callable[[list[Seen]], bool]:
    topic = f"receipts.{team}"
    return lambda seen: any(one.topic == topic and one.value["decisionId"] == name for one in seen)


def batch_of(thread: str) -> Callable[[list[Seen]], bool]:
    return lambda seen: any(
        one.topic == "runs.default" and one.key == thread and "resume" in one.value for one in seen
    )


def answers(wire: Wire, thread: str) -> list[Json]:
    runs = [one.value for one in wire.of("runs.default", thread) if "resume" in one.value]
    return [{one["interruptId"]: one.get("payload", one["status"]) for one in run["resume"]} for run in runs]


async def test_people_are_reminded_another_team_is_asked_and_then_it_ends(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    async with installed(bootstrap_servers, tmp_path, CONFIG) as here:
        wire = here.wire
        soon = an_interrupt("a", reason="soon:x")
        await pause(wire, "t", soon, an_interrupt("b", reason="pay:x"))
        await decides(wire, "payments", "t", "ann", "b")
        await wire.until(batch_of("t"), why="nothing was forwarded")

        told = [(one.topic, one.value["reminded"], one.value["movedFrom"]) for one in shown(wire.seen, "t")]
        assert ("approvals.dba", True, None) in told
        assert ("approvals.ops", True, "dba") in told
        assert answers(wire, "t") == [{"a": "cancelled", "b": {"approved": True}}]


async def test_a_quorum_and_a_claim_survive_a_killed_router(bootstrap_servers: str, tmp_path: Path) -> None:
    async with installed(bootstrap_servers, tmp_path, CONFIG) as here:
        wire = here.wire
        await pause(wire, "t", an_interrupt("a", reason="two:x"), an_interrupt("b", reason="pay:x"))
        claim = await decides(wire, "payments", "t", "ann", "b", action="claim")
        first = await decides(wire, "payments", "t", "ann", "a")
        await killed(here)
        held = await decides(wire, "payments", "t", "bob", "b")
        await killed(here)
        again = await decides(wire, "payments", "t", "ann", "a")
        second = await decides(wire, "payments", "t", "bob", "a")
        await killed(here)
        last = await decides(wire, "payments", "t", "ann", "b")
        await wire.until(batch_of("t"), why="nothing was forwarded")

        assert [one["verdict"] for one in (claim, first, again, second, last)] == [
            "accepted",
            "accepted",
            "duplicate",
            "accepted",
            "accepted",
        ]
        assert held["entries"][0]["code"] == "CLAIMED"
        assert answers(wire, "t") == [{"a": {"approved": True}, "b": {"approved": True}}]


async def killed(here: Installation) -> None:
    """The router is gone without a word, and is started again; decisions may come before it is."""
    router = next(one for one in here.stack.processes if one.service == "router")
    here.stack.kill(router)
    await here.stack.until_ready()
