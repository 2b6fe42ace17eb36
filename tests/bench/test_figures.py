"""Figures are worked out as README says: medians and ranges, ratios of one round, bars, silences."""

from collections.abc import Sequence

import pytest
from rich.console import Console
from tests.bench import tables
from tests.bench.bars import judged
from tests.bench.kills import silences_after
from tests.bench.restore import Probes
from tests.bench.results import Measurement, Run, Spread

from holdshort.cli.bench.gate import Spent
from holdshort.cli.bench.latency import percentiles
from holdshort.cli.bench.wire import Arrivals

TITLE = "W1 pass-through drain, 600,000 events"


def run_with(figure: str, **values: Sequence[float]) -> Run:
    """One run of W1, by system the values of its rounds."""
    return Run(
        TITLE,
        [
            Measurement(
                at="2026-11-30T12:00:00",
                machine="a machine",
                workload="W1",
                title=TITLE,
                system=system.replace("_", "-"),
                round=number,
                load1=0.5,
                figures={figure: value},
                problems=[],
            )
            for system, of_system in values.items()
            for number, value in enumerate(of_system)
        ],
    )


def test_a_ratio_is_that_of_the_medians_and_its_range_that_of_the_rounds() -> None:
    run = run_with("events/s", holdshort=[10, 30, 20], limit_lane=[40, 50, 20])

    assert run.spread("holdshort", "events/s") == Spread(20, 10, 30)
    assert run.ratio("holdshort", "limit-lane", "events/s") == Spread(0.5, 0.25, 1.0)


def test_a_round_that_one_of_both_lacks_is_no_pair() -> None:
    run = run_with("events/s", holdshort=[10, 30], limit_lane=[40])

    assert run.ratio("holdshort", "limit-lane", "events/s") == Spread(0.5, 0.25, 0.25)


@pytest.mark.parametrize(
    ("ours", "met", "as_wanted"), [(75, True, True), (50, True, False), (49, False, False)]
)
def test_a_bar_is_met_or_not_by_the_medians(ours: float, met: bool, as_wanted: bool) -> None:
    (one,) = judged(run_with("events/s", holdshort=[ours], limit_lane=[100]))

    assert (one.met, one.as_wanted) == (met, as_wanted)


def test_a_bar_may_be_an_upper_one() -> None:
    less = judged(run_with("CPU s per 1,000 events", holdshort=[0.01], kstreams=[0.03]))
    more = judged(run_with("CPU s per 1,000 events", holdshort=[0.02], kstreams=[0.03]))

    assert [one.met for one in (*less, *more)] == [True, False]


def test_the_published_table_says_which_bars_are_missed() -> None:
    said = tables.results([run_with("events/s", holdshort=[49, 48], limit_lane=[100, 100])])

    assert "| W1: events/s of limit-lane | 0.485 [0.48 - 0.49] | at least 0.5 | NO | 0.75 | NO |" in said
    assert "| exact | 2 of 2 | 2 of 2 |" in said


def test_a_silence_belongs_to_the_kill_that_it_reaches_behind() -> None:
    arrivals = [0.0, 0.9, 1.8, 2.0, 3.1, 5.0, 8.0]

    assert silences_after([1.0, 3.5], 2.0, arrivals) == [pytest.approx(1.1), 3.0]


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(n) for n in range(1, 201)]

    assert percentiles(values) == {"p50": 100, "p90": 180, "p99": 198, "max": 200}


def test_a_rate_leaves_out_the_first_chunk() -> None:
    arrivals = Arrivals([(1.0, 500), (2.0, 100), (3.0, 100), (4.0, 300)])

    assert arrivals.per_second() == pytest.approx(500 / 3)
    assert arrivals.per_second_of_second_half() == pytest.approx(500 / 3)


def test_what_nobody_can_tell_is_no_figure() -> None:
    spent = Spent(system_s=3.0).since(Spent(system_s=1.0))

    assert spent.figures(4_000, "events") == {"CPU s per 1,000 events": 0.5}
    assert spent.shares(4.0, "idle") == {"idle CPU %": 50.0}


def test_what_came_at_once_has_no_rate() -> None:
    assert Arrivals([(1.0, 500)]).per_second() is None
    assert Arrivals([(1.0, 100), (2.0, 500)]).per_second_of_second_half() is None


def test_a_range_is_seen_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    grid = tables.bars([run_with("events/s", holdshort=[49, 48], limit_lane=[100, 100])])
    assert grid is not None

    Console(width=150).print(grid.drawn())

    said = capsys.readouterr().out
    assert "[ratios of one round]" in said
    assert "0.485 [0.48 - 0.49]" in said


def test_no_thread_is_answered_after_two_restarts() -> None:
    probes = Probes(partitions=2, restarts=2)
    for partition, thread in [(0, 5), (0, 5), (1, 6), (1, 6), (0, 7), (1, 8), (0, 9)]:
        probes.offer(partition, thread)

    assert sorted(probes.take() + probes.take()) == [5, 6, 7, 8]
