"""Processes of the engine on the memory log that are killed, stopped and cut off at every step they take."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.virtual import VirtualClock, pass_time
from tests.worlds import Count, Signals, World, runner_of

from holdshort.stream.errors import Retry
from holdshort.stream.memory import MemoryBroker, MemoryGroup, MemoryKafka, MemoryMembership
from holdshort.stream.ports import Assigned, Membership, Transactions
from holdshort.stream.records import Output, TopicPartition
from holdshort.stream.runner import Runner

SESSION_S = 6.0


@dataclass(frozen=True)
class Odds:
    """How likely each fault is at one step, and how long things take at most (s)."""

    kill: float = 0.004
    freeze: float = 0.004
    fail: float = 0.02
    late_end: float = 0.02
    delay: float = 0.3
    longest_delay: float = 0.5
    longest_freeze: float = 12.0


class FaultyKafka(MemoryKafka):
    """One process's way to the broker, on which anything may happen at every step."""

    def __init__(self, broker: MemoryBroker, odds: Odds, chance: random.Random) -> None:
        super().__init__(broker)
        self.odds = odds
        self.chance = chance
        self.killed = False
        self.thaws_at = 0.0
        self.calm = False
        self.member: _Member | None = None
        self.on_kill: Callable[[], None] = lambda: None
        self.steps = 0

    async def at(self, step: str) -> None:
        self.steps += 1
        if not self.calm:
            self._draw()
        await self._stand_still()
        if self.calm:
            await asyncio.sleep(0)
            return
        if self.chance.random() < self.odds.delay:
            await pass_time(self.chance.random() * self.odds.longest_delay)
        await self._stand_still()
        if step not in ("end", "ended") and self.chance.random() < self.odds.fail:
            raise Retry(f"the connection broke at {step}")

    def _draw(self) -> None:
        drawn = self.chance.random()
        if drawn < self.odds.kill:
            self.kill()
        elif drawn < self.odds.kill + self.odds.freeze:
            self.freeze(self.chance.random() * self.odds.longest_freeze)

    def kill(self) -> None:
        """SIGKILL: nothing of the process happens any more; the group learns of it by its silence."""
        if not self.killed:
            self.killed = True
            asyncio.get_running_loop().call_later(SESSION_S, self._session_over)
            self.on_kill()

    def freeze(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT later: the process goes on as if nothing had been."""
        loop = asyncio.get_running_loop()
        self.thaws_at = max(self.thaws_at, loop.time() + seconds)
        if seconds > SESSION_S:
            loop.call_later(SESSION_S, self._session_over)
            loop.call_later(seconds, self._rejoin)

    def _session_over(self) -> None:
        if self.member is not None:
            self.member.drop()

    def _rejoin(self) -> None:
        if self.member is not None and not self.killed:
            self.member.rejoin()

    async def _stand_still(self) -> None:
        if self.killed:
            await asyncio.get_running_loop().create_future()
        while (left := self.thaws_at - asyncio.get_running_loop().time()) > 0:
            await pass_time(left)

    async def fence(self, transactional_id: str) -> Transactions:
        await self.at("fence")
        epoch = self.broker.init_producer(transactional_id)
        return FaultyTransactions(self, transactional_id, epoch)

    async def join(self, app: str, topic: str, assigned: Assigned) -> Membership:
        group = self.broker.groups.setdefault(app, MemoryGroup(len(self.broker.topics[topic])))
        self.member = _Member(group, lambda lanes: None if self.killed else assigned(lanes))
        group.add(self.member)
        return self.member


class _Member(MemoryMembership):
    """A member that the group may have dropped without its knowing."""

    def drop(self) -> None:
        self._group.drop(self)

    def rejoin(self) -> None:
        self._group.add(self)


class FaultyTransactions:
    """A producer whose EndTxn may be lost, answered late, or arrive when nobody waits for it any more."""

    def __init__(self, kafka: FaultyKafka, transactional_id: str, epoch: int) -> None:
        self._kafka = kafka
        self._id = transactional_id
        self._epoch = epoch
        self._spoilt = False

    async def commit(
        self, outputs: Mapping[TopicPartition, Sequence[Output]]
    ) -> Mapping[TopicPartition, int]:
        assert not self._spoilt, "a producer is used after an error"
        self._spoilt = True
        bases = {}
        for where, records in outputs.items():
            await self._kafka.at("write")
            bases[where] = self._kafka.broker.write(self._id, self._epoch, where, records)
        await self._kafka.at("end")
        if not self._kafka.calm and self._kafka.chance.random() < self._kafka.odds.late_end:
            self._end_later()
            raise Retry("the answer to the commit was lost")
        self._kafka.broker.end(self._id, self._epoch)
        await self._kafka.at("ended")
        self._spoilt = False
        return bases

    def _end_later(self) -> None:
        """The request is under way: when it arrives, it commits whatever is open under its epoch."""
        loop = asyncio.get_running_loop()
        loop.call_later(self._kafka.chance.random() * 3, self._kafka.broker.end_late, self._id, self._epoch)

    async def discard(self) -> None:
        self._spoilt = True


@dataclass
class Process:
    """A process of the engine, running."""

    kafka: FaultyKafka
    runner: Runner[Count]
    task: "asyncio.Task[None]"


class Fleet:
    """Several processes that share the lanes; one that is killed is started again after a while."""

    def __init__(self, world: World, broker: MemoryBroker, odds: Odds, seed: int) -> None:
        self.world = world
        self.broker = broker
        self.odds = odds
        self.chance = random.Random(seed)
        self.processes: list[Process] = []
        self.kills = 0
        self._calm = False

    def start(self, make: Callable[..., Runner[Count]] = runner_of) -> None:
        kafka = FaultyKafka(self.broker, self.odds, self.chance)
        kafka.calm = self._calm
        clock = VirtualClock(skew_ms=self.chance.randint(-500, 500))
        runner = make(_Through(kafka, clock), Signals())
        process = Process(kafka, runner, asyncio.create_task(runner.run()))
        kafka.on_kill = lambda: self._killed(process, make)
        self.processes.append(process)

    def _killed(self, process: Process, make: Callable[..., Runner[Count]]) -> None:
        self.kills += 1
        self.processes.remove(process)
        loop = asyncio.get_running_loop()
        loop.call_later(self.chance.random() * 2, self.start, make)

    def calm(self) -> None:
        """No more faults, for what is running and what will be."""
        self._calm = True
        for process in self.processes:
            process.kafka.calm = True

    def check(self) -> None:
        for process in self.processes:
            halted = [task.halt for task in process.runner.tasks.values() if task.halt]
            assert not halted, f"halted: {halted}"
            if process.task.done():
                process.task.result()

    async def stop(self) -> None:
        for process in self.processes:
            process.runner.stop()
        await asyncio.gather(*(process.task for process in self.processes))


class _Through(World):
    """A world seen through one process's own way to the broker."""

    def __init__(self, kafka: FaultyKafka, clock: VirtualClock) -> None:
        self.kafka = kafka
        self.clock = clock

    def process(self) -> Any:
        return self.kafka

    async def append(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError

    async def committed(self, topic: str) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing is held open."""
