"""What a principal of a secured Kafka really gets away with: each operation is tried on each topic."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from aiokafka.conn import create_conn
from aiokafka.errors import NoError, TopicAuthorizationFailedError, for_code
from aiokafka.protocol.fetch import FetchRequest
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.security.secured import Site, bindings

from holdshort.stream.connection import connection_of

PATIENCE_S = 20.0
OPERATIONS = ("Read", "Write", "Describe", "DescribeConfigs", "AlterConfigs", "Create", "Alter", "Delete")
LET_THROUGH = (None, "TOPIC_ALREADY_EXISTS", "INVALID_PARTITIONS")  # what only those hear who may


def administered(admin: AdminClient, topics: Sequence[str]) -> dict[str, Mapping[Any, "Future[Any]"]]:
    """The administrator's operations on all topics at once. Nothing is changed, but for what is deleted."""
    stricter = [ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)]
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    altered = [ConfigResource(ResourceType.TOPIC, one, incremental_configs=stricter) for one in topics]
    new = [NewTopic(topic, 1, 1) for topic in topics]
    more = [NewPartitions(topic, 100) for topic in topics]
    return {
        "Describe": admin.describe_topics(TopicCollection(list(topics)), request_timeout=PATIENCE_S),
        "DescribeConfigs": admin.describe_configs(resources, request_timeout=PATIENCE_S),
        "AlterConfigs": admin.incremental_alter_configs(altered, validate_only=True),
        "Create": admin.create_topics(new, validate_only=True, operation_timeout=PATIENCE_S),
        "Alter": admin.create_partitions(more, validate_only=True, operation_timeout=PATIENCE_S),
        "Delete": admin.delete_topics(list(topics), operation_timeout=PATIENCE_S),
    }


async def attempted(site: Site, principal: str, topics: Sequence[str]) -> dict[str, set[str]]:
    """The operations that Kafka lets through, by topic (without the prefix)."""
    names = [site.prefix + topic for topic in topics]
    done: defaultdict[str, set[str]] = defaultdict(set)
    for name in await readable(site, principal, names):
        done[name].add("Read")
    for name in writable(site, principal, names):
        done[name].add("Write")
    admin = AdminClient(site.client(principal))  # kept: without it there are no answers
    for operation, futures in administered(admin, names).items():
        for subject, future in futures.items():
            refused = refusal(future)
            assert refused in LET_THROUGH or refused == "TOPIC_AUTHORIZATION_FAILED", refused
            if refused in LET_THROUGH:
                done[getattr(subject, "name", subject)].add(operation)
    return {topic: done[site.prefix + topic] for topic in topics}


def refusal(future: "Future[Any]") -> str | None:
    """The name of the error of what was asked for, if there is one."""
    try:
        future.result(PATIENCE_S)
    except KafkaException as error:
        return str(error.args[0].name())
    return None


async def readable(site: Site, principal: str, names: Iterable[str]) -> list[str]:
    """By one fetch request for all: a consumer would not send one for what it cannot describe."""
    known = connection_of(site.kafka(principal), "test").for_aiokafka()
    host, _, port = known.pop("bootstrap_servers").partition(":")
    connection: Any = await create_conn(host, int(port), **known)
    try:
        wanted = [(name, [(0, 0, 1024)]) for name in names]
        fetched = await connection.send(FetchRequest(100, 0, 1 << 20, 0, wanted))
    finally:
        await connection.close()
    verdicts = {topic: for_code(partition[1]) for topic, [partition] in fetched.topics}
    assert set(verdicts.values()) <= {NoError, TopicAuthorizationFailedError}, verdicts
    return [topic for topic, verdict in verdicts.items() if verdict is NoError]


def writable(site: Site, principal: str, names: Iterable[str]) -> list[str]:
    written: dict[str, KafkaError | None] = {}
    producer = Producer(site.client(principal))
    for name in names:
        producer.produce(
            name,
            b"{}",
            b"key",
            0,
            on_delivery=lambda error, record: written.update({str(record.topic()): error}),
        )
    assert producer.flush(PATIENCE_S) == 0
    assert {e.name() for e in written.values() if e is not None} <= {"TOPIC_AUTHORIZATION_FAILED"}
    return [name for name, error in written.items() if error is None]


def usable_groups(site: Site, principal: str, groups: Iterable[str]) -> set[str]:
    """Groups in whose name the principal may commit (and so join)."""
    admin = AdminClient(site.client(principal))
    place = TopicPartition(f"{site.prefix}inputs", 0, 0)
    tried = {
        group: admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [place])])[group]
        for group in groups
    }
    return {group for group, future in tried.items() if refusal(future) != "GROUP_AUTHORIZATION_FAILED"}


def usable_transactional_ids(site: Site, principal: str, ids: Iterable[str]) -> set[str]:
    return {one for one in ids if _transacts(site.client(principal), one)}


def _transacts(client: Mapping[str, Any], transactional_id: str) -> bool:
    try:
        Producer({**client, "transactional.id": transactional_id}).init_transactions(PATIENCE_S)
    except KafkaException as error:
        if error.args[0].name() != "TRANSACTIONAL_ID_AUTHORIZATION_FAILED":
            raise
        return False
    return True


def visible_rights(site: Site, principal: str) -> list[AclBinding]:
    """confluent-kafka shows nothing, instead of an error, to those who may not look."""
    whatever: Any = None  # which the annotations of confluent-kafka forget
    everything = AclBindingFilter(
        ResourceType.ANY,
        whatever,
        ResourcePatternType.ANY,
        whatever,
        whatever,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin = AdminClient(site.client(principal))
    rights: list[AclBinding] = admin.describe_acls(everything).result(PATIENCE_S)
    return rights


def cluster_refusals(site: Site, principal: str) -> set[str | None]:
    """The answers to attempts to give somebody rights, and another password."""
    admin = AdminClient(site.client(principal))
    password = UserScramCredentialUpsertion(
        site.user("gatekeeper"), ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"stolen"
    )
    tried = (
        *admin.create_acls(bindings(site.script)[:1]).values(),
        *admin.alter_user_scram_credentials([password]).values(),
    )
    return {refusal(future) for future in tried}
