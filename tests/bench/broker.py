"""The Kafka to measure on: that of KAFKA_BOOTSTRAP_SERVERS, or our embedded one with a heap fit for load."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.bench.subject import Broker

from holdshort.stream.embedded import BrokerSettings, EmbeddedKafka

HEAP_MB: Final = 1024


@contextmanager
def broker(nodes: int = 1) -> Iterator[Broker]:
    """A Kafka that is up; nodes of an embedded one are processes of their own, whose CPU is told apart."""
    if given := os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
        yield Broker(given)
        return
    kafka = EmbeddedKafka(BrokerSettings(nodes=nodes, heap_mb=HEAP_MB))
    with asyncio.Runner() as runner:
        runner.run(kafka.start())
        try:
            yield Broker(kafka.bootstrap_servers, tuple(kafka.pids.values()))
        finally:
            runner.run(kafka.stop())
