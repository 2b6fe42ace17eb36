"""`holdshort audit` as an auditor types it, on what a real installation wrote and on copies of it touched."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.clients import Json, an_input, an_interrupt, finished, paused, started, told
from tests.commands import Done, environment, resumed, run
from tests.installations import TWO_TEAMS, Installation, installed

pytestmark = [
    pytest.mark.system,
    pytest.mark.broker,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

ARGS = '{"amount":950,"to":"ACME"}'
AUDIT = "audit"
POSITIONS = ("gatekeeper.positions", "router.positions")


def digest(content: str) -> str:
    return sha256(content.encode()).hexdigest()


class Stored(NamedTuple):
    """One record of a topic, with its place."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]

    @property
    def said(self) -> Json:
        return json.loads(self.value or b"{}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(
    bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    directory = tmp_path_factory.mktemp("audited")
    async with installed(bootstrap_servers, directory, TWO_TEAMS) as installation:
        for thread in ("t-pay", "t-other", "t-third"):
            await pays(installation, thread)
        yield installation


async def pays(site: Installation, thread: str) -> None:
    """A tool call is asked about, an input refused, the team answers, the call is made."""
    wire, call = site.wire, f"call-{thread}"
    wire.send("inputs", an_input(thread, "r1"), headers={"holdshort-agent": "default"})
    await wire.until(lambda _: bool(wire.of("runs.default", thread)), why="the run is not delivered")
    for event in (
        started(thread, "r1"),
        {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "transfer_money"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": ARGS},
        paused(thread, "r1", an_interrupt("pay", toolCallId=call)),
    ):
        wire.send("agent-events.default", event, key=thread, headers={"holdshort-run": "r1"})
    await wire.until(lambda _: bool(told(wire, "events", thread, "RUN_FINISHED", "r1")), why="no question")
    wire.send("inputs", an_input(thread, "r2"))
    await wire.until(lambda _: bool(told(wire, "events", thread, "RUN_ERROR", "r2")), why="not refused")
    await wire.until(lambda _: bool(wire.of("gathering", thread)), why="the router does not know it")
    decision = {
        "v": 1,
        "decisionId": f"d-{thread}",
        "threadId": thread,
        "generation": wire.of("pending", thread)[-1].value["generation"],
        "resume": [{"interruptId": "pay", "status": "resolved", "payload": {"approved": True}}],
        "decidedBy": "ann",
    }
    wire.send("decisions.payments", decision)
    await wire.until(lambda _: bool(resumed(wire, thread)), why="the agent is not resumed")
    [given] = resumed(wire, thread)
    result = {"type": "TOOL_CALL_RESULT", "toolCallId": call, "messageId": "m2", "content": "paid"}
    for event in (started(thread, given["runId"]), result, finished(thread, given["runId"])):
        wire.send("agent-events.default", event, key=thread, headers={"holdshort-run": given["runId"]})
    await wire.until(
        lambda _: bool(told(wire, "events", thread, "RUN_FINISHED", given["runId"])), why="not ended"
    )


# -- as it was written --------------------------------------------------------------------------------------


async def test_what_was_written_is_whole_to_its_newest_record(site: Installation) -> None:
    done = await run(environment(site), "audit", "verify")
    rows = (await run(environment(site), "audit", "verify", "--json")).objects

    assert done.status == 0, done.out
    assert "are whole, their newest records included" in done.out
    assert {row["service"] for row in rows} == {"gatekeeper", "router"}
    assert sum(row["records"] for row in rows) == len(site.wire.of(AUDIT))


async def test_a_time_that_is_asked_for_says_how_much_of_the_audit_it_is(site: Installation) -> None:
    later = await run(environment(site), "audit", "verify", "--since", "2099-01-01T00:00:00Z")
    all_ = await run(environment(site), "audit", "verify", "--since", "2000-01-01T00:00:00Z")
    turned = await run({}, "audit", "verify", "--since", "1m", "--until", "5m")

    assert "0 of the records lie in the time asked; 0 findings lie outside it." in later.out
    assert f"{len(site.wire.of(AUDIT))} of the records lie in the time asked" in all_.out
    assert (turned.status, "--since is not before --until" in turned.err) == (2, True)


async def test_the_export_is_the_records_byte_for_byte(site: Installation, tmp_path: Path) -> None:
    done = await run(environment(site), "audit", "export")

    written = {(one.partition, one.offset): one.raw for one in site.wire.of(AUDIT)}
    records, covers = done.objects[:-1], done.objects[-1]["covers"]
    assert {(one["partition"], one["offset"]) for one in records} == set(written)
    assert sum(one["records"] for one in covers["chains"]) == len(records)
    assert [one["partition"] for one in covers["partitions"]] == list(range(site.partitions))
    for line, one in zip(done.out.splitlines(), records, strict=False):
        raw = (written[one["partition"], one["offset"]] or b"").decode()
        assert raw in line
        assert one["digest"] == digest(raw)

    file = tmp_path / "audit.jsonl"
    file.write_text(done.out)
    whole = await run({}, "audit", "verify", "--file", str(file))
    assert whole.status == 0, whole.out
    assert "and all that was exported is here" in whole.out
    *lines, last = done.out.splitlines(keepends=True)
    file.write_text("".join([*lines[:5], *lines[6:], last]))
    assert (await run({}, "audit", "verify", "--file", str(file))).status == 1
    file.write_text("".join([*lines[:-1], lines[-1].replace('"verdict":"', '"verdict":"not '), last]))
    changed = await run({}, "audit", "verify", "--file", str(file))
    assert changed.status == 2
    assert f"line {len(lines)}: changed since" in changed.err
    file.write_text("".join([*lines, lines[0], last]))
    doubled = await run({}, "audit", "verify", "--file", str(file))
    assert "its offset is not behind the one before" in doubled.err
    file.write_text("".join(lines))
    cut_off = await run({}, "audit", "verify", "--file", str(file))
    assert cut_off.status == 2
    assert "its last line, which says what it covers, is missing" in cut_off.err
    file.write_text("")
    assert (await run({}, "audit", "verify", "--file", str(file))).status == 2
    file.write_text("not a line\n")
    broken = await run({}, "audit", "verify", "--file", str(file))
    assert broken.status == 2
    assert "line 1: not a line of an export" in broken.err


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ("a partition", "the newest records are gone"),
        ("its newest", "the newest records are gone"),
        ("its oldest", "what was before it was removed"),
    ],
)
async def test_what_an_export_does_not_hold_any_more_is_found(
    site: Installation, tmp_path: Path, left_out: str, said: str
) -> None:
    done = await run(environment(site), "audit", "export", "--since", "1h")
    *lines, last = done.out.splitlines(keepends=True)
    partition = json.loads(lines[0])["partition"]
    mine = [line for line in lines if json.loads(line)["partition"] == partition]
    others = [line for line in lines if line not in mine]
    left = {"a partition": [], "its newest": mine[:-1], "its oldest": mine[1:]}[left_out]
    file = tmp_path / "audit.jsonl"
    file.write_text("".join([*left, *others, last]))

    verified = await run({}, "audit", "verify", "--file", str(file))

    assert verified.status == 1, verified.out
    assert f"/{partition}, offset" in verified.out
    assert said in verified.out


async def test_a_narrowed_export_says_that_no_chain_is_whole_in_it(
    site: Installation, tmp_path: Path
) -> None:
    done = await run(environment(site), "audit", "export", "--thread", "t-pay")
    nobody = await run(environment(site), "audit", "export", "--thread", "t-nobody")
    file = tmp_path / "audit.jsonl"
    file.write_text(done.out)

    verified = await run({}, "audit", "verify", "--file", str(file))
    trail = await run({}, "audit", "trail", "t-pay", "--file", str(file))

    assert (done.status, nobody.status) == (0, 1)
    assert "the audit knows nothing of t-nobody" in nobody.err
    assert verified.status == 2
    assert "narrowed to one thread, so no chain is whole in it" in verified.err
    assert trail.status == 0, trail.err
    assert "the export is a narrowed one" in trail.out


async def test_an_export_is_narrowed_by_thread_code_and_time(site: Installation) -> None:
    known = environment(site)
    of_thread = (await run(known, "audit", "export", "--thread", "t-pay")).objects[:-1]
    refused = (await run(known, "audit", "export", "--code", "PENDING_INTERRUPTS")).objects[:-1]
    old = (await run(known, "audit", "export", "--until", "2020-01-01")).objects[:-1]
    late = (await run(known, "audit", "export", "--since", "1h")).objects[:-1]

    assert {one["record"]["threadId"] for one in of_thread} == {"t-pay"}
    assert {one["record"]["verdict"] for one in of_thread} == {
        "admitted", "opened", "refused", "accepted", "forwarded", "attempted", "settled",
    }  # fmt: skip
    assert sorted(one["record"]["threadId"] for one in refused) == ["t-other", "t-pay", "t-third"]
    assert old == []
    assert len(late) == len(site.wire.of(AUDIT))


async def test_the_trail_of_a_tool_call_is_told_in_words(site: Installation) -> None:
    done = await run(environment(site), "audit", "trail", "--tool-call", "call-t-pay")

    assert done.status == 0, done.err
    told_ = [
        "gatekeeper  run r1 pauses and asks (pause",
        f"tool call call-t-pay, arguments {digest(ARGS)}",
        "gatekeeper  input r2 is refused: PENDING_INTERRUPTS",
        "router      a decision of team payments is accepted",
        "pay: accepted by ann, answer",
        "router      the whole batch is sent to the agent as run hs-",
        "with the answers to pause",
        "gatekeeper  tool call call-t-pay has its result",
        f"result {digest('paid')} (content)",
        ", and with it pause",
        "(the run's last event)",
        "the chains that hold them are whole.",
    ]
    place = 0
    for one in told_:
        place = done.out.find(one, place)
        assert place >= 0, f"{one} is not told, or not there: {done.out}"


async def test_the_trail_of_a_thread_begins_with_its_input(site: Installation) -> None:
    known = environment(site)
    rows = (await run(known, "audit", "trail", "t-pay", "--json")).objects
    of_call = (await run(known, "audit", "trail", "--tool-call", "call-t-pay", "--json")).objects
    nobody = await run(known, "audit", "trail", "t-nobody")

    assert rows[0]["record"]["verdict"] == "admitted"
    assert rows[1:] == of_call
    assert nobody.status == 1
    assert "knows nothing of t-nobody" in nobody.err
    assert (await run(known, "audit", "trail")).status == 2


# -- what somebody touched ----------------------------------------------------------------------------------


def stored(site: Installation, *topics: str) -> list[Stored]:
    """What lies in these topics, partition after partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": site.stack.bootstrap_servers,
            "group.id": secrets.token_hex(4),
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    known = consumer.list_topics(timeout=20).topics
    parts = [TopicPartition(site.prefix + t, p, 0) for t in topics for p in known[site.prefix + t].partitions]
    consumer.assign(parts)
    found, ended = [], 0
    while ended < len(parts):
        message: Any = consumer.poll(20)
        assert message is not None
        if message.error():
            ended += 1
            continue
        topic = message.topic().removeprefix(site.prefix)
        found.append(
            Stored(topic, message.partition(), message.key(), message.value(), message.headers() or [])
        )
    consumer.close()
    return sorted(found, key=lambda one: (one.topic, one.partition))


async def copied(site: Installation, records: Sequence[Stored]) -> str:
    """Topics under another prefix with these records, as somebody who may do anything could make them."""
    prefix = f"c{secrets.token_hex(4)}."
    await asyncio.to_thread(_copy, site, prefix, records)
    return prefix


def _copy(site: Installation, prefix: str, records: Sequence[Stored]) -> None:
    servers = site.stack.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    topics = dict.fromkeys([AUDIT, *(one.topic for one in records)])
    made = admin.create_topics([NewTopic(prefix + topic, site.partitions, 1) for topic in topics])
    for future in made.values():
        future.result(20)
    producer = Producer({"bootstrap.servers": servers})
    for one in records:
        producer.produce(prefix + one.topic, one.value, one.key, one.partition, headers=one.headers)
    assert producer.flush(20) == 0


async def verified(site: Installation, records: Sequence[Stored], *options: str) -> Done:
    prefix = await copied(site, records)
    return await run(environment(site, HOLDSHORT_PREFIX=prefix), "audit", "verify", *options)


def one_chain(records: Sequence[Stored], service: str = "gatekeeper") -> list[int]:
    """Places in the list of the records of the longest chain of a service."""
    chains: dict[int, list[int]] = {}
    for number, one in enumerate(records):
        if one.topic == AUDIT and one.said["service"] == service:
            chains.setdefault(one.partition, []).append(number)
    return max(chains.values(), key=len)


def changed(one: Stored) -> Stored:
    return one._replace(value=(one.value or b"").replace(b'"t-', b'"u-'), key=(one.key or b"")[:0] + b"u-"
                        + (one.key or b"")[2:])  # fmt: skip


Touch = Callable[[list[Stored], list[int]], list[Stored]]
TOUCHES: dict[str, tuple[Touch, str]] = {
    "a record is removed": (lambda all_, chain: all_[: chain[2]] + all_[chain[2] + 1 :], "was removed"),
    "a record is changed": (
        lambda all_, chain: [*all_[: chain[2]], changed(all_[chain[2]]), *all_[chain[2] + 1 :]],
        "was changed",
    ),
    "two change places": (
        lambda all_, chain: [
            all_[{chain[2]: chain[3], chain[3]: chain[2]}.get(number, number)] for number in range(len(all_))
        ],
        "the order was changed",
    ),
    "one is put in": (
        lambda all_, chain: [*all_[: chain[3]], changed(all_[chain[2]]), *all_[chain[3] :]],
        "was put in",
    ),
    "the beginning is removed": (
        lambda all_, chain: [one for number, one in enumerate(all_) if number not in chain[:2]],
        "what was before it was removed",
    ),
    "the newest is removed": (
        lambda all_, chain: [one for number, one in enumerate(all_) if number != chain[-1]],
        "the newest records are gone",
    ),
}


@pytest.mark.parametrize("touch", list(TOUCHES))
async def test_what_was_touched_is_found_and_said_where(site: Installation, touch: str) -> None:
    records = await asyncio.to_thread(stored, site, AUDIT, *POSITIONS)
    chain = one_chain(records)
    touched, said = TOUCHES[touch]

    done = await verified(site, touched(records, chain))
    rows = (await verified(site, touched(records, chain), "--json")).objects

    assert done.status == 1
    assert said in done.out
    findings = [row for row in rows if "finding" in row]
    assert {(row["service"], row["partition"]) for row in findings} == {
        ("gatekeeper", records[chain[0]].partition)
    }


async def test_a_copy_that_nobody_touched_is_whole(site: Installation) -> None:
    records = await asyncio.to_thread(stored, site, AUDIT, *POSITIONS)
    only_audit = [one for one in records if one.topic == AUDIT]

    assert (await verified(site, records)).status == 0
    without_positions = await verified(site, only_audit)
    assert without_positions.status == 0
    assert "whether newer ones were removed" in without_positions.out


async def test_a_finding_outside_the_time_asked_for_is_not_told(site: Installation) -> None:
    records = await asyncio.to_thread(stored, site, AUDIT)
    touched, _ = TOUCHES["a record is removed"]
    less = touched(records, one_chain(records))

    assert (await verified(site, less, "--until", "2020-01-01")).status == 0
    assert (await verified(site, less, "--since", "1h")).status == 1


async def test_what_aged_out_is_not_missed(site: Installation) -> None:
    records = await asyncio.to_thread(stored, site, AUDIT, *POSITIONS)
    chain = one_chain(records)
    prefix = await copied(site, records)
    where = TopicPartition(prefix + AUDIT, records[chain[0]].partition, 3)
    admin = AdminClient({"bootstrap.servers": site.stack.bootstrap_servers})
    for future in admin.delete_records([where]).values():
        await asyncio.to_thread(future.result, 20)

    done = await run(environment(site, HOLDSHORT_PREFIX=prefix), "audit", "verify")

    assert done.status == 0, done.out
    assert "the beginning is gone" in done.out


async def test_a_missing_topic_is_said_in_a_sentence(site: Installation) -> None:
    done = await run(environment(site, HOLDSHORT_PREFIX="nobody."), "audit", "verify")

    assert done.status == 2
    assert "there is no topic nobody.audit" in done.err
