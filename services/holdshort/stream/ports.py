"""What a lane needs of the world: Kafka, the group, the clock. kafka.py and memory.py provide them.

Offsets. A *position* is the offset of the next record to read. The *end* of a partition is the offset that
its next record will get: the high watermark, or (`committed`) the last stable offset, above which lie records
of transactions that are still open. A record's offset is below every end that was asked for after it was
read.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Protocol

from holdshort.stream.records import Output, Record, TopicPartition

Positions = Mapping[TopicPartition, int]


class Transactions(Protocol):
    """The one producer of a lane: whoever holds its epoch owns the lane."""

    async def commit(self, outputs: Mapping[TopicPartition, Sequence[Output]]) -> Positions:
        """Write everything as one transaction, and wait until it is committed.

        Returns the base offset of each partition's records. Raises Fenced if a newer owner is there, and
        Retry for everything else, a lost answer and a partial failure included: then the producer is spoilt
        and must be discarded, and whether the transaction happened is to be read from the log.
        """
        ...

    async def discard(self) -> None:
        """Let go at once, without flushing or aborting; the next fence aborts what is open. Never raises."""
        ...


class Inputs(Protocol):
    """The reader of a lane, its partitions assigned by hand."""

    async def take(self, share: int, patience: float) -> list[Record]:
        """What has arrived, at most `share` records of each rank of topics.

        If there is nothing, waits for it up to `patience` seconds.

        Only committed records, those of a partition in order. Raises Retry, also if a position
        lies outside its partition: what that means is seen when the lane begins again.
        """
        ...

    def position(self, where: TopicPartition) -> int:
        """The offset behind what has been taken; markers and aborted records are passed over."""
        ...

    def lag(self) -> Positions:
        """How many offsets each partition is behind its end as last heard of."""
        ...

    async def close(self) -> None: ...


class Log(Protocol):
    """Reading what is known to be there."""

    async def ends(self, where: Collection[TopicPartition], *, committed: bool) -> Positions: ...

    async def beginnings(self, where: Collection[TopicPartition]) -> Positions: ...

    def scan(self, where: TopicPartition, start: int, end: int) -> AsyncIterator[Sequence[Record]]:
        """The committed records from `start` until the position reaches `end`, markers included.

        Raises Retry if it does not get there for too long: a transaction that hangs, a truncated log.
        """
        ...

    async def fetch(
        self, places: Collection[tuple[TopicPartition, int]]
    ) -> Mapping[tuple[TopicPartition, int], Record | None]:
        """The records at these offsets; None for what is not there any more."""
        ...

    async def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """The id that the cluster gave each topic when it was created; absent topics are left out."""
        ...


class Membership(Protocol):
    """The process's place in the consumer group that shares the lanes."""

    async def leave(self) -> None:
        """Give up every lane; the group gives them to others at once."""
        ...

    async def tell(self, positions: Positions) -> None:
        """Commit these to the group, for tools that show lag.

        Nobody reads them back, so it does not matter whether the group takes them. Never raises.
        """
        ...

    def check(self) -> None:
        """Raises Fatal if the group refuses us, or a rejoin has been pending for too long."""
        ...


Assigned = Callable[[frozenset[int]], None]


class Kafka(Protocol):
    """A cluster, as one application sees it."""

    @property
    def log(self) -> Log: ...

    async def fence(self, transactional_id: str) -> Transactions:
        """Take the transactional id over: aborts its open transaction and shuts its old owner out.

        When it returns, nothing of an older owner can become visible any more. Raises Retry.
        """
        ...

    async def read(self, positions: Positions, ranks: Sequence[Collection[str]]) -> Inputs:
        """A reader at these positions; `ranks` are its topics, the most urgent first."""
        ...

    async def join(self, app: str, topic: str, assigned: Assigned) -> Membership:
        """Share the partitions of `topic` with the other processes of the application.

        `assigned` is called with the lanes that are ours from then on, at once and without waiting.
        """
        ...

    async def close(self) -> None: ...


class Clock(Protocol):
    """The wall clock and sleep, so that tests can own them."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...
