"""Consumers without a group: they read only from where they are told to, and are closed in a bounded time."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaTopicPartition
from aiokafka.errors import KafkaError

REQUEST_TIMEOUT_MS: Final = 10_000
CLOSE_DEADLINE_S: Final = 2.0
FETCH_WAIT_MS: Final = 500


def consumer_of(client: Mapping[str, Any], isolation: str, **more: Any) -> AIOKafkaConsumer:
    """A consumer without a group, which reads only from where it is told to."""
    return AIOKafkaConsumer(
        **client,
        isolation_level=isolation,
        auto_offset_reset="none",
        enable_auto_commit=False,
        fetch_max_wait_ms=FETCH_WAIT_MS,
        fetch_max_bytes=16 * 1024 * 1024,
        **more,
    )


async def started(consumer: AIOKafkaConsumer) -> None:
    try:
        await consumer.start()
    except BaseException:
        await stop(consumer)
        raise


def seek(consumer: AIOKafkaConsumer, positions: Mapping[KafkaTopicPartition, int]) -> None:
    """Assign and seek in one breath: in between, the fetcher would look for committed offsets."""
    consumer.assign(list(positions))
    for where, offset in positions.items():
        consumer.seek(where, offset)


def partition_state(consumer: AIOKafkaConsumer, where: KafkaTopicPartition) -> Any:
    return consumer._subscription.subscription.assignment.state_value(where)


async def stop(consumer: AIOKafkaConsumer) -> None:
    with suppress(TimeoutError, KafkaError, OSError):
        async with asyncio.timeout(CLOSE_DEADLINE_S):
            await consumer.stop()


def said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
