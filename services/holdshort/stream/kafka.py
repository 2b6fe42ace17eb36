"""The ports on aiokafka. The only module that imports it, and the place of every trap in it.

Read in aiokafka 0.14 and seen on a real broker (decision 0004 has the list):

- a commit succeeds although a batch of it failed: every future is awaited before the commit;
- after any error sequence numbers and state are wrong: a producer that has met one is discarded;
- EndTxn is sent again after a lost answer, and the first one may still be under way: a producer whose
  transaction met a transport error is not used again, even if it was committed in the end;
- neither commit nor stop has a time limit: the caller sets one, and `discard` cancels and closes by force;
- markers move a position only within getmany: restores compare positions, not the offsets of records;
- getmany must not be cancelled, and a consumer that is told nothing resumes from group offsets, which a
  loading coordinator reports as none: offsets are always sought, and `auto_offset_reset` is none.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka import TopicPartition as KafkaTopicPartition
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import (
    InvalidProducerEpoch,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    ProducerClosed,
    ProducerFenced,
)
from aiokafka.producer import sender

from holdshort.stream.admin import Admin
from holdshort.stream.connection import Connection
from holdshort.stream.errors import Fatal, Fenced, Halt, Retry
from holdshort.stream.ports import Assigned, Inputs, Membership, Positions, Transactions
from holdshort.stream.records import Output, Record, TopicPartition

# The wait while the markers of the previous transaction are being written: 20 ms of it is what a transaction
# takes otherwise. A name that is gone must be noticed, not set in vain.
assert hasattr(sender, "BACKOFF_OVERRIDE")
sender.BACKOFF_OVERRIDE = 0.001

TRANSACTION_TIMEOUT_MS: Final = 15_000
REQUEST_TIMEOUT_MS: Final = 10_000
FENCE_DEADLINE_S: Final = 30.0
BATCH_BYTES: Final = 1_000_000
SESSION_TIMEOUT_MS: Final = 6_000
HEARTBEAT_MS: Final = 1_500
NEVER_MS: Final = 2**31 - 1
CLOSE_DEADLINE_S: Final = 2.0
REJOIN_DEADLINE_S: Final = 60.0
REPLACED_MOST: Final = 3
REPLACED_WITHIN_S: Final = 30.0
FETCH_WAIT_MS: Final = 500
SCAN_RECORDS: Final = 10_000


class _Names:
    """Topic names with and without the prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._short: dict[str, str] = {}

    def wire(self, where: TopicPartition) -> KafkaTopicPartition:
        return KafkaTopicPartition(self._prefix + where.topic, where.partition)

    def own(self, where: Any) -> TopicPartition:
        return TopicPartition(self.short(where.topic), where.partition)

    def short(self, topic: str) -> str:
        if topic not in self._short:
            self._short[topic] = topic.removeprefix(self._prefix)
        return self._short[topic]

    def record(self, raw: Any) -> Record:
        return Record(
            self.short(raw.topic),
            raw.partition,
            raw.offset,
            raw.key,
            raw.value,
            raw.headers,
            raw.timestamp,
        )


class AioKafka:
    """A cluster through aiokafka (ports.Kafka)."""

    def __init__(
        self,
        connection: Connection,
        prefix: str,
        *,
        instance: str | None = None,
        stall_deadline: float = 60.0,
    ) -> None:
        """`instance` names this process across restarts: started again, it has its lanes back at once."""
        self._client = connection.for_aiokafka() | {"request_timeout_ms": REQUEST_TIMEOUT_MS}
        self._prefix = prefix
        self._instance = instance
        self._names = _Names(prefix)
        self.log = AioLog(self._client, self._names, Admin(connection, prefix), stall_deadline)

    async def fence(self, transactional_id: str) -> Transactions:
        producer = AIOKafkaProducer(
            **self._client,
            transactional_id=self._prefix + transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            max_batch_size=BATCH_BYTES,
        )
        transactions = AioTransactions(producer, self._names)
        try:
            async with asyncio.timeout(FENCE_DEADLINE_S):
                await producer.start()
        except (KafkaError, OSError, TimeoutError) as error:
            await transactions.discard()
            raise Retry(f"no fence: {_said(error)}") from error
        except BaseException:
            await transactions.discard()
            raise
        return transactions

    async def read(self, positions: Positions, ranks: Sequence[Collection[str]]) -> Inputs:
        consumer = _consumer(self._client, "read_committed", max_partition_fetch_bytes=1024 * 1024)
        try:
            await consumer.start()
        except (KafkaError, OSError) as error:
            await _stop(consumer)
            raise Retry(f"no reader: {_said(error)}") from error
        _seek(consumer, {self._names.wire(where): at for where, at in positions.items()})
        return AioInputs(consumer, self._names, list(positions), ranks)

    async def join(self, app: str, topic: str, assigned: Assigned) -> Membership:
        consumer = AIOKafkaConsumer(
            **self._client,
            group_id=self._prefix + app,
            group_instance_id=self._instance,
            partition_assignment_strategy=(type("_Sticky", (StickyPartitionAssignor,), {}),),
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=NEVER_MS,  # nothing is polled; the watchdog is ours
            auto_offset_reset="none",
            enable_auto_commit=False,
        )
        try:
            await consumer.start()
        except (KafkaError, OSError) as error:
            await _stop(consumer)
            raise Fatal(f"the group cannot be joined: {_said(error)}") from error
        consumer.subscribe([self._prefix + topic], listener=_Listener(consumer, assigned))
        return AioMembership(consumer, self._instance)

    async def close(self) -> None:
        await self.log.close()


class AioTransactions:
    """The producer of one lane (ports.Transactions)."""

    def __init__(self, producer: AIOKafkaProducer, names: _Names) -> None:
        self._producer = producer
        self._names = names
        self._tainted = False
        self._send = producer.client.send
        producer.client.send = self._watched_send

    async def _watched_send(self, *args: Any, **kwargs: Any) -> Any:
        """A request without an answer may still arrive: from then on the epoch is not ours alone."""
        try:
            return await self._send(*args, **kwargs)
        except (KafkaError, OSError):
            self._tainted = True
            raise

    async def commit(self, outputs: Mapping[TopicPartition, Sequence[Output]]) -> Positions:
        try:
            bases = await self._commit(outputs)
        except (ProducerFenced, InvalidProducerEpoch) as error:
            raise Fenced(_said(error)) from error
        except (KafkaError, AssertionError, OSError, TimeoutError) as error:
            raise Retry(f"a transaction failed: {_said(error)}") from error
        if self._tainted:
            raise Retry("a request of the transaction got no answer")
        if any(base < 0 for base in bases.values()):
            raise Retry("the broker does not say where it wrote")
        return bases

    async def _commit(self, outputs: Mapping[TopicPartition, Sequence[Output]]) -> Positions:
        await self._producer.begin_transaction()
        sent: dict[TopicPartition, list[asyncio.Future[Any]]] = {}
        try:
            for where, records in outputs.items():
                sent[where] = [await self._send_batch(where, batch) for batch in self._batches(records)]
            for futures in sent.values():
                for future in futures:
                    await future
        except BaseException:
            for future in [one for futures in sent.values() for one in futures]:
                future.cancel()
                future.add_done_callback(_heard)
            raise
        await self._producer.commit_transaction()
        return {where: futures[0].result().offset for where, futures in sent.items() if futures}

    def _batches(self, records: Sequence[Output]) -> list[Any]:
        """As few batches as hold these records: appending is seven times cheaper than sending one by one."""
        batches = [self._producer.create_batch()]
        for record in records:
            if not self._append(batches[-1], record):
                batches.append(self._producer.create_batch())
                self._append(batches[-1], record)
        return batches

    def _append(self, batch: Any, record: Output) -> bool:
        appended = batch.append(
            key=record.key, value=record.value, timestamp=None, headers=list(record.headers)
        )
        return appended is not None

    async def _send_batch(self, where: TopicPartition, batch: Any) -> asyncio.Future[Any]:
        topic, partition = self._names.wire(where)
        batch.close()
        future: asyncio.Future[Any] = await self._producer.send_batch(batch, topic, partition=partition)
        return future

    async def discard(self) -> None:
        """By force: stop() would wait for ever for batches that cannot be delivered."""
        producer = self._producer
        producer._closed = True
        producer._message_accumulator.fail_all(ProducerClosed())
        task = producer._sender.sender_task
        for _ in range(3):  # the routine waits for its requests when it is cancelled, and each once more
            if task is None or task.done():
                break
            task.cancel()
            await asyncio.wait([task], timeout=CLOSE_DEADLINE_S / 4)
        if task is not None and task.done() and not task.cancelled():
            task.exception()
        with suppress(TimeoutError, KafkaError, OSError):
            async with asyncio.timeout(CLOSE_DEADLINE_S):
                await producer.client.close()


class AioInputs:
    """The reader of one lane (ports.Inputs)."""

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        names: _Names,
        where: Sequence[TopicPartition],
        ranks: Sequence[Collection[str]],
    ) -> None:
        self._consumer = consumer
        self._names = names
        self._where = where
        self._ranks = [[names.wire(one) for one in where if one.topic in rank] for rank in ranks if rank]

    async def take(self, share: int, patience: float) -> list[Record]:
        try:
            records = await self._take(share)
            if not records and patience > 0:
                records = self._own(
                    await self._consumer.getmany(timeout_ms=int(patience * 1000), max_records=share)
                )
        except (OffsetOutOfRangeError, NoOffsetForPartitionError) as error:
            places = ", ".join(str(self._names.own(one)) for one in error.args[0])
            raise Halt(f"a position is not in the log any more: {places}") from error
        except KafkaError as error:
            raise Retry(f"inputs could not be read: {_said(error)}") from error
        return records

    async def _take(self, share: int) -> list[Record]:
        records: list[Record] = []
        for rank in self._ranks:
            if rank:
                records += self._own(await self._consumer.getmany(*rank, max_records=share))
        return records

    def _own(self, taken: Mapping[Any, Sequence[Any]]) -> list[Record]:
        return [self._names.record(raw) for raws in taken.values() for raw in raws]

    def position(self, where: TopicPartition) -> int:
        position: int = _state(self._consumer, self._names.wire(where)).position
        return position

    def lag(self) -> Positions:
        behind = {}
        for where in self._where:
            end = self._consumer.highwater(self._names.wire(where))
            behind[where] = max(0, (end or 0) - self.position(where))
        return behind

    async def close(self) -> None:
        await _stop(self._consumer)


class AioLog:
    """Reading what is known to be there (ports.Log)."""

    def __init__(self, client: Mapping[str, Any], names: _Names, admin: Admin, stall_deadline: float) -> None:
        self._client = client
        self._names = names
        self._admin = admin
        self._stall_deadline = stall_deadline
        self._asking: dict[str, AIOKafkaConsumer] = {}
        self._lock = asyncio.Lock()

    async def ends(self, where: Collection[TopicPartition], *, committed: bool) -> Positions:
        isolation = "read_committed" if committed else "read_uncommitted"
        return await self._offsets("end_offsets", isolation, where)

    async def beginnings(self, where: Collection[TopicPartition]) -> Positions:
        return await self._offsets("beginning_offsets", "read_uncommitted", where)

    async def _offsets(self, which: str, isolation: str, where: Collection[TopicPartition]) -> Positions:
        if not where:
            return {}
        try:
            consumer = await self._asker(isolation)
            found = await getattr(consumer, which)([self._names.wire(one) for one in where])
        except (KafkaError, OSError) as error:
            raise Retry(f"offsets could not be asked for: {_said(error)}") from error
        return {self._names.own(one): offset for one, offset in found.items()}

    async def _asker(self, isolation: str) -> AIOKafkaConsumer:
        async with self._lock:
            if isolation not in self._asking:
                consumer = _consumer(self._client, isolation)
                await _started(consumer)
                self._asking[isolation] = consumer
            return self._asking[isolation]

    async def scan(self, where: TopicPartition, start: int, end: int) -> AsyncIterator[Sequence[Record]]:
        if start >= end:
            return
        consumer = _consumer(self._client, "read_committed", max_partition_fetch_bytes=8 * 1024 * 1024)
        try:
            await _started(consumer)
            wire = self._names.wire(where)
            beginning = (await consumer.beginning_offsets([wire]))[wire]
            _seek(consumer, {wire: max(start, beginning)})
            async for records in self._scan(consumer, wire, end):
                yield records
        except (KafkaError, OSError) as error:
            raise Retry(f"{where.topic} could not be read: {_said(error)}") from error
        finally:
            await _stop(consumer)

    async def _scan(
        self, consumer: AIOKafkaConsumer, wire: KafkaTopicPartition, end: int
    ) -> AsyncIterator[Sequence[Record]]:
        last_at, last = time.monotonic(), -1
        while (position := _state(consumer, wire).position) < end:
            if position != last:
                last_at, last = time.monotonic(), position
            elif time.monotonic() - last_at > self._stall_deadline:
                raise Retry(f"{wire.topic}/{wire.partition} stops at {position}, before its end {end}")
            taken = await consumer.getmany(timeout_ms=FETCH_WAIT_MS, max_records=SCAN_RECORDS)
            for raws in taken.values():
                if records := [self._names.record(raw) for raw in raws if raw.offset < end]:
                    yield records

    async def fetch(
        self, places: Collection[tuple[TopicPartition, int]]
    ) -> Mapping[tuple[TopicPartition, int], Record | None]:
        found: dict[tuple[TopicPartition, int], Record | None] = {}
        where = {one for one, _ in places}
        beginnings, ends = await self.beginnings(where), await self.ends(where, committed=False)
        for one, offset in places:
            known = beginnings[one] <= offset < ends[one]
            found[one, offset] = await self._fetch(one, offset) if known else None
        return found

    async def _fetch(self, where: TopicPartition, offset: int) -> Record | None:
        """One record; what was read committed once may be read uncommitted, and then nothing holds it up."""
        consumer = _consumer(self._client, "read_uncommitted", max_partition_fetch_bytes=64 * 1024)
        try:
            await _started(consumer)
            _seek(consumer, {self._names.wire(where): offset})
            async with asyncio.timeout(REQUEST_TIMEOUT_MS / 1000):
                raw = await consumer.getone()
        except (KafkaError, OSError, TimeoutError) as error:
            raise Retry(f"{where.topic} could not be read: {_said(error)}") from error
        finally:
            await _stop(consumer)
        return self._names.record(raw) if raw.offset == offset else None

    async def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        return await self._admin.topic_ids(topics)

    async def close(self) -> None:
        asking, self._asking = list(self._asking.values()), {}
        for consumer in asking:
            await _stop(consumer)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka is untyped
    """Lanes as partitions of the one topic; nothing of it is ever fetched."""

    def __init__(self, consumer: AIOKafkaConsumer, assigned: Assigned) -> None:
        self._consumer = consumer
        self._assigned = assigned

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        """Eager rebalances revoke everything: what stays ours is known only when it is assigned again."""

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        for one in assigned:
            self._consumer.pause(one)
            self._consumer.seek(one, 0)  # else it would look for a committed offset, and fail
        self._assigned(frozenset(one.partition for one in assigned))


class AioMembership:
    """The process's place in the group (ports.Membership)."""

    def __init__(self, consumer: AIOKafkaConsumer, instance: str | None) -> None:
        self._consumer = consumer
        self._instance = instance
        self._rejoining_since: float | None = None
        self._member = ""
        self._replaced: deque[float] = deque(maxlen=REPLACED_MOST)

    def check(self) -> None:
        """aiokafka can look alive and never rejoin; a refusal of the group waits to be asked for."""
        coordinator = self._consumer._coordinator
        try:
            coordinator.check_errors()
        except KafkaError as error:
            raise Fatal(f"the group refuses us: {_said(error)}") from error
        self._check_rejoining(rejoining=coordinator._rejoin_needed_fut.done())
        if self._instance is not None and coordinator.member_id:
            self._check_namesake(coordinator.member_id)

    def _check_rejoining(self, *, rejoining: bool) -> None:
        if not rejoining:
            self._rejoining_since = None
        elif self._rejoining_since is None:
            self._rejoining_since = time.monotonic()
        elif time.monotonic() - self._rejoining_since > REJOIN_DEADLINE_S:
            raise Fatal("the group has not been rejoined for a minute")

    def _check_namesake(self, member: str) -> None:
        """Two processes of one name replace each other in the group for ever; that is told, and ended."""
        if self._member and member != self._member:
            self._replaced.append(time.monotonic())
        self._member = member
        many = len(self._replaced) == REPLACED_MOST
        if many and time.monotonic() - self._replaced[0] < REPLACED_WITHIN_S:
            raise Fatal(f"another process is called {self._instance}, too: HOLDSHORT_INSTANCE must be unique")

    async def leave(self) -> None:
        """A named process would keep its lanes for a session; a planned stop gives them up at once."""
        self._consumer._coordinator._group_instance_id = None
        await _stop(self._consumer)


def _consumer(client: Mapping[str, Any], isolation: str, **more: Any) -> AIOKafkaConsumer:
    """A consumer without a group, which reads only from where it is told to."""
    return AIOKafkaConsumer(
        **client,
        isolation_level=isolation,
        auto_offset_reset="none",
        enable_auto_commit=False,
        fetch_max_wait_ms=FETCH_WAIT_MS,
        fetch_max_bytes=16 * 1024 * 1024,
        **more,
    )


async def _started(consumer: AIOKafkaConsumer) -> None:
    try:
        await consumer.start()
    except BaseException:
        await _stop(consumer)
        raise


def _seek(consumer: AIOKafkaConsumer, positions: Mapping[KafkaTopicPartition, int]) -> None:
    """Assign and seek in one breath: in between, the fetcher would look for committed offsets."""
    consumer.assign(list(positions))
    for where, offset in positions.items():
        consumer.seek(where, offset)


def _state(consumer: AIOKafkaConsumer, where: KafkaTopicPartition) -> Any:
    return consumer._subscription.subscription.assignment.state_value(where)


async def _stop(consumer: AIOKafkaConsumer) -> None:
    with suppress(TimeoutError, KafkaError, OSError):
        async with asyncio.timeout(CLOSE_DEADLINE_S):
            await consumer.stop()


def _heard(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled():
        future.exception()


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
