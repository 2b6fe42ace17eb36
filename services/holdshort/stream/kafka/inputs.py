"""The reader of one lane."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError

from holdshort.stream.errors import Halt, Retry
from holdshort.stream.kafka.consumers import partition_state, said, stop
from holdshort.stream.kafka.names import Names
from holdshort.stream.ports import Positions
from holdshort.stream.records import Record, TopicPartition


class AioInputs:
    """The reader of one lane (ports.Inputs)."""

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        names: Names,
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
            raise Retry(f"inputs could not be read: {said(error)}") from error
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
        position: int = partition_state(self._consumer, self._names.wire(where)).position
        return position

    def lag(self) -> Positions:
        behind = {}
        for where in self._where:
            end = self._consumer.highwater(self._names.wire(where))
            behind[where] = max(0, (end or 0) - self.position(where))
        return behind

    async def close(self) -> None:
        await stop(self._consumer)
