"""The topics of the chaos world as committed readers see them: followed as it lives, read whole at last."""

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec
from tests.clients import Seen

READ_PATIENCE_S: Final = 90.0
ASK_PATIENCE_S: Final = 10.0


Topics = Mapping[str, int]
"""Names without prefix, and how many partitions each has."""


class Place(NamedTuple):
    """Where a record lies; `str` is how headers and pointers name it."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


class Ends(NamedTuple):
    """A partition's end as committed readers see it (the last stable offset), and as it is written."""

    committed: int
    written: int


def place_of(seen: Seen) -> Place:
    return Place(seen.topic, seen.partition, seen.offset)


def digest_of(seen: Seen) -> bytes:
    """What is compared of a record: all that its writer gave it."""
    parts = (seen.key, seen.raw, sorted(seen.headers.items()))
    return hashlib.sha256(repr(parts).encode()).digest()


def _seen(message: Any, prefix: str) -> Seen:
    raw, key = message.value(), message.key()
    value: Any = None
    if raw is not None:
        value = json.loads(raw)
    return Seen(
        message.topic().removeprefix(prefix),
        message.partition(),
        message.offset(),
        None if key is None else key.decode(),
        value,
        {name: (text or b"").decode() for name, text in message.headers() or ()},
        raw,
    )


def _partitions(topics: Topics) -> Iterator[tuple[str, int]]:
    return ((topic, partition) for topic, count in topics.items() for partition in range(count))


def _consumer(servers: str, prefix: str, topics: Topics, **more: Any) -> Consumer:
    """Assigned by hand, from the beginning: no group whose offsets could be lost, and nothing is skipped."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "not-used",
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            "reconnect.backoff.max.ms": 1000,
            "log_level": 0,
            **more,
        }
    )
    consumer.assign([TopicPartition(prefix + t, p, OFFSET_BEGINNING) for t, p in _partitions(topics)])
    return consumer


class Witness:
    """Follows every topic from outside; what it has seen once must stay."""

    def __init__(self, servers: str, prefix: str, topics: Topics, tell: Callable[[Seen], None]) -> None:
        self.seen: dict[Place, bytes] = {}
        self.troubles: list[str] = []
        self.longest_gap = 0.0
        self.last_progress = asyncio.get_running_loop().time()
        self._prefix = prefix
        self._tell = tell
        self._consumer = _consumer(servers, prefix, topics)
        self._stopping = False
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stopping:
            messages = await asyncio.to_thread(self._consumer.consume, 500, 0.1)
            for message in messages:
                if (error := message.error()) is not None:
                    self.troubles.append(str(error))
                    continue
                seen = _seen(message, self._prefix)
                self.seen[place_of(seen)] = digest_of(seen)
                if seen.topic == "events":
                    now = loop.time()
                    self.longest_gap = max(self.longest_gap, now - self.last_progress)
                    self.last_progress = now
                self._tell(seen)
        self._consumer.close()

    @property
    def failed(self) -> bool:
        return self._task.done() and not self._stopping

    async def stop(self) -> None:
        self._stopping = True
        await self._task


async def ends(servers: str, prefix: str, topics: Topics) -> Mapping[tuple[str, int], Ends]:
    """The ends of all partitions, by topic without prefix. Raises KafkaException."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})

    def ask(level: IsolationLevel) -> dict[tuple[str, int], int]:
        wanted = {
            TopicPartition(prefix + t, p): OffsetSpec.latest()  # type: ignore[no-untyped-call]
            for t, p in _partitions(topics)
        }
        told = admin.list_offsets(wanted, isolation_level=level, request_timeout=ASK_PATIENCE_S)
        return {
            (where.topic.removeprefix(prefix), where.partition): future.result().offset
            for where, future in told.items()
        }

    committed = await asyncio.to_thread(ask, IsolationLevel.READ_COMMITTED)
    written = await asyncio.to_thread(ask, IsolationLevel.READ_UNCOMMITTED)
    return {where: Ends(committed[where], written[where]) for where in committed}


async def whole(servers: str, prefix: str, topics: Topics) -> Mapping[str, Sequence[Seen]]:
    """Every committed record, by topic, in the order of partition and offset. Raises TimeoutError."""
    consumer = _consumer(servers, prefix, topics, **{"enable.partition.eof": True})
    found: dict[str, list[Seen]] = defaultdict(list)
    left = sum(topics.values())
    try:
        async with asyncio.timeout(READ_PATIENCE_S):
            while left:
                for message in await asyncio.to_thread(consumer.consume, 2000, 0.2):
                    if (error := message.error()) is None:
                        seen = _seen(message, prefix)
                        found[seen.topic].append(seen)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        left -= 1
                    else:
                        raise KafkaException(error)
    finally:
        await asyncio.to_thread(consumer.close)
    for records in found.values():
        records.sort(key=place_of)
    return found
