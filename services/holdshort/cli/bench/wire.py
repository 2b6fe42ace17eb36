"""Writing and reading the load's topics from outside: producers, and a reader that knows when a record came.

On confluent-kafka: its threads are not Python's, so the load takes as little as it can from what it measures.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from holdshort.cli.bench.load import Keyed

AT_ONCE: Final = 20_000
QUEUED: Final = 200_000  # records that wait to be sent, at most
PATIENCE_S: Final = 60.0
FLUSH_S: Final = 120.0

Headers = list[tuple[str, str | bytes | None]]


class MeasureAgainError(Exception):
    """A measurement that cannot be finished; the message says what was waited for."""


class Topics(NamedTuple):
    """The names of the topics that the load writes and reads."""

    agent_events: str
    inputs: str
    events: str
    runs: str
    dead_letters: str

    @classmethod
    def of(cls, prefix: str) -> "Topics":
        agent_events, inputs = f"{prefix}agent-events.default", f"{prefix}inputs"
        return cls(agent_events, inputs, f"{prefix}events", f"{prefix}runs.default", f"{prefix}dead-letters")


class Sender:
    """A producer keyed as every client's is; what could not be written is found at `flush`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._refused: KafkaError | None = None
        self._producer = Producer(
            {
                "partitioner": "murmur2_random",
                "linger.ms": 0,
                "acks": "all",
                "enable.idempotence": True,
                "queue.buffering.max.messages": QUEUED,
                "batch.num.messages": 10_000,
                "batch.size": 1 << 20,
                "log_level": 3,
                **settings,
            }
        )

    def send(self, topic: str, record: Keyed, headers: Headers | None = None) -> None:
        self._produce(topic, record, headers)
        self._producer.poll(0)

    def send_all(self, topic: str, records: Iterable[Keyed]) -> None:
        """As fast as possible. Raises MeasureAgainError if one cannot be written."""
        for number, record in enumerate(records):
            self._produce(topic, record)
            if number % 2_000 == 0:
                self._producer.poll(0)
        self.flush()

    def _produce(self, topic: str, record: Keyed, headers: Headers | None = None) -> None:
        key, value = record
        while True:
            try:
                return self._producer.produce(topic, value, key, headers=headers, on_delivery=self._delivered)
            except BufferError:  # the queue is full
                self._producer.poll(0.1)

    def send_together(self, topic: str, records: Iterable[Keyed]) -> None:
        """In one transaction: a read_committed reader sees all of them at one moment."""
        try:
            self._producer.init_transactions(30)
            self._producer.begin_transaction()
            self.send_all(topic, records)
            self._producer.commit_transaction(60)
        except KafkaException as error:
            raise MeasureAgainError(f"the load's transaction failed: {error.args[0].str()}") from error

    def flush(self) -> None:
        """Return once everything is written. Raises MeasureAgainError if something cannot be."""
        left = self._producer.flush(FLUSH_S)
        if left or self._refused:
            raise MeasureAgainError(
                f"{left or 'some'} records of the load could not be written: {self._refused}"
            )

    def _delivered(self, error: KafkaError | None, _: Any) -> None:
        self._refused = error or self._refused


class Arrivals(NamedTuple):
    """When records came, as (moment on the monotonic clock, how many)."""

    chunks: list[tuple[float, int]]

    @property
    def records(self) -> int:
        return sum(count for _, count in self.chunks)

    @property
    def first(self) -> float:
        return self.chunks[0][0]

    @property
    def last(self) -> float:
        return self.chunks[-1][0]

    def per_second(self) -> float | None:
        """Between the first chunk and the last; the first one itself took unknown time. None of one alone."""
        if len(self.chunks) == 1:
            return None
        return (self.records - self.chunks[0][1]) / (self.last - self.first)

    def per_second_of_second_half(self) -> float | None:
        """The same from where half of the records had come: a compiler has warmed up by then."""
        half, seen = self.records / 2, 0
        for at, (_, count) in enumerate(self.chunks):
            seen += count
            if seen >= half:
                return Arrivals(self.chunks[at:]).per_second()
        raise AssertionError("the last chunk makes it whole")


class Reader:
    """Reads topics from their beginning, read_committed, as soon as something is there."""

    def __init__(self, settings: Mapping[str, Any], topics: Iterable[str], partitions: int) -> None:
        self._consumer = Consumer(
            {
                "group.id": "none",  # never joined: partitions are assigned by hand, nothing is committed
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.min.bytes": 1,
                "fetch.wait.max.ms": 500,
                "fetch.queue.backoff.ms": 1,
                "queued.min.messages": 1_000_000,
                "queued.max.messages.kbytes": 1 << 20,
                "log_level": 3,
                **settings,
            }
        )
        self._all = [TopicPartition(t, p, 0) for t in dict.fromkeys(topics) for p in range(partitions)]
        self._ended: set[tuple[str, int]] = set()
        self._consumer.assign(self._all)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def take(self, timeout_s: float = 0.5) -> list[Any]:
        """What is there; waits for the first record only."""
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        return [
            message for message in (first, *self._consumer.consume(AT_ONCE, 0)) if self._is_record(message)
        ]

    def _is_record(self, message: Any) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.name() == "_PARTITION_EOF":
            self._ended.add((message.topic(), message.partition()))
        elif not error.retriable():
            raise MeasureAgainError(f"the load's topics cannot be read: {error.str()}")
        return False

    def skip(self) -> None:
        """Pass over what is there already."""
        for _ in self.to_the_end():
            pass

    def to_the_end(self) -> Iterator[list[Any]]:
        """Everything that is committed now, in chunks; of a new reader, since an end is told once only."""
        last = time.monotonic()
        while len(self._ended) < len(self._all):
            if messages := self.take():
                yield messages
                last = time.monotonic()
            elif time.monotonic() - last > PATIENCE_S:
                raise MeasureAgainError("the end of a topic was not reached: a transaction is open")

    def until(self, count: int, check: Callable[[], None], told: Callable[[int], None]) -> Arrivals:
        """Wait for so many records; `check` raises if they cannot come any more. Raises MeasureAgainError."""
        chunks: list[tuple[float, int]] = []
        left, last = count, time.monotonic()
        while left > 0:
            messages = self.take()
            now = time.monotonic()
            if messages:
                chunks.append((now, len(messages)))
                left, last = left - len(messages), now
                told(count - left)
                continue
            check()
            if now - last > PATIENCE_S:
                raise MeasureAgainError(
                    f"{count - left:,} of {count:,} records came, then none for {PATIENCE_S:g} s"
                )
        return Arrivals(chunks)


class Wire:
    """The way to one cluster and the load's topics on it."""

    def __init__(self, connection: Mapping[str, Any], topics: Topics, partitions: int) -> None:
        self.topics = topics
        self.partitions = partitions
        self._connection = dict(connection)

    def sender(self, **settings: Any) -> Sender:
        return Sender(self._connection | settings)

    def reader(self, *topics: str) -> Reader:
        return Reader(self._connection, topics, self.partitions)

    def everything(self, topic: str) -> Iterator[Any]:
        """All that is committed now of one topic."""
        settings = {"fetch.wait.max.ms": 10}  # where nothing more comes there is nothing to wait for
        with Reader(self._connection | settings, [topic], self.partitions) as reader:
            for messages in reader.to_the_end():
                yield from messages

    def fill(self, topic: str, records: Iterable[Keyed]) -> None:
        """Write records as fast as possible; returns when they are there."""
        self.sender(**{"linger.ms": 5}).send_all(topic, records)

    def fill_together(self, topic: str, records: Iterable[Keyed]) -> float:
        """Write records in one transaction; returns the moment at which all of them became visible."""
        settings = {"linger.ms": 5, "transactional.id": f"{topic}-load"}
        self.sender(**settings).send_together(topic, records)
        return time.monotonic()
