"""The changelog of a lane as it is known: state and positions, read from the log and written by us."""

import asyncio

from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.ports import Log
from holdshort.stream.positions import Positions, decode_positions
from holdshort.stream.records import Record, TopicPartition


class Changelog:
    """What a lane's changelog says as far as it is known: values, positions, and up to which offset.

    Read from the log, and moved on by every transaction that is known to be committed; so a retry reads
    only the tail.
    """

    def __init__(self) -> None:
        self.values: dict[int, dict[bytes, bytes]] = {}
        self.positions: Positions | None = None
        self.seen = False
        self.remaining = 0
        self._next: dict[TopicPartition, int] = {}

    def committed(self, where: TopicPartition, end: int) -> None:
        """What was written up to `end` is in `values` and `positions` already."""
        self.seen = True
        self._next[where] = end

    async def read(self, log: Log, settings: EngineSettings, lane: int, state: str) -> dict[int, int]:
        """Read on, up to the high watermark; returns the ends of the state's partitions.

        The fence has left no transaction open, so everything up to there is decided: stopping at the last
        stable offset instead would silently forget what a transaction of somebody else holds back.
        """
        partitions = settings.partitions_of(lane)
        where = [TopicPartition(state, partition) for partition in partitions]
        positions = TopicPartition(settings.positions, lane)
        ends = await log.ends([*where, positions], committed=False)
        self.remaining = sum(ends[one] - self._next.get(one, 0) for one in where)
        await asyncio.gather(*(self._read_state(log, one, ends[one]) for one in where))
        await self._read_positions(log, positions, ends[positions])
        return {one.partition: ends[one] for one in where}

    async def _read_state(self, log: Log, where: TopicPartition, end: int) -> None:
        values = self.values.setdefault(where.partition, {})
        start = self._next.get(where, 0)
        async for records in log.scan(where, start, end):
            for record in records:
                _apply(values, record)
            self.seen = True
            self.remaining -= len(records)
            self._next[where] = records[-1].offset + 1
        self._next[where] = max(end, self._next.get(where, 0))

    async def _read_positions(self, log: Log, where: TopicPartition, end: int) -> None:
        key = str(where.partition).encode()
        async for records in log.scan(where, self._next.get(where, 0), end):
            for record in records:
                if record.key == key and record.value is not None:
                    self.positions = decode_positions(record.value)
        self._next[where] = max(end, self._next.get(where, 0))


def _apply(values: dict[bytes, bytes], record: Record) -> None:
    if record.key is None:
        return
    if record.value is None:
        values.pop(record.key, None)
    else:
        values[record.key] = record.value
