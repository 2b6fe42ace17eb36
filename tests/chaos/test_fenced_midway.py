"""Found by chaos: a producer that is fenced between two batches of a transaction was taken for a defect."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.worlds import KafkaWorld

from holdshort.stream.errors import Fenced
from holdshort.stream.kafka.transactions import AioTransactions
from holdshort.stream.records import TopicPartition, Write

pytestmark = [pytest.mark.broker]


@pytest.fixture
async def world(bootstrap_servers: str) -> AsyncIterator[KafkaWorld]:
    world = KafkaWorld(bootstrap_servers)
    await world.create()
    yield world
    await world.close()


async def test_a_producer_that_is_fenced_midway_says_so(world: KafkaWorld) -> None:
    old = await world.process().fence("app-0")
    assert isinstance(old, AioTransactions)
    producer = old._producer
    ready, given = producer.client._wait_on_metadata, 0

    async def wait_on_metadata(topic: str) -> object:
        """Called before each batch: the first finds a new owner, the second a sender that has failed."""
        nonlocal given
        given += 1
        if given == 1:
            await (await world.process().fence("app-0")).discard()
        else:
            await asyncio.wait([producer._sender.sender_task], timeout=10)
        return await ready(topic)

    producer.client._wait_on_metadata = wait_on_metadata

    with pytest.raises(Fenced):
        await old.commit(
            {TopicPartition("out", partition): [Write("out", b"k", b"v")] for partition in (0, 2)}
        )

    assert given == 2
    await old.discard()
