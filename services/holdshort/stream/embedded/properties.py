"""The server.properties of each node of a small cluster on 127.0.0.1. PURE."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """Names and rights for clients: TLS, SCRAM and the authorizer. Both files are PEM.

    `certificate` holds the key (PKCS#8) and the certificate of the nodes for HOST, signed by `authority`, who
    also signs those of clients. `super_user` is its common name: whoever has it may do everything, others
    only what rules allow. It is for the nodes and for setting up; there are no users before it makes some.
    `protocols` are those of the listeners beside `SSL`, which asks for a certificate; clients use the first.
    """

    certificate: Path
    authority: Path
    super_user: str
    protocols: tuple[str, ...] = ("SASL_SSL",)


@dataclass(frozen=True, slots=True)
class Listener:
    """An address of a node."""

    name: str
    port: int
    protocol: str

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def endpoint(self) -> str:
        return f"{self.name}://{self.address}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Who listens where: the listeners of each node from 1 up; node 1 is also the controller.

    Clients use the first, nodes the last among each other.
    """

    listeners: Mapping[int, tuple[Listener, ...]]
    controller: Listener

    @classmethod
    def on_ports(cls, ports: tuple[int, ...], protocols: tuple[str, ...] = ("PLAINTEXT",)) -> "Cluster":
        """Nodes with one listener for each protocol; the last port is the controller's."""
        *others, last = ports
        each = len(protocols)
        starts = range(0, len(others), each)
        listeners = {
            node: tuple(
                Listener(protocol, port, protocol)
                for protocol, port in zip(protocols, others[start : start + each], strict=True)
            )
            for node, start in enumerate(starts, 1)
        }
        return cls(listeners, Listener("CONTROLLER", last, protocols[-1]))

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(first.address for first, *_ in self.listeners.values())

    def servers(self, protocol: str) -> str:
        """The bootstrap servers of one protocol."""
        known = (one for listeners in self.listeners.values() for one in listeners)
        return ",".join(one.address for one in known if one.protocol == protocol)

    def inner(self, node: int) -> Listener:
        """Where other nodes talk to this one."""
        return self.listeners[node][-1]


def server_properties(
    cluster: Cluster,
    node: int,
    log_dir: str,
    extra: Mapping[str, str],
    security: Security | None = None,
) -> dict[str, str]:
    """Everything node `node` is told; `extra` wins over all of it."""
    return (
        dict(_TUNING)
        | _replication(len(cluster.listeners))
        | _identity(cluster, node)
        | (_secured(security) if security else {})
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
    own, controller = cluster.listeners[node], cluster.controller
    leads = node == CONTROLLER_NODE
    return {
        "node.id": str(node),
        "process.roles": "broker,controller" if leads else "broker",
        "listeners": ",".join(listener.endpoint for listener in ((*own, controller) if leads else own)),
        "advertised.listeners": ",".join(listener.endpoint for listener in own),
        "listener.security.protocol.map": ",".join(
            f"{listener.name}:{listener.protocol}" for listener in (*own, controller)
        ),
        "inter.broker.listener.name": cluster.inner(node).name,
        "controller.listener.names": controller.name,
        # Static voters: a dynamic quorum keeps the controller's address in its log, and a kept directory
        # would insist on the ports of its first start.
        "controller.quorum.voters": f"{CONTROLLER_NODE}@{controller.address}",
    }


def _secured(security: Security) -> dict[str, str]:
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    mechanisms = ("SCRAM-SHA-512", "SCRAM-SHA-256")
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{security.super_user}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(security.certificate.absolute()),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(security.authority.absolute()),
        "listener.name.ssl.ssl.client.auth": "required",
        "listener.name.controller.ssl.client.auth": "required",
        # A certificate's common name is who it is, as the user name is with SCRAM.
        "ssl.principal.mapping.rules": r"RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        "sasl.enabled.mechanisms": ",".join(mechanisms),
        **{
            f"listener.name.{protocol.lower()}.{mechanism.lower()}.sasl.jaas.config": scram
            for protocol in security.protocols
            if protocol.startswith("SASL")
            for mechanism in mechanisms
        },
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
