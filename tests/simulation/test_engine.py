"""The engine in thousands of histories: killed, frozen, cut off at every step; every record counts once.

The real task, runner, batch and restore code runs on the memory log in virtual time. What must hold is
simple to say: the outputs of a key number its records 1, 2, 3 in their order, each once, whatever happened.
"""

import os
import random
from collections.abc import Callable

import pytest
from tests.simulation.worlds import Fleet, Odds
from tests.virtual import VirtualClock, in_virtual_time, pass_time
from tests.worlds import Count, Counter, MemoryWorld, by_key, runner_of

from holdshort.stream.runner import Runner

HISTORIES = int(os.environ.get("HOLDSHORT_TEST_HISTORIES", "60"))
RECORDS = 60
KEYS = 7


async def history(
    seed: int, odds: Odds, processes: int = 3, make: Callable[..., Runner[Count]] = runner_of
) -> Fleet:
    """One history; raises AssertionError if anything was lost, doubled or reordered."""
    chance = random.Random(seed)
    world = MemoryWorld(VirtualClock())
    fleet = Fleet(world, world.broker, odds, seed)
    for _ in range(processes):
        fleet.start(make)
    sent: dict[bytes, list[str]] = {f"k{n}".encode(): [] for n in range(KEYS)}
    for number in range(RECORDS):
        key = chance.choice(list(sent))
        await world.append("in", key, f"v{number}".encode())
        sent[key].append(f"v{number}")
        if chance.random() < 0.2:
            world.broker.compact(chance.choice(["state", "app.positions"]))
        await pass_time(chance.random())
    fleet.calm()
    await pass_time(120)
    fleet.check()
    check(world, sent, seed)
    await fleet.stop()
    return fleet


def check(world: MemoryWorld, sent: dict[bytes, list[str]], seed: int) -> None:
    found = by_key(world.broker.committed("out"))
    wanted = {
        key: [f"{n}:{value}:-" for n, value in enumerate(values, 1)] for key, values in sent.items() if values
    }
    assert dict(found) == wanted, f"seed {seed}"
    states: dict[bytes, Count] = {}
    for record in world.broker.committed("state"):
        assert record.key is not None
        states[record.key] = Counter().decode(record.value or b"")
    assert {key: state.count for key, state in states.items()} == {k: len(v) for k, v in wanted.items()}
    open_ones = [p for p in world.broker.producers.values() if p.transaction is not None]
    assert open_ones == [], f"seed {seed}: a transaction was left open"


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_every_record_counts_once_whatever_happens(seed: int) -> None:
    in_virtual_time(history(seed, Odds()))


@pytest.mark.parametrize("seed", range(1000, 1000 + HISTORIES // 4))
def test_and_under_far_more_faults_than_life_has(seed: int) -> None:
    odds = Odds(kill=0.01, freeze=0.02, fail=0.08, late_end=0.15)
    in_virtual_time(history(seed, odds, processes=4))
