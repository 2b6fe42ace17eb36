"""The producer of one lane: commit, or discard."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import IllegalOperation, InvalidProducerEpoch, KafkaError, ProducerClosed, ProducerFenced
from aiokafka.producer import sender

from holdshort.stream.errors import Fenced, Retry
from holdshort.stream.kafka.consumers import CLOSE_DEADLINE_S, heard, in_bounded_time, said
from holdshort.stream.kafka.names import Names
from holdshort.stream.ports import Positions
from holdshort.stream.records import Output, TopicPartition

# The wait while the markers of the previous transaction are being written: 20 ms of it is what a transaction
# takes otherwise. A name that is gone must be noticed, not set in vain.
assert hasattr(sender, "BACKOFF_OVERRIDE")
sender.BACKOFF_OVERRIDE = 0.001

BATCH_BYTES: Final = 1_000_000


class _Sent(NamedTuple):
    """A batch under way."""

    where: TopicPartition
    future: "asyncio.Future[Any]"
    records: int


class AioTransactions:
    """The producer of one lane (ports.Transactions)."""

    def __init__(self, producer: AIOKafkaProducer, names: Names) -> None:
        self._producer = producer
        self._names = names
        self._tainted = False
        self._send = producer.client.send
        producer.client.send = self._watched_send

    async def _watched_send(self, *args: Any, **kwargs: Any) -> Any:
        """A request without an answer may still arrive: from then on the epoch is not ours alone."""
        try:
            return await self._send(*args, **kwargs)
        except (KafkaError, OSError):
            self._tainted = True
            raise

    async def commit(self, outputs: Mapping[TopicPartition, Sequence[Output]]) -> Positions:
        try:
            bases = await self._commit(outputs)
        except (ProducerFenced, InvalidProducerEpoch) as error:
            raise Fenced(said(error)) from error
        except IllegalOperation as error:
            raise self._broken_off() from error
        except (KafkaError, AssertionError, OSError, TimeoutError) as error:
            raise Retry(f"a transaction failed: {said(error)}") from error
        if self._tainted:
            raise Retry("a request of the transaction got no answer")
        return bases

    def _broken_off(self) -> Fenced | Retry:
        """What the sender met while records were still given to it; it says only that it takes none."""
        task = self._producer._sender.sender_task
        cause = task.exception() if task.done() and not task.cancelled() else None
        if isinstance(cause, (ProducerFenced, InvalidProducerEpoch)):
            return Fenced(said(cause))
        return Retry(f"a transaction broke off: {said(cause) if cause else 'no more records are taken'}")

    async def _commit(self, outputs: Mapping[TopicPartition, Sequence[Output]]) -> Positions:
        await self._producer.begin_transaction()
        sent: list[_Sent] = []
        try:
            for where, records in outputs.items():
                sent += [await self._send_batch(where, batch) for batch in self._batches(records)]
            for one in sent:
                await one.future
        except BaseException:
            for one in sent:
                one.future.cancel()
                one.future.add_done_callback(heard)
            raise
        await self._producer.commit_transaction()
        return _bases(sent)

    def _batches(self, records: Sequence[Output]) -> list[Any]:
        """As few batches as hold these records: appending is seven times cheaper than sending one by one."""
        batches = [self._producer.create_batch()]
        for record in records:
            if not self._append(batches[-1], record):
                batches.append(self._producer.create_batch())
                self._append(batches[-1], record)
        return batches

    def _append(self, batch: Any, record: Output) -> bool:
        appended = batch.append(
            key=record.key, value=record.value, timestamp=None, headers=list(record.headers)
        )
        return appended is not None

    async def _send_batch(self, where: TopicPartition, batch: Any) -> "_Sent":
        topic, partition = self._names.wire(where)
        batch.close()
        future = await self._producer.send_batch(batch, topic, partition=partition)
        return _Sent(where, future, batch.record_count())

    async def discard(self) -> None:
        """By force: stop() would wait for ever for batches that cannot be delivered."""
        producer = self._producer
        producer._closed = True
        producer._message_accumulator.fail_all(ProducerClosed())
        task = producer._sender.sender_task
        for _ in range(3):  # the routine waits for its requests when it is cancelled, and each once more
            if task is None or task.done():
                break
            task.cancel()
            await asyncio.wait([task], timeout=CLOSE_DEADLINE_S / 4)
        if task is not None and task.done():
            heard(task)
        for future in self._waiting():
            future.add_done_callback(heard)
        await in_bounded_time(producer.client.close())

    def _waiting(self) -> Iterator["asyncio.Future[Any]"]:
        """What aiokafka itself would have waited for; told of the end, nobody asks it any more."""
        accumulator = self._producer._message_accumulator
        for batch in (*chain.from_iterable(accumulator._batches.values()), *accumulator._pending_batches):
            yield batch._drain_waiter
        if (waiter := self._producer._txn_manager.wait_for_transaction_end()) is not None:
            yield waiter


def _bases(sent: Sequence[_Sent]) -> Positions:
    """Where the records of each partition begin; they must follow each other, for places are counted on."""
    bases: dict[TopicPartition, int] = {}
    following: dict[TopicPartition, int] = {}
    for where, future, records in sent:
        offset: int = future.result().offset
        if offset < 0 or following.get(where, offset) != offset:
            raise Retry("the broker does not say where it wrote, or wrote with gaps")
        bases.setdefault(where, offset)
        following[where] = offset + records
    return bases
