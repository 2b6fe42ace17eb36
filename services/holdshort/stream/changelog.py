"""The changelog of a lane as it is known: state and positions, read from the log and written by us."""

from collections.abc import Mapping

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

    def expect(self, ends: Mapping[TopicPartition, int]) -> None:
        """What is going to be read, for whoever watches it."""
        self.remaining = sum(end - self._next.get(where, 0) for where, end in ends.items())

    async def read_state(self, log: Log, where: TopicPartition, end: int) -> None:
        """Read on in one partition of the state, up to `end`."""
        values = self.values.setdefault(where.partition, {})
        start = self._next.get(where, 0)
        async for records in log.scan(where, start, end):
            for record in records:
                _apply(values, record)
            self.seen = True
            self.remaining -= len(records)
            self._next[where] = records[-1].offset + 1
        self._next[where] = max(end, self._next.get(where, 0))

    async def read_positions(self, log: Log, where: TopicPartition, end: int) -> None:
        """Read on in the positions, of which the latest record counts. Raises Halt."""
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
