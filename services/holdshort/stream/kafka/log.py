"""Reading what is known to be there: ends, whole partitions, single records."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from holdshort.stream.admin import Admin
from holdshort.stream.errors import Retry
from holdshort.stream.kafka.consumers import consumer_of, said, started, stop
from holdshort.stream.kafka.names import Names
from holdshort.stream.kafka.pages import Pages
from holdshort.stream.ports import Positions
from holdshort.stream.records import Record, RecordPlace, TopicPartition


class AioLog:
    """Reading what is known to be there (ports.Log)."""

    def __init__(self, client: Mapping[str, Any], names: Names, admin: Admin, stall_deadline: float) -> None:
        self._client = client
        self._names = names
        self._admin = admin
        self._whole = Pages(client, names, stall_deadline)
        self._single = Pages(client, names, stall_deadline)  # not behind a page that is waited for
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
            raise Retry(f"offsets could not be asked for: {said(error)}") from error
        return {self._names.own(one): offset for one, offset in found.items()}

    async def _asker(self, isolation: str) -> AIOKafkaConsumer:
        async with self._lock:
            if isolation not in self._asking:
                consumer = consumer_of(self._client, isolation)
                await started(consumer)
                self._asking[isolation] = consumer
            return self._asking[isolation]

    async def scan(self, where: TopicPartition, start: int, end: int) -> AsyncIterator[Sequence[Record]]:
        if start < end:
            beginning = (await self.beginnings([where]))[where]
            async for records in self._whole.scan(where, max(start, beginning), end):
                yield records

    async def fetch(self, places: Collection[RecordPlace]) -> Mapping[RecordPlace, Record | None]:
        return await self._single.at(places)

    async def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        return await self._admin.topic_ids(topics)

    async def close(self) -> None:
        asking, self._asking = list(self._asking.values()), {}
        for consumer in asking:
            await stop(consumer)
        await self._whole.close()
        await self._single.close()
