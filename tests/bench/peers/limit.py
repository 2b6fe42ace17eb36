"""Peer `limit`: the thinnest exactly-once pass-through that aiokafka allows. No rules, no state, no checks.

With BENCH_RULES=1 it is `limit-rules`: the same with the simplified gate on top, the thinnest gate in Python.
Each record is parsed once and forwarded as the same bytes. One transactional producer a lane (BENCH_LANES);
the input positions are a record of the compacted topic `pending`, in the transaction; no consumer group.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.producer import sender

BOOTSTRAP_SERVERS = os.environ["BENCH_BOOTSTRAP_SERVERS"]
PREFIX = os.environ["BENCH_PREFIX"]
PARTITIONS = int(os.environ["BENCH_PARTITIONS"])
LANES = int(os.environ.get("BENCH_LANES", PARTITIONS))
RULES = os.environ.get("BENCH_RULES") == "1"

AGENT_EVENTS, INPUTS = f"{PREFIX}agent-events.default", f"{PREFIX}inputs"
EVENTS, RUNS, PENDING = f"{PREFIX}events", f"{PREFIX}runs.default", f"{PREFIX}pending"
OUT_OF = {AGENT_EVENTS: EVENTS, INPUTS: RUNS}
POSITIONS = b"@positions"
MOST_RECORDS = 2_000  # of each partition in one transaction

sender.BACKOFF_OVERRIDE = 0.001  # the wait for the markers of the previous transaction

Output = tuple[bytes, bytes | None, int | None]
"""Key, value, timestamp in ms."""
Outputs = Mapping[str, list[Output]]
"""By topic, of one partition."""


def _consumer(isolation: str = "read_committed") -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=BOOTSTRAP_SERVERS,
        isolation_level=isolation,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=2 << 20,
        fetch_max_wait_ms=250,
        metadata_max_age_ms=600_000,
    )


class Partition:
    """One partition's positions and, with rules, the ids that are open in its threads."""

    def __init__(self) -> None:
        self.positions = {AGENT_EVENTS: 0, INPUTS: 0}
        self.open: dict[bytes, tuple[str, ...]] = {}

    def restore(self, records: Sequence[Any]) -> None:
        for record in records:
            if record.key == POSITIONS:
                self.positions = orjson.loads(record.value)
            elif record.value is None:
                self.open.pop(record.key, None)
            else:
                self.open[record.key] = _ids(orjson.loads(record.value)["interrupts"])

    def forward(self, topic: str, records: Sequence[Any], outputs: Outputs) -> None:
        forwarded = outputs[OUT_OF[topic]]
        for record in records:
            orjson.loads(record.value)["threadId"]  # as every gate must at least
            forwarded.append((record.key, record.value, record.timestamp))

    def judge(self, topic: str, records: Sequence[Any], outputs: Outputs) -> None:
        changes: dict[bytes, bytes | None] = {}
        for record in records:
            value = orjson.loads(record.value)
            if topic == AGENT_EVENTS:
                self._judge_event(record, value, changes)
                outputs[EVENTS].append((record.key, record.value, record.timestamp))
            elif self._passes(record, value, changes):
                outputs[RUNS].append((record.key, record.value, record.timestamp))
            else:
                outputs[EVENTS].extend(_refusal(record, value))
        outputs[PENDING].extend((key, value, None) for key, value in changes.items())

    def _judge_event(self, record: Any, value: Any, changes: dict[bytes, bytes | None]) -> None:
        if value["type"] != "RUN_FINISHED" or not (outcome := value.get("outcome")):
            return
        if outcome["type"] == "interrupt" and outcome["interrupts"]:
            pause = {"runId": value["runId"], "interrupts": outcome["interrupts"]}
            changes[record.key] = orjson.dumps(pause)
            self.open[record.key] = _ids(outcome["interrupts"])

    def _passes(self, record: Any, value: Any, changes: dict[bytes, bytes | None]) -> bool:
        wanted = self.open.get(record.key)
        if wanted is None:
            return True
        answered = [entry["interruptId"] for entry in value.get("resume") or ()]
        if len(answered) != len(wanted) or set(answered) != set(wanted):
            return False
        del self.open[record.key]
        changes[record.key] = None
        return True


def _ids(interrupts: Sequence[Any]) -> tuple[str, ...]:
    return tuple(interrupt["id"] for interrupt in interrupts)


def _refusal(record: Any, value: Any) -> list[Output]:
    run = {"threadId": value["threadId"], "runId": value["runId"]}
    error = {"type": "RUN_ERROR", **run, "code": "PENDING_INTERRUPTS", "message": "Answer what is open."}
    events = ({"type": "RUN_STARTED", **run}, error)
    return [(record.key, orjson.dumps(event), record.timestamp) for event in events]


class Lane:
    """The partitions that share one transaction."""

    def __init__(self, partitions: Sequence[int]) -> None:
        self._partitions = {number: Partition() for number in partitions}
        self._producer = AIOKafkaProducer(
            bootstrap_servers=BOOTSTRAP_SERVERS,
            transactional_id=f"{PREFIX}limit-{partitions[0]}",
            acks="all",
            linger_ms=0,
            max_batch_size=1_000_000,
            max_request_size=8 << 20,
            transaction_timeout_ms=15_000,
            metadata_max_age_ms=600_000,
        )

    async def run(self) -> None:
        await self._producer.start()  # fences whoever had it before
        await self._restore()
        consumer = _consumer()
        await consumer.start()
        where = [TopicPartition(topic, number) for topic in OUT_OF for number in self._partitions]
        consumer.assign(where)
        for place in where:
            consumer.seek(place, self._partitions[place.partition].positions[place.topic])
        most = MOST_RECORDS * len(self._partitions)
        while True:
            if taken := await consumer.getmany(timeout_ms=1000, max_records=most):
                await self._commit(taken)

    async def _restore(self) -> None:
        where = [TopicPartition(PENDING, number) for number in self._partitions]
        uncommitted, consumer = _consumer("read_uncommitted"), _consumer()
        await uncommitted.start()
        left = await uncommitted.end_offsets(where)
        await uncommitted.stop()
        await consumer.start()
        consumer.assign(where)
        await consumer.seek_to_beginning(*where)
        while left := {place: end for place, end in left.items() if await consumer.position(place) < end}:
            for place, records in (await consumer.getmany(timeout_ms=200)).items():
                self._partitions[place.partition].restore(records)
        await consumer.stop()

    async def _commit(self, taken: Mapping[TopicPartition, Sequence[Any]]) -> None:
        batches = []
        for number in {place.partition for place in taken}:
            for topic, records in self._decided(number, taken).items():
                batches += [(batch, topic, number) for batch in self._batches(records)]
        await self._producer.begin_transaction()
        written = [await self._producer.send_batch(*batch[:2], partition=batch[2]) for batch in batches]
        await asyncio.gather(*written)
        await self._producer.commit_transaction()

    def _decided(self, number: int, taken: Mapping[TopicPartition, Sequence[Any]]) -> Outputs:
        partition = self._partitions[number]
        outputs: Outputs = {EVENTS: [], RUNS: [], PENDING: []}
        for topic in OUT_OF:
            if records := taken.get(TopicPartition(topic, number)):
                (partition.judge if RULES else partition.forward)(topic, records, outputs)
                partition.positions[topic] = records[-1].offset + 1
        outputs[PENDING].append((POSITIONS, orjson.dumps(partition.positions), None))
        return outputs

    def _batches(self, records: Sequence[Output]) -> list[Any]:
        batches: list[Any] = []
        for key, value, timestamp in records:
            if not batches or batches[-1].append(key=key, value=value, timestamp=timestamp) is None:
                batches.append(self._producer.create_batch())
                batches[-1].append(key=key, value=value, timestamp=timestamp)
        for batch in batches:
            batch.close()
        return batches


async def main() -> None:
    """Until SIGTERM; whatever goes wrong ends the process."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    lanes = [Lane(range(first, PARTITIONS, LANES)) for first in range(LANES)]
    running = [asyncio.create_task(lane.run()) for lane in lanes]
    stopping = asyncio.create_task(stopped.wait())
    done, _ = await asyncio.wait([stopping, *running], return_when=asyncio.FIRST_COMPLETED)
    for one in done:
        one.result()
    sys.stderr.flush()
    os._exit(0)  # its clients would take their time to leave, and nothing of theirs is wanted any more


if __name__ == "__main__":
    uvloop.run(main())
