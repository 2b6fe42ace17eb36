"""What a lane knows of the log: where its state lies, its positions, the rows of its tables.

Read from the log, and moved on by every transaction that is known to be committed; so a retry reads only the
tail.
"""

from collections.abc import Callable, Mapping, Sequence

from holdshort.stream.hot import Hot
from holdshort.stream.marks import Mark, Marks, Place
from holdshort.stream.ports import Log
from holdshort.stream.positions import Positions, decode_positions
from holdshort.stream.records import Record, TopicPartition
from holdshort.stream.tables import Table


class Changelog:
    """A lane's changelog as far as it is known, and up to which offset that is."""

    def __init__(self) -> None:
        self.places: dict[int, dict[bytes, bytes]] = {}
        self.marks = Marks()
        self.positions: Positions | None = None
        self.tables: dict[TopicPartition, Table] = {}
        self.seen = False
        self.remaining = 0
        self._next: dict[TopicPartition, int] = {}

    def committed(self, where: TopicPartition, end: int) -> None:
        """What was written up to `end` is known already."""
        self.seen = True
        self._next[where] = end

    def expect(self, ends: Mapping[TopicPartition, int]) -> None:
        """What is going to be read, for whoever watches it."""
        self.remaining = sum(end - self._next.get(where, 0) for where, end in ends.items())

    async def read_state(
        self, log: Log, where: TopicPartition, end: int, mark_of: Callable[[bytes], Mark]
    ) -> None:
        """Read on in one partition of the state, up to `end`."""
        places = self.places.setdefault(where.partition, {})
        async for records in log.scan(where, self._next.get(where, 0), end):
            for key, record in _latest(records).items():
                if record.value is None:
                    places.pop(key, None)
                else:
                    place = Place(record.offset, len(record.value))
                    places[key] = self.marks.pack(place, mark_of(record.value))
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

    async def read_table(self, log: Log, where: TopicPartition, end: int, hot_bytes: int) -> None:
        """Read on in one partition of a table, up to `end`."""
        rows = self.tables.setdefault(where, Table(Hot(hot_bytes)))
        async for records in log.scan(where, rows.following, end):
            for record in _latest(records).values():
                rows.index(record)
            rows.following = records[-1].offset + 1
        rows.following = max(end, rows.following)


def _latest(records: Sequence[Record]) -> dict[bytes, Record]:
    """The last record of every key."""
    return {record.key: record for record in records if record.key is not None}
