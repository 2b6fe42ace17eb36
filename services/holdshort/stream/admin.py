"""Topics as the cluster has them: described, planned against the table, made. Never deleted, never shrunk.

On confluent-kafka: aiokafka's admin client knows neither topic ids nor half of the configuration calls. Its
calls block, so each runs in a thread.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, Literal

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from holdshort.stream.connection import Connection
from holdshort.stream.errors import Fatal, Retry
from holdshort.stream.reach import reach
from holdshort.stream.records import TopicPartition
from holdshort.stream.topics import Topic

TIMEOUT_S = 10.0
_NOBODY_THERE = (
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._RESOLVE,
    KafkaError._ALL_BROKERS_DOWN,
)
NO_TOPIC = "UNKNOWN_TOPIC_OR_PART"
NO_RIGHT = "TOPIC_AUTHORIZATION_FAILED"


@dataclass(frozen=True, slots=True)
class Described:
    """One topic of the cluster."""

    id: str
    partitions: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Seen:
    """One topic as this principal may see it; `trouble` is Kafka's name for why not, if it may not.

    `operations` are those that Kafka would let it do, as in the table of rights (`Read`, `Write`, ...).
    """

    partitions: int = 0
    operations: frozenset[str] = frozenset()
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """What `topics apply` would do about one topic, or why it cannot."""

    topic: str
    action: Literal["create", "configure", "refuse"]
    detail: str
    config: Mapping[str, str]
    partitions: int = 0


class Admin:
    """The administrator's side of one cluster and prefix; every name in and out is without the prefix."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        """Raises Fatal for a connection that confluent-kafka cannot even try."""
        self._prefix = prefix
        self._connection = connection
        self._trouble = ""
        quiet: dict[str, Any] = {"socket.timeout.ms": 10_000, "log_level": 0, "error_cb": self._note}
        try:
            self._client = AdminClient({**connection.for_librdkafka(), **quiet})
        except KafkaException as error:
            raise Fatal(f"Kafka cannot be used: {error.args[0].str()}") from error

    def _note(self, error: KafkaError) -> None:
        """What the client met last says more than the time-out that it leads to."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._trouble = error.str()

    def _said(self, error: KafkaException) -> str:
        self._client.poll(0)
        said = f"{error.args[0].str()}{': ' if self._trouble else ''}{self._trouble}"
        if error.args[0].code() in _NOBODY_THERE:
            return f"Kafka does not answer at {self._connection.bootstrap_servers} ({said})"
        if error.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR:
            return f"{said} (HOLDSHORT_REPLICATION and HOLDSHORT_MIN_ISR; 1 and 1 for a single broker)"
        return said

    async def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """The ids of those topics that are there. Raises Retry."""
        try:
            found = await self._describe(topics)
        except KafkaException as error:
            raise Retry(f"topics could not be described: {self._said(error)}") from error
        return {name: str(description.topic_id) for name, description in found.items()}

    async def describe(self, topics: Collection[str]) -> dict[str, Described]:
        """Those topics that are there, with their configuration. Raises Fatal."""
        await reach(self._connection)
        try:
            found = await self._describe(topics)
            configs = await self._configs(found)
        except KafkaException as error:
            raise Fatal(f"topics could not be described: {self._said(error)}") from error
        return {
            name: Described(str(one.topic_id), len(one.partitions), configs[name])
            for name, one in found.items()
        }

    async def look(self, topics: Collection[str]) -> dict[str, Seen]:
        """Each of these topics, absent and forbidden ones too. Raises Fatal."""
        await reach(self._connection)
        names = {self._prefix + topic: topic for topic in topics}
        futures = self._client.describe_topics(
            TopicCollection(list(names)), include_authorized_operations=True, request_timeout=TIMEOUT_S
        )
        return {names[name]: await self._seen(future) for name, future in futures.items()}

    async def _seen(self, future: "Future[Any]") -> Seen:
        try:
            found = await _result(future)
        except KafkaException as error:
            trouble = str(error.args[0].name())
            if trouble not in (NO_TOPIC, NO_RIGHT):
                raise Fatal(f"topics could not be looked at: {self._said(error)}") from error
            return Seen(trouble=trouble)
        operations = found.authorized_operations or ()
        words = ("".join(word.capitalize() for word in one.name.split("_")) for one in operations)
        return Seen(len(found.partitions), frozenset(words))

    async def newest(self, where: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The latest timestamp (ms) in each of these partitions that holds a record. Raises Fatal."""
        names = {KafkaPartition(self._prefix + one.topic, one.partition): one for one in where}
        spec: OffsetSpec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]  # says so nowhere
        wanted = dict.fromkeys(names, spec)
        try:
            found = {
                names[one]: await _result(future)
                for one, future in self._client.list_offsets(wanted, request_timeout=TIMEOUT_S).items()
            }
        except KafkaException as error:
            raise Fatal(f"timestamps could not be asked for: {self._said(error)}") from error
        return {one: result.timestamp for one, result in found.items() if result.timestamp > 0}

    async def _describe(self, topics: Collection[str]) -> dict[str, Any]:
        if not topics:
            return {}
        names = {self._prefix + topic: topic for topic in topics}
        futures = self._client.describe_topics(TopicCollection(list(names)), request_timeout=TIMEOUT_S)
        found = {}
        for name, future in futures.items():
            try:
                found[names[name]] = await _result(future)
            except KafkaException as error:
                if error.args[0].name() != NO_TOPIC:
                    raise
        return found

    async def _configs(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(ResourceType.TOPIC, self._prefix + topic) for topic in topics]
        if not resources:
            return {}
        futures = self._client.describe_configs(resources, request_timeout=TIMEOUT_S)
        configs = {}
        for resource, future in futures.items():
            entries = await _result(future)
            name = resource.name.removeprefix(self._prefix)
            configs[name] = {key: entry.value or "" for key, entry in entries.items()}
        return configs

    async def plan(self, wanted: Sequence[Topic], partitions: int, lanes: int) -> list[Difference]:
        """What differs between the table and the cluster. Raises Fatal."""
        found = await self.describe([topic.name for topic in wanted])
        differences = []
        for topic in wanted:
            count = partitions if topic.partitions == "threads" else lanes
            differences += _compare(topic, count, found.get(topic.name))
        return differences

    async def apply(self, differences: Sequence[Difference], *, replication: int, min_isr: int) -> None:
        """Carry a plan out; what it refuses must have been dealt with. Raises Fatal."""
        try:
            await self._create(differences, replication, min_isr)
            await self._configure(differences)
        except KafkaException as error:
            raise Fatal(f"topics could not be applied: {self._said(error)}") from error

    async def _create(self, differences: Sequence[Difference], replication: int, min_isr: int) -> None:
        new = [
            NewTopic(
                self._prefix + one.topic,
                num_partitions=one.partitions,
                replication_factor=replication,
                config={**one.config, "min.insync.replicas": str(min_isr)},
            )
            for one in differences
            if one.action == "create"
        ]
        if new:
            for future in self._client.create_topics(new, operation_timeout=TIMEOUT_S).values():
                try:
                    await _result(future)
                except KafkaException as error:
                    if error.args[0].name() != "TOPIC_ALREADY_EXISTS":  # somebody else was quicker
                        raise

    async def _configure(self, differences: Sequence[Difference]) -> None:
        resources = [
            ConfigResource(
                ResourceType.TOPIC,
                self._prefix + one.topic,
                incremental_configs=[
                    ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                    for name, value in one.config.items()
                ],
            )
            for one in differences
            if one.action == "configure"
        ]
        if resources:
            for future in self._client.incremental_alter_configs(resources).values():
                await _result(future)


def _compare(topic: Topic, partitions: int, found: Described | None) -> list[Difference]:
    config = topic.config()
    if found is None:
        detail = f"{partitions} partitions, {config['cleanup.policy']}"
        return [Difference(topic.name, "create", detail, config, partitions)]
    if found.partitions != partitions:
        detail = f"has {found.partitions} partitions, must have {partitions}; keys would move"
        return [Difference(topic.name, "refuse", detail, {})]
    wrong = {
        name: value for name, value in config.items() if not _is_met(name, value, found.config.get(name))
    }
    if not wrong:
        return []
    detail = ", ".join(f"{name}: {found.config.get(name)} -> {value}" for name, value in wrong.items())
    return [Difference(topic.name, "configure", detail, wrong)]


KEPT_FOR: Final = frozenset({"retention.ms", "delete.retention.ms"})
FOREVER: Final = -1


def _is_met(name: str, wanted: str, there: str | None) -> bool:
    """Whoever keeps records for longer has a reason: a shorter time would delete them."""
    if there is not None and name in KEPT_FOR:
        return int(there) == FOREVER or int(there) >= int(wanted)
    return there == wanted


VITAL = ("cleanup.policy", "message.timestamp.type")


def unfit(differences: Sequence[Difference]) -> list[str]:
    """Why services must not start on these topics: what would lose state or falsify time."""
    reasons = []
    for one in differences:
        if one.action == "create":
            reasons.append(f"{one.topic} does not exist")
        elif one.action == "refuse":
            reasons.append(f"{one.topic} {one.detail}")
        elif vital := [name for name in VITAL if name in one.config]:
            reasons.append(f"{one.topic} has another {' and '.join(vital)}")
    return reasons


async def _result(future: "Future[Any]") -> Any:
    return await asyncio.wrap_future(future)
