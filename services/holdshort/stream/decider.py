"""What runs on the engine: a decider turns records into outputs and keyed state. Pure.

Gatekeeper and router are two of them. A decider sees a lane's records one at a time; what it answers becomes
visible together, in one transaction, or not at all.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from holdshort.stream.marks import Mark
from holdshort.stream.records import Output, Record, RecordPlace

S = TypeVar("S")


class Step(NamedTuple, Generic[S]):
    """The answer to one record: what to write, and the key's state from here on.

    The very same state object means that nothing changed; None means that there is none (a tombstone).
    With `wanted` nothing has been decided: these records are read first, and the question is put again.
    """

    outputs: Sequence[Output]
    state: S | None
    wanted: Collection[RecordPlace] = ()


class Context(NamedTuple):
    """What a decider is told beside key, state and record.

    `now` is the record's append time, monotone in its topic partition (for a deadline its due time), `clock`
    the engine's when it judges; both in ms since the epoch. `fetched` holds the records that were wanted,
    None for what is not there any more. `rows` are the tables' latest records of the key, by topic; a record
    that is of a table itself is told without them.
    """

    partition: int
    now: int
    clock: int
    fetched: Mapping[RecordPlace, Record | None]
    rows: Mapping[str, Record | None]


class Decider(Protocol[S]):
    """The rules of one application for one lane; a new one is made for every restore.

    `ranks` are the topics it reads as logs, the most urgent first. `tables` are compacted topics of others,
    whose rows it is told with each record and whose records it is told in turn, a row that vanished while
    nobody followed as a tombstone at offset -1; what it does about them must be idempotent. `state`
    is its changelog. `notes` are a few words a partition (such as the head of a chain of hashes) that are
    stored with the positions.
    """

    state: str
    ranks: Sequence[Collection[str]]
    tables: Collection[str]
    notes: dict[int, str]

    def decode(self, value: bytes) -> S: ...

    def encode(self, key: bytes, state: S) -> bytes: ...

    def mark(self, state: S) -> Mark:
        """What is known of a state while it is not in memory; with its earliest deadline."""
        ...

    def mark_of(self, value: bytes) -> Mark:
        """The mark of a state from its record, without decoding more than it must."""
        ...

    def counted(self, partition: int, mark: Mark, times: int) -> None:
        """So many states of this mark have come (or gone, if negative), at once and within a batch."""
        ...

    def decide(self, state: S | None, record: Record, context: Context) -> Step[S]: ...

    def awaits(self, state: S) -> Collection[str]:
        """Topics that must have been read to an end observed after that deadline before it may fire."""
        ...

    def fire(self, key: bytes, state: S, context: Context) -> Step[S]:
        """The earliest deadline of a key is due at `context.now`; it may want records first, as `decide`."""
        ...

    def wants_end(self, state: S) -> str | None:
        """The topic whose end, as late as possible before the commit, belongs into this state."""
        ...

    def with_end(self, state: S, end: int) -> S:
        """The state with that end; its mark is the same."""
        ...
