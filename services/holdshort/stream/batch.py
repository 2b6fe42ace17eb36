"""One transaction in the making: records are decided, deadlines fired, changed state encoded."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from holdshort.stream.decider import Context, Step
from holdshort.stream.errors import Halt, Retry
from holdshort.stream.lane import Lane
from holdshort.stream.marks import Place
from holdshort.stream.ports import Clock, Inputs, Log
from holdshort.stream.positions import Positions, Reached, encode_positions
from holdshort.stream.records import Output, Record, RecordPlace, TopicPartition, Write

S = TypeVar("S")

LOOK_AGAIN_MS: Final = 1_000
FIRED_MOST: Final = 1_000  # deadlines of a partition in one transaction


class Batch(Generic[S]):
    """What becomes visible together. Until `committed` nothing of it has happened; `roll_back` undoes it."""

    def __init__(self, lane: Lane[S], log: Log, clock: Clock) -> None:
        self.lane = lane
        self.records = 0
        self.outputs: dict[TopicPartition, list[Output]] = defaultdict(list)
        self._log = log
        self._clock = clock
        self._reached: dict[TopicPartition, Reached] = {}
        self._values: dict[int, dict[bytes, bytes | None]] = {}
        self._positions: Positions | None = None

    @property
    def empty(self) -> bool:
        """Nothing to write: no output, no position moved, no state changed."""
        changed = any(store.uncommitted for store in self.lane.stores.values())
        return not (self.outputs or self._reached or changed)

    # -- records -------------------------------------------------------------------------------------------

    def fitting(self, records: Sequence[Record]) -> int:
        """How many of these, at least one, may be held at once together with the states they need."""
        room = self.lane.settings.batch_bytes
        for number, record in enumerate(records):
            room -= len(record.value or b"") + self.lane.stores[record.partition].cold_bytes(record.key)
            if room < 0 and number:
                return number
        return len(records)

    async def decide(self, records: Sequence[Record]) -> None:
        """Every record in its order; one that needs others first makes the rest of its key wait for it."""
        await self._warm_rows(records)
        await self._warm_states((record.partition, record.key) for record in records)
        fetched: dict[RecordPlace, Record | None] = {}
        waiting = records
        while waiting:
            waiting, wanted = self._decide_what_can_be(waiting, fetched)
            if waiting:
                assert wanted - fetched.keys(), "a decider asked twice for the same records"
                fetched.update(await self._log.fetch(wanted - fetched.keys()))

    def _decide_what_can_be(
        self, records: Sequence[Record], fetched: Mapping[RecordPlace, Record | None]
    ) -> tuple[list[Record], set[RecordPlace]]:
        later: list[Record] = []
        stalled: set[bytes | None] = set()
        wanted: set[RecordPlace] = set()
        for record in records:
            step = None if record.key in stalled else self._judge(record, fetched)
            if step is None or step.wanted:
                later.append(record)
                stalled.add(record.key)
                wanted.update(step.wanted if step else ())
            else:
                self._apply(record.partition, record.key, step)
                self._reach(record)
        return later, wanted

    def _judge(self, record: Record, fetched: Mapping[RecordPlace, Record | None]) -> Step[S]:
        lane, where, key = self.lane, TopicPartition(record.topic, record.partition), record.key
        now = lane.times[where] = max(record.timestamp, lane.times.get(where, 0))
        state = None if key is None else lane.stores[record.partition].get(key)
        rows: Mapping[str, Record | None] = {}
        if where in lane.changelog.tables:
            lane.changelog.tables[where].follow(record)
        elif key is not None and lane.decider.tables:
            rows = lane.rows(record.partition, key)
        context = Context(record.partition, now, self._clock.now(), fetched, rows)
        return lane.decider.decide(state, record, context)

    def _apply(self, partition: int, key: bytes | None, step: Step[S]) -> None:
        for output in step.outputs:
            if len(output.value or b"") > self.lane.settings.max_value:
                raise Halt(f"a record for {output.topic} is larger than any topic takes")
            self.outputs[TopicPartition(output.topic, partition)].append(output)
        store = self.lane.stores[partition]
        if key is not None and step.state is not store.get(key):
            store.put(key, step.state)

    def _reach(self, record: Record) -> None:
        """A table's place is written with the next transaction; following it alone is no reason for one."""
        self.records += 1
        where = TopicPartition(record.topic, record.partition)
        reached = self.lane.followed if record.topic in self.lane.decider.tables else self._reached
        if record.offset >= 0:
            reached[where] = Reached(record.offset + 1, self.lane.times[where])

    # -- what is cold --------------------------------------------------------------------------------------

    async def _warm_states(self, keys: Iterable[tuple[int, bytes | None]]) -> None:
        """Read the states that are not at hand, each at its place. Raises Halt for one that is not there."""
        lane = self.lane
        cold: dict[RecordPlace, bytes] = {}
        for partition, key in keys:
            if key is not None and (offset := lane.stores[partition].cold(key)) is not None:
                cold[lane.written(partition), offset] = key
        for (where, offset), record in (await self._log.fetch(cold)).items() if cold else ():
            key = cold[where, offset]
            if record is None or record.key != key or record.value is None:
                accept = f"holdshort lanes accept-loss {lane.settings.app} {lane.number}"
                place = f"{where.topic}/{where.partition}"
                raise Halt(f"{place} does not hold what was written at {offset}", accept)
            lane.stores[where.partition].warm(key, lane.decider.decode(record.value), len(record.value))

    async def _warm_rows(self, records: Sequence[Record]) -> None:
        """Read the rows that are asked of tables and are not at hand. Raises Retry for one that has moved."""
        tables = self.lane.changelog.tables
        followed = {(record.topic, record.key) for record in records}
        cold: dict[RecordPlace, bytes] = {}
        for record in records:
            for topic in self.lane.decider.tables:
                where = TopicPartition(topic, record.partition)
                if record.key is None or record.topic == topic or (topic, record.key) in followed:
                    continue
                if (offset := tables[where].cold(record.key)) is not None:
                    cold[where, offset] = record.key
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
        await self._warm_states(due)
        unread = await self._unread(due, inputs, undecided)
        for partition, key in due:
            self._fire_key(partition, key, late, unread)

    def _fire_key(self, partition: int, key: bytes, late: int, unread: set[TopicPartition]) -> None:
        store, decider = self.lane.stores[partition], self.lane.decider
        while (state := store.get(key)) is not None and (at := decider.mark(state).due) is not None:
            if at > late:
                store.deadlines.add(key, at)
                return
            if any((topic, partition) in unread for topic in decider.awaits(state)):
                store.deadlines.add(key, self._clock.now() + LOOK_AGAIN_MS)
                return
            context = Context(partition, at, self._clock.now(), {}, {})
            self._apply(partition, key, decider.fire(key, state, context))

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
        where = TopicPartition(settings.positions, number)
        key, value = str(number).encode(), encode_positions(self._positions)
        self.outputs[where].append(Write(settings.positions, key, value))
        return self.outputs

    def _encoded(self, partition: int) -> dict[bytes, bytes | None]:
        """The last value of every changed key, added to the outputs."""
        decider, topic = self.lane.decider, self.lane.decider.state
        values = {
            key: None if changed.after is None else decider.encode(key, changed.after)
            for key, changed in self.lane.stores[partition].uncommitted.items()
        }
        if values:
            where = self.lane.written(partition)
            self.outputs[where].extend(Write(topic, key, value) for key, value in values.items())
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
            store.put(key, decider.with_end(state, ends[where]))

    def committed(self, bases: Mapping[TopicPartition, int]) -> None:
        """It has happened: `bases` are the offsets of the first record written to each partition."""
        lane = self.lane
        for partition, store in lane.stores.items():
            store.commit(self._places(partition, bases))
        for where, base in bases.items():
            end = base + len(self.outputs[where]) + 1  # and the marker
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
