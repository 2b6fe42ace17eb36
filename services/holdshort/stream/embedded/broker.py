"""Start, break and stop a real Kafka of one or more nodes on free ports of 127.0.0.1."""

import asyncio
import secrets
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException, Producer

from holdshort.stream.embedded.jars import EmbeddedKafkaError, JarCache, Progress
from holdshort.stream.embedded.java import Java
from holdshort.stream.embedded.node import Node, ReadLogError
from holdshort.stream.embedded.properties import (
    CONTROLLER_NODE,
    HOST,
    Cluster,
    Security,
    server_properties,
)

_START_TRIES = 5
_POLL_S = 0.02

# Below the range from which systems take the ports of outgoing connections: a client that keeps trying
# the port of a dead node would otherwise be given that very port, and the node could not come back.
_PORTS = range(20_000, 30_000)

Ready = Callable[[str], Awaitable[None]]
"""Given bootstrap servers, returns once they can be used; the caller sets the deadline."""

PortChoice = Callable[[int], Sequence[int]]
"""Given how many, chooses ports; asked again when one proves to be taken."""


class UseAnotherDirectoryError(EmbeddedKafkaError):
    """The data directory belongs to a cluster of another size."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """A cluster to start. With `data_dir` its topics are kept; without, all is removed at stop.

    `properties` are lines of server.properties for every node and win over ours, `of_node` those of single
    nodes, which win over all (a listener of one's own, for instance). With `security` clients
    must say who they are, and may do what rules allow; without, everybody may do everything.
    """

    nodes: int = 1
    heap_mb: int = 512
    data_dir: Path | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    of_node: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    security: Security | None = None
    start_timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise ValueError("a cluster has at least one node")


async def prefetch(progress: Progress | None = None) -> Java:
    """Fetch the jars that are missing and ready the Java that runs them. Raises EmbeddedKafkaError."""
    cache = await asyncio.to_thread(JarCache.of_this_user)
    java = Java.for_jars(cache)
    if await cache.fill(progress):
        java.shared.forget_kafka()
    await java.make_base(cache)
    return java


def free_ports(count: int, among: Sequence[int] = _PORTS) -> Sequence[int]:
    """Ports nobody listens on now. Another process may still be faster to take one."""
    candidates = secrets.SystemRandom().sample(among, len(among))
    ports = list(islice((port for port in candidates if _can_bind(port)), count))
    if len(ports) < count:
        raise OSError(f"{HOST} has no {count} free ports among {among}")
    return ports


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java does
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


async def transactions_work(bootstrap_servers: str, security: Security | None = None) -> None:
    """Return once as many brokers as given are registered and a transactional id can be initialised."""
    settings = {"bootstrap.servers": bootstrap_servers, **(as_super_user(security) if security else {})}
    patience_s = 0.1
    while not await asyncio.to_thread(_transaction_works, settings, patience_s):
        await asyncio.sleep(_POLL_S)
        patience_s = min(patience_s * 1.5, 2.0)


def as_super_user(security: Security) -> dict[str, str]:
    """What a client of confluent-kafka is told beside `servers("SSL")` to be the super user."""
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": str(security.authority),
        "ssl.certificate.location": str(security.certificate),
        "ssl.key.location": str(security.certificate),
    }


def _transaction_works(settings: Mapping[str, str], patience_s: float) -> bool:
    # New each time: a producer that found no coordinator yet looks again only after half a second.
    producer = Producer({**settings, "transactional.id": "holdshort-is-it-ready", "log_level": 0})
    expected = len(settings["bootstrap.servers"].split(","))
    try:
        if len(producer.list_topics(timeout=patience_s).brokers) < expected:
            return False
        producer.init_transactions(patience_s)
    except KafkaException as error:
        if error.args[0].fatal():
            raise
        return False
    return True


async def _listening(address: str) -> None:
    host, _, port = address.rpartition(":")
    while True:
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            await asyncio.sleep(_POLL_S)
        else:
            writer.close()
            return


class EmbeddedKafka:
    """A cluster to use as an async context manager: node 1 is controller and broker, the others brokers.

    None of it outlives this process; on Linux not even when this process is killed.
    """

    def __init__(
        self,
        settings: BrokerSettings | None = None,
        *,
        progress: Progress | None = None,
        ready: Ready | None = None,
        ports: PortChoice = free_ports,
    ) -> None:
        self._settings = settings or BrokerSettings()
        self._progress = progress
        self._ready = ready or partial(transactions_work, security=self._settings.security)
        self._choose_ports = ports
        self._nodes: dict[int, Node] = {}
        self._temporary: Path | None = None
        self._java: Java | None = None
        self._cluster: Cluster | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def bootstrap_servers(self) -> str:
        return self._started()[1].bootstrap_servers

    def servers(self, protocol: str) -> str:
        """The bootstrap servers of one protocol of a secured cluster: `SSL`, or one of `protocols`."""
        return self._started()[1].servers(protocol)

    @property
    def pids(self) -> dict[int, int]:
        """The process id of every node that runs."""
        return {
            node.id: node.process.pid
            for node in self._nodes.values()
            if node.process is not None and node.process.running
        }

    async def start(self) -> None:
        """Return when transactions work. Raises EmbeddedKafkaError, with everything stopped again."""
        if self._nodes:
            raise RuntimeError("this Kafka has been started already")
        try:
            self._nodes = await asyncio.to_thread(self._open_directory)
            self._java = await prefetch(self._progress)
            await self._boot(self._java)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop all nodes and, unless `data_dir` was given, remove what they wrote. Idempotent."""
        try:
            await self._stop_nodes()
            if self._java is not None and CONTROLLER_NODE in self._nodes:
                await self._nodes[CONTROLLER_NODE].keep_recorded_classes(self._java)
        finally:
            self._nodes, self._cluster = {}, None
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)
                self._temporary = None

    async def kill_node(self, node: int) -> None:
        """SIGKILL; returns when the process is gone.

        The cluster notices after `broker.session.timeout.ms`; without node 1 it has no controller.
        """
        await self._nodes[node].kill()

    async def start_node(self, node: int) -> None:
        """Start a node that has ended, on its port and its records. Raises ReadLogError."""
        java, cluster = self._started()
        if self._nodes[node].running:
            raise RuntimeError(f"node {node} runs")
        self._nodes[node].launch(java, self._settings.heap_mb)
        try:
            await self._until_ready([self._nodes[node]], cluster)
        except BaseException:
            await self._nodes[node].kill()
            raise

    def _started(self) -> tuple[Java, Cluster]:
        if self._java is None or self._cluster is None:
            raise RuntimeError("not started: use it as `async with EmbeddedKafka() as kafka`")
        return self._java, self._cluster

    def _open_directory(self) -> dict[int, Node]:
        home = self._settings.data_dir
        if home is None:
            home = self._temporary = Path(tempfile.mkdtemp(prefix="holdshort-kafka-"))
        names = {node: f"node-{node}" for node in range(1, self._settings.nodes + 1)}
        there = {path.name for path in home.glob("node-*")}
        if there and there != set(names.values()):
            raise UseAnotherDirectoryError(
                f"{home} holds a cluster of {len(there)} nodes, not of {len(names)}: "
                "give another directory, or remove it."
            )
        return {node: Node(node, home.absolute() / name) for node, name in names.items()}

    async def _boot(self, java: Java) -> None:
        nodes = list(self._nodes.values())
        for tries_left in reversed(range(_START_TRIES)):
            self._cluster = await asyncio.to_thread(self._lay_out)
            await self._format(java)
            for node in nodes:
                node.launch(java, self._settings.heap_mb)
            try:
                await self._until_ready(nodes, self._cluster)
                break
            except ReadLogError:
                if not tries_left or not await asyncio.to_thread(self._port_was_taken):
                    raise
                await self._stop_nodes()

    def _lay_out(self) -> Cluster:
        """Choose ports and write every node's files."""
        security, extra = self._settings.security, self._settings.properties
        protocols = (*security.protocols, "SSL") if security else ("PLAINTEXT",)
        ports = self._choose_ports(len(self._nodes) * len(protocols) + 1)
        cluster = Cluster.on_ports(tuple(ports), protocols)
        for node in self._nodes.values():
            lines = {**extra, **self._settings.of_node.get(node.id, {})}
            node.write_files(server_properties(cluster, node.id, str(node.records), lines, security))
        return cluster

    async def _format(self, java: Java) -> None:
        """Prepare the storage of nodes that have none, for the cluster that the others belong to."""
        ids = {node: node.cluster_id() for node in self._nodes.values()}
        # 22 characters of base64; a first "-" would be taken for an option.
        cluster_id = next(filter(None, ids.values()), "h" + secrets.token_urlsafe(16)[1:])
        new = [node for node, known in ids.items() if known is None]
        formatted = (node.format(java, cluster_id) for node in new)
        for outcome in await asyncio.gather(*formatted, return_exceptions=True):
            if outcome is not None:
                raise outcome

    async def _until_ready(self, nodes: Sequence[Node], cluster: Cluster) -> None:
        """Wait until `nodes` can be used. Raises ReadLogError when one ends, or when time is up."""
        ready = asyncio.create_task(self._answer([cluster.inner(node.id).address for node in nodes]))
        ends = {asyncio.create_task(node.ended()): node for node in nodes}
        limit = self._settings.start_timeout_s
        try:
            await asyncio.wait([ready, *ends], timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            for end, node in ends.items():
                if end.done():
                    raise ReadLogError(node, f"ended with status {end.result()}")
            if not ready.done():
                raise ReadLogError(nodes[0], f"was not ready within {limit:g} s")
            await ready
        finally:
            for task in (ready, *ends):
                task.cancel()
            await asyncio.gather(ready, *ends, return_exceptions=True)

    async def _answer(self, addresses: Sequence[str]) -> None:
        for address in addresses:
            await _listening(address)
        await self._ready(",".join(addresses))

    def _port_was_taken(self) -> bool:
        return any("Address already in use" in node.log_text() for node in self._nodes.values())

    async def _stop_nodes(self) -> None:
        """Brokers first: without the controller they would wait for it."""
        brokers = [node for node in self._nodes.values() if node.id != CONTROLLER_NODE]
        controllers = [node for node in self._nodes.values() if node.id == CONTROLLER_NODE]
        try:
            await asyncio.gather(*(node.stop() for node in brokers))
        finally:
            await asyncio.gather(*(node.stop() for node in controllers))
