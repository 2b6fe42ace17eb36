"""The ports in memory: logs with transactions, fencing, last stable offsets and compaction; a group.

It behaves as a broker does where the engine depends on it, and is held to that by the same tests as
kafka.py. For unit tests and simulation only; everything shown to users runs on Kafka.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from holdshort.contract.keys import partition_of
from holdshort.stream.errors import Fenced, Retry
from holdshort.stream.ports import Assigned, Clock, Inputs, Membership, Positions, Transactions
from holdshort.stream.records import Headers, Output, Record, RecordPlace, TopicPartition


@dataclass(slots=True, eq=False)
class Transaction:
    """A transaction and where it has written."""

    state: Literal["open", "committed", "aborted"] = "open"
    touched: set[TopicPartition] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Entry:
    """One offset of a partition; without a record it is a marker."""

    offset: int
    record: Record | None
    transaction: Transaction | None = None

    def visible(self, *, committed: bool) -> bool:
        if self.record is None:
            return False
        return not committed or self.transaction is None or self.transaction.state == "committed"


@dataclass(slots=True)
class Partition:
    """One partition's log."""

    entries: list[Entry] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def append(self, record: Record | None, transaction: Transaction | None = None) -> int:
        offset, self.end = self.end, self.end + 1
        placed = record._replace(offset=offset) if record is not None else None
        self.entries.append(Entry(offset, placed, transaction))
        return offset

    def stable_end(self) -> int:
        """The last stable offset: below it no transaction is open."""
        still_open = (e.offset for e in self.entries if e.transaction and e.transaction.state == "open")
        return next(still_open, self.end)

    def read(self, start: int, end: int, *, committed: bool) -> list[Record]:
        return [
            entry.record
            for entry in self.entries
            if start <= entry.offset < end and entry.record and entry.visible(committed=committed)
        ]

    def compact(self) -> None:
        """Keep the latest record of each key, as the cleaner may at any moment; aborted ones go too."""
        stable = self.stable_end()
        latest = {e.record.key: e.offset for e in self.entries if e.record and e.visible(committed=True)}
        self.entries = [
            e
            for e in self.entries
            if e.offset >= stable
            or (e.record and e.visible(committed=True) and latest[e.record.key] == e.offset)
        ]


@dataclass(slots=True)
class Producer:
    """What the coordinator knows of one transactional id."""

    epoch: int = 0
    transaction: Transaction | None = None


class MemoryBroker:
    """A cluster in memory; every process that uses it has a MemoryKafka of its own."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.topics: dict[str, list[Partition]] = {}
        self.ids: dict[str, str] = {}
        self.producers: dict[str, Producer] = defaultdict(Producer)
        self.groups: dict[str, MemoryGroup] = {}
        self._arrived: set[asyncio.Event] = set()

    def create(self, topic: str, partitions: int) -> None:
        self.topics[topic] = [Partition() for _ in range(partitions)]
        self.ids[topic] = f"id-{len(self.ids)}"

    def compact(self, topic: str) -> None:
        """Let the cleaner pass over a topic."""
        for partition in self.topics[topic]:
            partition.compact()

    def partition(self, where: TopicPartition) -> Partition:
        return self.topics[where.topic][where.partition]

    def append(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        *,
        partition: int | None = None,
    ) -> int:
        """Write one record as an ordinary producer does; returns its offset."""
        if partition is None:
            partition = partition_of(key or b"", len(self.topics[topic]))
        record = Record(topic, partition, 0, key, value, headers, self.clock.now())
        offset = self.topics[topic][partition].append(record)
        self.arrived()
        return offset

    def committed(self, topic: str) -> list[Record]:
        """All committed records of a topic, partition by partition."""
        return [
            record
            for partition in self.topics[topic]
            for record in partition.read(0, partition.stable_end(), committed=True)
        ]

    def init_producer(self, transactional_id: str) -> int:
        """A new epoch: what was open is aborted, and older epochs are shut out."""
        producer = self.producers[transactional_id]
        self._end(producer, "aborted")
        producer.epoch += 1
        return producer.epoch

    def write(
        self, transactional_id: str, epoch: int, where: TopicPartition, outputs: Iterable[Output]
    ) -> int:
        producer = self.checked(transactional_id, epoch)
        if producer.transaction is None:
            producer.transaction = Transaction()
        producer.transaction.touched.add(where)
        now = self.clock.now()
        offsets = [
            self.partition(where).append(
                Record(where.topic, where.partition, 0, out.key, out.value, out.headers, now),
                producer.transaction,
            )
            for out in outputs
        ]
        return offsets[0]

    def end(self, transactional_id: str, epoch: int) -> None:
        self._end(self.checked(transactional_id, epoch), "committed")

    def end_late(self, transactional_id: str, epoch: int) -> None:
        """A request to commit arrives when nobody waits for it; of an older epoch it is refused."""
        producer = self.producers[transactional_id]
        if producer.epoch == epoch:
            self._end(producer, "committed")

    def checked(self, transactional_id: str, epoch: int) -> Producer:
        producer = self.producers[transactional_id]
        if producer.epoch != epoch:
            raise Fenced(f"{transactional_id} has epoch {producer.epoch}")
        return producer

    def _end(self, producer: Producer, how: Literal["committed", "aborted"]) -> None:
        transaction, producer.transaction = producer.transaction, None
        if transaction is not None:
            transaction.state = how
            for where in transaction.touched:
                self.partition(where).append(None, transaction)
            self.arrived()

    # -- waiting for records -------------------------------------------------------------------------------

    def watch(self) -> asyncio.Event:
        event = asyncio.Event()
        self._arrived.add(event)
        return event

    def unwatch(self, event: asyncio.Event) -> None:
        self._arrived.discard(event)

    def arrived(self) -> None:
        for event in self._arrived:
            event.set()


class MemoryKafka:
    """A process's view of a MemoryBroker (ports.Kafka).

    `at` is called before every step that touches the broker: tests override it to crash, delay or fail there.
    """

    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker
        self.log = MemoryLog(self)

    async def at(self, step: str) -> None:
        """A step is about to be taken; a place for other tasks to run."""
        await asyncio.sleep(0)

    async def fence(self, transactional_id: str) -> Transactions:
        await self.at("fence")
        return MemoryTransactions(self, transactional_id, self.broker.init_producer(transactional_id))

    async def read(self, positions: Positions, ranks: Sequence[Collection[str]]) -> Inputs:
        await self.at("read")
        return MemoryInputs(self, dict(positions), ranks)

    async def join(self, app: str, topic: str, assigned: Assigned) -> Membership:
        await self.at("join")
        lanes = len(self.broker.topics[topic])
        group = self.broker.groups.setdefault(app, MemoryGroup(lanes))
        return group.join(assigned)

    async def close(self) -> None:
        """Nothing is held open."""


class MemoryTransactions:
    """ports.Transactions; spoilt by its first failure, as a real producer is."""

    def __init__(self, kafka: MemoryKafka, transactional_id: str, epoch: int) -> None:
        self._kafka = kafka
        self._id = transactional_id
        self._epoch = epoch
        self._spoilt = False

    async def commit(self, outputs: Mapping[TopicPartition, Sequence[Output]]) -> Positions:
        assert not self._spoilt, "a producer is used after an error"
        self._spoilt = True
        bases = {}
        for where, records in outputs.items():
            await self._kafka.at("write")
            if where.partition >= len(self._kafka.broker.topics.get(where.topic, ())):
                raise Retry(f"{where} does not exist")
            bases[where] = self._kafka.broker.write(self._id, self._epoch, where, records)
        await self._kafka.at("end")
        self._kafka.broker.end(self._id, self._epoch)
        await self._kafka.at("ended")
        self._spoilt = False
        return bases

    async def discard(self) -> None:
        self._spoilt = True


class MemoryInputs:
    """ports.Inputs."""

    def __init__(
        self, kafka: MemoryKafka, positions: dict[TopicPartition, int], ranks: Sequence[Collection[str]]
    ) -> None:
        self._kafka = kafka
        self._positions = positions
        self._ranks = [[where for where in positions if where.topic in rank] for rank in ranks]
        self._arrived = kafka.broker.watch()

    async def take(self, share: int, patience: float) -> list[Record]:
        await self._kafka.at("take")
        self._arrived.clear()
        records = self._take(share)
        if not records and patience > 0:
            try:
                async with asyncio.timeout(patience):
                    await self._arrived.wait()
            except TimeoutError:
                return []
            records = self._take(share)
        return records

    def _take(self, share: int) -> list[Record]:
        taken: list[Record] = []
        for rank in self._ranks:
            left = share
            for where in rank:
                records = self._read(where, left)
                left -= len(records)
                taken += records
        return taken

    def _read(self, where: TopicPartition, most: int) -> list[Record]:
        if where.topic not in self._kafka.broker.topics:
            return []  # as of a broker that does not know it
        partition, position = self._kafka.broker.partition(where), self._positions[where]
        if not partition.start <= position <= partition.end:
            raise Retry(f"{where.topic}/{where.partition} does not hold what is read next")
        end = partition.stable_end()
        records = partition.read(position, end, committed=True)
        if len(records) > most:
            records = records[:most]
            end = records[-1].offset + 1 if records else position
        self._positions[where] = max(position, end)
        return records

    def position(self, where: TopicPartition) -> int:
        return self._positions[where]

    def lag(self) -> Positions:
        return {w: self._kafka.broker.partition(w).end - at for w, at in self._positions.items()}

    async def close(self) -> None:
        self._kafka.broker.unwatch(self._arrived)


class MemoryLog:
    """ports.Log."""

    def __init__(self, kafka: MemoryKafka) -> None:
        self._kafka = kafka

    async def ends(self, where: Collection[TopicPartition], *, committed: bool) -> Positions:
        await self._kafka.at("ends")
        found = {}
        for one in where:
            partition = self._kafka.broker.partition(one)
            found[one] = partition.stable_end() if committed else partition.end
        return found

    async def beginnings(self, where: Collection[TopicPartition]) -> Positions:
        await self._kafka.at("beginnings")
        return {one: self._kafka.broker.partition(one).start for one in where}

    async def scan(self, where: TopicPartition, start: int, end: int) -> AsyncIterator[Sequence[Record]]:
        if start >= end:
            return
        await self._kafka.at("scan")
        partition = self._kafka.broker.partition(where)
        if partition.stable_end() < end:
            raise Retry(f"{where} stops at {partition.stable_end()}, before its end {end}")
        if records := partition.read(start, end, committed=True):
            yield records

    async def fetch(self, places: Collection[RecordPlace]) -> Mapping[RecordPlace, Record | None]:
        await self._kafka.at("fetch")
        found: dict[RecordPlace, Record | None] = {}
        for where, offset in places:
            records = self._kafka.broker.partition(where).read(offset, offset + 1, committed=False)
            found[where, offset] = records[0] if records else None
        return found

    async def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        await self._kafka.at("topic_ids")
        return {topic: id_ for topic, id_ in self._kafka.broker.ids.items() if topic in topics}


class MemoryGroup:
    """A consumer group over the lanes of one application; every change gives each member its lanes anew."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._members: list[MemoryMembership] = []

    def join(self, assigned: Assigned) -> "MemoryMembership":
        member = MemoryMembership(self, assigned)
        self.add(member)
        return member

    def add(self, member: "MemoryMembership") -> None:
        if member not in self._members:
            self._members.append(member)
            self.rebalance()

    def drop(self, member: "MemoryMembership") -> None:
        """The member has left, or its session is over."""
        if member in self._members:
            self._members.remove(member)
            self.rebalance()

    def rebalance(self) -> None:
        loop = asyncio.get_running_loop()
        for number, member in enumerate(self._members):
            lanes = frozenset(range(number, self._lanes, len(self._members)))
            loop.call_soon(member.assigned, lanes)


class MemoryMembership:
    """ports.Membership."""

    def __init__(self, group: MemoryGroup, assigned: Assigned) -> None:
        self._group = group
        self.assigned = assigned

    def check(self) -> None:
        """A group in memory refuses nobody."""

    async def tell(self, positions: Positions) -> None:
        """Nobody asks a group in memory for its lag."""

    async def leave(self) -> None:
        self._group.drop(self)
