"""A question that fails is tried again, never in a loop, and nothing is forgotten until it is dealt with."""

import asyncio
import functools
from collections.abc import Awaitable, Callable

from tests.virtual import in_virtual_time, pass_time

from holdshort.sdk.desk import MOST_OPEN, Desk, Patience, Watermark
from holdshort.stream.records import Record


class Office:
    """A desk, and what comes of it."""

    def __init__(self) -> None:
        self.considered: list[int] = []
        self.failures: list[tuple[int, float | None]] = []
        self.committed: list[tuple[int, int]] = []
        self.failing: set[int] = set()
        self.later: dict[int, float] = {}
        self.held: dict[int, asyncio.Event] = {}
        patience = Patience(tries=4, first_pause=10, longest_pause=30)
        self.desk = Desk(self.consider, self.failed, self.commit, concurrency=2, patience=patience)

    async def consider(self, record: Record) -> float | None:
        self.considered.append(record.offset)
        if record.offset in self.held:
            await self.held[record.offset].wait()
        if record.offset in self.failing:
            raise RuntimeError
        return self.later.pop(record.offset, None)

    def failed(self, record: Record, _: Exception, pause: float | None) -> None:
        self.failures.append((record.offset, pause))

    async def commit(self, partition: int, position: int) -> None:
        self.committed.append((partition, position))

    async def take(self, offset: int, key: str | None = None, partition: int = 0) -> None:
        record = Record("approvals.a", partition, offset, (key or f"k{offset}").encode(), b"{}", [], 0)
        await self.desk.take(record)

    def hold(self, offset: int) -> None:
        self.held[offset] = asyncio.Event()

    def release(self, offset: int) -> None:
        self.held[offset].set()


def rule(test: Callable[[Office], Awaitable[None]]) -> Callable[[], None]:
    """A test with an office of its own, in virtual time."""

    @functools.wraps(test)
    def run() -> None:
        async def main() -> None:
            await test(Office())

        in_virtual_time(main())

    del run.__dict__["__wrapped__"]  # pytest would look for a fixture `office`
    return run


@rule
async def test_what_is_dealt_with_is_committed(office: Office) -> None:
    await office.take(5)
    await office.take(6)
    await pass_time(1)

    assert office.considered == [5, 6]
    assert office.committed[-1] == (0, 7)


@rule
async def test_what_is_open_is_not_committed_over(office: Office) -> None:
    office.hold(5)
    await office.take(5)
    await office.take(6)
    await pass_time(1)

    assert office.committed == []

    office.release(5)
    await pass_time(1)

    assert office.committed == [(0, 7)]


@rule
async def test_several_are_considered_at_once_up_to_the_limit(office: Office) -> None:
    for offset in range(3):
        office.hold(offset)
        await office.take(offset)
    await pass_time(1)

    assert office.considered == [0, 1]

    office.release(1)
    await pass_time(1)

    assert office.considered == [0, 1, 2]


@rule
async def test_a_failure_is_tried_again_after_longer_and_longer_pauses_and_then_given_up(
    office: Office,
) -> None:
    office.failing = {0}
    await office.take(0)
    await pass_time(9)

    assert office.considered == [0]

    await pass_time(200)

    assert office.failures == [(0, 10), (0, 20), (0, 30), (0, None)]
    assert office.committed == [(0, 1)]


@rule
async def test_what_is_to_be_considered_later_is_no_failure_and_holds_up_nobody(office: Office) -> None:
    office.later = {0: 30}
    for offset in range(4):
        await office.take(offset)
    await pass_time(29)

    assert sorted(office.considered) == [0, 1, 2, 3]
    assert office.committed == []

    await pass_time(2)

    assert sorted(office.considered) == [0, 0, 1, 2, 3]
    assert (office.failures, office.committed) == ([], [(0, 4)])


@rule
async def test_a_newer_record_of_its_key_ends_the_waiting(office: Office) -> None:
    office.later = {0: 600}
    await office.take(0, "k")
    await office.take(1, "k")
    await pass_time(1)

    assert office.considered == [0, 1]
    assert office.committed == [(0, 1), (0, 2)]


@rule
async def test_a_failure_holds_up_nobody_else(office: Office) -> None:
    office.failing = {0, 1}
    for offset in range(5):
        await office.take(offset)
    await pass_time(1)

    assert set(office.considered) == {0, 1, 2, 3, 4}
    assert office.committed == []


@rule
async def test_a_failure_that_is_mended_counts(office: Office) -> None:
    office.failing = {0}
    await office.take(0)
    await pass_time(1)
    office.failing = set()
    await pass_time(10)

    assert office.considered == [0, 0]
    assert office.committed == [(0, 1)]


@rule
async def test_a_later_record_of_the_same_question_ends_the_tries_of_an_earlier(office: Office) -> None:
    """A tombstone, for example: the team is not needed any more."""
    office.failing = {0}
    await office.take(0, key="q")
    await pass_time(1)
    await office.take(1, key="q")
    await pass_time(100)

    assert office.considered == [0, 1]
    assert office.committed[-1] == (0, 2)


@rule
async def test_records_of_one_question_are_considered_one_after_the_other(office: Office) -> None:
    office.hold(0)
    await office.take(0, key="q")
    await office.take(1, key="q")
    await office.take(2, key="q")
    await pass_time(1)

    assert office.considered == [0]

    office.release(0)
    await pass_time(1)

    assert office.considered == [0, 1, 2]


@rule
async def test_what_is_read_again_after_a_rebalance_counts_anew(office: Office) -> None:
    office.hold(0)
    for offset in (0, 1, 0, 1):
        await office.take(offset)
    await pass_time(1)

    assert office.considered == [0, 1, 1]
    assert office.committed == []

    office.release(0)
    await pass_time(1)

    assert office.considered == [0, 1, 1, 0]
    assert office.committed[-1] == (0, 2)


@rule
async def test_partitions_are_counted_apart(office: Office) -> None:
    office.hold(7)
    await office.take(7, partition=1)
    await office.take(3, partition=0)
    await pass_time(1)

    assert office.committed == [(0, 4)]


@rule
async def test_no_more_is_taken_than_can_be_kept(office: Office) -> None:
    office.failing = set(range(MOST_OPEN))
    for offset in range(MOST_OPEN):
        await office.take(offset)
    blocked = asyncio.create_task(office.take(MOST_OPEN))
    await pass_time(1)

    assert not blocked.done()

    office.failing = set()
    await pass_time(20)

    assert blocked.done()


@rule
async def test_closing_lets_what_is_considered_finish_and_leaves_the_rest_to_others(office: Office) -> None:
    office.failing = {0}
    office.hold(1)
    await office.take(0)
    await office.take(1)
    await pass_time(1)
    closing = asyncio.create_task(office.desk.close(30))
    await pass_time(1)
    office.release(1)
    await closing

    assert office.considered == [0, 1]
    assert office.committed == []


@rule
async def test_closing_cancels_what_does_not_finish_within_the_grace(office: Office) -> None:
    office.hold(0)
    await office.take(0)
    await pass_time(1)
    started = asyncio.get_running_loop().time()
    await office.desk.close(30)

    assert asyncio.get_running_loop().time() - started == 30
    assert office.committed == []


def test_a_watermark_is_behind_what_is_done_without_a_gap() -> None:
    mark = Watermark()
    for offset in (4, 5, 9):
        mark.take(offset)

    assert mark.done(5) is None
    assert mark.done(4) == 9
    assert mark.done(9) == 10
    assert mark.done(9) is None
