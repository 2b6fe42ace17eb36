"""What happens again and again in the router's transcripts: a pause, how runs end, time that passes."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from tests.clients import Json, an_input, an_interrupt, finished, paused, started
from tests.systems import Said, System, system
from tests.virtual import EPOCH_MS, in_virtual_time, pass_time

from holdshort.contract.canon import sha256

Scenario = Callable[[System], Coroutine[Any, Any, None]]

SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "editedArgs": {"type": "object"}},
    "required": ["approved"],
}
YES, NO = {"approved": True}, {"approved": False}


def on(config: str) -> Callable[[Scenario], Callable[[], None]]:
    """A test in virtual time on a running system of this configuration."""

    def decorated(scenario: Scenario) -> Callable[[], None]:
        @wraps(scenario)
        def test() -> None:
            async def main() -> None:
                async with system(config) as installation:
                    await scenario(installation)

            in_virtual_time(main())

        del test.__wrapped__  # pytest would ask for the scenario's argument
        return test

    return decorated


def config(*routes: str, more: str = "", agents: str = "{default: {}}", teams: str | None = None) -> str:
    """Three teams and these routes."""
    listed = "\n".join(f"  - {{{route}}}" for route in routes)
    named = teams or "{payments: {}, dba: {}, ops: {}}"
    return f"agents: {agents}\nteams: {named}\ndefault_team: ops\n{more}\nroutes:\n{listed}\n"


def minute(minutes: float) -> str:
    """So many minutes after the beginning of virtual time, as AG-UI writes a time."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(EPOCH_MS / 1000 + minutes * 60, UTC).isoformat()


async def passes(minutes: float) -> None:
    await pass_time(minutes * 60)


async def pause(s: System, *asked: Json, thread: str = "t", agent: str = "default", **input_: Json) -> None:
    """A run that pauses with these interrupts."""
    headers = {"holdshort-agent": agent, **input_.pop("headers", {})}
    await s.send("inputs", an_input(thread, "r1", **input_), headers=headers)
    await s.send(f"agent-events.{agent}", started(thread, "r1"))
    await s.send(f"agent-events.{agent}", paused(thread, "r1", *asked))


def question(id_: str, reason: str, **more: Json) -> Json:
    return an_interrupt(id_, reason=reason, **more)


async def fails(s: System, run: str, *, thread: str = "t", agent: str = "default") -> None:
    """The run that has the answer fails."""
    topic = f"agent-events.{agent}"
    await s.send(topic, started(thread, run))
    headers = {"holdshort-run": run}
    await s.send(topic, {"type": "RUN_ERROR", "message": "no"}, key=thread, headers=headers)


async def ends(s: System, run: str, *, thread: str = "t", agent: str = "default") -> None:
    await s.send(f"agent-events.{agent}", started(thread, run))
    await s.send(f"agent-events.{agent}", finished(thread, run))


async def acts(s: System, team: str, action: str, *ids: str, thread: str = "t", **more: Json) -> Json:
    """A claim, a release or a confirm."""
    entries = [{"interruptId": id_} for id_ in ids]
    return await s.send_decision(team, thread, entries, action=action, **more)


def code(receipt: Json) -> str | None:
    """What the receipt says of its only entry."""
    (entry,) = receipt["entries"]
    found: str | None = entry["code"]
    return found


def codes(receipt: Json) -> list[str | None]:
    return [entry["code"] for entry in receipt["entries"]]


def runs(s: System, thread: str = "t", agent: str = "default") -> list[Said]:
    """The batches that have reached the agent, in order."""
    return [one for one in s.said(f"runs.{agent}", thread) if "resume" in one.value]


def answers(batch: Said) -> dict[str, Json]:
    """The answers of a batch, by interrupt: the payload, or `cancelled`."""
    return {
        one["interruptId"]: "cancelled" if one["status"] == "cancelled" else one.get("payload")
        for one in batch.value["resume"]
    }


def why(batch: Said, interrupt: str) -> str | None:
    """Why the router answered itself; None if somebody did."""
    (entry,) = (one for one in batch.value["resume"] if one["interruptId"] == interrupt)
    found: str | None = entry["metadata"]["holdshort"].get("cause")
    return found


def deeds(s: System, *wanted: str) -> list[str]:
    """What the audit says that the router did by itself."""
    said = [one.value["verdict"] for one in s.said("audit") if one.value["service"] == "router"]
    return [one for one in said if one in wanted] if wanted else said


def chained(s: System, partition: int) -> bool:
    """Whether the router's audit of a partition is a chain."""
    log = [one for one in s.said("audit") if one.record.partition == partition]
    mine = [one for one in log if one.value["service"] == "router"]
    hashes = ["", *(sha256(one.record.value or b"") for one in mine)]
    return all(one.value["previous"] == before for one, before in zip(mine, hashes, strict=False))


def approval(s: System, team: str, id_: str) -> Json:
    return s.asked(team)[id_]


def receipts(s: System, team: str, decision: str, thread: str = "t") -> list[Json]:
    """Everything that a team was told about one of its decisions."""
    told = [one.value for one in s.said(f"receipts.{team}", thread)]
    return [one for one in told if one["decisionId"] == decision]


def entry(id_: str, payload: Json, **more: Json) -> Json:
    return {"interruptId": id_, "status": "resolved", "payload": payload, **more}


def cancelled(id_: str) -> Json:
    return {"interruptId": id_, "status": "cancelled"}
