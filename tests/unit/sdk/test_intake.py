"""A run is executed at most once, whatever becomes of workers and groups, and none is forgotten."""

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable

import pytest
from tests.unit.sdk.groups import Group
from tests.virtual import EPOCH_MS, in_virtual_time, pass_time

from holdshort.sdk.intake import COMMIT_DEADLINE_S
from holdshort.sdk.ledger import Ledger
from holdshort.stream.errors import Fatal
from holdshort.stream.records import Record

MINUTE_MS = 60_000


def rule(test: Callable[[Group], Awaitable[None]]) -> Callable[[], None]:
    """A test with a group of its own, in virtual time."""

    @functools.wraps(test)
    def run() -> None:
        async def main() -> None:
            await test(Group())

        in_virtual_time(main())

    del run.__dict__["__wrapped__"]  # pytest would look for a fixture `group`
    return run


# -- one worker ---------------------------------------------------------------------------------------------


@rule
async def test_that_it_has_begun_is_durable_before_a_run_is_executed(group: Group) -> None:
    seen = []

    def look(_: object) -> None:
        seen.append(Ledger.decode(*group.committed[0]).begun | Ledger.decode(*group.committed[1]).begun)

    worker = await group.join("w1")
    worker.before_executing = look
    group.committed = {0: (0, ""), 1: (0, "")}
    group.admit("t", "r")
    await pass_time(1)

    assert seen == [{0: "w1"}]


@rule
async def test_a_run_is_not_executed_while_nothing_can_be_committed(group: Group) -> None:
    worker = await group.join("w1")
    group.refusing_commits = True
    run = group.admit("t", "r")
    await pass_time(5)

    assert group.executed[run] == 0

    group.refusing_commits = False
    await pass_time(5)

    assert group.executed[run] == 1
    assert worker.running


@rule
async def test_a_worker_that_can_commit_nothing_for_long_ends(group: Group) -> None:
    worker = await group.join("w1")
    group.refusing_commits = True
    group.admit("t", "r")

    with pytest.raises(Fatal, match="nothing can be committed"):
        await asyncio.wait_for(worker.serving, COMMIT_DEADLINE_S + 10)


@rule
async def test_threads_go_side_by_side_up_to_the_limit(group: Group) -> None:
    worker = await group.join("w1", concurrency=2)
    for number in range(3):
        group.admit(f"t{number}", f"r{number}")
    await pass_time(1)

    assert len(worker.running) == 2

    worker.release(next(iter(worker.running)))
    await pass_time(1)

    assert len(worker.running) == 2
    assert sum(group.executed.values()) == 3


@rule
async def test_runs_of_one_thread_go_one_after_the_other(group: Group) -> None:
    worker = await group.join("w1", grace=60)
    group.admit("t", "r1")
    group.admit("t", "r2")
    await pass_time(10)

    assert set(worker.running) == {"r1"}

    worker.release("r1")
    await pass_time(1)

    assert set(worker.running) == {"r2"}
    assert worker.cancelled == []


@rule
async def test_an_earlier_run_of_the_thread_is_cancelled_when_its_grace_is_over(group: Group) -> None:
    """The gate admits one run of a thread at a time, so it has given the earlier one up."""
    worker = await group.join("w1", grace=20)
    group.admit("t", "r1")
    await pass_time(1)
    group.admit("t", "r2")
    await pass_time(19)

    assert set(worker.running) == {"r1"}

    await pass_time(2)

    assert set(worker.running) == {"r2"}
    assert worker.cancelled == ["r1"]


@rule
async def test_of_several_runs_that_wait_for_a_thread_only_the_newest_is_executed(group: Group) -> None:
    worker = await group.join("w1")
    runs = [group.admit("t", f"r{number}") for number in range(3)]
    await pass_time(1)
    worker.release("r0")
    await pass_time(1)

    assert set(worker.running) == {"r2"}
    assert group.answered == {runs[1]: 1}


@rule
async def test_a_run_that_is_read_too_late_is_answered_and_not_executed(group: Group) -> None:
    await group.join("w1")
    late = group.admit("t1", "r1", start_by=EPOCH_MS)
    timely = group.admit("t2", "r2", start_by=EPOCH_MS + MINUTE_MS)
    await pass_time(1)

    assert group.executed == {timely: 1}
    assert group.answered == {late: 1}


@rule
async def test_an_admission_that_was_seen_before_is_not_executed_again(group: Group) -> None:
    worker = await group.join("w1")
    run = group.admit("t", "r1")
    await pass_time(1)
    worker.release("r1")
    await pass_time(1)
    group.admit("t", "r1", admission=run)
    await pass_time(1)

    assert group.executed == {run: 1}
    assert group.answered == {}


@rule
async def test_what_the_gate_cannot_have_written_is_passed_over(group: Group) -> None:
    await group.join("w1")
    group.append(0, Record("runs.a", 0, 0, b"t", b"{}", [], 0))
    await pass_time(1)

    assert group.executed == {}
    assert group.answered == {}
    assert group.committed[0] == (1, "")


# -- several workers ----------------------------------------------------------------------------------------


@rule
async def test_a_run_that_had_begun_when_its_worker_died_is_answered_and_never_executed_again(
    group: Group,
) -> None:
    await group.join("w1")
    run = group.admit("t", "r")
    await pass_time(1)
    await group.kill("w1")

    await group.join("w2")
    await pass_time(1)

    assert group.executed == {run: 1}
    assert group.answered == {run: 1}


@rule
async def test_a_run_that_still_waited_when_its_worker_died_is_executed_by_the_next(group: Group) -> None:
    await group.join("w1", grace=600)
    before, waiting = group.admit("t", "r1"), group.admit("t", "r2")
    group.admit("u", "r3")
    await pass_time(1)
    await group.kill("w1")

    await group.join("w2")
    await pass_time(1)

    assert group.answered[before] == 1
    assert group.executed[waiting] == 1
    assert group.answered[waiting] == 0


@rule
async def test_a_run_whose_partition_moves_is_finished_by_the_worker_that_began_it(group: Group) -> None:
    first = await group.join("w1")
    runs = [group.admit(f"t{number}", f"r{number}") for number in range(10)]
    await pass_time(1)
    await group.join("w2")
    await pass_time(1)

    assert len(first.running) == 10

    for run_id in list(first.running):
        first.release(run_id)
    await pass_time(1)

    assert group.executed == dict.fromkeys(runs, 1)
    assert group.answered == {}


@rule
async def test_a_run_whose_worker_dies_after_its_partition_has_moved_is_answered(group: Group) -> None:
    await group.join("w1")
    runs = [group.admit(f"t{number}", f"r{number}") for number in range(10)]
    await pass_time(1)
    await group.join("w2")
    await pass_time(1)
    await group.kill("w1")
    await pass_time(1)

    assert group.executed == dict.fromkeys(runs, 1)
    assert group.answered == dict.fromkeys(runs, 1)


@rule
async def test_a_run_that_ends_is_not_answered_later_by_whoever_comes_next(group: Group) -> None:
    worker = await group.join("w1")
    run = group.admit("t", "r")
    await pass_time(1)
    worker.release("r")
    await pass_time(1)
    await group.kill("w1")
    await group.join("w2")
    await pass_time(1)

    assert group.executed == {run: 1}
    assert group.answered == {}


@rule
async def test_what_has_ended_just_before_a_rebalance_is_known_after_it(group: Group) -> None:
    worker = await group.join("w1")
    run = group.admit("t", "r")
    await pass_time(1)
    worker.release("r")
    await pass_time(0)
    await group.join("w2")
    await group.kill("w1")
    await pass_time(1)

    assert group.executed == {run: 1}
    assert group.answered == {}


@rule
async def test_a_commit_that_hangs_over_a_rebalance_holds_no_run_for_ever(group: Group) -> None:
    worker = await group.join("w1")
    group.commit_takes = 10
    run = group.admit("t", "r")
    await pass_time(1)
    await group.rebalance()
    group.commit_takes = 0.01
    await pass_time(20)

    assert group.executed == {run: 1}

    worker.release("r")
    await pass_time(1)

    assert worker.idle


# -- stopping -----------------------------------------------------------------------------------------------


@rule
async def test_a_worker_that_is_told_to_stop_finishes_what_has_begun_and_takes_no_more(group: Group) -> None:
    worker = await group.join("w1")
    begun = group.admit("t1", "r1")
    await pass_time(1)
    leaving = asyncio.create_task(group.leave("w1"))
    await pass_time(1)
    later = group.admit("t2", "r2")
    await pass_time(1)

    assert not leaving.done()

    worker.release("r1")
    await leaving
    await group.join("w2")
    await pass_time(1)

    assert group.executed == {begun: 1, later: 1}
    assert group.answered == {}
    assert worker.cancelled == []


@rule
async def test_what_is_not_finished_within_the_grace_is_cancelled(group: Group) -> None:
    worker = await group.join("w1", grace=20)
    run = group.admit("t", "r")
    await pass_time(1)
    leaving = asyncio.create_task(group.leave("w1"))
    await pass_time(19)

    assert not leaving.done()

    await pass_time(2)
    await leaving
    await group.join("w2")
    await pass_time(1)

    assert worker.cancelled == ["r"]
    assert group.executed == {run: 1}
    assert group.answered == {}


@rule
async def test_what_waits_when_a_worker_stops_is_left_to_the_next(group: Group) -> None:
    worker = await group.join("w1", grace=60)
    group.admit("t", "r1")
    waiting = group.admit("t", "r2")
    await pass_time(1)
    leaving = asyncio.create_task(group.leave("w1"))
    await pass_time(1)
    worker.release("r1")
    await leaving
    await group.join("w2")
    await pass_time(1)

    assert group.executed[waiting] == 1
    assert group.answered == {}


@rule
async def test_what_was_about_to_begin_when_a_worker_stops_is_left_to_the_next(group: Group) -> None:
    """Its beginning is on its way to the coordinator already, and is taken back."""
    await group.join("w1")
    await pass_time(1)
    run = group.admit("t", "r1")
    await pass_time(0.005)
    await group.leave("w1")

    assert group.executed[run] == 0

    await group.join("w2")
    await pass_time(1)

    assert group.executed[run] == 1
    assert group.answered == {}


# -- everything at once -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(100))
def test_every_run_is_executed_at_most_once_and_every_run_ends(seed: int) -> None:
    in_virtual_time(_history(random.Random(seed)))


async def _history(dice: random.Random) -> None:
    """Workers come, go and die, commits fail; in the end one is there for long enough."""
    group = Group()
    runs: list[str] = []
    for number in range(60):
        match dice.choice(
            ["admit"] * 5 + ["release"] * 3 + ["join", "join", "kill", "leave", "fail", "mend"]
        ):
            case "admit":
                runs.append(group.admit(f"t{dice.randrange(6)}", f"r{number}"))
            case "join" if len(group.workers) < 3:
                await group.join(f"w{number}", grace=2, concurrency=3)
            case "kill" if group.workers:
                await group.kill(dice.choice(list(group.workers)))
            case "leave" if group.workers:
                await group.leave(dice.choice(list(group.workers)))
            case "fail":
                group.refusing_commits = True
            case "mend":
                group.refusing_commits = False
            case _:
                _release_some(group, 0.5, dice)
        await pass_time(dice.choice([0.0, 0.005, 0.02, 0.5]))
    group.refusing_commits = False
    await group.join("last")
    for _ in range(60):
        await pass_time(1)
        _release_some(group, 1.0, dice)

    assert max(group.executed.values(), default=0) <= 1
    assert {run for run in runs if run not in group.ended and not group.answered[run]} == set()
    assert all(worker.idle for worker in group.workers.values())


def _release_some(group: Group, odds: float, dice: random.Random) -> None:
    for worker in list(group.workers.values()):
        for run_id in list(worker.running):
            if dice.random() < odds:
                worker.release(run_id)
