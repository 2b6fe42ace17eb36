"""What a lane knows when it begins: state and positions out of the log, checked against each other.

Every check here is one loss or doubling that would otherwise pass unseen; each ends in Halt, with the
command by which an operator accepts it.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

from holdshort.stream.changelog import Changelog
from holdshort.stream.decider import Decider
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.errors import Halt
from holdshort.stream.hot import Hot
from holdshort.stream.lane import Lane
from holdshort.stream.ports import Log
from holdshort.stream.positions import Positions
from holdshort.stream.records import Record, TopicPartition
from holdshort.stream.store import Store

S = TypeVar("S")


class Restore(Generic[S]):
    """One restore of one lane."""

    def __init__(
        self, number: int, settings: EngineSettings, log: Log, changelog: Changelog, decider: Decider[S]
    ) -> None:
        self.number = number
        self.settings = settings
        self._log = log
        self._changelog = changelog
        self._decider = decider

    async def lane(self) -> Lane[S]:
        """Raises Halt where going on would lose or double something, Retry for passing trouble."""
        decider, settings = self._decider, self.settings
        topics = await self.topic_ids()  # first: what is not there cannot be read
        ends = await self.read_changelog()
        positions = self._changelog.positions
        self._check(positions, ends, topics)
        stores = {
            partition: await self._store(partition) for partition in settings.partitions_of(self.number)
        }
        decider.notes = {int(p): note for p, note in positions.notes.items()} if positions else {}
        lane = Lane(
            number=self.number,
            settings=settings,
            decider=decider,
            stores=stores,
            ends=ends,
            topics=topics,
            start={},
            changelog=self._changelog,
        )
        await self._read_tables(lane)
        await self._seek(lane)
        return lane

    async def read_changelog(self) -> dict[int, int]:
        """Read state and positions up to the high watermark; returns the ends of the state's partitions.

        The fence has left no transaction open, so everything up to there is decided: stopping at the last
        stable offset instead would silently forget what a transaction of somebody else holds back.
        """
        partitions = self.settings.partitions_of(self.number)
        states = [TopicPartition(self._decider.state, partition) for partition in partitions]
        positions = TopicPartition(self.settings.positions, self.number)
        ends = await self._log.ends([*states, positions], committed=False)
        self._changelog.expect({where: ends[where] for where in states})
        mark_of = self._decider.mark_of
        reading = [self._changelog.read_state(self._log, where, ends[where], mark_of) for where in states]
        await asyncio.gather(*reading, self._changelog.read_positions(self._log, positions, ends[positions]))
        return {where.partition: ends[where] for where in states}

    async def topic_ids(self) -> Mapping[str, str]:
        """The ids of all topics that the lane reads or keeps its state in. Raises Halt if one is missing."""
        decider = self._decider
        topics = {decider.state, self.settings.positions, *decider.tables, *_topics(decider)}
        ids = await self._log.topic_ids(topics)
        if missing := topics - ids.keys():
            raise gone(missing)
        return ids

    def _check(self, positions: Positions | None, ends: Mapping[int, int], topics: Mapping[str, str]) -> None:
        """State and positions belong together, and to this cluster and this configuration."""
        accept = accepting(self.settings, self.number)
        if positions is None:
            if self._changelog.seen:
                raise Halt(f"{self._decider.state} holds records, but the positions are missing", accept)
            return
        check_shape(positions, self.settings)
        for topic, id_ in topics.items():
            if positions.topics.get(topic, id_) != id_:
                raise made_again(topic, self.settings, self.number)
        for partition, end in ends.items():
            if end < (known := positions.changelog.get(str(partition), 0)):
                raise Halt(f"{self._decider.state}/{partition} ends at {end}, before {known}", accept)

    async def _store(self, partition: int) -> Store[S]:
        """The states of a partition, counted; others have their turn in between."""
        decider = self._decider
        store: Store[S] = Store(
            self._changelog.places[partition],
            self._changelog.marks,
            Hot(self.settings.hot_bytes),
            decider.mark,
            lambda mark, times: decider.counted(partition, mark, times),
        )
        for _ in store.restored():
            await asyncio.sleep(0)
        return store

    async def _read_tables(self, lane: Lane[S]) -> None:
        """The rows of every table; a row that we know a state of and that is gone is told as a tombstone."""
        where = list(lane.tables())
        ends = await self._log.ends(where, committed=True)
        await asyncio.gather(
            *(self._changelog.read_table(self._log, one, ends[one], self.settings.hot_bytes) for one in where)
        )
        for one in where:
            rows = self._changelog.tables[one].places
            lane.gone += [
                Record(one.topic, one.partition, -1, key, None, (), 0)
                for key in lane.stores[one.partition].places
                if key not in rows
            ]

    async def _seek(self, lane: Lane[S]) -> None:
        """Inputs at their stored positions; a topic never read before starts at its beginning."""
        positions, where = self._changelog.positions, {*lane.logs(), *lane.tables()}
        beginnings = await self._log.beginnings(where)
        ends = await self._log.ends(where, committed=False)
        for one in where:
            known = positions.reached(one) if positions else None
            if known is None:
                lane.start[one] = beginnings[one]
                continue
            if not beginnings[one] <= known.offset <= ends[one]:
                raise Halt(
                    f"{one.topic}/{one.partition} was read up to {known.offset}, "
                    f"but now goes from {beginnings[one]} to {ends[one]}",
                    accepting(self.settings, self.number),
                )
            lane.start[one] = known.offset
            lane.times[one] = known.now


def gone(missing: Collection[str]) -> Halt:
    """Topics that are not there: without them nothing is judged."""
    return Halt(f"no such topic: {', '.join(sorted(missing))}", "holdshort topics apply", missing=missing)


def made_again(topic: str, settings: EngineSettings, lane: int) -> Halt:
    """A topic of the same name with another id: offsets and state of before are not those of this one."""
    reason = f"{topic} is not the topic it was: it was deleted and made again"
    return Halt(reason, accepting(settings, lane))


def accepting(settings: EngineSettings, lane: int) -> str:
    """The command by which an operator gives up what a lane has lost."""
    return f"holdshort lanes accept-loss {settings.app} {lane}"


def check_shape(positions: Positions, settings: EngineSettings) -> None:
    """Raises Halt for another number of partitions or lanes: threads would change their partition."""
    if (positions.partitions, positions.lanes) != (settings.partitions, settings.lanes):
        raise Halt(
            f"the lane was made for {positions.partitions} partitions in {positions.lanes} lanes, "
            f"not {settings.partitions} in {settings.lanes}"
        )


def _topics(decider: Decider[S]) -> set[str]:
    return {topic for rank in decider.ranks for topic in rank}
