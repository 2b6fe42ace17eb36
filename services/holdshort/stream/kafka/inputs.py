"""The reader of one lane: its partitions from known offsets on, whatever arrives as soon as it does.

For each broker that leads some of them, one request is under way: while nothing is at hand it waits there
for the next record; while the lane is at work it fetches ahead, for those partitions that run short.
"""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final

from aiokafka.errors import KafkaError, OffsetOutOfRangeError, for_code

from holdshort.stream.errors import Retry, StreamError
from holdshort.stream.kafka.batches import Page
from holdshort.stream.kafka.consumers import said
from holdshort.stream.kafka.fetching import Fetched, Fetcher
from holdshort.stream.ports import Positions
from holdshort.stream.records import Record, TopicPartition

PAGE_BYTES: Final = 1024 * 1024
RUNS_SHORT: Final = 2_000  # records at hand of a partition, below which more is fetched
WAIT_MS: Final = 500
LOOK_AGAIN_S: Final = 0.1
GIVE_UP_S: Final = 15.0  # a partition that cannot be read for so long is a reason to begin again


class _Buffer:
    """What has been fetched of a partition and not been taken."""

    def __init__(self, position: int) -> None:
        self.following = position
        self.end = position
        self._records: list[Record] = []
        self._taken = 0

    def __len__(self) -> int:
        return len(self._records) - self._taken

    @property
    def position(self) -> int:
        return self._records[self._taken].offset if len(self) else self.following

    def add(self, page: Page) -> None:
        self._records = [*self._records[self._taken :], *page.records]
        self._taken, self.following = 0, page.following

    def take(self, most: int) -> Sequence[Record]:
        taken = self._records[self._taken : self._taken + most]
        self._taken += len(taken)
        return taken


class AioInputs:
    """The reader of one lane (ports.Inputs)."""

    def __init__(
        self, fetcher: Fetcher, positions: Mapping[TopicPartition, int], ranks: Sequence[Collection[str]]
    ) -> None:
        self._fetcher = fetcher
        self._buffers = {where: _Buffer(at) for where, at in positions.items()}
        self._ranks = [[where for where in positions if where.topic in rank] for rank in ranks if rank]
        self._led: dict[int, list[TopicPartition]] = {}
        self._arrived = asyncio.Event()
        self._room: dict[int, asyncio.Event] = {}
        self._trouble: StreamError | None = None
        self._turn = 0
        self._feeding: dict[int, asyncio.Task[None]] = {}
        self._leading = asyncio.create_task(self._follow_leaders())
        self._moved = asyncio.Event()

    # -- taking --------------------------------------------------------------------------------------------

    async def take(self, share: int, patience: float) -> list[Record]:
        self._arrived.clear()
        records = self._take(share)
        if not records and self._trouble is None and patience > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._arrived.wait()
            records = self._take(share)
        else:
            await asyncio.sleep(0)  # the others' turn
        if not records and self._trouble is not None:
            raise self._trouble
        return records

    def _take(self, share: int) -> list[Record]:
        """A share of each rank, its partitions in turn."""
        records: list[Record] = []
        self._turn += 1
        for rank in self._ranks:
            left, first = share, self._turn % max(1, len(rank))
            for where in (*rank[first:], *rank[:first]):
                taken = self._buffers[where].take(left)
                records += taken
                left -= len(taken)
        for room in self._room.values():
            room.set()
        return records

    def position(self, where: TopicPartition) -> int:
        return self._buffers[where].position

    def lag(self) -> Positions:
        return {where: max(0, buffer.end - buffer.position) for where, buffer in self._buffers.items()}

    # -- fetching ------------------------------------------------------------------------------------------

    async def _follow_leaders(self) -> None:
        """Whenever a leader may have moved: one feed for each broker that leads something of ours."""
        failing_since: float | None = None
        while True:
            self._moved.clear()
            try:
                self._led = await self._fetcher.leaders(self._buffers)
                failing_since = None
            except (KafkaError, OSError, TimeoutError) as error:
                failing_since = failing_since or time.monotonic()
                await self._look_again(error, failing_since)
                continue
            for node in self._led.keys() - self._feeding.keys():
                self._room[node] = asyncio.Event()
                self._feeding[node] = asyncio.create_task(self._feed(node))
            for room in self._room.values():
                room.set()
            await self._moved.wait()

    async def _feed(self, node: int) -> None:
        """Fetch what this broker leads, for as long as it does."""
        failing_since: float | None = None
        while True:
            self._room[node].clear()
            idle = not any(len(buffer) for buffer in self._buffers.values())
            short = {
                where: buffer.following
                for where in self._led.get(node, ())
                if len(buffer := self._buffers[where]) < RUNS_SHORT
            }
            if not short:
                await self._room[node].wait()
                continue
            wait_ms = WAIT_MS if idle else 0
            try:
                fetched = await self._fetcher.fetch(node, short, PAGE_BYTES, wait_ms, committed=True)
                came = self._keep(fetched)
                failing_since = None
            except (KafkaError, OSError, TimeoutError) as error:
                failing_since = failing_since or time.monotonic()
                await self._look_again(error, failing_since)
                self._moved.set()
                continue
            if not came and not idle:
                await self._room[node].wait()

    def _keep(self, fetched: Sequence[Fetched]) -> bool:
        """Whether anything came. Raises KafkaError for a partition that this broker cannot serve."""
        came, error = False, None
        for where, code, page, end in fetched:
            if page is None:
                error = for_code(code)(where.topic)
                if isinstance(error, OffsetOutOfRangeError):
                    # The next restore compares stored positions and log, and halts if that is what is wrong.
                    self._give_up(Retry(f"{where.topic}/{where.partition} does not hold what is read next"))
                continue
            buffer = self._buffers[where]
            buffer.end = end
            came = came or page.following > buffer.following
            buffer.add(page)
        if came:
            self._arrived.set()
        if error is not None:
            raise error
        return came

    async def _look_again(self, error: BaseException, since: float) -> None:
        if time.monotonic() - since > GIVE_UP_S:
            self._give_up(Retry(f"inputs could not be read: {said(error)}"))
        await asyncio.sleep(LOOK_AGAIN_S)
        with suppress(KafkaError, OSError, TimeoutError):
            await self._fetcher.renew()

    def _give_up(self, trouble: StreamError) -> None:
        self._trouble = trouble
        self._arrived.set()

    async def close(self) -> None:
        tasks = [self._leading, *self._feeding.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._fetcher.close()
