"""What happens to the chaos world, and when: a seeded schedule of kills, pauses, troubles of the network."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from typing import Any, Final, Literal, NamedTuple, assert_never

from tests.chaos.programs import Program
from tests.chaos.proxy import Trap
from tests.chaos.world import MORTAL, World

Kind = Literal["kill", "pause", "cut", "cut one", "slow", "stall", "late EndTxn", "EndTxn twice"]

EVERY_S: Final = (1.0, 4.0)
KINDS: Final[dict[Kind, int]] = {
    "kill": 60,
    "pause": 12,
    "cut": 5,
    "cut one": 5,
    "slow": 4,
    "stall": 4,
    "late EndTxn": 6,
    "EndTxn twice": 4,
}
TARGETS: Final = {"gatekeeper": 30, "router": 30, "agent": 20, "team": 5, "broker": 15}
SHORT_PAUSE_S: Final = (0.5, 4.0)
LONG_PAUSE_S: Final = (6.5, 9.0)  # longer than a session (6 s)
BROKER_AWAY_S: Final = (0.5, 4.0)
NETWORK_S: Final = (1.0, 4.0)
SLOW_S: Final = (0.02, 0.2)
DELIVERED_AFTER_S: Final = (0.5, 3.0)


class Fault(NamedTuple):
    """After how many seconds, what, to which kind of target, for how long; and a number to choose by."""

    after: float
    kind: Kind
    target: str
    lasts: float
    choice: int


def schedule(seed: int) -> Iterator[Fault]:
    """The same for the same seed; without an end."""
    random = Random(seed)
    while True:
        after = random.uniform(*EVERY_S)
        [kind] = random.choices(list(KINDS), list(KINDS.values()))
        [target] = random.choices(list(TARGETS), list(TARGETS.values()))
        yield Fault(after, kind, target, _lasts(random, kind, target), random.randrange(1 << 16))


def _lasts(random: Random, kind: Kind, target: str) -> float:
    match kind:
        case "kill":
            return random.uniform(*BROKER_AWAY_S)
        case "pause":
            long = target != "broker" and random.random() < 0.5
            return random.uniform(*(LONG_PAUSE_S if long else SHORT_PAUSE_S))
        case "late EndTxn" | "EndTxn twice":
            return random.uniform(*DELIVERED_AFTER_S)
        case _:
            return random.uniform(*NETWORK_S)


class Torment:
    """Brings faults over a world; `kills` and `others` count what really happened."""

    def __init__(self, world: World, seed: int) -> None:
        self.kills: Counter[str] = Counter()
        self.others: Counter[Kind] = Counter()
        self._world = world
        self._faults = schedule(seed)
        self._under_way: set[asyncio.Task[None]] = set()
        self._broker: asyncio.Task[None] | None = (
            None  # one at a time is away: two would only mean standstill
        )

    async def until(self, enough: Callable[[], bool]) -> None:
        """One fault after the other until it is enough. Raises what brokers that do not start raise."""
        while not enough():
            fault = next(self._faults)
            await asyncio.sleep(fault.after)
            self._check()
            self.strike(fault)

    async def over(self) -> None:
        """Wait until everything runs again."""
        await asyncio.gather(*self._under_way)
        for proxy in self._world.proxies:
            proxy.delay = 0.0
        self._world.traps.waiting.clear()

    async def stop(self) -> None:
        """Begin nothing more of what is under way; what is paused goes on."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _check(self) -> None:
        for task in self._under_way:
            if task.done():
                task.result()
        self._under_way = {task for task in self._under_way if not task.done()}

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._under_way.add(task)
        return task

    def strike(self, fault: Fault) -> None:
        if fault.kind == "kill" or fault.kind == "pause":  # noqa: PLR1714 - so that mypy knows the rest
            self._hurt(fault)
            return
        self.others[fault.kind] += 1
        proxies = self._world.proxies
        proxy, random = proxies[fault.choice % len(proxies)], Random(fault.choice)
        match fault.kind:
            case "cut":
                proxy.cut()
            case "cut one":
                proxy.cut_one(random)
            case "slow":
                self._start(self._slow(fault, random.uniform(*SLOW_S)))
            case "stall":
                proxy.stall_some(random, fault.lasts)
            case "late EndTxn":
                self._world.traps.lay(Trap("late", fault.lasts))
            case "EndTxn twice":
                self._world.traps.lay(Trap("twice", fault.lasts))
            case _:
                assert_never(fault.kind)

    async def _slow(self, fault: Fault, delay: float) -> None:
        proxy = self._world.proxies[fault.choice % len(self._world.proxies)]
        proxy.delay = delay
        await asyncio.sleep(fault.lasts)
        proxy.delay = 0.0

    def _hurt(self, fault: Fault) -> None:
        target = fault.target
        if target == "broker":
            if self._broker is None or self._broker.done():
                self._hurt_broker(fault)
                return
            target = "gatekeeper"
        victims = [program for program in self._world.programs if program.kind == target]
        self._hurt_program(victims[fault.choice % len(victims)], fault)

    def _hurt_broker(self, fault: Fault) -> None:
        node = MORTAL[fault.choice % len(MORTAL)]
        if fault.kind == "kill":
            self.kills["broker"] += 1
            self._broker = self._start(self._world.bounce(node, fault.lasts))
        else:
            self.others["pause"] += 1
            self._broker = self._start(self._world.freeze(node, fault.lasts))

    def _hurt_program(self, victim: Program, fault: Fault) -> None:
        if fault.kind == "pause":
            self.others["pause"] += 1
            self._start(victim.pause(fault.lasts))
        elif victim.kill():
            self.kills[victim.kind] += 1
