"""One lane: fence, restore, seek, process. The order that makes it exactly-once is in `Task._own`.

Nothing here guesses. Whatever goes wrong, in any way, the producer and what is uncommitted are dropped and
the lane begins again with a fence: the log alone says whether a transaction happened.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar

from holdshort.stream.batch import Batch
from holdshort.stream.changelog import Changelog
from holdshort.stream.decider import Decider
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.errors import Halt, Retry, StreamError
from holdshort.stream.lane import Lane
from holdshort.stream.lifecycle import State
from holdshort.stream.ports import Clock, Inputs, Kafka, Positions, Transactions
from holdshort.stream.records import Record, TopicPartition
from holdshort.stream.restore import Restore, gone, made_again
from holdshort.telemetry.logs import Event, logger
from holdshort.telemetry.metrics import EngineMetrics

S = TypeVar("S")
T = TypeVar("T")

HALTED_LOOK_S: Final = 2.0
IDLE_S: Final = 0.5  # an idle lane looks at its deadlines so often
BACKOFF_S: Final = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)


class Task(Generic[S]):
    """The processing of one lane by this process, for as long as it owns it."""

    def __init__(
        self,
        number: int,
        settings: EngineSettings,
        kafka: Kafka,
        new_decider: Callable[[], Decider[S]],
        clock: Clock,
        metrics: EngineMetrics,
        observe: Callable[[Decider[S]], None],
    ) -> None:
        self.number = number
        self.state = State.CREATED
        self.lane: Lane[S] | None = None
        self.halt: Halt | None = None
        self.changelog = Changelog()
        self.last_turn = clock.monotonic()
        self._settings = settings
        self._kafka = kafka
        self._new_decider = new_decider
        self._clock = clock
        self._metrics = metrics
        self._observe = observe
        self._log = logger().bind(service=settings.app, lane=number)
        self._stopping = asyncio.Event()
        self._renewing = asyncio.Event()
        self._missed: frozenset[str] = frozenset()
        self._changed: Halt | None = None
        self._transactions: Transactions | None = None
        self._inputs: Inputs | None = None
        self._backlog: list[Record] = []
        self._failures = 0

    # -- life ----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Finish the batch in hand and let go of the lane; `run` then returns."""
        self._stopping.set()

    def renew(self) -> None:
        """Finish the batch in hand, and begin again with a new decider: the rules have changed."""
        self._renewing.set()

    def look_at(self, lane: Lane[S], ids: Mapping[str, str]) -> None:
        """What ids the topics have by now with which this life of the lane began; on others it halts.

        A topic that is not there is looked for once more first: a broker that has just started may not know
        it yet.
        """
        if lane is not self.lane or self.state is not State.RUNNING:
            return
        missing = frozenset(lane.topics.keys() - ids.keys())
        others = [topic for topic, id_ in ids.items() if lane.topics.get(topic, id_) != id_]
        if others:
            self._changed = made_again(min(others), self._settings, self.number)
        elif missing & self._missed:
            self._changed = gone(missing & self._missed)
        self._missed = missing

    async def run(self) -> None:
        """Own the lane until it is stopped; halted, wait there for a human. Raises Fenced and Fatal."""
        try:
            while not self._stopping.is_set():
                try:
                    await self._live()
                except Halt as halt:
                    self._halted(halt)
                    await self._let_go()
                    await self._until_accepted()
        finally:
            await self._let_go()
            self._become(State.CLOSED)

    async def _live(self) -> None:
        """One life of the lane, from fence to trouble."""
        try:
            await self._own()
            await self._let_go()
        except Retry as trouble:
            delay = BACKOFF_S[min(self._failures, len(BACKOFF_S) - 1)]
            self._failures += 1
            self._metrics.retried()
            self._log.warning(Event.LANE_RETRIES, error=str(trouble), delay=delay)
            await self._let_go()
            await self._clock.sleep(delay)
        except (StreamError, asyncio.CancelledError):
            raise
        except Exception as defect:
            # A decider never raises. Where one does, the next life would only meet the same record again.
            raise Halt(f"a defect in the program: {_where(defect)}") from defect

    def _halted(self, halt: Halt) -> None:
        self.halt = halt
        self._become(State.HALTED)
        defect = halt.__cause__
        self._log.error(
            Event.LANE_HALTED,
            reason=halt.reason,
            command=halt.command,
            trace=traceback.format_tb(defect.__traceback__) if defect else None,
        )

    async def _until_accepted(self) -> None:
        """Wait until somebody has written other positions (loss.py), and then read the log anew.

        Where topics are missing, also until they are there.
        """
        where = TopicPartition(self._settings.positions, self.number)
        known: int | None = None
        while not self._stopping.is_set():
            with suppress(Retry):
                end = (await self._kafka.log.ends([where], committed=True))[where]
                if known is not None and end != known:
                    self._log.warning(Event.LANE_LOSS_ACCEPTED)
                    self._begin_anew()
                    return
                known = end
                if self.halt and self.halt.missing and await self._all_there(self.halt.missing):
                    self._begin_anew()
                    return
            with suppress(TimeoutError):
                async with asyncio.timeout(HALTED_LOOK_S):
                    await self._stopping.wait()

    async def _all_there(self, topics: Collection[str]) -> bool:
        return not set(topics) - (await self._kafka.log.topic_ids(topics)).keys()

    def _begin_anew(self) -> None:
        self.halt, self.changelog = None, Changelog()

    async def _let_go(self) -> None:
        """Drop producer, reader and backlog; what the changelog said so far is kept for the next restore."""
        transactions, self._transactions = self._transactions, None
        inputs, self._inputs = self._inputs, None
        self._backlog = []
        if transactions is not None:
            await transactions.discard()
        if inputs is not None:
            await inputs.close()

    def _become(self, state: State) -> None:
        assert self.state.can_become(state), f"{self.state} -> {state}"
        self.state = state
        self._metrics.lane_is(self.number, state.value)

    def lag(self) -> Positions:
        """How many offsets each input partition is behind its end as last heard of."""
        inputs = self._inputs
        return inputs.lag() if inputs is not None else {}

    def positions(self) -> Positions:
        """How far each input partition has been read, the batch in hand included; markers are passed."""
        lane, inputs = self.lane, self._inputs
        if lane is None or inputs is None:
            return {}
        return {where: inputs.position(where) for where in lane.logs()}

    # -- the order that makes it safe ----------------------------------------------------------------------

    async def _own(self) -> None:
        """Own the lane (engine 2). Step 1, that the group has assigned it, is runner.py's.

        Rejected: reading offsets or state before the fence (the old owner may still commit); group offsets
        (aiokafka takes a coordinator that is loading for "none committed"); aborting, or using a producer
        again after an error (a late EndTxn of the old transaction would end the next one).
        """
        # 2. Fence: from here on nothing of an older owner becomes visible.
        self._become(State.FENCING)
        self._transactions = await self._kafka.fence(self._settings.transactional_id(self.number))
        # 3. Restore state and positions, up to the high watermark.
        self._become(State.RESTORING)
        self._renewing.clear()  # whoever changes the rules from here on says so again
        restore = Restore(self.number, self._settings, self._kafka.log, self.changelog, self._new_decider())
        with self._metrics.restoring():
            lane = self.lane = await restore.lane()
        self._changed, self._missed = None, frozenset()
        # 4. Seek the inputs to the restored positions.
        self._inputs = await self._kafka.read(lane.start, [lane.decider.tables, *lane.decider.ranks])
        self._become(State.RUNNING)
        self._log.info(Event.LANE_RUNS, entries=sum(len(store.places) for store in lane.stores.values()))
        # 5. Process: take what has arrived, decide, commit it as one transaction; until something goes wrong.
        for some in _chunks(lane.gone, self._settings.share):
            await self._process(lane, self._transactions, self._inputs, some)
        while not (self._stopping.is_set() or self._renewing.is_set()):
            records = await self._take(lane, self._inputs)
            if self._renewing.is_set():
                break  # they are read again, and judged by the new rules
            if self._changed is not None:
                raise self._changed
            await self._process(lane, self._transactions, self._inputs, records)
            self.last_turn = self._clock.monotonic()
        # 6. Anything went wrong, or the rules are new: `_live` discards everything and begins again at 2.

    async def _process(
        self, lane: Lane[S], transactions: Transactions, inputs: Inputs, records: Sequence[Record]
    ) -> None:
        batch = Batch(lane, self._kafka.log, self._clock)
        try:
            self._backlog = [*await batch.decide(records), *self._backlog]
            await batch.fire(inputs, self._backlog)
            if batch.empty:
                return
            writes = await batch.seal()
            with self._metrics.committing(batch.records):
                bases = await self._before_deadline(transactions.commit(writes))
        except BaseException:
            batch.roll_back()
            raise
        batch.committed(bases)
        self._observe(lane.decider)
        self._failures = 0

    async def _before_deadline(self, commit: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._settings.commit_deadline):
                return await commit
        except TimeoutError:
            self._metrics.not_committed()
            raise Retry("a transaction took too long") from None
        except Retry:
            self._metrics.not_committed()
            raise

    # -- taking --------------------------------------------------------------------------------------------

    async def _take(self, lane: Lane[S], inputs: Inputs) -> list[Record]:
        records, self._backlog = self._backlog, []
        if not records:
            records = await inputs.take(self._settings.share, self._patience(lane))
        if lane.decider.tables and any(record.topic not in lane.decider.tables for record in records):
            records = await self._behind_tables(lane, inputs, records)
        return records

    def _patience(self, lane: Lane[S]) -> float:
        """How long to wait for records, in s: not beyond the next deadline, and never for long."""
        nexts = [at for store in lane.stores.values() if (at := store.deadlines.next_at()) is not None]
        if not nexts:
            return IDLE_S
        left = (min(nexts) + self._settings.grace_ms - self._clock.now()) / 1000
        return min(IDLE_S, max(0.0, left))

    async def _behind_tables(self, lane: Lane[S], inputs: Inputs, records: list[Record]) -> list[Record]:
        """What the tables hold by now goes first: these records' authors may have read it (engine 4)."""
        ends = await self._kafka.log.ends(list(lane.tables()), committed=True)
        limit = self._clock.monotonic() + self._settings.catch_up_deadline
        while any(inputs.position(where) < end for where, end in ends.items()):
            if self._clock.monotonic() > limit:
                raise Retry("a table could not be read to its end in time")
            for record in await inputs.take(self._settings.share, IDLE_S):
                (records if record.topic in lane.decider.tables else self._backlog).append(record)
        return sorted(records, key=lambda record: record.topic not in lane.decider.tables)


def _chunks(records: list[Record], size: int) -> Iterator[list[Record]]:
    for start in range(0, len(records), size):
        yield records[start : start + size]


def _where(defect: Exception) -> str:
    """Kind and place of a defect; its text may hold what a user wrote."""
    frame = traceback.extract_tb(defect.__traceback__)[-1]
    return f"{type(defect).__name__} at {frame.filename.rpartition('/')[2]}:{frame.lineno}"
