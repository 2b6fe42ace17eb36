"""The cluster as a command sees it: compacted topics read to their end and followed, single records written.

Nothing here joins a group: what is read is read from the beginning, up to the end asked for at first.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final, TypeVar

from holdshort.cli.waiting import waiting_for
from holdshort.settings import load_settings
from holdshort.stream.admin import NO_TOPIC, Admin, Seen
from holdshort.stream.connection import connection_of
from holdshort.stream.errors import Fatal, Retry
from holdshort.stream.kafka import AioKafka
from holdshort.stream.kafka.writing import Writer
from holdshort.stream.ports import Log, Positions
from holdshort.stream.records import Output, Record, RecordPlace, TopicPartition

T = TypeVar("T")

STALL_S: Final = 30.0
LOOK_S: Final = 0.2


@asynccontextmanager
async def opened(
    client: str, topics: Collection[str], optional: Collection[str] = ()
) -> "AsyncIterator[Cluster]":
    """The cluster of the settings, once the topics are seen to be there.

    Of `optional` topics those are left out that are absent or may not be seen. Raises Fatal,
    MendSettingsError.
    """
    kafka_settings, settings, _ = load_settings()
    connection = connection_of(kafka_settings, f"holdshort-{client}")
    with waiting_for(kafka_settings):
        seen = await Admin(connection, settings.prefix).look([*topics, *optional])
    for topic in topics:
        if seen[topic].trouble is not None:
            raise Fatal(why_not(settings.prefix + topic, seen[topic]))
    kafka = AioKafka(connection, settings.prefix, stall_deadline=STALL_S)
    writer = Writer(connection, settings.prefix)
    try:
        with troubles_told():
            yield Cluster(kafka.log, writer, {name: one for name, one in seen.items() if not one.trouble})
    finally:
        await writer.close()
        await kafka.close()


def why_not(topic: str, seen: Seen) -> str:
    """Why a topic cannot be used, and what to do about it."""
    if seen.trouble == NO_TOPIC:
        return f"there is no topic {topic}: `holdshort topics plan` shows what is missing (HOLDSHORT_PREFIX?)"
    return f"you may not even see the topic {topic}: `holdshort acls print` says who may"


@contextmanager
def troubles_told() -> Iterator[None]:
    """Passing trouble ends a command, in one sentence: whoever typed it tries again."""
    try:
        yield
    except Retry as trouble:
        if type(trouble.__cause__).__name__ == "TopicAuthorizationFailedError":
            raise Fatal(f"you may not read that: {trouble} (`holdshort acls print`)") from trouble
        raise Fatal(f"Kafka did not let us, try again: {trouble}") from trouble


class Cluster:
    """Topics that were there when it was opened; every name is without the prefix."""

    def __init__(self, log: Log, writer: Writer, seen: Mapping[str, Seen]) -> None:
        self._log = log
        self._writer = writer
        self.seen = seen

    def may_read(self, topic: str) -> bool:
        return topic in self.seen and "Read" in self.seen[topic].operations

    def without(self, topic: str) -> "Cluster":
        """The same without one of its topics."""
        return Cluster(self._log, self._writer, {k: one for k, one in self.seen.items() if k != topic})

    def partitions(self, *topics: str) -> list[TopicPartition]:
        return [TopicPartition(one, number) for one in topics for number in range(self.seen[one].partitions)]

    async def ends(self, where: Collection[TopicPartition]) -> Positions:
        """The offset behind the last committed record of each partition."""
        return await self._log.ends(where, committed=True)

    async def beginnings(self, where: Collection[TopicPartition]) -> Positions:
        """The offset of the first record that each partition may still have."""
        return await self._log.beginnings(where)

    async def latest(
        self, topic: str, keep: Callable[[Record], T | None], ends: Positions | None = None
    ) -> dict[bytes, T]:
        """What stands in a compacted topic, by key: of each last record what `keep` makes of it.

        Where `keep` gives None, and for a tombstone, nothing is kept. Reads up to `ends` (default: now).
        """
        ends = ends or await self.ends(self.partitions(topic))
        rows: dict[bytes, T] = {}
        async for record in self.scan({where: 0 for where in ends if where.topic == topic}, ends):
            if record.key is None:
                continue
            kept = None if record.value is None else keep(record)
            if kept is None:
                rows.pop(record.key, None)
            else:
                rows[record.key] = kept
        return rows

    async def scan(self, starts: Positions, ends: Positions) -> AsyncIterator[Record]:
        """Committed records, partition after partition."""
        for where, start in starts.items():
            async for records in self._log.scan(where, start, ends[where]):
                for record in records:
                    yield record

    async def follow(
        self, positions: Positions, patience: float | None = None
    ) -> AsyncIterator[Sequence[Record]]:
        """What is committed from these positions on, as it comes; ends after `patience` seconds, if given."""
        reached = dict(positions)
        began = time.monotonic()
        while patience is None or time.monotonic() - began < patience:
            ends = await self.ends(list(reached))
            came = [record async for record in self.scan(_behind(reached, ends), ends)]
            reached |= ends
            yield came
            if not came:
                await asyncio.sleep(LOOK_S)

    async def fetch(self, places: Collection[RecordPlace]) -> Mapping[RecordPlace, Record | None]:
        return await self._log.fetch(places)

    async def write(self, where: TopicPartition, record: Output) -> int:
        return await self._writer.write(where, record)


def _behind(reached: Positions, ends: Positions) -> dict[TopicPartition, int]:
    return {where: position for where, position in reached.items() if position < ends[where]}
