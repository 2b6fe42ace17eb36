"""The log a page at a time: whole partitions, and single records at known places."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from aiokafka.errors import (
    KafkaError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    for_code,
)

from holdshort.stream.errors import Retry
from holdshort.stream.kafka.batches import Page
from holdshort.stream.kafka.consumers import said
from holdshort.stream.kafka.fetching import Fetcher
from holdshort.stream.kafka.names import Names
from holdshort.stream.records import Record, RecordPlace, TopicPartition

SCAN_BYTES: Final = 4 * 1024 * 1024
SCAN_WAIT_MS: Final = 200
PLACE_BYTES: Final = 128 * 1024


class Pages:
    """Reads pages on a connection of its own; closed, it opens again when it is used."""

    def __init__(self, client: Mapping[str, Any], names: Names, stall_deadline: float) -> None:
        self._fetcher = Fetcher(client, names)
        self._stall_deadline = stall_deadline

    # -- whole partitions ----------------------------------------------------------------------------------

    async def scan(self, where: TopicPartition, start: int, end: int) -> AsyncIterator[Sequence[Record]]:
        """Committed records from `start` up to `end`, in order. Raises Retry if that does not get on."""
        asked = asyncio.ensure_future(self._page(where, start, SCAN_BYTES, SCAN_WAIT_MS, committed=True))
        last = time.monotonic()
        try:
            while start < end:
                page = await asked
                if page.following < end:  # the broker reads on while these are used
                    asked = asyncio.ensure_future(
                        self._page(where, page.following, SCAN_BYTES, SCAN_WAIT_MS, committed=True)
                    )
                if page.following > start:
                    last = time.monotonic()
                elif time.monotonic() - last > self._stall_deadline:
                    raise Retry(f"{where.topic}/{where.partition} stops at {start}, before its end {end}")
                start = page.following
                if records := [record for record in page.records if record.offset < end]:
                    yield records
        finally:
            asked.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await asked

    # -- single records ------------------------------------------------------------------------------------

    async def at(self, places: Collection[RecordPlace]) -> Mapping[RecordPlace, Record | None]:
        """The records at these places; None for what is not there, or not any more."""
        offsets: dict[TopicPartition, set[int]] = defaultdict(set)
        for where, offset in places:
            offsets[where].add(offset)
        found = await asyncio.gather(*(self._at(where, sorted(wanted)) for where, wanted in offsets.items()))
        return {place: record for records in found for place, record in records.items()}

    async def _at(self, where: TopicPartition, wanted: Sequence[int]) -> dict[RecordPlace, Record | None]:
        """One page may hold many of them; what was read committed once may be read uncommitted again."""
        found: dict[RecordPlace, Record | None] = {}
        known: dict[int, Record] = {}
        reached = -1
        for offset in wanted:
            if offset >= reached:
                page = await self._page_at(where, offset, wanted[-1])
                known = {record.offset: record for record in page.records}
                reached = page.following
            found[where, offset] = known.get(offset)
        return found

    async def _page_at(self, where: TopicPartition, offset: int, last: int) -> Page:
        try:
            return await self._page(where, offset, PLACE_BYTES, 0, last, committed=False)
        except OffsetOutOfRangeError:
            return Page((), offset + 1)

    # -- a page --------------------------------------------------------------------------------------------

    async def _page(
        self,
        where: TopicPartition,
        start: int,
        size: int,
        wait_ms: int,
        until: int | None = None,
        *,
        committed: bool,
    ) -> Page:
        """One page of at most `size` bytes, or of one batch, up to `until`.

        Raises OffsetOutOfRangeError, Retry.
        """
        last = time.monotonic()
        while True:
            try:
                return await self._fetched(where, start, size, wait_ms, until, committed=committed)
            except (NotLeaderForPartitionError, LeaderNotAvailableError) as error:
                if time.monotonic() - last > self._stall_deadline:
                    raise Retry(f"{where.topic} could not be read: {said(error)}") from error
                await self._fetcher.renew()
            except OffsetOutOfRangeError:
                raise
            except (KafkaError, OSError, TimeoutError) as error:
                raise Retry(f"{where.topic} could not be read: {said(error)}") from error

    async def _fetched(
        self,
        where: TopicPartition,
        start: int,
        size: int,
        wait_ms: int,
        until: int | None,
        *,
        committed: bool,
    ) -> Page:
        ((node, _),) = (await self._fetcher.leaders([where])).items()
        (found,) = await self._fetcher.fetch(node, {where: start}, size, wait_ms, until, committed=committed)
        if found.page is None:
            raise for_code(found.code)(where.topic)
        return found.page

    async def close(self) -> None:
        await self._fetcher.close()
