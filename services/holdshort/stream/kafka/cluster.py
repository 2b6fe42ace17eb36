"""A cluster through aiokafka."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from holdshort.stream.admin import Admin
from holdshort.stream.connection import Connection
from holdshort.stream.errors import Fatal, Retry
from holdshort.stream.kafka.consumers import REQUEST_TIMEOUT_MS, said, stop
from holdshort.stream.kafka.fetching import Fetcher
from holdshort.stream.kafka.inputs import AioInputs
from holdshort.stream.kafka.log import AioLog
from holdshort.stream.kafka.membership import AioMembership, Listener
from holdshort.stream.kafka.names import Names
from holdshort.stream.kafka.transactions import BATCH_BYTES, AioTransactions
from holdshort.stream.ports import Assigned, Inputs, Membership, Positions, Transactions

TRANSACTION_TIMEOUT_MS: Final = 15_000
FENCE_DEADLINE_S: Final = 30.0
SESSION_TIMEOUT_MS: Final = 6_000
HEARTBEAT_MS: Final = (
    300  # only then does a member learn that lanes are shared anew: who leaves is missed so long
)
METADATA_MS: Final = 30_000
NEVER_MS: Final = 2**31 - 1


class AioKafka:
    """A cluster through aiokafka (ports.Kafka)."""

    def __init__(
        self,
        connection: Connection,
        prefix: str,
        *,
        instance: str | None = None,
        stall_deadline: float = 60.0,
    ) -> None:
        """`instance` names this process across restarts: started again, it has its lanes back at once."""
        self._client = connection.for_aiokafka() | {"request_timeout_ms": REQUEST_TIMEOUT_MS}
        self._prefix = prefix
        self._instance = instance
        self._names = Names(prefix)
        self.log = AioLog(self._client, self._names, Admin(connection, prefix), stall_deadline)

    async def fence(self, transactional_id: str) -> Transactions:
        producer = AIOKafkaProducer(
            **self._client,
            transactional_id=self._prefix + transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            max_batch_size=BATCH_BYTES,
        )
        transactions = AioTransactions(producer, self._names)
        try:
            async with asyncio.timeout(FENCE_DEADLINE_S):
                await producer.start()
        except (KafkaError, OSError, TimeoutError) as error:
            await transactions.discard()
            raise Retry(f"no fence: {said(error)}") from error
        except BaseException:
            await transactions.discard()
            raise
        return transactions

    async def read(self, positions: Positions, ranks: Sequence[Collection[str]]) -> Inputs:
        return AioInputs(Fetcher(self._client, self._names), positions, ranks)

    async def join(self, app: str, topic: str, assigned: Assigned) -> Membership:
        consumer = AIOKafkaConsumer(
            **self._client,
            group_id=self._prefix + app,
            group_instance_id=self._instance,
            partition_assignment_strategy=(type("_Sticky", (StickyPartitionAssignor,), {}),),
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=METADATA_MS,
            max_poll_interval_ms=NEVER_MS,  # nothing is polled; the watchdog is ours
            auto_offset_reset="none",
            enable_auto_commit=False,
        )
        try:
            await consumer.start()
            # A leader that does not know the topic yet assigns nothing, and looks again in minutes.
            await consumer._client._wait_on_metadata(self._prefix + topic)
        except (KafkaError, OSError) as error:
            await stop(consumer)
            raise Fatal(f"the group cannot be joined: {said(error)}") from error
        consumer.subscribe([self._prefix + topic], listener=Listener(consumer, assigned))
        return AioMembership(consumer, self._names, self._instance)

    async def close(self) -> None:
        await self.log.close()
