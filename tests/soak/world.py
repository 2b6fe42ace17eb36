"""The soak's world: a Kafka, a gatekeeper, a router and the deciders of five teams, and what kills them."""

import asyncio
import secrets
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Final, Self

from rich.console import Console
from tests.chaos.programs import Program
from tests.soak.plans import TEAMS

from holdshort.cli.bench.wire import Topics, Wire
from holdshort.cli.stack import Stack

CONFIG: Final = Path(__file__).parent / "world.yaml"
PARTITIONS: Final = 4
LANES: Final = 2
VICTIMS: Final = ("gatekeeper", "router", "decider")
REST_S: Final = (0.5, 4.0)  # from when all are back to the next kill


class World:
    """An async context manager: entered, everything runs. Logs are in `directory`."""

    def __init__(self, directory: Path, seed: int, environment: Mapping[str, str]) -> None:
        """`environment` may name a Kafka that is there already (KAFKA_BOOTSTRAP_SERVERS)."""
        self.prefix = f"soak-{secrets.token_hex(4)}."
        self.kills: Counter[str] = Counter()
        self._directory = directory
        self._seed = seed
        self._random = Random(seed)
        self._victims: list[str] = []
        self._stack = Stack(
            environment={
                **environment,
                "HOLDSHORT_CONFIG": str(CONFIG),
                "HOLDSHORT_PREFIX": self.prefix,
                "HOLDSHORT_PARTITIONS": str(PARTITIONS),
                "HOLDSHORT_LANES": str(LANES),
                "HOLDSHORT_REPLICATION": "1",
                "HOLDSHORT_MIN_ISR": "1",
            },
            console=Console(quiet=True),
            logs=directory,
        )
        self._deciders: list[Program] = []
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opening:
            await opening.enter_async_context(self._stack)
            opening.push_async_callback(self.stop_deciders)
            self._deciders = [self._decider(team) for team in TEAMS]
            for one in self._deciders:
                one.start()
            self._open = opening.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    def wire(self) -> Wire:
        """The way to its topics."""
        connection = {"bootstrap.servers": self._stack.bootstrap_servers}
        return Wire(connection, Topics.of(self.prefix), PARTITIONS)

    def _decider(self, team: str) -> Program:
        arguments = [self._stack.bootstrap_servers, self.prefix, str(PARTITIONS), team, str(self._seed)]
        command = [sys.executable, "-m", "tests.soak.decider", *arguments]
        return Program(f"decider-{team}", command, {}, self._directory / f"decider-{team}.log", None)

    # -- hurting -------------------------------------------------------------------------------------------

    async def hurt(self) -> None:
        """SIGKILL one after the other, each kind in turn, in another order each time, until cancelled."""
        while True:
            await asyncio.sleep(self._random.uniform(*REST_S))
            if not self._victims:
                self._victims = self._random.sample(VICTIMS, len(VICTIMS))
            self._kill(self._victims.pop())
            await self.whole()

    def _kill(self, kind: str) -> None:
        if kind == "decider":
            killed = self._random.choice(self._deciders).kill()
        else:
            process = next(one for one in self._stack.processes if one.service == kind)
            killed = process.pid is not None and bool(self._stack.kill(process))
        self.kills[kind] += killed

    async def whole(self) -> None:
        """Wait until every service is ready. Raises Fatal if one does not get so."""
        await self._stack.until_ready()

    async def stop_deciders(self) -> None:
        """In order: what they still have in mind they say."""
        await asyncio.gather(*(one.stop() for one in self._deciders))

    @property
    def ended_by_themselves(self) -> int:
        """How often a service or a decider ended without having been killed."""
        services = sum(len(one.ended) - one.killed for one in self._stack.processes)
        return services + sum(one.own_ends for one in self._deciders)
