"""Fetch requests: what lies in partitions from an offset on, from the brokers that lead them.

A consumer is made for following a log with a group's help. Here it is known what is wanted and from where,
and a fetch request says just that: records are made once, nothing is waited for in vain, and an answer says
which partition it could not serve.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import LeaderNotAvailableError
from aiokafka.protocol.fetch import FetchRequest

from holdshort.stream.kafka.batches import Page, page
from holdshort.stream.kafka.consumers import in_bounded_time
from holdshort.stream.kafka.names import Names
from holdshort.stream.records import TopicPartition

RESPONSE_BYTES: Final = 16 * 1024 * 1024


class Fetched(NamedTuple):
    """The answer for one partition: an error code of Kafka's, or a page and the high watermark."""

    where: TopicPartition
    code: int
    page: Page | None
    end: int


class Fetcher:
    """Fetches on connections of its own; closed, it opens again when it is used."""

    def __init__(self, client: Mapping[str, Any], names: Names) -> None:
        self._settings = client
        self._names = names
        self._client: AIOKafkaClient | None = None
        self._lock = asyncio.Lock()

    async def leaders(self, wanted: Collection[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Which broker leads which of these. Raises KafkaError (no leader is one) and OSError."""
        client = await self._connected()
        led: dict[int, list[TopicPartition]] = defaultdict(list)
        for where in wanted:
            wire = self._names.wire(where)
            await client._wait_on_metadata(wire.topic)
            node = client.cluster.leader_for_partition(wire)
            if node is None or node == -1:
                raise LeaderNotAvailableError(where.topic)
            led[node].append(where)
        return led

    async def fetch(
        self,
        node: int,
        offsets: Mapping[TopicPartition, int],
        size: int,
        wait_ms: int,
        last: int | None = None,
        *,
        committed: bool,
    ) -> Sequence[Fetched]:
        """At most `size` bytes of each, or one batch; what is nowhere there is waited for so long.

        Of what came, records are made up to the offset `last`.
        """
        client = await self._connected()
        asked: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for where, offset in offsets.items():
            topic, partition = self._names.wire(where)
            asked[topic].append((partition, offset, size))
        request = FetchRequest(wait_ms, 1, RESPONSE_BYTES, int(committed), list(asked.items()))
        response = await client.send(node, request)
        fetched = []
        for topic, partitions in response.topics:
            for number, code, end, _, _, aborted, _, raw in partitions:  # version 11, of Kafka 2.4
                where = TopicPartition(self._names.short(topic), number)
                found = None
                if not code:
                    start = offsets[where]
                    found = page(self._names, where, raw or b"", aborted, start, last, committed=committed)
                fetched.append(Fetched(where, code, found, end))
        return fetched

    async def renew(self) -> None:
        """Ask again who leads what."""
        await (await self._connected()).force_metadata_update()

    async def _connected(self) -> AIOKafkaClient:
        async with self._lock:
            if self._client is None:
                client = AIOKafkaClient(**self._settings)
                await client.bootstrap()
                self._client = client
            return self._client

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await in_bounded_time(client.close())
