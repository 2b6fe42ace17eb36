"""Kafka through FastStream, for an agent service or a team's service: clients with the settings that count.

FastStream knows how to build, secure, start and stop the clients; what it does not offer (an offset with
metadata, who is in the group, publishing without a correlation id) is asked of the clients it built.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from faststream import AckPolicy
from faststream.kafka import KafkaBroker, KafkaPublishCommand
from faststream.response.publish_type import PublishType
from faststream.security import BaseSecurity, SASLOAuthBearer, SASLPlaintext, SASLScram256, SASLScram512

from holdshort.sdk.ledger import Ledger
from holdshort.sdk.runs import Run
from holdshort.settings import KafkaSettings
from holdshort.stream.connection import connection_of, warn_if_overheard
from holdshort.stream.errors import Fatal
from holdshort.stream.reach import reach
from holdshort.stream.records import Record

ASK_DEADLINE_S: Final = 30.0
COMMIT_TIMEOUT_S: Final = 10.0
READ_DEADLINE_S: Final = 60.0
STOP_DEADLINE_S: Final = 5.0
PAUSE_S: Final = 0.2
NEVER_MS: Final = 2**31 - 1
MAX_REQUEST: Final = 2 * 1024 * 1024
BATCH_BYTES: Final = 128 * 1024
FETCH_BYTES: Final = 8 * 1024 * 1024

T = TypeVar("T")

_SASL: Final = {"PLAIN": SASLPlaintext, "SCRAM-SHA-256": SASLScram256, "SCRAM-SHA-512": SASLScram512}
_log = logging.getLogger("holdshort.sdk.faststream")
_log.setLevel(logging.ERROR)  # it warns of what is meant: that no topics are made


def broker_of(kafka: KafkaSettings, client_id: str, *, request_timeout_ms: int = 40_000) -> KafkaBroker:
    """A FastStream broker: idempotent, acknowledged by all replicas, making no topics, adding no types."""
    known = connection_of(kafka, client_id).for_aiokafka()
    return KafkaBroker(
        [server.strip() for server in kafka.bootstrap_servers.split(",")],  # FastStream does not split
        client_id=client_id,
        request_timeout_ms=request_timeout_ms,
        security=_security(kafka),
        sasl_oauth_token_provider=known.get("sasl_oauth_token_provider"),
        enable_idempotence=True,
        acks="all",
        max_batch_size=BATCH_BYTES,
        max_request_size=MAX_REQUEST,
        allow_auto_create_topics=False,
        apply_types=False,
        logger=_log,
    )


def _security(kafka: KafkaSettings) -> BaseSecurity | None:
    protocol = kafka.security_protocol
    context = connection_of(kafka, "").for_aiokafka().get("ssl_context")
    if "SASL" not in protocol:
        return BaseSecurity(ssl_context=context, use_ssl=True) if protocol == "SSL" else None
    if kafka.sasl_mechanism == "OAUTHBEARER":
        return SASLOAuthBearer(ssl_context=context, use_ssl="SSL" in protocol)
    kind, secret = _SASL[kafka.sasl_mechanism], kafka.password() or ""
    return kind(kafka.sasl_username or "", secret, ssl_context=context, use_ssl="SSL" in protocol)


async def start(broker: KafkaBroker, kafka: KafkaSettings, topics: Collection[str]) -> None:
    """Connect, look whether the topics are there, all with as many partitions, and start. Raises Fatal."""
    connection = connection_of(kafka, "holdshort-sdk")
    warn_if_overheard(connection)
    await reach(connection)
    try:
        await broker.connect()
        await _check(broker, topics)
        await broker.start()
    except Fatal:
        raise
    except Exception as error:
        raise Fatal(f"Kafka cannot be used: {str(error) or type(error).__name__}") from error


async def _check(broker: KafkaBroker, topics: Collection[str]) -> None:
    """By the list of all topics: to ask for one by its name could make it."""
    described = await broker.config.admin_client.describe_topics()
    known = {one["topic"]: len(one["partitions"]) for one in described}
    if missing := [topic for topic in topics if topic not in known]:
        raise Fatal(f"topics are missing: {', '.join(missing)} (holdshort topics apply)")
    if len({known[topic] for topic in topics}) > 1:
        raise Fatal(f"topics differ in their partitions: {', '.join(topics)} (holdshort topics apply)")


async def stop(broker: KafkaBroker) -> None:
    """Leave the group and close; a cluster that does not answer is not waited for, as aiokafka would."""
    with suppress(Exception):
        async with asyncio.timeout(STOP_DEADLINE_S):
            await broker.stop()


class Rebalanced(Protocol):
    """Whoever is told what of a topic is ours."""

    async def revoked(self) -> None: ...

    def assigned(self, partitions: Collection[int]) -> None: ...


class AgentWire:
    """`runs.<agent>` and `agent-events.<agent>` for one worker: intake.RunLog, and publishing.

    `worker` becomes part of the client id, which is how the members of a group are told apart.
    """

    def __init__(
        self, kafka: KafkaSettings, prefix: str, agent: str, worker: str, session_timeout: float
    ) -> None:
        self._kafka = kafka
        self._group = f"{prefix}agent-{agent}"
        self._client = f"holdshort-agent-{agent}-"
        self._runs = f"{prefix}runs.{agent}"
        self._events = f"{prefix}agent-events.{agent}"
        self._session_ms = int(session_timeout * 1000)
        self._broker = broker_of(kafka, self._client + worker, request_timeout_ms=self._session_ms + 10_000)
        self._rebalanced: Rebalanced | None = None
        self._subscriber: Any = self._broker.subscriber(
            self._runs,
            group_id=self._group,
            auto_offset_reset="earliest",  # positions are always sought; this is for what has aged out
            isolation_level="read_committed",
            ack_policy=AckPolicy.MANUAL,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=self._session_ms,
            heartbeat_interval_ms=min(3000, self._session_ms // 4),
            max_poll_interval_ms=NEVER_MS,  # how long a run takes is no sign of death
            fetch_max_bytes=FETCH_BYTES,
            no_reply=True,
            listener=self,  # FastStream calls the two methods, whatever the class
        )

    # -- life ----------------------------------------------------------------------------------------------

    async def start(self, rebalanced: Rebalanced) -> None:
        """Join the group. Raises Fatal."""
        self._rebalanced = rebalanced
        await start(self._broker, self._kafka, [self._runs, self._events])

    async def stop(self) -> None:
        """Leave the group and close. Never raises."""
        await stop(self._broker)

    async def on_partitions_revoked(self, _: Collection[Any]) -> None:
        """The eager protocol takes everything away at every rebalance."""
        assert self._rebalanced is not None
        await self._rebalanced.revoked()

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        """Stop the flow before anything can come: the client would ask for offsets by itself, and take the
        answer of a coordinator that is still loading for none at all.

        Nothing may be awaited before the flow is stopped. (Async, or FastStream would call it in a thread.)
        """
        assert self._rebalanced is not None
        for one in assigned:
            self._consumer.pause(one)
            self._consumer.seek(one, 0)
        self._rebalanced.assigned([one.partition for one in assigned])

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def _consumer(self) -> Any:
        return self._subscriber.consumer

    def _assigned(self) -> dict[int, Any]:
        """What is assigned now, as the client's own tuples, by partition number."""
        return {one.partition: one for one in self._consumer.assignment()}

    async def next(self) -> Record:
        loop = asyncio.get_running_loop()
        failing_since: float | None = None
        while True:
            try:
                raw = await self._consumer.getone()
            except Exception as error:
                failing_since = failing_since or loop.time()
                if loop.time() - failing_since > READ_DEADLINE_S:
                    raise Fatal(f"runs cannot be read: {type(error).__name__}") from error
                await asyncio.sleep(PAUSE_S)
                continue
            return Record(
                self._runs, raw.partition, raw.offset, raw.key, raw.value, raw.headers, raw.timestamp
            )

    def flow(self, positions: Mapping[int, int]) -> None:
        for partition, where in self._assigned().items():
            if partition in positions:
                self._consumer.seek(where, positions[partition])
                self._consumer.resume(where)

    # -- the group -----------------------------------------------------------------------------------------

    async def ledgers(self, partitions: Collection[int]) -> Mapping[int, Ledger]:
        """An answer that leaves a partition out is none: the coordinator was not ready."""
        wanted = [where for partition, where in self._assigned().items() if partition in partitions]
        if not wanted:
            return {}
        admin = self._broker.config.admin_client

        async def ask() -> dict[Any, Any]:
            told: dict[Any, Any] = await admin.list_consumer_group_offsets(self._group, partitions=wanted)
            return {where: told[where] for where in wanted}

        committed = await _answer_of(ask, "what has been committed")
        beginnings = await self._consumer.beginning_offsets(wanted)
        return {
            where.partition: Ledger.decode(told.offset, told.metadata)
            if told.offset >= 0
            else Ledger(beginnings[where])
            for where, told in committed.items()
        }

    async def workers(self) -> Collection[str]:
        admin = self._broker.config.admin_client

        async def ask() -> list[str]:
            [response] = await admin.describe_consumer_groups([self._group])
            [group] = response.to_object()["groups"]
            if group["error_code"]:
                raise LookupError(group["error_code"])
            return [member["client_id"] for member in group["members"]]

        return {client.removeprefix(self._client) for client in await _answer_of(ask, "who is in the group")}

    async def commit(self, ledgers: Mapping[int, tuple[int, str]]) -> None:
        assigned = self._assigned()
        async with asyncio.timeout(COMMIT_TIMEOUT_S):
            await self._consumer.commit({assigned[p]: told for p, told in ledgers.items()})

    # -- publishing ----------------------------------------------------------------------------------------

    def sender(self, run: Run) -> Callable[[bytes], Awaitable["asyncio.Future[Any]"]]:
        """Publishes the events of one run, to the partition number that it came from.

        Not broker.publish: it would add a correlation id to every event, which the gate passes on to clients.
        """
        producer, headers, key = self._broker.config.producer, run.headers(), run.thread.encode()

        async def send(value: bytes) -> "asyncio.Future[Any]":
            command = KafkaPublishCommand(
                value,
                topic=self._events,
                key=key,
                partition=run.partition,
                headers=headers,
                no_confirm=True,
                _publish_type=PublishType.PUBLISH,
            )
            confirmation: asyncio.Future[Any] = await producer.publish(command)
            return confirmation

        return send


async def _answer_of(ask: Callable[[], Awaitable[T]], what: str) -> T:
    """The answer to a question to the cluster, asked until there is one. Raises Fatal."""
    try:
        async with asyncio.timeout(ASK_DEADLINE_S):
            while True:
                try:
                    return await ask()
                except Exception as error:  # whatever it is, there is no answer yet
                    _log.debug("no answer: %s", type(error).__name__)
                await asyncio.sleep(PAUSE_S)
    except TimeoutError as error:
        raise Fatal(f"the cluster does not say {what}") from error
