"""The chaos world: three brokers behind proxies, and the programs that talk to them through those."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from tests.chaos.programs import Program
from tests.chaos.proxy import HOST, Proxy, Traps
from tests.chaos.story import TEAMS, TOOLS

from holdshort.stream.admin import Admin
from holdshort.stream.connection import Connection
from holdshort.stream.embedded import BrokerSettings, EmbeddedKafka, free_ports
from holdshort.stream.topics import table
from holdshort.telemetry.logs import Event

NODES: Final = 3
MORTAL: Final = (2, 3)  # node 1 is the only controller
HEAP_MB: Final = 256
PARTITIONS: Final = 4
LANES: Final = 2
PREFIX: Final = "chaos."
SERVICES: Final = ("gatekeeper", "router")
READY_PATIENCE_S: Final = 90.0
CONFIG: Final = f"""
agents: {{default: {{}}}}
teams: {{{", ".join(f"{team}: {{}}" for team in TEAMS)}}}
start_lease: 60s
run_lease: 60s
routes:
{"".join(f"  - {{tool: {tool}, team: {team}}}{chr(10)}" for tool, team in TOOLS.items())}"""


class World:
    """An async context manager: entered, everything is ready. Its logs are in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.effects = directory / "effects.jsonl"
        counts = {"threads": PARTITIONS, "lanes": LANES}
        self.topics = {one.name: counts[one.partitions] for one in table(["default"], list(TEAMS))}
        self.traps = Traps()
        ports = free_ports(3 * NODES + 1 + 2 * len(SERVICES))
        self._nodes, self._clients = ports[: NODES + 1], ports[NODES + 1 : 2 * NODES + 1]
        advertised = ports[2 * NODES + 1 : 3 * NODES + 1]
        self._management = iter(ports[3 * NODES + 1 :])
        self.proxies = [
            Proxy(port, broker, self.traps) for port, broker in zip(advertised, self._clients, strict=True)
        ]
        self.proxied = ",".join(f"{HOST}:{port}" for port in advertised)
        self.direct = ",".join(f"{HOST}:{port}" for port in self._nodes[:-1])
        self.kafka = EmbeddedKafka(
            BrokerSettings(
                nodes=NODES,
                heap_mb=HEAP_MB,
                data_dir=directory / "kafka",
                start_timeout_s=READY_PATIENCE_S,
                of_node={node: self._listeners(node) for node in range(1, NODES + 1)},
            ),
            ports=lambda _: self._nodes,
        )
        self.programs: list[Program] = []

    def _listeners(self, node: int) -> dict[str, str]:
        """Beside the listener that nodes use among each other, one that is advertised as the proxy's."""
        inner, outer = f"PLAINTEXT://{HOST}:{self._nodes[node - 1]}", f"CLIENTS://{HOST}:"
        controller = [f"CONTROLLER://{HOST}:{self._nodes[-1]}"] if node not in MORTAL else []
        return {
            "listeners": ",".join([inner, f"{outer}{self._clients[node - 1]}", *controller]),
            "advertised.listeners": f"{inner},{outer}{self.proxies[node - 1].port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }

    # -- life ----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        try:
            await self.kafka.start()
            for proxy in self.proxies:
                await proxy.start()
            await self._make_topics()
            self.programs = self._all_programs()
            for program in self.programs:
                program.start()
            await self.until_ready()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    async def _stop(self) -> None:
        await asyncio.gather(*(program.stop() for program in self.programs))
        await asyncio.gather(*(proxy.stop() for proxy in self.proxies))
        await self.kafka.stop()

    async def _make_topics(self) -> None:
        admin = Admin(Connection(bootstrap_servers=self.direct), PREFIX)
        plan = await admin.plan(table(["default"], list(TEAMS)), PARTITIONS, LANES)
        await admin.apply(plan, replication=NODES, min_isr=NODES - 1)

    def _all_programs(self) -> list[Program]:
        """Of each pair of services one has a name of its own, as in a StatefulSet, and one has none."""
        config = self.directory / "holdshort.yaml"
        config.write_text(CONFIG)
        shared = {
            "KAFKA_BOOTSTRAP_SERVERS": self.proxied,
            "HOLDSHORT_CONFIG": str(config),
            "HOLDSHORT_PREFIX": PREFIX,
            "HOLDSHORT_PARTITIONS": str(PARTITIONS),
            "HOLDSHORT_LANES": str(LANES),
            "HOLDSHORT_REPLICATION": str(NODES),
            "HOLDSHORT_MIN_ISR": str(NODES - 1),
        }
        programs = []
        for service in SERVICES:
            for number in range(2):
                name, port = f"{service}-{number}", next(self._management)
                own = {"HOLDSHORT_MANAGEMENT_PORT": str(port)}
                own |= {"HOLDSHORT_INSTANCE": name} if number == 0 else {}
                programs.append(self._program(name, ["holdshort.cli", service], shared | own, port))
        for number in range(2):
            command = ["tests.chaos.agent", str(self.effects)]
            programs.append(self._program(f"agent-{number}", command, shared))
        programs += [self._program(f"team-{team}", ["tests.chaos.team", team], shared) for team in TEAMS]
        return programs

    def _program(
        self, name: str, module: list[str], environment: dict[str, str], port: int | None = None
    ) -> Program:
        command = [sys.executable, "-m", *module]
        return Program(name, command, environment, self.directory / f"{name}.log", port)

    # -- looking and hurting -------------------------------------------------------------------------------

    async def until_ready(self) -> None:
        """Wait until every service is. Raises TimeoutError."""
        async with asyncio.timeout(READY_PATIENCE_S):
            for program in self.programs:
                if program.port is not None:
                    await program.until_ready()

    def halted(self) -> list[str]:
        """What services said when a lane began to wait for a human; nothing that happens here is a reason."""
        return [
            f"{program.name} halted a lane: {json.loads(line)['reason']}"
            for program in self.programs
            for line in program.log.read_text(errors="replace").splitlines()
            if f'"{Event.LANE_HALTED}"' in line
        ]

    async def bounce(self, node: int, seconds: float) -> None:
        """SIGKILL a broker, and start it again after so long."""
        await self.kafka.kill_node(node)
        await asyncio.sleep(seconds)
        await self.kafka.start_node(node)

    async def freeze(self, node: int, seconds: float) -> None:
        """SIGSTOP a broker for so long."""
        pid = self.kafka.pids[node]
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
