"""The topics of one team as a FastStream router; what is taken from them is dealt with elsewhere."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from faststream import AckPolicy
from faststream.kafka import KafkaRouter

from holdshort.stream.records import Record

PUBLISH_DEADLINE_S: Final = 60.0
COMMIT_DEADLINE_S: Final = 10.0
SESSION_MS: Final = 30_000
NEVER_MS: Final = 2**31 - 1

Taker = Callable[[Record], Awaitable[None]]


class TeamWire:
    """`approvals.<team>`, `decisions.<team>` and, if somebody wants them, `receipts.<team>`.

    Offsets of approvals are committed by `commit` alone; receipts are acknowledged when they have been told.
    """

    def __init__(self, prefix: str, team: str, group: str, asked: Taker, told: Taker | None) -> None:
        self.router = KafkaRouter()
        self.topics = [f"{prefix}approvals.{team}", f"{prefix}decisions.{team}"]
        self._approvals, decisions = self.topics
        self._publisher = self.router.publisher(decisions, title=f"decisions.{team}")
        self._subscriber = self._subscribe(self._approvals, group, AckPolicy.MANUAL)
        self._subscriber(_taking(asked))
        if told is not None:
            receipts = f"{prefix}receipts.{team}"
            self.topics.append(receipts)
            self._subscribe(receipts, f"{group}.receipts", AckPolicy.ACK)(_taking(told))

    def _subscribe(self, topic: str, group: str, ack_policy: AckPolicy) -> Any:
        return self.router.subscriber(
            topic,
            group_id=group,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            ack_policy=ack_policy,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            max_poll_interval_ms=NEVER_MS,  # while too much is open nothing is taken: no sign of death
            decoder=_raw,
            no_reply=True,
            title=topic,
        )

    async def publish(self, thread: str, partition: int, value: bytes) -> None:
        """Write a decision, to the partition of its thread; returns when it is in the log."""
        async with asyncio.timeout(PUBLISH_DEADLINE_S):
            await self._publisher.publish(
                value, key=thread.encode(), partition=partition, headers={"content-type": "application/json"}
            )

    async def commit(self, partition: int, position: int) -> None:
        """Commit a position of the approvals. Raises whatever says that it may not be."""
        consumer: Any = self._subscriber.consumer
        [where] = [one for one in consumer.assignment() if one == (self._approvals, partition)]
        async with asyncio.timeout(COMMIT_DEADLINE_S):
            await consumer.commit({where: position})

    def stop_taking(self) -> None:
        """Nothing more is taken from now on."""
        self._subscriber.running = False


def _taking(take: Taker) -> Callable[[Any], Awaitable[None]]:
    async def taken(record: Any) -> None:
        await take(
            Record(
                record.topic,
                record.partition,
                record.offset,
                record.key,
                record.value,
                record.headers,
                record.timestamp,
            )
        )

    return taken


async def _raw(message: Any) -> Any:
    """The record itself instead of its parsed value: a tombstone has none."""
    return message.raw_message
