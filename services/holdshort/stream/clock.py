"""The real clock (ports.Clock)."""

import asyncio
import time


class WallClock:
    """Time as this machine has it."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
