"""Worlds for the engine's tests: the same cluster and the same decider, in memory and on a real Kafka."""

import asyncio
import itertools
import secrets
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as WirePartition
from prometheus_client import CollectorRegistry

from holdshort.contract.keys import partition_of
from holdshort.stream.admin import Admin
from holdshort.stream.clock import WallClock
from holdshort.stream.connection import Connection
from holdshort.stream.decider import Context, Step
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.kafka import AioKafka
from holdshort.stream.marks import Mark
from holdshort.stream.memory import MemoryBroker, MemoryKafka
from holdshort.stream.ports import Clock, Kafka
from holdshort.stream.records import Record, TopicPartition, Write
from holdshort.stream.runner import Runner
from holdshort.stream.topics import Topic
from holdshort.telemetry.metrics import EngineMetrics

PARTITIONS = 6
LANES = 2
TOPICS: tuple[Topic, ...] = (
    Topic("in", "threads", "key", (), (), append_time=True),
    Topic("slow", "threads", "key", (), (), append_time=True),
    Topic("table", "threads", "key", (), (), compact=True, append_time=True),
    Topic("out", "threads", "key", (), ()),
    Topic("state", "threads", "key", (), (), compact=True),
    Topic("app.positions", "lanes", "lane", (), (), compact=True),
)


class World(ABC):
    """A cluster with the topics above, and a client that is not the engine."""

    clock: Clock

    @abstractmethod
    def process(self) -> Kafka:
        """The cluster as one more process sees it."""

    @abstractmethod
    async def append(
        self, topic: str, key: bytes | None, value: bytes | None, *, partition: int | None = None
    ) -> None:
        """Write one record as an ordinary producer does."""

    @abstractmethod
    async def committed(self, topic: str) -> list[Record]:
        """Everything a read_committed reader finds in a topic, partition by partition."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of the cluster."""


class MemoryWorld(World):
    """The memory log."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or WallClock()
        self.broker = MemoryBroker(self.clock)
        for topic in TOPICS:
            self.broker.create(topic.name, PARTITIONS if topic.partitions == "threads" else LANES)

    def process(self) -> Kafka:
        return MemoryKafka(self.broker)

    async def append(
        self, topic: str, key: bytes | None, value: bytes | None, *, partition: int | None = None
    ) -> None:
        self.broker.append(topic, key, value, partition=partition)

    async def committed(self, topic: str) -> list[Record]:
        return self.broker.committed(topic)

    async def close(self) -> None:
        """Nothing is held open."""


class KafkaWorld(World):
    """A real Kafka, under a prefix of this world's own."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.clock = WallClock()
        self.prefix = f"t{secrets.token_hex(4)}."
        self.connection = Connection(bootstrap_servers=bootstrap_servers)
        self._producer = Producer(
            self.connection.for_librdkafka() | {"linger.ms": 0, "message.max.bytes": 3 << 20}
        )
        self._processes: list[AioKafka] = []

    async def create(self) -> None:
        admin = Admin(self.connection, self.prefix)
        await admin.apply(await admin.plan(TOPICS, PARTITIONS, LANES), replication=1, min_isr=1)

    def process(self) -> Kafka:
        kafka = AioKafka(self.connection, self.prefix, stall_deadline=5.0)
        self._processes.append(kafka)
        return kafka

    async def append(
        self, topic: str, key: bytes | None, value: bytes | None, *, partition: int | None = None
    ) -> None:
        if partition is None:
            partition = partition_of(key or b"", PARTITIONS)
        self._producer.produce(self.prefix + topic, value, key, partition)
        await asyncio.to_thread(self._producer.flush, 10)

    async def committed(self, topic: str) -> list[Record]:
        return await asyncio.to_thread(self._committed, topic)

    def _committed(self, topic: str) -> list[Record]:
        consumer = Consumer(
            self.connection.for_librdkafka()
            | {"group.id": "reader", "isolation.level": "read_committed", "enable.partition.eof": True}
        )
        name = self.prefix + topic
        partitions = list(consumer.list_topics(name).topics[name].partitions)
        consumer.assign([WirePartition(name, partition, 0) for partition in partitions])
        found: dict[int, list[Record]] = defaultdict(list)
        unread = set(partitions)
        while unread:
            message = consumer.poll(10)
            assert message is not None
            if message.error():
                unread.discard(message.partition())
                continue
            record = _record(topic, message)
            found[record.partition].append(record)
        consumer.close()
        return list(itertools.chain.from_iterable(found[one] for one in sorted(found)))

    async def close(self) -> None:
        for kafka in self._processes:
            await kafka.close()


def _record(topic: str, message: Any) -> Record:
    where, offset, headers = message.partition(), message.offset(), message.headers() or ()
    return Record(topic, where, offset, message.key(), message.value(), headers, 0)


class Count(msgspec.Struct, frozen=True):
    """The state of a key: how many records it has had, what its table said last, when it forgets."""

    count: int = 0
    word: str | None = None
    forget_at: int | None = None
    end: int | None = None


class Counter:
    """A decider that numbers the records of every key; enough of one to see a loss or a doubling.

    `out` gets `<count>:<value>`. A value `forget:<at>` sets a deadline, `end` asks for the end of `in`,
    `fetch:<offset>` answers with the record at that offset of its partition.
    """

    state = "state"
    ranks: Sequence[Collection[str]] = (("in",), ("slow",))
    tables: Collection[str] = ("table",)

    def __init__(self) -> None:
        self.notes: dict[int, str] = {}
        self.total = 0

    def decode(self, value: bytes) -> Count:
        return msgspec.json.decode(value, type=Count)

    def encode(self, key: bytes, state: Count) -> bytes:
        return msgspec.json.encode(state)

    def mark(self, state: Count) -> Mark:
        return Mark(state.forget_at, ("count",), 0, state.count)

    def mark_of(self, value: bytes) -> Mark:
        return self.mark(self.decode(value))

    def counted(self, partition: int, mark: Mark, times: int) -> None:
        self.total += mark.size * times

    def decide(self, state: Count | None, record: Record, context: Context) -> Step[Count]:
        before = state or Count()
        if record.topic == "table":
            word = (record.value or b"").decode() or None
            if word == before.word:
                return Step((), state)
            return Step((), msgspec.structs.replace(before, word=word))
        value = (record.value or b"").decode()
        command, _, argument = value.partition(":")
        if command == "fetch":
            place = (TopicPartition("in", record.partition), int(argument))
            if place not in context.fetched:
                return Step((), state, (place,))
            found = context.fetched[place]
            value = f"fetched:{(found.value or b'').decode() if found else None}"
        after = msgspec.structs.replace(
            before,
            count=before.count + 1,
            forget_at=int(argument) if command == "forget" else before.forget_at,
            end=None if command == "end" else -1,
        )
        self.notes[record.partition] = value
        row = context.rows.get("table")
        word = (row.value or b"").decode() if row else "-"
        out = Write("out", record.key, f"{after.count}:{value}:{word}".encode(), tuple(record.headers))
        return Step((out,), after)

    def awaits(self, state: Count) -> Collection[str]:
        return ("in",)

    def fire(self, key: bytes, state: Count, context: Context) -> Step[Count]:
        return Step((Write("out", key, f"forgotten:{context.now}".encode()),), None)

    def wants_end(self, state: Count) -> str | None:
        return "in" if state.end is None else None

    def with_end(self, state: Count, end: int) -> Count:
        return msgspec.structs.replace(state, end=end)


SETTINGS = EngineSettings(app="app", partitions=PARTITIONS, lanes=LANES, grace_ms=0, hot_bytes=2_000)


class Signals(EngineMetrics):
    """Metrics that wake whoever waits for a lane to get somewhere."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        super().__init__("app", self.registry)
        self.changed = asyncio.Event()

    def lane_is(self, lane: int, state: str) -> None:
        super().lane_is(lane, state)
        self.changed.set()

    @contextmanager
    def committing(self, records: int) -> Iterator[None]:
        with super().committing(records):
            yield
        self.changed.set()

    async def until(self, condition: Callable[[], bool], patience: float = 30.0) -> None:
        """Wait for what the lanes bring about; looked at whenever one changes, and now and then."""
        async with asyncio.timeout(patience):
            while not condition():
                self.changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await self.changed.wait()


def runner_of(world: World, signals: Signals, settings: EngineSettings = SETTINGS) -> Runner[Count]:
    return Runner(settings, world.process(), lambda _: Counter(), world.clock, signals)


async def committed(world: World, signals: Signals, topic: str, wanted: int) -> list[Record]:
    """The records of a topic once there are so many; fails if there are more."""
    found: list[Record] = []
    async with asyncio.timeout(30):
        while len(found) < wanted:
            await signals.until(lambda: True)
            found = await world.committed(topic)
            await asyncio.sleep(0)
    assert len(found) == wanted
    return found


def by_key(records: Sequence[Record]) -> Mapping[bytes, list[str]]:
    found: dict[bytes, list[str]] = defaultdict(list)
    for record in records:
        found[record.key or b""].append((record.value or b"").decode())
    return found
