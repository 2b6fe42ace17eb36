"""Clients, teams, auditors, operators on a secured Kafka: they write and read under their names."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from ag_ui.core import RunAgentInput
from confluent_kafka import Consumer, Producer
from tests.clients import Json
from tests.security.secured import Site


async def silent(_: RunAgentInput) -> AsyncIterator[Any]:
    """What an agent does that never gets as far as a run."""
    nothing: list[Any] = []
    for event in nothing:
        yield event


@contextmanager
def reading(site: Site, principal: str, topic: str) -> Iterator[Consumer]:
    """A consumer of the principal, in a group of its own."""
    consumer = Consumer(
        site.client(principal)
        | {
            "group.id": f"{site.prefix}{principal}.test",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([site.prefix + topic])
    yield consumer
    consumer.close()


def read(site: Site, principal: str, topic: str, count: int, **members: Json) -> list[Json]:
    """The first `count` values of a topic that have these members."""
    found: list[Json] = []
    with reading(site, principal, topic) as consumer:
        for _ in range(200):
            for message in consumer.consume(100, 0.2):
                assert message.error() is None, message.error()
                value: Any = json.loads(message.value() or b"null")
                if value and members.items() <= value.items():
                    found.append(value)
            if len(found) >= count:
                return found
    raise AssertionError(f"{principal} finds {found} in {topic}")


def send(site: Site, principal: str, topic: str, value: Json) -> None:
    producer = Producer(
        site.client(principal) | {"partitioner": "murmur2_random", "enable.idempotence": True}
    )
    errors: list[Any] = []
    producer.produce(
        site.prefix + topic,
        json.dumps(value).encode(),
        value["threadId"],
        on_delivery=lambda error, _: errors.append(error),
    )
    assert producer.flush(20) == 0
    assert errors == [None]
