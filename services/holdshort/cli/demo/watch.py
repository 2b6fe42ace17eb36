"""The demo's eyes and hands: reads topics as a client or a team does, read_committed, and writes records."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from faststream.kafka import KafkaBroker

from holdshort.stream.kafka import AioKafka
from holdshort.stream.ports import Inputs
from holdshort.stream.records import Record, TopicPartition

PATIENCE_S: Final = 30.0


class Sight(NamedTuple):
    """One record as it became visible."""

    topic: str
    key: str | None
    value: Any
    headers: dict[str, str]
    record: Record
    at: float


class NotAsSaidError(Exception):
    """The demo waited for something that did not come, or saw something that must not be."""


class Watch:
    """Follows topics from their beginning; `until` waits for what is to be seen."""

    def __init__(self, kafka: AioKafka, broker: KafkaBroker, prefix: str, partitions: int) -> None:
        self.sights: list[Sight] = []
        self._kafka = kafka
        self._broker = broker
        self._prefix = prefix
        self._partitions = partitions
        self._news = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    async def follow(self, topics: Sequence[str]) -> None:
        places = [TopicPartition(topic, n) for topic in topics for n in range(self._partitions)]
        inputs = await self._kafka.read(await self._kafka.log.beginnings(places), [topics])
        self._following = asyncio.create_task(self._follow(inputs))

    async def _follow(self, inputs: Inputs) -> None:
        try:
            while True:
                for record in await inputs.take(1000, 0.2):
                    self.sights.append(_sight(record))
                self._news.set()
        finally:
            await inputs.close()

    async def until(self, what: str, found: Callable[[], bool]) -> None:
        """Wait until `found`. Raises NotAsSaidError when it does not come about."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not found():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise NotAsSaidError(f"not seen within {PATIENCE_S:g} s: {what}") from None

    def of(self, topic: str, **members: Any) -> list[Sight]:
        """What was seen of a topic, with these members in the value."""
        seen = [sight for sight in self.sights if sight.topic == topic and isinstance(sight.value, dict)]
        return [s for s in seen if all(s.value.get(name) == one for name, one in members.items())]

    async def latest(self, topic: str, key: str, partition: int) -> bytes | None:
        """The value of a key in a compacted topic, as a reader finds it who comes now."""
        where = TopicPartition(topic, partition)
        end = (await self._kafka.log.ends([where], committed=True))[where]
        latest = None
        async for records in self._kafka.log.scan(where, 0, end):
            for record in records:
                latest = record.value if record.key == key.encode() else latest
        return latest

    async def send(self, topic: str, value: Any, thread: str, headers: dict[str, str] | None = None) -> None:
        """Write one record, keyed by its thread."""
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        await self._broker.publish(
            raw, topic=self._prefix + topic, key=thread.encode(), headers=headers or {}
        )

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)


def _sight(record: Record) -> Sight:
    value = json.loads(record.value) if record.value is not None else None
    headers = {name: text.decode() for name, text in record.headers}
    key = record.key.decode() if record.key is not None else None
    return Sight(record.topic, key, value, headers, record, time.monotonic())
