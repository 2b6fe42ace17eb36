"""Clients, agents and teams as they are: programs that write and read records, in no way of the product."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

Json = Any


class Seen(NamedTuple):
    """One record as a read_committed reader saw it; `value` is parsed if it can be."""

    topic: str
    partition: int
    offset: int
    key: str | None
    value: Json
    headers: dict[str, str]
    raw: bytes | None


class Wire:
    """One installation's topics, seen from outside: records are sent, and read as they become visible."""

    def __init__(self, bootstrap_servers: str, prefix: str, topics: Sequence[str]) -> None:
        self.prefix = prefix
        self.react: Callable[[Seen], None] = lambda _: None  # called for every record, as it is seen
        self.seen: list[Seen] = []
        self._lock = threading.Condition()
        self._closed = False
        connection = {"bootstrap.servers": bootstrap_servers}
        self._producer = Producer(
            connection
            | {
                "partitioner": "murmur2_random",
                "linger.ms": 0,
                "message.max.bytes": 4 << 20,
                "enable.idempotence": True,
            }
        )
        self._consumer = Consumer(
            connection
            | {
                "group.id": "none",  # never joined: a group that a dying broker forgets begins from the start
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
                "message.max.bytes": 8 << 20,
            }
        )
        self._consumer.assign([*self._partitions(topics)])
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _partitions(self, topics: Sequence[str]) -> Iterator[TopicPartition]:
        there = self._consumer.list_topics(timeout=30).topics
        for topic in topics:
            for partition in there[self.prefix + topic].partitions:
                yield TopicPartition(self.prefix + topic, partition, OFFSET_BEGINNING)

    def send(
        self,
        topic: str,
        value: Json,
        *,
        key: str | bytes | None = "",
        headers: dict[str, str] | None = None,
        partition: int = -1,
    ) -> None:
        """Send one record; its key is the thread id of the value unless one is given; bytes are raw."""
        if key == "":
            key = value["threadId"]
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        named: list[tuple[str, str | bytes | None]] = [
            (name, text.encode()) for name, text in (headers or {}).items()
        ]
        self._producer.produce(self.prefix + topic, raw, key, partition, headers=named)
        self._producer.poll(0)

    def write(self, topic: str, value: bytes | None, key: bytes | None, **more: Any) -> None:
        """A record just as it is said, as a careless or hostile writer would."""
        self._producer.produce(self.prefix + topic, value, key, **more)
        self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(20) == 0

    async def until(
        self, found: Callable[[list[Seen]], bool], *, patience: float = 30.0, why: str = "nothing came"
    ) -> None:
        """Wait until what has been seen satisfies `found`."""
        self.flush()
        fine = await asyncio.to_thread(self._wait, found, patience)
        assert fine, f"{why}; seen: {[(s.topic, s.key, s.value) for s in self.seen[-12:]]}"

    def _wait(self, found: Callable[[list[Seen]], bool], patience: float) -> bool:
        with self._lock:
            return self._lock.wait_for(lambda: found(self.seen), patience)

    def of(self, topic: str, key: str | None = None) -> list[Seen]:
        with self._lock:
            return [s for s in self.seen if s.topic == topic and (key is None or s.key == key)]

    def _read(self) -> None:
        while not self._closed:
            messages = self._consumer.consume(500, 0.1)
            seen = [self._parsed(message) for message in messages if not message.error()]
            with self._lock:
                self.seen += seen
                self._lock.notify_all()
            for one in seen:
                self.react(one)
        self._consumer.close()

    def _parsed(self, message: Any) -> Seen:
        raw = message.value()
        try:
            value = json.loads(raw) if raw is not None else None
        except ValueError:
            value = raw
        key = message.key()
        return Seen(
            message.topic().removeprefix(self.prefix),
            message.partition(),
            message.offset(),
            None if key is None else key.decode(errors="replace"),
            value,
            {name: text.decode(errors="replace") for name, text in message.headers() or ()},
            raw,
        )

    def close(self) -> None:
        self._closed = True
        self._thread.join(10)


# -- what clients, agents and teams say ---------------------------------------------------------------------


def an_input(thread: str, run: str, **more: Json) -> Json:
    return {
        "threadId": thread,
        "runId": run,
        "messages": [{"id": "m1", "role": "user", "content": "please"}],
        "state": {},
        "tools": [],
        "context": [],
        "forwardedProps": {},
        **more,
    }


def a_resume(thread: str, run: str, answers: dict[str, Json], **more: Json) -> Json:
    entries = [{"interruptId": i, "status": "resolved", "payload": p} for i, p in answers.items()]
    return an_input(thread, run, resume=entries, **more)


def an_interrupt(id_: str, **more: Json) -> Json:
    return {"id": id_, "reason": "tool_call", **more}


def started(thread: str, run: str) -> Json:
    return {"type": "RUN_STARTED", "threadId": thread, "runId": run}


def finished(thread: str, run: str) -> Json:
    return {"type": "RUN_FINISHED", "threadId": thread, "runId": run, "outcome": {"type": "success"}}


def paused(thread: str, run: str, *interrupts: Json) -> Json:
    outcome = {"type": "interrupt", "interrupts": list(interrupts)}
    return {"type": "RUN_FINISHED", "threadId": thread, "runId": run, "outcome": outcome}


def told(wire: Wire, topic: str, thread: str, type_: str, run: str) -> list[Seen]:
    """Events of one type and run, by the header that readers go by."""
    return [
        seen
        for seen in wire.of(topic, thread)
        if isinstance(seen.value, dict)
        and seen.value.get("type") == type_
        and seen.headers.get("holdshort-run") == run
    ]
