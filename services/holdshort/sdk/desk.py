"""Questions on their way to a decision: several at once, each tried again after a failure, none lost.

A partition's offset is committed behind what is dealt with without a gap, so what a process leaves open comes
again to the next one. A question that fails is put aside, never asked in a loop, and does not hold up others.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from holdshort.stream.records import Record

MOST_OPEN: Final = 1000  # records taken and not dealt with; beyond it nothing more is taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often a question that fails is tried, and after how many seconds; each pause is twice the last."""

    tries: int = 8
    first_pause: float = 10.0
    longest_pause: float = 600.0

    def pause(self, failures: int) -> float | None:
        """How long to wait after so many failures; None: not again."""
        if failures >= self.tries:
            return None
        return float(min(self.longest_pause, self.first_pause * 2 ** (failures - 1)))


@dataclass(slots=True)
class Watermark:
    """How far one partition has been dealt with without a gap."""

    next: int = -1
    open: set[int] = field(default_factory=set)
    committed: int = -1

    def take(self, offset: int) -> None:
        if not 0 <= self.next <= offset:  # the first, or read again after a rebalance: begin anew
            self.open.clear()
            self.committed = offset
        self.next = offset + 1
        self.open.add(offset)

    def done(self, offset: int) -> int | None:
        """The position to commit now; None if it is the last one still."""
        self.open.discard(offset)
        position = min(self.open, default=self.next)
        if position <= self.committed:
            return None
        self.committed = position
        return position


@dataclass(slots=True, eq=False)
class _Case:
    """One record that is being dealt with; `replaced` ends its waiting for another try."""

    record: Record
    before: "_Case | None"
    replaced: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None


class Desk:
    """Deals with records by `consider`, which raises where a record is to be tried again.

    What it returns says in how many seconds the record is to be considered again; None: it is dealt with.
    `failed` is told of every failure, and in how many seconds the next try comes (None: there is none).
    Records of one key are dealt with one after the other; a later one ends the tries of an earlier.
    """

    def __init__(
        self,
        consider: Callable[[Record], Awaitable[float | None]],
        failed: Callable[[Record, Exception, float | None], None],
        commit: Callable[[int, int], Awaitable[None]],
        *,
        concurrency: int = 10,
        patience: Patience = Patience(),
    ) -> None:
        self._consider = consider
        self._failed = failed
        self._commit = commit
        self._patience = patience
        self._room = asyncio.Semaphore(MOST_OPEN)
        self._slots = asyncio.Semaphore(concurrency)
        self._marks: dict[int, Watermark] = {}
        self._cases: dict[bytes, _Case] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, record: Record) -> None:
        """Take a record; returns as soon as there is room for it, long before it is dealt with."""
        await self._room.acquire()
        self._marks.setdefault(record.partition, Watermark()).take(record.offset)
        key = record.key or b""
        case = _Case(record, self._cases.get(key))
        if case.before is not None:
            case.before.replaced.set()
        self._cases[key] = case
        case.task = asyncio.create_task(self._deal_with(case))
        self._tasks.add(case.task)
        case.task.add_done_callback(self._tasks.discard)

    async def close(self, grace: float) -> None:
        """Let what is being considered finish within so many seconds; what waits comes again elsewhere."""
        for case in self._cases.values():
            case.replaced.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _deal_with(self, case: _Case) -> None:
        try:
            if case.before is not None and case.before.task is not None:
                await asyncio.wait([case.before.task])
            case.before = None
            if await self._decided(case):
                await self._done(case.record)
        finally:
            self._room.release()
            key = case.record.key or b""
            if self._cases.get(key) is case:
                del self._cases[key]

    async def _decided(self, case: _Case) -> bool:
        """Whether nothing is left to be done about it: dealt with, replaced, or given up."""
        failures = 0
        while True:
            try:
                async with self._slots:
                    pause = await self._consider(case.record)
            except Exception as error:
                failures += 1
                pause = self._patience.pause(failures)
                self._failed(case.record, error, pause)
            if pause is None:
                return True
            if await _happens(case.replaced, pause):
                return self._cases.get(case.record.key or b"") is not case

    async def _done(self, record: Record) -> None:
        position = self._marks[record.partition].done(record.offset)
        if position is not None:
            await self._commit(record.partition, position)


async def _happens(event: asyncio.Event, within: float) -> bool:
    try:
        async with asyncio.timeout(within):
            return await event.wait()
    except TimeoutError:
        return False
