"""A lane in memory: its decider, the stores of its partitions, and how far it has come."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from holdshort.stream.changelog import Changelog
from holdshort.stream.decider import Decider
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.positions import Positions, Reached
from holdshort.stream.records import Record, TopicPartition
from holdshort.stream.store import Store

S = TypeVar("S")


@dataclass(slots=True, kw_only=True)
class Lane(Generic[S]):
    """What a restore gives and every commit moves on.

    `ends` are the ends of the changelog's partitions as far as we know: we are their only writer. `followed`
    is how far the tables have been followed, `gone` the rows that went while nobody followed.
    """

    number: int
    settings: EngineSettings
    decider: Decider[S]
    stores: dict[int, Store[S]]
    ends: dict[int, int]
    topics: Mapping[str, str]
    start: dict[TopicPartition, int]
    changelog: Changelog
    times: dict[TopicPartition, int] = field(default_factory=dict)
    followed: dict[TopicPartition, Reached] = field(default_factory=dict)
    gone: list[Record] = field(default_factory=list)

    def written(self, partition: int) -> TopicPartition:
        """Where the state of a partition is written."""
        return TopicPartition(self.decider.state, partition)

    def logs(self) -> Iterator[TopicPartition]:
        """The partitions that are read from a stored position."""
        for rank in self.decider.ranks:
            for topic in rank:
                yield from (TopicPartition(topic, partition) for partition in self.stores)

    def tables(self) -> Iterator[TopicPartition]:
        for topic in self.decider.tables:
            yield from (TopicPartition(topic, partition) for partition in self.stores)

    def rows(self, partition: int, key: bytes) -> dict[str, Record | None]:
        """What the tables say of a key that is not cold in them."""
        tables = self.changelog.tables
        return {topic: tables[TopicPartition(topic, partition)].get(key) for topic in self.decider.tables}

    def next_positions(self, reached: Mapping[TopicPartition, Reached], ends: Mapping[int, int]) -> Positions:
        """The positions record of a batch: what was known before, and what the batch has moved."""
        before = self.changelog.positions
        inputs = {topic: dict(known) for topic, known in before.inputs.items()} if before else {}
        for where, place in {**self.followed, **reached}.items():
            inputs.setdefault(where.topic, {})[str(where.partition)] = place
        return Positions(
            partitions=self.settings.partitions,
            lanes=self.settings.lanes,
            topics={**(before.topics if before else {}), **self.topics},
            inputs=inputs,
            changelog={str(partition): end for partition, end in ends.items()},
            notes={str(partition): note for partition, note in self.decider.notes.items()},
        )
