"""What the engine writes of its positions fits its schema: gate and router on the memory log."""

from typing import Final

import orjson
from tests.clients import an_input, an_interrupt, paused
from tests.schemas.catalogue import ALL, members, present
from tests.systems import LANES, System, system
from tests.virtual import in_virtual_time

from holdshort.stream.positions import decode_positions

CONFIG: Final = """
teams: {payments: {}}
default_team: payments
"""


async def some_work(installation: System, thread: str) -> None:
    """A thread asks, pauses, is answered by its team and resumed."""
    await installation.send("inputs", an_input(thread, "r1"))
    await installation.send("agent-events.default", paused(thread, "r1", an_interrupt("a")))
    await installation.decide("payments", thread, {"a": True})


async def positions_of_a_busy_day() -> dict[str, list[bytes]]:
    """What each service wrote, in its order."""
    async with system(CONFIG) as installation:
        for thread in ("t", "u", "v", "w"):
            await some_work(installation, thread)
        await installation.restart("gatekeeper")
        await some_work(installation, "x")
    topics = {app: f"{app}.positions" for app in ("gatekeeper", "router")}
    return {
        app: [record.value or b"" for record in installation.broker.committed(topic)]
        for app, topic in topics.items()
    }


def test_the_positions_of_both_services_fit_their_schema() -> None:
    schema, found = ALL["positions.v1"], set[str]()

    for written in in_virtual_time(positions_of_a_busy_day()).values():
        assert len(written) > 5
        for value in written:
            assert schema.problems(orjson.loads(value)) == []
            assert decode_positions(value).lanes == LANES
            found.update(present(orjson.loads(value)))
    assert members(schema) <= found
