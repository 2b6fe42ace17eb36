"""Virtual time: an event loop that never waits, and a clock that shows its time.

Whatever would wait for a timer happens at once, in the order of the timers, so that hours of leases and
backoffs pass in milliseconds and every run of a seed is the same.
"""

import asyncio
import heapq
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

EPOCH_MS: Final = 1_796_000_000_000


class VirtualLoop(asyncio.SelectorEventLoop):
    """Advances to the next timer whenever there is nothing else to do."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        loop: Any = self  # what follows is asyncio's own, and untyped
        while loop._scheduled and loop._scheduled[0].cancelled():
            heapq.heappop(loop._scheduled)._scheduled = False
            loop._timer_cancelled_count -= 1
        if not loop._ready and loop._scheduled:
            self._now = max(self._now, loop._scheduled[0].when())
        super()._run_once()  # type: ignore[misc]


class VirtualClock:
    """stream.ports.Clock on the loop's time; `skew_ms` makes it differ from the broker's."""

    def __init__(self, skew_ms: int = 0) -> None:
        self.skew_ms = skew_ms

    def now(self) -> int:
        return EPOCH_MS + self.skew_ms + int(asyncio.get_running_loop().time() * 1000)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await pass_time(seconds)


async def pass_time(seconds: float) -> None:
    """Let everything happen that happens within so much time."""
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    loop.call_later(seconds, _end, passed)
    await passed


def _end(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time; tasks that are left then are cancelled."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(_with_nothing_left(main))
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _with_nothing_left(main: Coroutine[Any, Any, T]) -> T:
    try:
        return await main
    finally:
        while left := asyncio.all_tasks() - {asyncio.current_task()}:  # one that ends may start another
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
