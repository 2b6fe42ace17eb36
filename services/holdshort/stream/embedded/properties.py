"""The server.properties of each node of a small cluster on 127.0.0.1. PURE."""

from collections.abc import Mapping
from dataclasses import dataclass

HOST = "127.0.0.1"
CONTROLLER_NODE = 1

_TUNING: Mapping[str, str] = {
    # Nothing appears or is lost by accident.
    "auto.create.topics.enable": "false",
    "unclean.leader.election.enable": "false",
    # A whole thread's state is one record.
    "message.max.bytes": str(4 * 1024 * 1024),
    # Transactions end soon after their owner.
    "transaction.max.timeout.ms": "60000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transaction.state.log.num.partitions": "4",
    # Groups form at once, and tests may use short sessions.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    # Compaction within a test. The cleaner's buffer is on the heap: Kafka's 128 MiB is half of all it uses.
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    # A killed node is fenced in 4 s, not 9; it cannot register again before that.
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "4000",
    "num.network.threads": "2",
    "num.io.threads": "4",
}


@dataclass(frozen=True, slots=True)
class Listener:
    """An address of a node. SASL or TLS would be another listener, with its settings as extra properties."""

    name: str
    port: int
    protocol: str = "PLAINTEXT"

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def endpoint(self) -> str:
        return f"{self.name}://{self.address}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Who listens where: a client listener for each node from 1 up; node 1 is also the controller."""

    clients: Mapping[int, Listener]
    controller: Listener

    @classmethod
    def on_ports(cls, ports: tuple[int, ...]) -> "Cluster":
        """A cluster of `len(ports) - 1` nodes; the last port is the controller's."""
        clients = {node: Listener("PLAINTEXT", port) for node, port in enumerate(ports[:-1], 1)}
        return cls(clients, Listener("CONTROLLER", ports[-1]))

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(listener.address for listener in self.clients.values())


def server_properties(cluster: Cluster, node: int, log_dir: str, extra: Mapping[str, str]) -> dict[str, str]:
    """Everything node `node` is told; `extra` wins over all of it."""
    return (
        dict(_TUNING)
        | _replication(len(cluster.clients))
        | _identity(cluster, node)
        | {"log.dirs": log_dir}
        | dict(extra)
    )


def _replication(nodes: int) -> dict[str, str]:
    copies, in_sync = str(min(nodes, 3)), str(max(min(nodes, 3) - 1, 1))
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def _identity(cluster: Cluster, node: int) -> dict[str, str]:
    clients, controller = cluster.clients[node], cluster.controller
    leads = node == CONTROLLER_NODE
    listeners = [clients, controller] if leads else [clients]
    return {
        "node.id": str(node),
        "process.roles": "broker,controller" if leads else "broker",
        "listeners": ",".join(listener.endpoint for listener in listeners),
        "advertised.listeners": clients.endpoint,
        "listener.security.protocol.map": ",".join(
            f"{listener.name}:{listener.protocol}" for listener in (clients, controller)
        ),
        "inter.broker.listener.name": clients.name,
        "controller.listener.names": controller.name,
        # Static voters: a dynamic quorum keeps the controller's address in its log, and a kept directory
        # would insist on the ports of its first start.
        "controller.quorum.voters": f"{CONTROLLER_NODE}@{controller.address}",
    }


def render(properties: Mapping[str, str]) -> str:
    """The text of a Java properties file, in ASCII."""
    return "".join(f"{_escape(key, ' :=#!')}={_escape(value, '#!')}\n" for key, value in properties.items())


def _escape(text: str, special: str) -> str:
    escaped = "".join(_escape_one(char, special) for char in text)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escape_one(char: str, special: str) -> str:
    if char == "\\" or char in special:
        return f"\\{char}"
    if " " <= char <= "~":
        return char
    utf16 = char.encode("utf-16-be").hex()
    return "".join(f"\\u{utf16[at : at + 4]}" for at in range(0, len(utf16), 4))
