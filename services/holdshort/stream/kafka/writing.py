"""A few records written outside of any transaction, by commands: each is in the log when it returns."""

import asyncio
from typing import Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, TopicAuthorizationFailedError

from holdshort.stream.connection import Connection
from holdshort.stream.errors import Fatal, Retry
from holdshort.stream.kafka.consumers import CLOSE_DEADLINE_S, REQUEST_TIMEOUT_MS, said
from holdshort.stream.kafka.names import Names
from holdshort.stream.records import Output, TopicPartition
from holdshort.stream.topics import MAX_MESSAGE

WRITE_DEADLINE_S: Final = 30.0


class Writer:
    """Writes records as they are given, to the partition that is named; idempotent, acknowledged by all."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._settings = connection.for_aiokafka() | {"request_timeout_ms": REQUEST_TIMEOUT_MS}
        self._names = Names(prefix)
        self._producer: AIOKafkaProducer | None = None

    async def write(self, where: TopicPartition, record: Output) -> int:
        """The offset at which it lies. Raises Fatal for what is not allowed or too large, Retry else."""
        topic, partition = self._names.wire(where)
        try:
            async with asyncio.timeout(WRITE_DEADLINE_S):
                producer = await self._started()
                sent = await producer.send_and_wait(
                    topic,
                    record.value,
                    key=record.key,
                    partition=partition,
                    headers=list(record.headers),
                )
        except TopicAuthorizationFailedError as error:
            raise Fatal(f"you may not write {where.topic} (`holdshort acls print` says who may)") from error
        except MessageSizeTooLargeError as error:
            raise Fatal(f"the record is larger than {where.topic} takes") from error
        except (KafkaError, OSError, TimeoutError) as error:
            raise Retry(f"{where.topic} could not be written: {said(error)}") from error
        offset: int = sent.offset
        return offset

    async def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            self._producer = AIOKafkaProducer(
                **self._settings, enable_idempotence=True, max_request_size=MAX_MESSAGE
            )
            await self._producer.start()
        return self._producer

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await asyncio.wait([asyncio.create_task(producer.stop())], timeout=CLOSE_DEADLINE_S)
