"""The event loop's lateness is measured by the loop itself: what blocks it shows."""

import asyncio
import threading

from prometheus_client import CollectorRegistry

from holdshort.stream.service import LOOK_S, _watch_loop
from holdshort.telemetry.metrics import EngineMetrics


async def test_a_blocked_loop_is_late_by_as_much() -> None:
    registry = CollectorRegistry()
    watching = asyncio.create_task(_watch_loop(EngineMetrics("router", registry)))

    def told(what: str) -> float:
        name = f"holdshort_event_loop_lag_seconds_{what}"
        return registry.get_sample_value(name, {"service": "router"}) or 0.0

    async def until_looked_again() -> None:
        looks = told("count")
        async with asyncio.timeout(10):
            while told("count") == looks:  # noqa: ASYNC110 - what is waited for is a number
                await asyncio.sleep(LOOK_S / 10)

    await until_looked_again()
    before = told("sum")
    threading.Event().wait(2 * LOOK_S)  # nothing else of this loop has its turn meanwhile
    await until_looked_again()
    watching.cancel()

    assert told("sum") - before > LOOK_S * 0.9
