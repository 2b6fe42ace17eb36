"""Two gatekeepers share the lanes and are killed mid-load; every input is answered exactly once."""

import asyncio
import itertools
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from tests.clients import (
    Json,
    Seen,
    Wire,
    a_resume,
    an_input,
    an_interrupt,
    finished,
    paused,
    started,
)
from tests.installations import NO_ROUTES, Installation, installed

from holdshort.stream.embedded import BrokerSettings, EmbeddedKafka

pytestmark = [pytest.mark.system, pytest.mark.broker, pytest.mark.timeout(300)]

KILLS = 10
THREADS_A_KILL = 60
DEATHS = 3


class Conversations:
    """Many threads that each ask, are asked, try something that is not allowed, answer, and are done.

    The agent echoes the admission, as the SDK's do; a run it has seen before is not run again.
    """

    def __init__(self, wire: Wire, prefix: str = "t") -> None:
        """Threads are named after `prefix`; others are of no concern."""
        self.wire = wire
        self.prefix = prefix
        self.begun: list[str] = []
        self.ran: Counter[str] = Counter()
        wire.react = self.react

    def begin(self, count: int) -> None:
        for number in range(len(self.begun), len(self.begun) + count):
            thread = f"{self.prefix}{number}"
            self.begun.append(thread)
            self.wire.send("inputs", an_input(thread, "r1"))

    def is_own(self, seen: Seen) -> bool:
        return str(seen.key).startswith(self.prefix)

    def react(self, seen: Seen) -> None:
        if not self.is_own(seen):
            return
        if seen.topic == "runs.default":
            self._run(seen)
        elif seen.topic == "events" and seen.value.get("outcome", {}).get("type") == "interrupt":
            assert seen.key is not None
            self.wire.send("inputs", an_input(seen.key, "wrong"))
            self.wire.send("inputs", a_resume(seen.key, "r2", {"i": True}))

    def _run(self, seen: Seen) -> None:
        thread, run, admission = seen.key, seen.value["runId"], seen.headers["holdshort-admission"]
        assert thread is not None
        self.ran[admission] += 1
        last: Json = finished(thread, run)
        if run == "r1":
            last = paused(thread, run, an_interrupt("i"))
        headers = {"holdshort-run": run, "holdshort-admission": admission}
        for event in (started(thread, run), last):
            self.wire.send("agent-events.default", event, headers=headers)

    async def until_done(self, wanted: int) -> None:
        why = f"{wanted} of {len(self.begun)} threads were to be answered"
        await self.wire.until(lambda _: self.done >= wanted, patience=90, why=why)

    @property
    def done(self) -> int:
        return sum(
            seen.topic == "events"
            and self.is_own(seen)
            and seen.headers.get("holdshort-run") == "r2"
            and seen.value["type"] == "RUN_FINISHED"
            for seen in self.wire.seen
        )


async def test_every_input_is_answered_exactly_once(bootstrap_servers: str, tmp_path: Path) -> None:
    topics = ["runs.default", "events", "dead-letters"]
    async with installed(
        bootstrap_servers, tmp_path, NO_ROUTES, gatekeepers=2, routers=0, topics=topics
    ) as gate:
        talk = Conversations(gate.wire)
        victims = itertools.cycle(gate.stack.processes)
        for kill in range(1, KILLS + 1):
            talk.begin(THREADS_A_KILL)
            await talk.until_done((kill - 1) * THREADS_A_KILL + THREADS_A_KILL // 3)
            gate.stack.kill(next(victims))
            talk.begin(THREADS_A_KILL // 2)
            await gate.stack.until_ready()
        await talk.until_done(len(talk.begun))
        await asyncio.to_thread(gate.wire.flush)
        seen = list(gate.wire.seen)

    check_exact(talk, seen)
    assert sum(len(process.ended) for process in gate.stack.processes) >= KILLS


def check_exact(talk: Conversations, seen: list[Seen]) -> None:
    """Each run delivered once; what clients see of a thread is the one story, once, in its order."""
    assert [one for one in seen if one.topic == "dead-letters"] == []
    assert set(talk.ran.values()) == {1}
    assert len(talk.ran) == 2 * len(talk.begun)
    stories: dict[str | None, list[tuple[str, str]]] = defaultdict(list)
    for one in seen:
        if one.topic == "events":
            stories[one.key].append(
                (one.headers["holdshort-run"], one.value.get("code") or one.value["type"])
            )
    told = [
        ("r1", "RUN_STARTED"),
        ("r1", "RUN_FINISHED"),
        ("wrong", "RUN_STARTED"),
        ("wrong", "PENDING_INTERRUPTS"),
        ("r2", "RUN_STARTED"),
        ("r2", "RUN_FINISHED"),
    ]
    assert {key: story for key, story in stories.items() if story != told} == {}
    assert len(stories) == len(talk.begun)


async def test_a_broker_that_dies_and_comes_back_ends_no_service(tmp_path: Path) -> None:
    """It dies with no transaction open: one alone loses markers (services/operating.md, "Without a leader").

    Brokers that die in the middle of transactions are the chaos suite's, where others hold their partitions.
    """
    soon_missed = {"broker.session.timeout.ms": "1000"}  # only then may it register again
    topics = ["runs.default", "events", "dead-letters"]
    async with (
        EmbeddedKafka(BrokerSettings(properties=soon_missed)) as kafka,
        installed(
            kafka.bootstrap_servers, tmp_path, NO_ROUTES, gatekeepers=2, routers=1, topics=topics
        ) as gate,
    ):
        for number in range(DEATHS + 1):
            if number:
                await asyncio.to_thread(_wait_until_nothing_is_open, kafka.bootstrap_servers, gate)
                await kafka.kill_node(1)
                await kafka.start_node(1)
            wire = Wire(kafka.bootstrap_servers, gate.prefix, topics)  # the clients of before would not do:
            talk = Conversations(wire, f"k{number}-")  # librdkafka forgets what has once had no leader
            talk.begin(THREADS_A_KILL)
            await talk.until_done(THREADS_A_KILL)
            check_exact(talk, [one for one in wire.seen if talk.is_own(one)])
            await asyncio.to_thread(wire.close)

        assert [process.ended for process in gate.stack.processes] == [[], [], []]
        logs = [process.log.read_text() for process in gate.stack.processes]
        assert [line for log in logs for line in log.splitlines() if "Traceback" in line] == []


def _wait_until_nothing_is_open(servers: str, gate: Installation) -> None:
    """Until every partition can be read to its end: then no transaction waits for a marker."""
    admin, latest = AdminClient({"bootstrap.servers": servers}), OffsetSpec.latest()  # type: ignore[no-untyped-call]
    places = {
        TopicPartition(name, partition): latest
        for name, topic in admin.list_topics(timeout=30).topics.items()
        for partition in topic.partitions
        if name.startswith(gate.prefix)
    }

    def ends(isolation: IsolationLevel) -> list[int]:
        found = admin.list_offsets(places, isolation_level=isolation)
        return [one.result().offset for one in found.values()]

    limit = time.monotonic() + 60
    while ends(IsolationLevel.READ_COMMITTED) != ends(IsolationLevel.READ_UNCOMMITTED):
        assert time.monotonic() < limit, "a transaction stays open"
