"""What runs on the engine: a decider turns records into outputs and keyed state. Pure.

Gatekeeper and router are two of them. A decider sees a lane's records one at a time; what it answers becomes
visible together, in one transaction, or not at all.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from holdshort.stream.records import Output, Record, TopicPartition

S = TypeVar("S")
Place = tuple[TopicPartition, int]  # a record's place in the log


class Step(NamedTuple, Generic[S]):
    """The answer to one record: what to write, and the key's state from here on.

    The very same state object means that nothing changed; None means that there is none (a tombstone).
    With `wanted` nothing has been decided: these records are read first, and the question is put again.
    """

    outputs: Sequence[Output]
    state: S | None
    wanted: Collection[Place] = ()


class Context(NamedTuple):
    """What a decider is told beside key, state and record.

    `now` is the record's append time, monotone in its topic partition (for a deadline its due time), `clock`
    the engine's when it judges; both in ms since the epoch. `fetched` holds the records that were wanted,
    None for what is not there any more.
    """

    partition: int
    now: int
    clock: int
    fetched: Mapping[Place, Record | None]


class Decider(Protocol[S]):
    """The rules of one application for one lane; a new one is made for every restore.

    `ranks` are the topics it reads as logs, the most urgent first. `tables` are compacted topics, read from
    their beginning at every restore and then followed; what is read from them must be idempotent. `state`
    is its changelog. `notes` are a few words a partition (such as the head of a chain of hashes) that are
    stored with the positions.
    """

    state: str
    ranks: Sequence[Collection[str]]
    tables: Collection[str]
    notes: dict[int, str]

    def decode(self, value: bytes) -> S: ...

    def encode(self, key: bytes, state: S) -> bytes: ...

    def loaded(self, partition: int, key: bytes, value: bytes) -> int | None:
        """A state was restored; returns its earliest deadline, without decoding more than it must."""
        ...

    def changed(self, partition: int, before: S | None, after: S | None) -> None:
        """A key's state is another now; also told the other way round when a batch is rolled back."""
        ...

    def tabled(self, partition: int, record: Record) -> None:
        """The latest record of a key of a table; a tombstone removes it."""
        ...

    def decide(self, state: S | None, record: Record, context: Context) -> Step[S]: ...

    def due(self, state: S) -> int | None:
        """The earliest deadline of a key, in ms since the epoch."""
        ...

    def awaits(self, state: S) -> Collection[str]:
        """Topics that must have been read to an end observed after that deadline before it may fire."""
        ...

    def fire(self, key: bytes, state: S, context: Context) -> Step[S]:
        """The earliest deadline of a key is due at `context.now`."""
        ...

    def wants_end(self, state: S) -> str | None:
        """The topic whose end, as late as possible before the commit, belongs into this state."""
        ...

    def with_end(self, state: S, end: int) -> S: ...
