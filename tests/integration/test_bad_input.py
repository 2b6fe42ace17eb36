"""Bad input on a real broker: told to whoever can be told, a dead letter where nobody can, and on it goes."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
import pytest_asyncio
from confluent_kafka import Producer
from tests.clients import Json, a_resume, an_input, an_interrupt, finished, paused, started, told
from tests.installations import TWO_TEAMS, Installation, installed

from holdshort.contract.keys import partition_of

pytestmark = [pytest.mark.broker, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(
    bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    directory: Path = tmp_path_factory.mktemp("installation")
    async with installed(bootstrap_servers, directory, TWO_TEAMS) as installation:
        yield installation


async def goes_on(gate: Installation, thread: str) -> None:
    """The partition of the thread still answers, and exactly once."""
    wire, run = gate.wire, f"{thread}-after"
    wire.send("inputs", an_input(thread, run))

    def delivered() -> int:
        return sum(one.value["runId"] == run for one in wire.of("runs.default", thread))

    await wire.until(lambda _: delivered() > 0, why="the partition stands")
    wire.send("agent-events.default", started(thread, run))
    wire.send("agent-events.default", finished(thread, run))
    await wire.until(lambda _: bool(told(wire, "events", thread, "RUN_FINISHED", run)))
    assert delivered() == 1


async def dead(gate: Installation, thread: str | None, code: str) -> bytes | None:
    """The dead letter of a record under that key: the bytes as they came, with why and where from."""

    def found() -> list[object]:
        letters = gate.wire.of("dead-letters")
        return [s for s in letters if s.key == thread and s.headers["holdshort-dead-letter-code"] == code]

    await gate.wire.until(lambda _: bool(found()), why=f"no dead letter {code}")
    letter = found()[0]
    assert {"holdshort-dead-letter-topic", "holdshort-dead-letter-offset"} <= letter.headers.keys()  # type: ignore[attr-defined]
    return letter.raw  # type: ignore[attr-defined,no-any-return]


async def test_what_is_not_json_is_a_dead_letter(gate: Installation) -> None:
    gate.wire.send("inputs", b"{not json", key="json")

    assert await dead(gate, "json", "MALFORMED_INPUT") == b"{not json"
    await goes_on(gate, "json")


async def test_an_event_that_is_not_json_is_a_dead_letter(gate: Installation) -> None:
    gate.wire.send("agent-events.default", b"\xff\x00", key="event-json")

    assert await dead(gate, "event-json", "MALFORMED_EVENT") == b"\xff\x00"
    await goes_on(gate, "event-json")


async def test_a_client_with_the_wrong_key_is_told_under_its_key(gate: Installation) -> None:
    gate.wire.send("inputs", an_input("real-thread", "r1"), key="wrong-key")

    await dead(gate, "wrong-key", "MISKEYED_RECORD")
    await gate.wire.until(lambda _: bool(gate.wire.of("events", "wrong-key")))
    error = gate.wire.of("events", "wrong-key")[-1].value
    assert error["code"] == "MISKEYED_RECORD"
    assert error["metadata"]["holdshort"]["threadId"] == "real-thread"


async def test_a_client_with_the_wrong_partitioner_is_told_where_it_wrote(gate: Installation) -> None:
    right = partition_of(b"lost", gate.partitions)
    wrong = (right + 1) % gate.partitions
    gate.wire.send("inputs", an_input("lost", "r1"), partition=wrong)

    await dead(gate, "lost", "MISKEYED_RECORD")
    await gate.wire.until(lambda _: bool(gate.wire.of("events", "lost")))
    assert {seen.partition for seen in gate.wire.of("events", "lost")} == {wrong}
    await goes_on(gate, "lost")


async def test_an_agent_that_is_not_configured_is_refused(gate: Installation) -> None:
    gate.wire.send("inputs", an_input("agents", "r1"), headers={"holdshort-agent": "nobody"})

    await gate.wire.until(lambda _: bool(told(gate.wire, "events", "agents", "RUN_ERROR", "r1")))
    assert told(gate.wire, "events", "agents", "RUN_ERROR", "r1")[0].value["code"] == "UNKNOWN_AGENT"
    await goes_on(gate, "agents")


async def test_a_record_of_two_megabytes_is_refused_to_its_writer(gate: Installation) -> None:
    gate.wire.send("inputs", an_input("big", "r1", state={"x": "y" * 2_000_000}))

    await gate.wire.until(lambda _: bool(told(gate.wire, "events", "big", "RUN_ERROR", "r1")))
    assert told(gate.wire, "events", "big", "RUN_ERROR", "r1")[0].value["code"] == "TOO_LARGE"
    await goes_on(gate, "big")


async def test_a_compressed_bomb_is_a_dead_letter_and_the_partition_goes_on(
    gate: Installation, bootstrap_servers: str
) -> None:
    """A few kilobytes that would be opened to a hundred megabytes."""
    bomber = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "compression.type": "zstd",
            "message.max.bytes": 1_000_000_000,
            "batch.size": 2_000_000_000,
        }
    )
    partition = partition_of(b"bomb", gate.partitions)
    bomber.produce(f"{gate.prefix}inputs", bytes(100_000_000), "bomb", partition)
    assert await asyncio.to_thread(bomber.flush, 30) == 0

    await dead(gate, None, "MALFORMED_INPUT")
    await goes_on(gate, "bomb")


@pytest.mark.parametrize("year", [1970, 2100])
async def test_a_timestamp_from_1970_or_2100_is_the_broker_s_own(gate: Installation, year: int) -> None:
    """What a writer says of the time counts for nothing: leases and expiries go by the append."""
    thread = f"time-{year}"
    odd = int(datetime(year, 1, 2, tzinfo=UTC).timestamp() * 1000)
    value = orjson.dumps(an_input(thread, "r1"))
    partition = partition_of(thread.encode(), gate.partitions)
    gate.wire.write("inputs", value, thread.encode(), partition=partition, timestamp=odd)
    await gate.wire.until(lambda _: bool(gate.wire.of("runs.default", thread)))
    admitted = gate.wire.of("runs.default", thread)[0].headers["holdshort-start-by"]

    assert abs(int(admitted) / 1000 - time.time()) < 3600 * 24
    gate.wire.send("agent-events.default", started(thread, "r1"))
    gate.wire.send("agent-events.default", finished(thread, "r1"))
    await gate.wire.until(lambda _: bool(told(gate.wire, "events", thread, "RUN_FINISHED", "r1")))
    await goes_on(gate, thread)


async def test_tombstones_null_keys_and_a_megabyte_of_headers_are_passed(gate: Installation) -> None:
    wire = gate.wire
    for topic in ("inputs", "agent-events.default", "decisions.payments", "resumes"):
        partition = partition_of(b"odd", gate.partitions)
        wire.write(topic, None, b"odd", partition=partition)
        wire.write(topic, b"{}", None, partition=partition)
        wire.write(topic, None, None, partition=partition)
        wire.write(topic, b"{}", b"odd", partition=partition, headers={"h": b"x" * 1_000_000})
    wire.send("inputs", an_input("odd", "r1"), headers={"traceparent": "x" * 1_100_000})

    await wire.until(lambda _: bool(told(wire, "events", "odd", "RUN_ERROR", "r1")))
    assert told(wire, "events", "odd", "RUN_ERROR", "r1")[0].value["code"] == "TOO_LARGE"
    await goes_on(gate, "odd")


async def test_an_event_of_two_megabytes_is_a_dead_letter_and_the_run_goes_on(gate: Installation) -> None:
    wire = gate.wire
    wire.send("inputs", an_input("big-event", "r1"))
    await wire.until(lambda _: bool(wire.of("runs.default", "big-event")))
    wire.send("agent-events.default", started("big-event", "r1"))
    delta = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x" * 2_000_000}
    wire.send("agent-events.default", delta, key="big-event")
    wire.send("agent-events.default", finished("big-event", "r1"))

    await dead(gate, "big-event", "TOO_LARGE")
    await wire.until(lambda _: bool(told(wire, "events", "big-event", "RUN_FINISHED", "r1")))


async def test_a_hostile_response_schema_can_only_be_cancelled(gate: Installation) -> None:
    wire, thread = gate.wire, "hostile"
    schema = {"$ref": "http://127.0.0.1:9/never"}
    wire.send("inputs", an_input(thread, "r1"))
    await wire.until(lambda _: bool(wire.of("runs.default", thread)))
    wire.send("agent-events.default", started(thread, "r1"))
    wire.send(
        "agent-events.default", paused(thread, "r1", an_interrupt("i", reason="x:y", responseSchema=schema))
    )
    await wire.until(lambda _: bool(wire.of("approvals.unrouted")))
    approval = wire.of("approvals.unrouted")[-1].value
    decision = {"threadId": thread, "generation": approval["generation"]}
    answer = {"interruptId": "i", "status": "resolved", "payload": 1}
    wire.send("decisions.unrouted", decision | {"v": 1, "decisionId": "d1", "resume": [answer]})
    cancel = {"interruptId": "i", "status": "cancelled"}
    wire.send("decisions.unrouted", decision | {"v": 1, "decisionId": "d2", "resume": [cancel]})

    await wire.until(lambda _: len(wire.of("runs.default", thread)) == 2, why="the cancel does not go on")
    receipts = {seen.value["decisionId"]: seen.value for seen in wire.of("receipts.unrouted", thread)}
    assert receipts["d1"]["entries"][0]["code"] == "SCHEMA_REFUSED"
    assert receipts["d2"]["verdict"] == "accepted"


async def test_a_decision_of_a_team_that_does_not_own_the_question_gets_a_receipt(gate: Installation) -> None:
    wire, thread = gate.wire, "owners"
    approval = await pause_for_payments(gate, thread)
    wire.send("decisions.dba", a_decision(approval, "d1"))

    await wire.until(lambda _: bool(wire.of("receipts.dba", thread)))
    assert wire.of("receipts.dba", thread)[0].value["entries"][0]["code"] == "NOT_YOUR_INTERRUPT"
    wire.send("decisions.payments", a_decision(approval, "d2"))
    await wire.until(lambda _: len(wire.of("runs.default", thread)) == 2, why="the owner is not heard")


async def test_a_decision_for_a_pause_that_is_over_gets_a_receipt(gate: Installation) -> None:
    wire, thread = gate.wire, "over"
    approval = await pause_for_payments(gate, thread)
    wire.send("decisions.payments", a_decision(approval, "d1"))
    await wire.until(lambda _: len(wire.of("runs.default", thread)) == 2)
    run = wire.of("runs.default", thread)[1].value["runId"]
    wire.send("agent-events.default", started(thread, run))
    wire.send("agent-events.default", finished(thread, run))
    await wire.until(lambda _: bool(told(wire, "events", thread, "RUN_FINISHED", run)))
    wire.send("decisions.payments", a_decision(approval, "d2"))

    await wire.until(lambda _: len(wire.of("receipts.payments", thread)) == 2)
    assert wire.of("receipts.payments", thread)[1].value["entries"][0]["code"] == "STALE_GENERATION"


async def test_a_decision_that_is_not_one_is_a_dead_letter(gate: Installation) -> None:
    gate.wire.send("decisions.payments", b"[]", key="nonsense")

    assert await dead(gate, "nonsense", "MALFORMED_DECISION") == b"[]"


async def test_a_client_cannot_answer_for_a_team(gate: Installation) -> None:
    wire, thread = gate.wire, "reserved"
    await pause_for_payments(gate, thread)
    wire.send("inputs", a_resume(thread, "r2", {"pay": True}))

    await wire.until(lambda _: bool(told(wire, "events", thread, "RUN_ERROR", "r2")))
    assert told(wire, "events", thread, "RUN_ERROR", "r2")[0].value["code"] == "RESERVED_FOR_TEAM"
    assert len(wire.of("runs.default", thread)) == 1


def a_decision(approval: Json, decision_id: str) -> Json:
    answer = {"interruptId": "pay", "status": "resolved", "payload": True}
    which = {"threadId": approval["threadId"], "generation": approval["generation"]}
    return {"v": 1, "decisionId": decision_id, **which, "resume": [answer]}


async def pause_for_payments(gate: Installation, thread: str) -> Json:
    """Pause a thread for a transfer; returns the approval that payments is asked for."""
    wire = gate.wire
    wire.send("inputs", an_input(thread, "r1"))
    await wire.until(lambda _: bool(wire.of("runs.default", thread)))
    call = {"toolCallId": f"{thread}-call", "toolCallName": "transfer_money"}
    for event in (
        started(thread, "r1"),
        {"type": "TOOL_CALL_START", **call},
        paused(thread, "r1", an_interrupt("pay", toolCallId=f"{thread}-call")),
    ):
        wire.send("agent-events.default", event, key=thread)

    def asked() -> list[Json]:
        approvals = [seen.value for seen in wire.of("approvals.payments") if seen.value]
        return [approval for approval in approvals if approval["threadId"] == thread]

    await wire.until(lambda _: bool(asked()), why="payments is not asked")
    return asked()[0]
