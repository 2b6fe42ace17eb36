"""The chain's head lives with the positions: a death between or within any two transactions tears nothing."""

import asyncio
from collections import Counter
from typing import TypeVar

import pytest
from tests.audit.chained import CONFIG, followed, judged, story
from tests.clients import Json
from tests.systems import System
from tests.virtual import in_virtual_time, pass_time

from holdshort.stream.memory import MemoryBroker, MemoryKafka

STEPS = {"write": 3, "end": 1, "ended": 1}  # before a write (of several), the commit, the knowledge of it

pytestmark = pytest.mark.slow


class DyingKafka(MemoryKafka):
    """A process's way to the broker, which ends for ever at this step of its transaction of this number."""

    def __init__(self, broker: MemoryBroker, transaction: int, step: str) -> None:
        super().__init__(broker)
        self.dead = False
        self._left = transaction
        self._step = step

    async def at(self, step: str) -> None:
        if step == self._step:
            self._left -= 1
            self.dead |= self._left < 0
        if self.dead:
            await asyncio.get_running_loop().create_future()
        await super().at(step)


class Mortal(System):
    """An installation of which one process dies, and is started again as soon as somebody looks."""

    def __init__(self, service: str, transaction: int, step: str) -> None:
        super().__init__(CONFIG)
        self._service = service
        self._dying: DyingKafka | None = DyingKafka(self.broker, transaction, step)
        self.died = False

    def kafka(self, app: str) -> MemoryKafka:
        dying = self._dying if app == self._service and not self.died else None
        return dying or super().kafka(app)

    async def send(
        self, topic: str, value: Json, *, key: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        await super().send(topic, value, key=key, headers=headers)
        if self._dying is not None and self._dying.dead and not self.died:
            self.died = True
            del self._processes[self._service]
            group = self.broker.groups[self._service]
            for member in list(group._members):
                group.drop(member)
            await self.start(self._service)
            await pass_time(1)


S = TypeVar("S", bound=System)


async def played(system: S) -> S:
    await system.start("gatekeeper")
    await system.start("router")
    await story(system)
    await pass_time(5)
    system.check()
    return system


def transactions(system: System, service: str) -> int:
    return len(system.said(f"{service}.positions"))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("service", ["gatekeeper", "router"])
def test_a_death_at_any_transaction_leaves_every_chain_whole(service: str, step: str) -> None:
    async def main() -> None:
        calm = await played(System(CONFIG))
        assert followed(calm).findings == []
        deaths = 0
        for transaction in range(0, 600, STEPS[step]):
            system = await played(Mortal(service, transaction, step))
            if not system.died:
                break
            deaths += 1
            chains = followed(system)
            assert chains.findings == [], f"{service} died at {step} of transaction {transaction}"
            assert Counter(judged(system)) == Counter(judged(calm)), f"at {step} of {transaction}"
        assert deaths >= transactions(calm, service) // 2 > 5

    in_virtual_time(main())
