"""Every line of the failure matrix (engine 5), by its name: what happens, and which of four answers it gets.

Each test names its fault, sees that every record still counts once, and sees how the fault shows: the metric,
the log event, and for a halt the command. The real task and runner run on the memory log in virtual time.
"""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import wraps
from typing import Any

import pytest
from tests.simulation.scripted import LANE_0, LANE_1, Scene, raising, scene, silence
from tests.virtual import EPOCH_MS, VirtualClock, in_virtual_time, pass_time
from tests.worlds import SETTINGS, Count, Counter

from holdshort.stream import loss
from holdshort.stream.decider import Context, Step
from holdshort.stream.errors import Fenced, Halt, Retry
from holdshort.stream.marks import Mark
from holdshort.stream.memory import Partition
from holdshort.stream.records import Record, TopicPartition, Write

ACCEPT = "holdshort lanes accept-loss app 0"


def simulated(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        in_virtual_time(test())

    return run


async def accept(one: Scene, start: loss.Start = "end") -> tuple[str, ...]:
    kafka = one.world.process()
    accepted = await loss.accept(0, one.settings, kafka, one.decider(), start)
    await pass_time(10)
    return accepted.lost


def broken_lane(one: Scene, process: int = 0) -> str:
    """The reason for which lane 0 stands still; lane 1 goes on."""
    halted = one.processes[process].halted()
    assert set(halted) == {0}, halted
    assert one.processes[process].runner.tasks[1].state.value == "running"
    assert not one.processes[process].runner.ready
    assert [event["log_level"] for event in one.events("lane_halted")] == ["error"]
    return halted[0]


# -- retry -------------------------------------------------------------------------------------------------


@simulated
async def test_a_crash_before_the_commit_is_sent_leaves_nothing_visible() -> None:
    async with scene() as one:
        first = await one.start()
        first.kafka.happens["end"] = silence
        await one.send("a", within=1)
        assert one.outputs() == []
        first.kill()

        await one.start()
        await one.send("b")

        assert one.outputs() == ["1:a:-", "2:b:-"]


@simulated
async def test_a_crash_after_the_commit_was_accepted_is_not_repeated() -> None:
    async with scene() as one:
        first = await one.start()
        first.kafka.happens["ended"] = silence
        await one.send("a", within=1)
        assert one.outputs() == ["1:a:-"]
        first.kill()

        await one.start()
        await one.send("b")

        assert one.outputs() == ["1:a:-", "2:b:-"]


@pytest.mark.parametrize("step", ["write", "end", "ended"])
def test_a_commit_whose_outcome_is_unknown_is_read_from_the_log(step: str) -> None:
    async def history() -> None:
        async with scene() as one:
            process = await one.start()
            process.kafka.happens[step] = raising(Retry("the connection was reset"))
            await one.send("a")
            await one.send("b")

            assert one.outputs() == ["1:a:-", "2:b:-"]
            assert process.counted("failed") == 1
            assert [event["error"] for event in one.events("lane_retries")] == ["the connection was reset"]

    in_virtual_time(history())


@simulated
async def test_a_commit_that_never_returns_meets_its_deadline() -> None:
    async with scene() as one:
        process = await one.start()
        process.kafka.happens["end"] = silence
        await one.send("a", within=SETTINGS.commit_deadline + 5)

        assert one.outputs() == ["1:a:-"]
        assert process.counted("failed") == 1
        assert [event["error"] for event in one.events("lane_retries")] == ["a transaction took too long"]


@simulated
async def test_all_brokers_down_is_waited_for_with_backoff() -> None:
    async with scene() as one:
        process = await one.start()
        process.kafka.always = raising(Retry("no broker answers"))
        await one.send("a", within=60)
        assert not process.runner.ready
        assert len(one.events("lane_retries")) < 60, "it does not hammer"

        process.kafka.always = None
        await one.send("b")

        assert one.outputs() == ["1:a:-", "2:b:-"]
        assert process.runner.ready


@simulated
async def test_a_restore_that_cannot_reach_the_end_waits_for_the_hanging_transaction() -> None:
    async with scene() as one:
        first = await one.start()
        await one.send("a")
        where = TopicPartition("state", one.partition())
        first.kill()
        hanging = one.world.broker.init_producer("somebody")
        one.world.broker.write("somebody", hanging, where, [Write("state", b"other", b'{"count":0}')])

        second = await one.start()
        await one.send("b")
        assert one.outputs() == ["1:a:-"]
        assert any("before its end" in event["error"] for event in one.events("lane_retries"))

        one.world.broker.init_producer("somebody")  # the broker's timeout aborts it
        await pass_time(30)

        assert one.outputs() == ["1:a:-", "2:b:-"]
        assert second.runner.ready


# -- fenced ------------------------------------------------------------------------------------------------


@simulated
async def test_a_zombie_is_fenced_and_nothing_of_it_is_visible() -> None:
    async with scene() as one:
        zombie = await one.start()

        async def stopped() -> None:
            zombie.kafka.lose_membership()
            await pass_time(5)

        zombie.kafka.happens["end"] = stopped
        await one.send("a", within=1)
        await one.start()
        await one.send("b")
        await pass_time(30)

        assert one.outputs() == ["1:a:-", "2:b:-"]
        assert zombie.counted("fenced") == 1
        assert [event["lane"] for event in one.events("lane_fenced")] == [0]


@simulated
async def test_a_stale_owner_that_fences_last_costs_time_and_no_record() -> None:
    async with scene() as one:
        process = await one.start()
        await one.send("a")
        stale = await one.world.process().fence("app-0")
        await one.send("b", within=1)
        assert process.counted("fenced") == 1

        await pass_time(30)
        with pytest.raises(Fenced):
            await stale.commit({TopicPartition("out", 0): [Write("out", LANE_0, b"stale")]})

        assert one.outputs() == ["1:a:-", "2:b:-"]


@simulated
async def test_a_storm_of_rebalances_fences_a_lane_once_at_a_time_and_loses_nothing() -> None:
    async with scene() as one:
        process = await one.start()
        for number in range(40):
            process.runner._on_assigned(frozenset({0, 1} if number % 2 else {1}))
            await one.send(f"v{number}", within=0.05 if number % 3 else 0)
        await pass_time(30)

        assert one.outputs() == [f"{number + 1}:v{number}:-" for number in range(40)]
        assert process.kafka.most_fencing == 1


@simulated
async def test_a_lane_that_stays_is_not_restored_again_in_a_rebalance() -> None:
    async with scene() as one:
        process = await one.start()
        kept = process.runner.tasks[1]
        process.runner._on_assigned(frozenset({1}))
        process.runner._on_assigned(frozenset({0, 1}))
        await pass_time(5)

        assert process.runner.tasks[1] is kept


# -- halt --------------------------------------------------------------------------------------------------


class Raises(Counter):
    """A decider with a defect, against its promise."""

    def decide(self, state: Count | None, record: Record, context: Context) -> Step[Count]:
        if record.value == b"poison":
            raise KeyError(record.value)
        return super().decide(state, record, context)


@simulated
async def test_a_defect_in_a_decider_halts_its_lane_alone_and_never_shows_what_was_written() -> None:
    async with scene(decider=Raises) as one:
        await one.start()
        await one.send("a", "poison", "b")
        await one.send("c", key=LANE_1)

        assert "a defect in the program: KeyError at test_failure_matrix.py" in broken_lane(one)
        assert "poison" not in str(one.logs)
        assert one.outputs(LANE_1) == ["1:c:-"]


@simulated
async def test_an_output_that_no_topic_takes_halts_its_lane_alone() -> None:
    async with scene(settings=replace(SETTINGS, max_value=100)) as one:
        await one.start()
        await one.send("x" * 200)
        await one.send("c", key=LANE_1)

        assert broken_lane(one) == "a record for out is larger than any topic takes"
        assert one.outputs(LANE_1) == ["1:c:-"]


@simulated
async def test_a_truncated_changelog_halts_and_the_loss_can_be_accepted_while_it_stands() -> None:
    async with scene() as one:
        first = await one.start()
        await one.send("a", "b")
        first.kill()
        cut(one.world.broker.topics["state"][one.partition()], 0)

        second = await one.start()
        await one.send("c")
        assert "ends at 0, before" in broken_lane(one, 1)
        assert one.events("lane_halted")[0]["command"] == ACCEPT

        (lost,) = await accept(one)
        assert lost.startswith(f"what state/{one.partition()} held from 0 up to ")
        assert one.outputs() == ["1:a:-", "2:b:-", "1:c:-"]
        assert second.runner.ready
        assert [event["lane"] for event in one.events("lane_loss_accepted")] == [0]


@simulated
async def test_accepting_where_nothing_is_lost_leaves_a_lane_that_runs_alone() -> None:
    async with scene() as one:
        await one.start()
        await one.send("a")

        assert await accept(one) == ()
        await one.send("b")

        assert one.outputs() == ["1:a:-", "2:b:-"]
        assert one.events("lane_fenced") == []


@pytest.mark.parametrize("start", ["beginning", "end"])
def test_missing_positions_halt_and_a_human_says_where_to_go_on(start: loss.Start) -> None:
    async def history() -> None:
        async with scene() as one:
            first = await one.start()
            await one.send("a")
            first.kill()
            cut(one.world.broker.topics["app.positions"][0], 0)

            await one.start()
            await one.send("b")
            assert broken_lane(one, 1) == "state holds records, but the positions are missing"
            (lost,) = await accept(one, start)
            await one.send("c")

            assert lost.startswith("the positions: whatever the inputs hold now is")
            seen = ["2:c:-"] if start == "end" else ["2:a:-", "3:b:-", "4:c:-"]
            assert one.outputs() == ["1:a:-", *seen]

    in_virtual_time(history())


@simulated
async def test_an_input_that_was_deleted_and_made_again_halts() -> None:
    async with scene() as one:
        first = await one.start()
        await one.send("a", "b")
        first.kill()
        partition = one.partition()
        one.world.broker.create("in", 6)

        await one.start()
        await one.send("c")
        assert broken_lane(one, 1) == "in is not the topic it was: it was deleted and made again"
        lost = await accept(one)

        assert f"what in/{partition} held from 2 on before it was deleted and made again" in lost
        assert one.outputs() == ["1:a:-", "2:b:-", "3:c:-"]


@simulated
async def test_a_lane_that_runs_halts_when_its_topic_is_made_again() -> None:
    async with scene() as one:
        process = await one.start()
        await one.send("a")
        for topic in ("state", "table"):
            one.world.broker.create(topic, 6)

            await pass_time(5)
            halt = process.runner.tasks[0].halt
            assert halt is not None, "an idle lane has not looked at its topics"
            assert halt.reason == f"{topic} is not the topic it was: it was deleted and made again"
            assert halt.command == ACCEPT
            await accept(one)
            await pass_time(5)
            assert 0 not in process.halted()


@simulated
async def test_a_lane_whose_topic_is_gone_halts_and_looks_again_when_it_is_there() -> None:
    async with scene() as one:
        process = await one.start()
        await one.send("a")
        gone, known = one.world.broker.topics.pop("slow"), one.world.broker.ids.pop("slow")

        await pass_time(10)
        halt = process.runner.tasks[0].halt
        assert halt is not None
        assert (halt.reason, halt.command) == ("no such topic: slow", "holdshort topics apply")

        one.world.broker.topics["slow"], one.world.broker.ids["slow"] = gone, known
        await pass_time(5)
        assert process.halted() == {}
        await one.send("a")
        assert one.outputs() == ["1:a:-", "2:a:-"]


@simulated
async def test_retention_that_overtakes_the_position_halts() -> None:
    async with scene() as one:
        first = await one.start()
        await one.send("a")
        first.kill()
        await one.send("b", "c")
        partition = one.world.broker.topics["in"][one.partition()]
        partition.start, partition.entries = 2, partition.entries[2:]

        await one.start()
        await one.send("d")
        assert "was read up to 1, but now goes from 2 to 3" in broken_lane(one, 1)
        (lost,) = await accept(one)

        assert lost == f"records 1 to 1 of in/{one.partition()}, deleted before they were read"
        assert one.outputs() == ["1:a:-", "2:c:-", "3:d:-"]


@simulated
async def test_an_input_that_ends_before_the_position_halts() -> None:
    async with scene() as one:
        first = await one.start()
        await one.send("a", "b")
        first.kill()
        cut(one.world.broker.topics["in"][one.partition()], 1)

        await one.start()
        assert "was read up to 2, but now goes from 0 to 1" in broken_lane(one, 1)
        (lost,) = await accept(one)
        await one.send("c")

        assert lost == f"records 1 to 1 of in/{one.partition()}, which had been judged"
        assert one.outputs() == ["1:a:-", "2:b:-", "3:c:-"]


@simulated
async def test_another_number_of_partitions_halts_and_cannot_be_accepted() -> None:
    async with scene() as one:
        first = await one.start()
        await one.send("a")
        first.kill()
        one.settings = replace(SETTINGS, partitions=4)

        process = await one.start()

        assert process.halted()[0] == "the lane was made for 6 partitions in 2 lanes, not 4 in 2"
        assert all(event["command"] is None for event in one.events("lane_halted"))
        with pytest.raises(Exception, match="was made for 6 partitions"):
            await accept(one)


@simulated
async def test_a_deleted_topic_halts_with_the_command_that_makes_it() -> None:
    async with scene() as one:
        first = await one.start()
        first.kill()
        del one.world.broker.topics["slow"], one.world.broker.ids["slow"]

        process = await one.start()

        assert set(process.halted().values()) == {"no such topic: slow"}
        assert {event["command"] for event in one.events("lane_halted")} == {"holdshort topics apply"}


@simulated
async def test_positions_of_a_newer_version_halt_until_the_upgrade() -> None:
    async with scene() as one:
        epoch = one.world.broker.init_producer("app-0")
        newer = Write("app.positions", b"0", b'{"v":99}')
        one.world.broker.write("app-0", epoch, TopicPartition("app.positions", 0), [newer])
        one.world.broker.end("app-0", epoch)

        await one.start()

        assert "written by a newer version" in broken_lane(one)


class Newer(Counter):
    """A decider that meets a state written by a newer one."""

    def mark_of(self, value: bytes) -> Mark:
        raise Halt("a record of state has version 99: upgrade first")


@simulated
async def test_state_of_a_newer_version_halts_until_the_upgrade() -> None:
    async with scene() as one:
        first = await one.start()
        await one.send("a")
        first.kill()
        one.decider = Newer

        await one.start()

        assert "upgrade first" in broken_lane(one, 1)


# -- clocks and memory -------------------------------------------------------------------------------------


@simulated
async def test_a_clock_that_jumps_back_delays_a_deadline_and_never_fires_it_twice() -> None:
    async with scene() as one:
        clock = one.world.clock
        assert isinstance(clock, VirtualClock)
        await one.start()
        await one.send(f"forget:{EPOCH_MS + 60_000}", within=20)
        clock.skew_ms = -600_000
        await pass_time(120)
        assert not any("forgotten" in said for said in one.outputs())

        clock.skew_ms = 0
        await pass_time(30)

        assert [said for said in one.outputs() if "forgotten" in said] == [f"forgotten:{EPOCH_MS + 60_000}"]


@simulated
async def test_a_batch_takes_no_more_than_fits() -> None:
    async with scene(settings=replace(SETTINGS, batch_bytes=1_000)) as one:
        process = await one.start()
        before = process.counted("committed")
        await one.send(*("x" * 400 for _ in range(10)))

        assert len(one.outputs()) == 10
        assert process.counted("committed") - before >= 4


def cut(partition: Partition, end: int) -> None:
    """The log loses what it held from an offset on, as after an unclean election."""
    partition.entries = [entry for entry in partition.entries if entry.offset < end]
    partition.end = end
