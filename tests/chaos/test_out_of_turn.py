"""Found by chaos: a record that others overtook in its batch took the position back behind them."""

import asyncio

from tests.worlds import MemoryWorld, Signals, by_key, committed, runner_of


async def outputs(world: MemoryWorld, wanted: int) -> dict[bytes, list[str]]:
    """What a process of the engine has written once there are so many records."""
    signals = Signals()
    runner = runner_of(world, signals)
    task = asyncio.create_task(runner.run())
    try:
        await signals.until(lambda: runner.ready)
        return dict(by_key(await committed(world, signals, "out", wanted)))
    finally:
        runner.stop()
        await task


async def test_what_was_judged_out_of_its_turn_is_not_judged_again() -> None:
    world = MemoryWorld()
    await world.append("in", b"waits", b"fetch:0", partition=0)
    await world.append("in", b"overtakes", b"first", partition=0)

    before = await outputs(world, 2)
    await world.append("in", b"overtakes", b"second", partition=0)
    after = await outputs(world, 3)

    assert before[b"overtakes"] == ["1:first:-"]
    assert after[b"overtakes"] == ["1:first:-", "2:second:-"]
    assert after[b"waits"] == ["1:fetched:fetch:0:-"]
