"""What a cluster says of itself, and whether a transaction works: questions that only a diagnosis asks.

aiokafka speaks ApiVersions up to 2; the features of a cluster came with 3 (KIP-584), so it is said here.
"""

import asyncio
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaError
from aiokafka.protocol.api import RequestStruct, Response, ResponseHeader_v0
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.types import CompactArray, CompactString, Int16, Int32, Int64, Schema, TaggedFields

from holdshort.stream.connection import Connection
from holdshort.stream.errors import Fatal, Retry
from holdshort.stream.kafka.consumers import CLOSE_DEADLINE_S, REQUEST_TIMEOUT_MS, said
from holdshort.stream.kafka.names import Names
from holdshort.stream.records import TopicPartition

PATIENCE_MS: Final = 5_000
TRANSACTION_DEADLINE_S: Final = 30.0
API_VERSIONS: Final = 18


class Address(NamedTuple):
    """One broker, as it is advertised to clients."""

    node: int
    host: str
    port: int


class Abilities(NamedTuple):
    """What a broker speaks (newest version by API key), and the features that its cluster has switched on."""

    apis: Mapping[int, int]
    features: Mapping[str, int]


async def brokers(connection: Connection, host: str, port: int) -> Sequence[Address]:
    """All brokers of the cluster, asked of one. Raises Fatal."""
    client = await _connected(connection, host, port)
    try:
        metadata = await client.send(MetadataRequest([]))
    except (KafkaError, OSError, TimeoutError) as error:
        raise Fatal(f"{host}:{port} does not answer: {said(error)}") from error
    finally:
        await _hang_up(client)
    return [Address(node, name, number) for node, name, number, *_ in metadata.brokers]


async def abilities(connection: Connection, host: str, port: int) -> Abilities:
    """What one broker can do. Raises Fatal if it cannot be reached as its clients would."""
    client = await _connected(connection, host, port)
    try:
        answer = await client.send(_AskVersions())
    except (KafkaError, OSError, TimeoutError) as error:
        raise Fatal(f"{host}:{port} does not answer: {said(error)}") from error
    finally:
        await _hang_up(client)
    apis = {key: newest for key, _, newest, _ in answer.api_keys or ()}
    return Abilities(apis, _features(answer.tags))


async def _connected(connection: Connection, host: str, port: int) -> Any:
    known = connection.for_aiokafka()
    del known["bootstrap_servers"]
    client: Any = AIOKafkaConnection(host, port, request_timeout_ms=PATIENCE_MS, **known)
    try:
        await client.connect()
    except (KafkaError, OSError, TimeoutError) as error:
        await _hang_up(client)
        raise Fatal(f"{host}:{port} cannot be reached: {said(error)}") from error
    return client


async def _hang_up(client: Any) -> None:
    await asyncio.wait([client.close()], timeout=CLOSE_DEADLINE_S)


# -- ApiVersions 3 ------------------------------------------------------------------------------------------


class _Versions(Response):  # type: ignore[misc]  # aiokafka is untyped here
    """ApiVersionsResponse 3; the features are in its tagged fields."""

    API_KEY = API_VERSIONS
    API_VERSION = 3
    SCHEMA = Schema(
        ("error_code", Int16),
        (
            "api_keys",
            CompactArray(
                ("api_key", Int16), ("min_version", Int16), ("max_version", Int16), ("tags", TaggedFields)
            ),
        ),
        ("throttle_time_ms", Int32),
        ("tags", TaggedFields),
    )


class _AskVersionsStruct(RequestStruct):  # type: ignore[misc]  # as above
    """ApiVersionsRequest 3: its header is the flexible one, that of its answer is not."""

    FLEXIBLE_VERSION = True
    API_KEY = API_VERSIONS
    API_VERSION = 3
    RESPONSE_TYPE = _Versions
    SCHEMA = Schema(
        ("client_software_name", CompactString("utf-8")),
        ("client_software_version", CompactString("utf-8")),
        ("tags", TaggedFields),
    )

    def parse_response_header(self, read_buffer: BytesIO | bytes) -> ResponseHeader_v0:
        return ResponseHeader_v0.decode(read_buffer)


class _AskVersions:
    """As a connection wants its requests: built once the broker's versions are known."""

    def prepare(self, _: Mapping[int, tuple[int, int]]) -> _AskVersionsStruct:
        return _AskVersionsStruct("holdshort", "1", {})


_FINALIZED: Final = CompactArray(
    ("name", CompactString("utf-8")),
    ("max_version_level", Int16),
    ("min_version_level", Int16),
    ("tags", TaggedFields),
)
_FINALIZED_EPOCH, _FINALIZED_FEATURES = 1, 2


def _features(tags: Mapping[int, bytes]) -> dict[str, int]:
    """Those that are switched on; none if the cluster does not say (epoch -1)."""
    raw, epoch = tags.get(_FINALIZED_FEATURES), tags.get(_FINALIZED_EPOCH)
    if raw is None or (epoch is not None and Int64.decode(BytesIO(epoch)) < 0):
        return {}
    return {name: level for name, level, _, _ in _FINALIZED.decode(BytesIO(raw)) or ()}


# -- a transaction ------------------------------------------------------------------------------------------


async def transaction(
    connection: Connection, prefix: str, transactional_id: str, where: TopicPartition | None
) -> int | None:
    """Begin a transaction and abort it; with `where`, a record is written there first, which nobody reads.

    Returns when the broker appended that record (ms since the epoch, by its clock). Raises Fatal if it is not
    allowed, Retry for other trouble.
    """
    producer = AIOKafkaProducer(
        **connection.for_aiokafka(),
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        transactional_id=prefix + transactional_id,
    )
    try:
        async with asyncio.timeout(TRANSACTION_DEADLINE_S):
            await producer.start()
            await producer.begin_transaction()
            at = None if where is None else await _append(producer, *Names(prefix).wire(where))
            await producer.abort_transaction()
            return at
    except (KafkaError, OSError, TimeoutError) as error:
        if "Authorization" in type(error).__name__:
            raise Fatal(f"the transaction is not allowed: {said(error)}") from error
        raise Retry(f"the transaction failed: {said(error)}") from error
    finally:
        await asyncio.wait([asyncio.create_task(producer.stop())], timeout=CLOSE_DEADLINE_S)


async def _append(producer: AIOKafkaProducer, topic: str, partition: int) -> int:
    sent = await producer.send_and_wait(topic, b"{}", key=b"holdshort-doctor", partition=partition)
    at: int = sent.timestamp
    return at
