"""The trail of a tool call can be proved from its content: each digest is one that anybody can compute."""

from hashlib import sha256

import orjson
import rfc8785
from tests.audit.chained import ARGS, CONFIG, RESULT, asks, brings, followed
from tests.clients import Json, a_resume, an_input, an_interrupt, finished, paused, started
from tests.router.scenes import on
from tests.systems import System

PLAIN = "agents: {default: {}}\n"


def digest(content: bytes | str) -> str:
    return sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()


def canonical_of(value: Json) -> bytes:
    return rfc8785.dumps(value)


def audited(system: System, verdict: str, service: str = "gatekeeper") -> list[Json]:
    said = [one.value for one in system.said("audit")]
    return [one for one in said if (one["service"], one["verdict"]) == (service, verdict)]


async def answered(system: System) -> str:
    """Asked and answered by both teams; the run that the agent got."""
    await asks(system)
    await system.decide("payments", "t", {"pay": {"approved": True}}, decidedBy="ann")
    await system.decide("dba", "t", {"drop": False}, decidedBy="bob")
    run: str = system.said("runs.default", "t")[-1].value["runId"]
    await system.send("agent-events.default", started("t", run))
    return run


@on(CONFIG)
async def test_the_proposal_is_proved_with_its_arguments(system: System) -> None:
    await asks(system)

    [opened] = audited(system, "opened")
    assert opened["digests"]["args"] == {"c1": digest(ARGS)}
    pause = system.pause("t")
    assert pause is not None
    assert opened["digests"]["descriptors"] == pause.digest


@on("agents: {default: {}}\nlimits: {tool_args: 1KiB}\n")
async def test_arguments_that_nobody_was_shown_are_not_proved(system: System) -> None:
    await system.send("inputs", an_input("t", "r1"))
    for event in (
        started("t", "r1"),
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "x" * 2000},
        paused("t", "r1", an_interrupt("a", toolCallId="c1"), an_interrupt("b", toolCallId="c2")),
    ):
        await system.send("agent-events.default", event, key="t", headers={"holdshort-run": "r1"})

    [opened] = audited(system, "opened")
    assert opened["digests"]["args"] == {"c1": None, "c2": None}


@on(CONFIG)
async def test_an_answer_is_proved_from_the_decision_to_the_agent(system: System) -> None:
    await answered(system)
    entries: list[Json] = [
        {"interruptId": "drop", "status": "resolved", "payload": False},
        {"interruptId": "pay", "status": "resolved", "payload": {"approved": True}},
    ]

    decided = [entry for one in audited(system, "accepted", "router") for entry in one["entries"]]
    of_each = {entry["interruptId"]: (entry["digest"], entry["decidedBy"]) for entry in decided}
    assert of_each == {
        entry["interruptId"]: (digest(canonical_of([entry])), by)
        for entry, by in zip(entries, ("bob", "ann"), strict=True)
    }
    [forwarded], [_, admitted] = audited(system, "forwarded", "router"), audited(system, "admitted")
    assert forwarded["digests"]["batch"] == admitted["digests"]["batch"] == digest(canonical_of(entries))
    assert forwarded["digests"]["descriptors"] == admitted["digests"]["descriptors"]


@on(CONFIG)
async def test_a_result_is_proved_by_its_content(system: System) -> None:
    run = await answered(system)
    await brings(system, run)
    await system.send("agent-events.default", finished("t", run))

    [attempted], [settled] = audited(system, "attempted"), audited(system, "settled")
    assert (attempted["toolCallId"], attempted["runId"]) == ("c1", run)
    assert attempted["digests"]["result"] == digest(RESULT)
    last = system.said("agent-events.default", "t")[-1].record
    assert settled["digests"]["result"] == digest(last.value or b"")
    assert settled["source"]["offset"] == last.offset
    assert followed(system).findings == []


@on(CONFIG)
async def test_a_result_that_is_no_text_is_proved_by_its_canonical_form(system: System) -> None:
    run = await answered(system)
    await brings(system, run, [{"type": "text", "text": "paid"}, 1.50])

    [attempted] = audited(system, "attempted")
    assert attempted["digests"]["result"] == digest(canonical_of([{"text": "paid", "type": "text"}, 1.5]))


@on(CONFIG)
async def test_the_result_of_every_attempt_is_proved(system: System) -> None:
    run = await answered(system)
    await brings(system, run, "the bank is closed")
    await system.send(
        "agent-events.default",
        {"type": "RUN_ERROR", "message": "no"},
        key="t",
        headers={"holdshort-run": run},
    )
    await system.decide("payments", "t", {"pay": {"approved": True}})
    await system.decide("dba", "t", {"drop": False})
    again: str = system.said("runs.default", "t")[-1].value["runId"]
    await system.send("agent-events.default", started("t", again))
    await brings(system, again)

    [reopened] = audited(system, "reopened")
    assert reopened["digests"]["result"]
    results = [(one["runId"], one["digests"]["result"]) for one in audited(system, "attempted")]
    assert results == [(run, digest("the bank is closed")), (again, digest(RESULT))]


@on(CONFIG)
async def test_what_an_interrupted_run_still_says_is_proved_once(system: System) -> None:
    """Nobody is shown it; the interrupt is *attempted* by it, and only the first marks it."""
    await asks(system)
    await brings(system, "r1", "paid already")
    await brings(system, "r1", "paid already")

    [attempted] = audited(system, "attempted")
    assert attempted["digests"]["result"] == digest("paid already")


@on(CONFIG)
async def test_results_that_nobody_was_asked_about_are_not_audited(system: System) -> None:
    run = await answered(system)
    other = {"type": "TOOL_CALL_RESULT", "toolCallId": "c9", "messageId": "m", "content": "c1"}
    await system.send("agent-events.default", other, key="t", headers={"holdshort-run": run})
    await brings(system, "a run that nobody knows")

    assert audited(system, "attempted") == []


@on(PLAIN)
async def test_a_run_that_asks_again_ends_one_pause_and_proves_both(system: System) -> None:
    await system.send("inputs", an_input("t", "r1"))
    await system.send("agent-events.default", started("t", "r1"))
    await system.send("agent-events.default", paused("t", "r1", an_interrupt("i")))
    first = system.thread("t").generation
    await system.send("inputs", a_resume("t", "r2", {"i": True}))
    await system.send("agent-events.default", started("t", "r2"))
    await system.send("agent-events.default", paused("t", "r2", an_interrupt("j")))

    opened = audited(system, "opened")[-1]
    assert (opened["generation"], opened["settled"]) == (first + 1, first)
    batch = [{"interruptId": "i", "status": "resolved", "payload": True}]
    assert opened["digests"]["batch"] == digest(canonical_of(batch))
    assert opened["digests"]["result"] == digest(system.said("agent-events.default")[-1].record.value or b"")


@on(CONFIG)
async def test_no_content_is_in_it(system: System) -> None:
    run = await answered(system)
    await brings(system, run)

    whole = orjson.dumps([one.value for one in system.said("audit")]).decode()
    for content in (ARGS, "ACME", RESULT, "transfer_money", '"approved"'):
        assert content not in whole
    assert len(system.said("audit")) > 5
