"""Consumers without a group: they read only from where they are told to, and are closed in a bounded time."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final

from aiokafka import AIOKafkaConsumer

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


async def stop(consumer: AIOKafkaConsumer) -> None:
    await in_bounded_time(consumer.stop())


async def in_bounded_time(closing: Coroutine[Any, Any, Any]) -> None:
    """Let something be closed, for a while, and whatever becomes of it.

    In a task of its own: where connections are gone, aiokafka raises the cancellations that it meets itself,
    and they must not be taken for ours.
    """
    task = asyncio.ensure_future(closing)
    try:
        await asyncio.wait([task], timeout=CLOSE_DEADLINE_S)
    finally:
        task.cancel()
        task.add_done_callback(heard)


def heard(future: "asyncio.Future[Any]") -> None:
    """An error that nobody waits for any more; unasked, it would be logged with its trace."""
    if not future.cancelled():
        future.exception()


def said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
