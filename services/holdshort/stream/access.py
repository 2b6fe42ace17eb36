"""Who may do what in Kafka: the least rights and the quotas of every principal, from the table of topics.

A principal is called as in the table (`gatekeeper`, `agent-billing`, `team-payments`, `client`, ...), and its
group is called like it. In Kafka Describe comes with Read and Write, DescribeConfigs with AlterConfigs.
IdempotentWrite is needed by nobody: since Kafka 3.0 the right to write some topic is enough (KIP-679).
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from holdshort.stream.topics import GATEKEEPER, ROUTER, Topic, table

ADMIN: Final = "admin"  # whoever runs `holdshort topics apply`
SERVICES: Final = (GATEKEEPER, ROUTER)
MIB: Final = 1024 * 1024


class Resource(StrEnum):
    """What a right is about, in the words of Kafka's protocol."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"


class Operation(StrEnum):
    """What may be done with it, likewise."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"


class Right(NamedTuple):
    """Something that one principal may do; `prefixed` means every resource whose name begins so."""

    resource: Resource
    name: str
    operations: tuple[Operation, ...]
    prefixed: bool = False


class Quota(NamedTuple):
    """Bytes a second and broker, of all clients of the principal together."""

    produce: int
    consume: int


class Principal(NamedTuple):
    """One principal. The services have no quota: slowed down, they would hold up everybody."""

    name: str
    rights: tuple[Right, ...]
    quota: Quota | None


# They stop a flood and leave everyday traffic alone: the busiest worker of an agent publishes some 10 MiB/s.
_QUOTAS: Final = {
    "agent": Quota(100 * MIB, 100 * MIB),
    "client": Quota(50 * MIB, 200 * MIB),
    "team": Quota(2 * MIB, 20 * MIB),
}
_READERS: Final = Quota(1 * MIB, 20 * MIB)


def principals(agents: Sequence[str], teams: Sequence[str], prefix: str) -> list[Principal]:
    """Everybody in an installation; resources are named with the prefix."""
    topics = table(agents, teams)
    names = dict.fromkeys(name for topic in topics for name in topic.users)
    order = sorted(names, key=lambda name: (name not in SERVICES, name))
    return [*(_user(name, topics, prefix) for name in order), _admin(topics, prefix)]


def _user(name: str, topics: Iterable[Topic], prefix: str) -> Principal:
    rights = [
        Right(Resource.TOPIC, prefix + topic.name, tuple(_operations(name, topic)))
        for topic in topics
        if name in topic.users
    ]
    return Principal(name, (*rights, *_groups(name, prefix), *_transactions(name, prefix)), _quota(name))


def _operations(name: str, topic: Topic) -> Iterator[Operation]:
    if name in topic.readers:
        yield Operation.READ
    if name in topic.writers:
        yield Operation.WRITE
    if name in SERVICES:  # they look at start whether their topics would lose state
        yield Operation.DESCRIBE_CONFIGS


def _groups(name: str, prefix: str) -> Iterator[Right]:
    yield Right(Resource.GROUP, prefix + name, (Operation.READ,))
    if name not in SERVICES and not name.startswith("agent-"):
        # `team-payments.receipts`; a dot is in no team's name, so this is nobody else's.
        yield Right(Resource.GROUP, f"{prefix}{name}.", (Operation.READ,), prefixed=True)


def _transactions(name: str, prefix: str) -> Iterator[Right]:
    if name in SERVICES:
        yield Right(Resource.TRANSACTIONAL_ID, f"{prefix}{name}-", (Operation.WRITE,), prefixed=True)


def _quota(name: str) -> Quota | None:
    kind = name.partition("-")[0]
    return None if name in SERVICES else _QUOTAS.get(kind, _READERS)


def _admin(topics: Iterable[Topic], prefix: str) -> Principal:
    operations = (Operation.CREATE, Operation.DESCRIBE, Operation.ALTER_CONFIGS)
    return Principal(
        ADMIN, tuple(Right(Resource.TOPIC, prefix + one.name, operations) for one in topics), None
    )
