"""The engine does what engine.md says, in memory and on a real Kafka alike."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from tests.worlds import (
    PARTITIONS,
    Count,
    Counter,
    KafkaWorld,
    MemoryWorld,
    Signals,
    World,
    by_key,
    committed,
    runner_of,
)

from holdshort.contract.keys import partition_of
from holdshort.stream.errors import Fenced
from holdshort.stream.records import TopicPartition, Write
from holdshort.stream.runner import Runner


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.broker)])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "memory":
        yield MemoryWorld()
        return
    kafka = KafkaWorld(request.getfixturevalue("bootstrap_servers"))
    await kafka.create()
    yield kafka
    await kafka.close()


@dataclass
class Engine:
    """A process of the engine that runs."""

    world: World
    runner: Runner[Count]
    signals: Signals

    async def outputs(self, wanted: int) -> dict[bytes, list[str]]:
        return dict(by_key(await committed(self.world, self.signals, "out", wanted)))


@asynccontextmanager
async def running(world: World) -> AsyncIterator[Engine]:
    signals = Signals()
    runner = runner_of(world, signals)
    task = asyncio.create_task(runner.run())
    await signals.until(lambda: runner.ready)
    try:
        yield Engine(world, runner, signals)
    finally:
        runner.stop()
        await task


async def test_every_record_is_answered_once_and_in_the_order_of_its_key(world: World) -> None:
    async with running(world) as engine:
        for n in range(30):
            await world.append("in", f"k{n % 5}".encode(), f"v{n}".encode())
        found = await engine.outputs(30)

    assert found[b"k3"] == [f"{i + 1}:v{3 + 5 * i}:-" for i in range(6)]


async def test_state_and_positions_survive_a_restart(world: World) -> None:
    async with running(world) as engine:
        await world.append("in", b"k", b"a")
        await engine.outputs(1)
    await world.append("in", b"k", b"b")

    async with running(world) as engine:
        found = await engine.outputs(2)

    assert found[b"k"] == ["1:a:-", "2:b:-"]


async def test_a_second_process_takes_half_of_the_lanes_and_gives_them_back(world: World) -> None:
    async with running(world) as first:
        async with running(world) as second:
            await second.signals.until(lambda: shares(first) and shares(second))
            for n in range(20):
                await world.append("in", f"k{n}".encode(), b"v")
            await first.outputs(20)
        await first.signals.until(lambda: len(first.runner.tasks) == 2 and first.runner.ready)
        for n in range(20):
            await world.append("in", f"k{n}".encode(), b"w")
        found = await first.outputs(40)

    assert all(values == ["1:v:-", "2:w:-"] for values in found.values())


def shares(engine: Engine) -> bool:
    return len(engine.runner.tasks) == 1 and engine.runner.ready


async def test_a_newer_owner_fences_the_older_one_out(world: World) -> None:
    where = TopicPartition("out", 0)
    old = await world.process().fence("app-0")
    await old.commit({where: [Write("out", b"k", b"old")]})

    new = await world.process().fence("app-0")
    with pytest.raises(Fenced):
        await old.commit({where: [Write("out", b"k", b"zombie")]})
    await new.commit({where: [Write("out", b"k", b"new")]})

    assert [record.value for record in await world.committed("out")] == [b"old", b"new"]
    await old.discard()
    await new.discard()


async def test_commit_says_where_it_wrote(world: World) -> None:
    kafka = world.process()
    producer = await kafka.fence("app-0")
    where = TopicPartition("out", 1)

    first = await producer.commit({where: [Write("out", b"k", b"1"), Write("out", b"k", b"2")]})
    second = await producer.commit({where: [Write("out", b"k", b"3")]})
    ends = await kafka.log.ends([where], committed=True)
    await producer.discard()

    assert (first[where], second[where], ends[where]) == (0, 3, 5)


async def test_a_scan_passes_markers_and_reaches_the_end(world: World) -> None:
    kafka = world.process()
    producer = await kafka.fence("app-0")
    where = TopicPartition("out", 1)
    for n in range(3):
        await producer.commit({where: [Write("out", b"k", str(n).encode())]})
    await producer.discard()

    end = (await kafka.log.ends([where], committed=False))[where]
    found = [record async for records in kafka.log.scan(where, 0, end) for record in records]

    assert [record.value for record in found] == [b"0", b"1", b"2"]
    assert [record.offset for record in found] == [0, 2, 4]


async def test_records_at_known_places_are_fetched_and_missing_ones_are_told(world: World) -> None:
    async with running(world) as engine:
        await world.append("in", b"k", b"first")
        await world.append("in", b"k", b"fetch:0")
        await world.append("in", b"k", b"fetch:77")
        await world.append("in", b"k", b"last")
        found = await engine.outputs(4)

    assert found[b"k"] == ["1:first:-", "2:fetched:first:-", "3:fetched:None:-", "4:last:-"]


async def test_a_record_is_judged_behind_what_the_table_held_when_it_was_read(world: World) -> None:
    async with running(world) as engine:
        for n in range(10):
            await world.append("table", b"k", f"word{n}".encode())
            await world.append("in", b"k", f"v{n}".encode())
        found = await engine.outputs(10)

    for n, value in enumerate(found[b"k"]):
        assert int(value.rpartition(":word")[2]) >= n


async def test_a_table_is_read_from_its_beginning_at_every_restore(world: World) -> None:
    await world.append("table", b"k", b"early")

    async with running(world) as engine:
        await world.append("in", b"k", b"v")
        found = await engine.outputs(1)

    assert found[b"k"] == ["1:v:early"]


async def test_a_deadline_fires_once_and_its_state_is_gone(world: World) -> None:
    at = world.clock.now() + 300
    async with running(world) as engine:
        await world.append("in", b"k", f"forget:{at}".encode())
        found = await engine.outputs(2)
        await world.append("in", b"k", b"again")
        found = await engine.outputs(3)

    assert found[b"k"] == [f"1:forget:{at}:-", f"forgotten:{at}", "1:again:-"]


async def test_the_end_of_an_input_is_put_into_a_state_that_asks_for_it(world: World) -> None:
    async with running(world) as engine:
        await world.append("in", b"k", b"a")
        await world.append("in", b"k", b"end")
        await engine.outputs(2)
        states = await world.committed("state")

    assert Count(count=2, end=2) == Counter().decode(states[-1].value or b"")


async def test_a_record_without_a_key_is_decided_and_keeps_no_state(world: World) -> None:
    async with running(world) as engine:
        await world.append("in", None, b"v", partition=1)
        found = await engine.outputs(1)

    assert found[b""] == ["1:v:-"]
    assert await world.committed("state") == []


async def test_output_larger_than_a_batch_is_written_whole(world: World) -> None:
    big = b"x" * 900_000
    async with running(world) as engine:
        for _ in range(4):
            await world.append("in", b"k", big)
        found = await engine.outputs(4)

    assert [len(value) for value in found[b"k"]] == [900_004] * 4


async def test_a_record_that_waits_for_others_does_not_draw_the_position_back(world: World) -> None:
    """k0 and k1 share a lane's batch: the one that fetches first is decided last, and both count once."""
    same = [key for n in range(99) if partition_of(key := f"k{n}".encode(), PARTITIONS) == 0][:2]
    async with running(world) as engine:
        await world.append("in", same[0], b"first")
        await engine.outputs(1)
    await world.append("in", same[0], b"fetch:0")
    await world.append("in", same[1], b"other")
    async with running(world) as engine:
        await engine.outputs(3)
    async with running(world) as engine:
        await world.append("in", same[1], b"last")
        found = await engine.outputs(4)

    assert found[same[1]] == ["1:other:-", "2:last:-"]
