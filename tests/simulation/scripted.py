"""Processes of the engine on the memory log to which one named thing happens, in virtual time."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from structlog.testing import capture_logs
from tests.virtual import VirtualClock, pass_time
from tests.worlds import LANES, PARTITIONS, SETTINGS, Count, Counter, MemoryWorld, Signals, by_key

from holdshort.contract.keys import partition_of
from holdshort.stream.decider import Decider
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.memory import MemoryBroker, MemoryKafka, MemoryMembership
from holdshort.stream.ports import Assigned, Membership, Transactions
from holdshort.stream.runner import Runner

LANE_0, LANE_1 = (
    next(
        key for key in (f"k{n}".encode() for n in range(99)) if partition_of(key, PARTITIONS) % LANES == lane
    )
    for lane in range(LANES)
)

Happening = Callable[[], Awaitable[None]]


class ScriptedKafka(MemoryKafka):
    """A process's way to the broker; `happens[step]` is done once, the next time that step is taken."""

    def __init__(self, broker: MemoryBroker) -> None:
        super().__init__(broker)
        self.happens: dict[str, Happening] = {}
        self.always: Happening | None = None
        self.fencing: dict[str, int] = defaultdict(int)
        self.most_fencing = 0
        self.member: MemoryMembership | None = None

    async def at(self, step: str) -> None:
        await super().at(step)
        if self.always is not None:
            await self.always()
        if happening := self.happens.pop(step, None):
            await happening()

    async def fence(self, transactional_id: str) -> Transactions:
        self.fencing[transactional_id] += 1
        self.most_fencing = max(self.most_fencing, *self.fencing.values())
        try:
            return await super().fence(transactional_id)
        finally:
            self.fencing[transactional_id] -= 1

    async def join(self, app: str, topic: str, assigned: Assigned) -> Membership:
        membership = await super().join(app, topic, assigned)
        assert isinstance(membership, MemoryMembership)
        self.member = membership
        return membership

    def lose_membership(self) -> None:
        """The session is over, and the process does not know."""
        assert self.member is not None
        self.member._group.drop(self.member)


@dataclass
class Scene:
    """One world, the processes in it, and what they logged."""

    world: MemoryWorld
    logs: list[Any]
    settings: EngineSettings = SETTINGS
    decider: Callable[[], Decider[Count]] = Counter
    processes: list["Process"] = field(default_factory=list)

    async def start(self) -> "Process":
        process = Process(self, ScriptedKafka(self.world.broker))
        self.processes.append(process)
        await pass_time(1)
        return process

    async def send(self, *values: str, key: bytes = LANE_0, within: float = 30) -> None:
        for value in values:
            await self.world.append("in", key, value.encode())
        await pass_time(within)

    def outputs(self, key: bytes = LANE_0) -> list[str]:
        return list(by_key(self.world.broker.committed("out")).get(key, ()))

    def events(self, name: str) -> list[Any]:
        return [entry for entry in self.logs if entry["event"] == name]

    def partition(self, key: bytes = LANE_0) -> int:
        return next(record.partition for record in self.world.broker.committed("in") if record.key == key)


class Process:
    """One process of the engine, running."""

    def __init__(self, scene: Scene, kafka: ScriptedKafka) -> None:
        self.kafka = kafka
        self.killed = False
        self.signals = Signals()
        self.runner: Runner[Count] = Runner(
            scene.settings, kafka, lambda _: scene.decider(), scene.world.clock, self.signals
        )
        self.task = asyncio.create_task(self.runner.run())

    def counted(self, result: str) -> float:
        labels = {"service": "app", "result": result}
        return self.signals.registry.get_sample_value("holdshort_transactions_total", labels) or 0.0

    def halted(self) -> dict[int, str]:
        return {lane.lane: lane.halted for lane in self.runner.health() if lane.halted}

    def kill(self) -> None:
        """SIGKILL: not a step more, and the group's session of it over."""
        self.killed = True
        self.kafka.always = silence
        self.kafka.lose_membership()


async def silence() -> None:
    """The step never returns."""
    await asyncio.get_running_loop().create_future()


def raising(error: Exception) -> Happening:
    async def happening() -> None:
        raise error

    return happening


@asynccontextmanager
async def scene(**given: Any) -> AsyncIterator[Scene]:
    with capture_logs() as logs:
        one = Scene(MemoryWorld(VirtualClock()), logs, **given)
        yield one
        for process in one.processes:
            if not process.killed and not process.task.done():
                process.runner.stop()
                await process.task
