"""The order of engine.md 2 is needed: each way of getting it wrong loses or doubles a record in some history.

A mutant changes the order and nothing else; the same check that the real code passes must catch it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.simulation.test_engine import history
from tests.simulation.worlds import Odds
from tests.virtual import in_virtual_time
from tests.worlds import SETTINGS, Count, Counter, Signals, World

from holdshort.stream.batch import Batch
from holdshort.stream.changelog import Changelog
from holdshort.stream.lane import Lane
from holdshort.stream.lifecycle import State
from holdshort.stream.ports import Inputs, Transactions
from holdshort.stream.records import Output, Record, TopicPartition
from holdshort.stream.restore import Restore
from holdshort.stream.runner import Runner
from holdshort.stream.task import Task

HISTORIES = 150
MANY = Odds(kill=0.008, freeze=0.015, fail=0.04, late_end=0.1)


class RestoresBeforeItFences(Task[Count]):
    """The old owner may still commit what the restore has not seen."""

    async def _own(self) -> None:
        lane = await self._restored()
        self._become(State.FENCING)
        self._transactions = await self._kafka.fence(self._settings.transactional_id(self.number))
        self._become(State.RESTORING)
        await self._run_from(lane)

    async def _restored(self) -> Lane[Count]:
        restore = Restore(self.number, self._settings, self._kafka.log, self.changelog, self._new_decider())
        return await restore.lane()

    async def _run_from(self, lane: Lane[Count]) -> None:
        self.lane = lane
        self._inputs = await self._kafka.read(lane.start, [lane.decider.tables, *lane.decider.ranks])
        self._become(State.RUNNING)
        assert self._transactions is not None
        while not self._stopping.is_set():
            records = await self._take(lane, self._inputs)
            await self._process(lane, self._transactions, self._inputs, records)


class DoesNotRestoreAgain(RestoresBeforeItFences):
    """A transaction whose answer was lost may have happened: what is in memory is a guess."""

    async def _own(self) -> None:
        self._become(State.FENCING)
        self._transactions = await self._kafka.fence(self._settings.transactional_id(self.number))
        self._become(State.RESTORING)
        lane = self.lane or await self._restored()
        positions = lane.changelog.positions
        for where in lane.logs():
            known = positions.reached(where) if positions else None
            lane.start[where] = known.offset if known else 0
        await self._run_from(lane)


class UsesAProducerAgain(Task[Count]):
    """A late EndTxn of the failed transaction ends the next one of the same epoch."""

    kept: Transactions | None = None

    async def _own(self) -> None:
        if self.kept is None:
            return await super()._own()
        self._become(State.FENCING)
        self._transactions = self.kept
        self._become(State.RESTORING)
        restore = Restore(self.number, self._settings, self._kafka.log, self.changelog, self._new_decider())
        lane = self.lane = await restore.lane()
        self._inputs = await self._kafka.read(lane.start, [lane.decider.tables, *lane.decider.ranks])
        self._become(State.RUNNING)
        while not self._stopping.is_set():
            records = await self._take(lane, self._inputs)
            await self._process(lane, self._transactions, self._inputs, records)
        return None

    async def _let_go(self) -> None:
        if self._transactions is not None:
            self.kept = self._transactions
            self.kept._spoilt = False  # type: ignore[attr-defined]  # it does not know better
        self._transactions = None
        await super()._let_go()


class WritesPositionsApart(Task[Count]):
    """Outputs in one transaction and positions in the next: a crash in between doubles a batch."""

    async def _process(
        self, lane: Lane[Count], transactions: Transactions, inputs: Inputs, records: Sequence[Record]
    ) -> None:
        await super()._process(lane, _Apart(transactions), inputs, records)


class _Apart:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    async def commit(
        self, outputs: Mapping[TopicPartition, Sequence[Output]]
    ) -> Mapping[TopicPartition, int]:
        first = {where: o for where, o in outputs.items() if where.topic == "out"}
        rest = {where: o for where, o in outputs.items() if where.topic != "out"}
        bases = dict(await self._transactions.commit(first)) if first else {}
        return bases | dict(await self._transactions.commit(rest))

    async def discard(self) -> None:
        await self._transactions.discard()


class ShowsStateBeforeItIsCommitted(Task[Count]):
    """What a failed transaction would have written is counted on by the next one."""

    async def _own(self) -> None:
        """As ever, but what is at hand stays there: places in the changelog are guesses, too."""
        if self.lane is None:
            return await super()._own()
        self._become(State.FENCING)
        self._transactions = await self._kafka.fence(self._settings.transactional_id(self.number))
        self._become(State.RESTORING)
        restore = Restore(self.number, self._settings, self._kafka.log, self.changelog, self._new_decider())
        fresh = await restore.lane()
        for partition, store in self.lane.stores.items():
            fresh.stores[partition]._hot = store._hot
        self.lane = fresh
        self._inputs = await self._kafka.read(fresh.start, [fresh.decider.tables, *fresh.decider.ranks])
        self._become(State.RUNNING)
        while not self._stopping.is_set():
            records = await self._take(fresh, self._inputs)
            await self._process(fresh, self._transactions, self._inputs, records)
        return None

    async def _process(
        self, lane: Lane[Count], transactions: Transactions, inputs: Inputs, records: Sequence[Record]
    ) -> None:
        batch: Batch[Count] = Batch(lane, self._kafka.log, self._clock)
        await batch.decide(records)
        if batch.empty:
            return
        writes = await batch.seal()
        bases = {where: lane.ends.get(where.partition, 0) for where in writes}
        batch.committed(bases)
        await transactions.commit(writes)


class ReadsPositionsBeforeItFences(Task[Count]):
    """The old owner may still commit a batch; it is then read a second time."""

    async def _own(self) -> None:
        early = Restore(self.number, self._settings, self._kafka.log, Changelog(), self._new_decider())
        start = (await early.lane()).start
        self._become(State.FENCING)
        self._transactions = await self._kafka.fence(self._settings.transactional_id(self.number))
        self._become(State.RESTORING)
        restore = Restore(self.number, self._settings, self._kafka.log, self.changelog, self._new_decider())
        lane = self.lane = await restore.lane()
        self._inputs = await self._kafka.read(start, [lane.decider.tables, *lane.decider.ranks])
        self._become(State.RUNNING)
        while not self._stopping.is_set():
            records = await self._take(lane, self._inputs)
            await self._process(lane, self._transactions, self._inputs, records)


class KeepsWhatItHadTaken(Task[Count]):
    """Records taken before a failure are read again from the restored position, and so are judged twice."""

    async def _take(self, lane: Lane[Count], inputs: Inputs) -> list[Record]:
        records = await super()._take(lane, inputs)
        self.taken = records
        return records

    async def _let_go(self) -> None:
        await super()._let_go()
        self._backlog = list(getattr(self, "taken", ()))


MUTANTS: list[type[Task[Count]]] = [
    RestoresBeforeItFences,
    DoesNotRestoreAgain,
    UsesAProducerAgain,
    WritesPositionsApart,
    ShowsStateBeforeItIsCommitted,
    ReadsPositionsBeforeItFences,
    KeepsWhatItHadTaken,
]


def mutant_runner(mutant: type[Task[Count]]) -> Any:
    class MutantRunner(Runner[Count]):
        task_type = mutant

    def make(world: World, signals: Signals) -> Runner[Count]:
        return MutantRunner(SETTINGS, world.process(), lambda _: Counter(), world.clock, signals)

    return make


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.__name__ for mutant in MUTANTS])
def test_another_order_is_caught(mutant: type[Task[Count]]) -> None:
    for seed in range(HISTORIES):
        try:
            in_virtual_time(history(seed, MANY, make=mutant_runner(mutant)))
        except AssertionError:
            return
    pytest.fail(f"{mutant.__name__} passed {HISTORIES} histories")
