"""One transaction in the making: records are decided, deadlines fired, changed state encoded."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, Generic, NamedTuple, TypeVar

from holdshort.stream.decider import Context, Step
from holdshort.stream.errors import Halt, Retry
from holdshort.stream.lane import Lane
from holdshort.stream.marks import Place
from holdshort.stream.ports import Clock, Inputs, Log
from holdshort.stream.positions import Positions, Reached, encode_positions
from holdshort.stream.records import Output, Record, RecordPlace, TopicPartition, Write

S = TypeVar("S")

_PARTITION: Final = itemgetter(0, 1)  # of a record: its topic and partition

LOOK_AGAIN_MS: Final = 1_000
FIRED_MOST: Final = 1_000  # deadlines of a partition in one transaction


class _Waiting(NamedTuple):
    """Records that cannot be decided yet, their keys, and the places of what has to be read first."""

    records: list[Record]
    keys: set[bytes | None]
    places: set[RecordPlace]


class Batch(Generic[S]):
    """What becomes visible together. Until `committed` nothing of it has happened; `roll_back` undoes it."""

    def __init__(self, lane: Lane[S], log: Log, clock: Clock) -> None:
        self.lane = lane
        self.records = 0
        self._outputs: dict[int, dict[str, list[Output]]] = defaultdict(dict)  # by partition, by topic
        self._log = log
        self._clock = clock
        self._reached: dict[TopicPartition, Reached] = {}
        self._values: dict[int, dict[bytes, bytes | None]] = {}
        self._positions: Positions | None = None
        self._writes: Mapping[TopicPartition, Sequence[Output]] = {}

    @property
    def empty(self) -> bool:
        """Nothing to write: no output, no position moved, no state changed."""
        changed = any(store.uncommitted for store in self.lane.stores.values())
        return not (self._outputs or self._reached or changed)

    # -- records -------------------------------------------------------------------------------------------

    async def decide(self, records: Sequence[Record]) -> Sequence[Record]:
        """Every record in its order; one that needs others first makes the rest of its key wait for it.

        Returns the records that did not fit: what is held at once, with the states it needs, is bounded.
        """
        some, rest, cold = self._fitting(records)
        await self._warm_rows(some)
        await self._warm_states(cold)
        fetched: dict[RecordPlace, Record | None] = {}
        waiting = await self._decide_what_can_be(some, fetched)
        while waiting.records:
            assert waiting.places - fetched.keys(), "a decider asked twice for the same records"
            fetched.update(await self._log.fetch(waiting.places - fetched.keys()))
            waiting = await self._decide_what_can_be(waiting.records, fetched)
        self._reach(some)
        return rest

    def _fitting(
        self, records: Sequence[Record]
    ) -> tuple[Sequence[Record], Sequence[Record], dict[RecordPlace, bytes]]:
        """As many as may be held at once, at least one; the rest; and the states to be read first."""
        room, stores = self.lane.settings.batch_bytes, self.lane.stores
        cold: dict[RecordPlace, bytes] = {}
        for number, record in enumerate(records):
            key = record.key
            place = None if key is None else stores[record.partition].cold(key)
            room -= len(record.value or b"") + (0 if place is None else place.length)
            if room < 0 and number:
                return records[:number], records[number:], cold
            if place is not None and key is not None:
                cold[self.lane.written(record.partition), place.offset] = key
        return records, (), cold

    async def _decide_what_can_be(
        self, records: Sequence[Record], fetched: Mapping[RecordPlace, Record | None]
    ) -> "_Waiting":
        waiting = _Waiting([], set(), set())
        for (topic, partition), some in groupby(records, _PARTITION):
            self._decide_partition(TopicPartition(topic, partition), some, fetched, waiting)
            await self._clock.sleep(0)  # the other lanes' turn: their transactions are under way meanwhile
        return waiting

    def _decide_partition(
        self,
        where: TopicPartition,
        records: Iterable[Record],
        fetched: Mapping[RecordPlace, Record | None],
        waiting: "_Waiting",
    ) -> None:
        """Records of one partition; most of what a gate does is in here, so nothing is looked up twice."""
        lane, partition = self.lane, where.partition
        decide, store, table = lane.decider.decide, lane.stores[partition], lane.changelog.tables.get(where)
        asks_tables = table is None and bool(lane.decider.tables)
        now, clock = lane.times.get(where, 0), self._clock.now()
        rows: Mapping[str, Record | None] = {}
        for record in records:
            key = record.key
            if key in waiting.keys:
                waiting.records.append(record)
                continue
            now = max(now, record.timestamp)
            if table is not None:
                table.follow(record)
            elif asks_tables:
                rows = {} if key is None else lane.rows(partition, key)
            state = None if key is None else store.get(key)
            step = decide(state, record, Context(partition, now, clock, fetched, rows))
            if step.wanted:
                waiting.records.append(record)
                waiting.keys.add(key)
                waiting.places.update(step.wanted)
            else:
                self._apply(partition, key, state, step)
        lane.times[where] = now

    def _apply(self, partition: int, key: bytes | None, before: S | None, step: Step[S]) -> None:
        for output in step.outputs:
            if output.value is not None and len(output.value) > self.lane.settings.max_value:
                raise Halt(f"a record for {output.topic} is larger than any topic takes")
            self._outputs[partition].setdefault(output.topic, []).append(output)
        if key is not None and step.state is not before:
            self.lane.stores[partition].put(key, step.state)

    def _reach(self, records: Sequence[Record]) -> None:
        """A table's place is written with the next transaction; following it alone is no reason for one."""
        self.records += len(records)
        for (topic, partition), some in groupby(records, _PARTITION):
            where, last = TopicPartition(topic, partition), max(record.offset for record in some)
            reached = self.lane.followed if topic in self.lane.decider.tables else self._reached
            if last >= 0:
                reached[where] = Reached(last + 1, self.lane.times[where])

    # -- what is cold --------------------------------------------------------------------------------------

    async def _warm_states(self, cold: Mapping[RecordPlace, bytes]) -> None:
        """Read the states of these keys, each at its place. Raises Halt for one that is not there."""
        lane = self.lane
        for (where, offset), record in (await self._log.fetch(cold)).items() if cold else ():
            key = cold[where, offset]
            if record is None or record.key != key or record.value is None:
                accept = f"holdshort lanes accept-loss {lane.settings.app} {lane.number}"
                place = f"{where.topic}/{where.partition}"
                raise Halt(f"{place} does not hold what was written at {offset}", accept)
            lane.stores[where.partition].warm(key, lane.decider.decode(record.value), len(record.value))

    async def _warm_rows(self, records: Sequence[Record]) -> None:
        """Read the rows that records need and that are not at hand; what is followed just now need not be."""
        tables = self.lane.decider.tables
        if not tables:
            return
        followed = {(record.topic, record.key) for record in records}
        await self._warm(
            (TopicPartition(topic, record.partition), record.key)
            for record in records
            for topic in tables
            if record.key is not None and record.topic != topic and (topic, record.key) not in followed
        )

    async def _warm(self, wanted: Iterable[tuple[TopicPartition, bytes]]) -> None:
        """Read these rows of tables, if they are not at hand. Raises Retry for one that has moved."""
        tables = self.lane.changelog.tables
        cold: dict[RecordPlace, bytes] = {}
        for where, key in wanted:
            if (offset := tables[where].cold(key)) is not None:
                cold[where, offset] = key
        for (where, offset), row in (await self._log.fetch(cold)).items() if cold else ():
            if row is None or row.key != cold[where, offset]:
                raise Retry(f"a row of {where.topic}/{where.partition} has moved")
            tables[where].warm(row)

    # -- deadlines -----------------------------------------------------------------------------------------

    async def fire(self, inputs: Inputs, undecided: Iterable[Record]) -> None:
        """Deadlines that are due, if everything that could still answer them has been read (engine 4)."""
        late = self._clock.now() - self.lane.settings.grace_ms
        due = [
            (partition, key)
            for partition, store in self.lane.stores.items()
            for key in store.deadlines.pop(late, FIRED_MOST)
        ]
        if not due:
            return
        await self._warm_states(
            {
                (self.lane.written(partition), place.offset): key
                for partition, key in due
                if (place := self.lane.stores[partition].cold(key)) is not None
            }
        )
        tables = self.lane.decider.tables
        await self._warm((TopicPartition(topic, one), key) for one, key in due for topic in tables)
        unread = await self._unread(due, inputs, undecided)
        fetched: dict[RecordPlace, Record | None] = {}
        waiting: Sequence[tuple[int, bytes]] = due
        while waiting:
            waiting, wanted = self._fire_what_can_be(waiting, late, unread, fetched)
            if waiting:
                assert wanted - fetched.keys(), "a decider asked twice for the same records"
                fetched.update(await self._log.fetch(wanted - fetched.keys()))

    def _fire_what_can_be(
        self,
        due: Iterable[tuple[int, bytes]],
        late: int,
        unread: set[TopicPartition],
        fetched: Mapping[RecordPlace, Record | None],
    ) -> tuple[list[tuple[int, bytes]], set[RecordPlace]]:
        """The keys that need records first, and those records."""
        later: list[tuple[int, bytes]] = []
        wanted: set[RecordPlace] = set()
        for partition, key in due:
            if needed := self._fire_key(partition, key, late, unread, fetched):
                later.append((partition, key))
                wanted.update(needed)
        return later, wanted

    def _fire_key(
        self,
        partition: int,
        key: bytes,
        late: int,
        unread: set[TopicPartition],
        fetched: Mapping[RecordPlace, Record | None],
    ) -> Collection[RecordPlace]:
        """Fire what is due of a key; returns the records that are needed for it first."""
        store, decider = self.lane.stores[partition], self.lane.decider
        while (state := store.get(key)) is not None and (at := decider.mark(state).due) is not None:
            if at > late:
                store.deadlines.add(key, at)
                return ()
            if any((topic, partition) in unread for topic in decider.awaits(state)):
                store.deadlines.add(key, self._clock.now() + LOOK_AGAIN_MS)
                return ()
            rows = self.lane.rows(partition, key)
            step = decider.fire(key, state, Context(partition, at, self._clock.now(), fetched, rows))
            if step.wanted:
                return step.wanted
            self._apply(partition, key, state, step)
        return ()

    async def _unread(
        self, due: Iterable[tuple[int, bytes]], inputs: Inputs, undecided: Iterable[Record]
    ) -> set[TopicPartition]:
        """Partitions not read to their end as it is now: a backlog must not lose against a clock."""
        asked: set[TopicPartition] = set()
        for partition, key in due:
            if (state := self.lane.stores[partition].get(key)) is not None:
                awaited = self.lane.decider.awaits(state)
                asked.update(TopicPartition(topic, partition) for topic in awaited)
        asked &= set(self.lane.logs())
        ends = await self._log.ends(asked, committed=False) if asked else {}
        held = {TopicPartition(record.topic, record.partition) for record in undecided}
        return {where for where in asked if where in held or inputs.position(where) < ends[where]}

    # -- the transaction -----------------------------------------------------------------------------------

    async def seal(self) -> Mapping[TopicPartition, Sequence[Output]]:
        """Everything that the transaction has to write, positions included."""
        await self._put_ends()
        ends = dict(self.lane.ends)
        for partition in self.lane.stores:
            values = self._values[partition] = self._encoded(partition)
            ends[partition] += len(values)
        self._positions = self.lane.next_positions(self._reached, ends)
        settings, number = self.lane.settings, self.lane.number
        key, value = str(number).encode(), encode_positions(self._positions)
        self._outputs[number][settings.positions] = [Write(settings.positions, key, value)]
        self._writes = {
            TopicPartition(topic, partition): written
            for partition, topics in self._outputs.items()
            for topic, written in topics.items()
        }
        return self._writes

    def _encoded(self, partition: int) -> dict[bytes, bytes | None]:
        """The last value of every changed key, added to the outputs."""
        decider, topic = self.lane.decider, self.lane.decider.state
        values = {
            key: None if changed.after is None else decider.encode(key, changed.after)
            for key, changed in self.lane.stores[partition].uncommitted.items()
        }
        if values:
            self._outputs[partition][topic] = [Write(topic, key, value) for key, value in values.items()]
        return values

    async def _put_ends(self) -> None:
        """Ends that states ask for, asked of the broker as late as can be."""
        decider = self.lane.decider
        asking = [
            (store, key, changed.after, TopicPartition(topic, partition))
            for partition, store in self.lane.stores.items()
            for key, changed in store.uncommitted.items()
            if changed.after is not None and (topic := decider.wants_end(changed.after))
        ]
        ends = await self._log.ends({where for *_, where in asking}, committed=False) if asking else {}
        for store, key, state, where in asking:
            store.amend(key, decider.with_end(state, ends[where]))

    def committed(self, bases: Mapping[TopicPartition, int]) -> None:
        """It has happened: `bases` are the offsets of the first record written to each partition."""
        lane = self.lane
        for partition, store in lane.stores.items():
            store.commit(self._places(partition, bases))
        for where, base in bases.items():
            end = base + len(self._writes[where]) + 1  # and the marker
            if where.topic == lane.decider.state:
                lane.ends[where.partition] = end
            if where.topic in (lane.decider.state, lane.settings.positions):
                lane.changelog.committed(where, end)
        lane.changelog.positions = self._positions
        self._trim_tables()

    def _places(self, partition: int, bases: Mapping[TopicPartition, int]) -> dict[bytes, Place]:
        """Where each changed state lies now: nothing but states is written to the state's topic."""
        values = self._values[partition]
        base = bases[self.lane.written(partition)] if values else 0
        return {
            key: Place(base + number, len(value or b"")) for number, (key, value) in enumerate(values.items())
        }

    def roll_back(self) -> None:
        for store in self.lane.stores.values():
            store.roll_back()
        self._trim_tables()

    def _trim_tables(self) -> None:
        for table in self.lane.changelog.tables.values():
            table.trim()
