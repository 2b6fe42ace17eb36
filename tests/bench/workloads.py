"""The workloads by name, each a function of a system and of how much to do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.handover import handover
from tests.bench.kills import kills
from tests.bench.people import Load as PeopleLoad
from tests.bench.people import people, titled
from tests.bench.restore import restore
from tests.bench.subject import Subject
from tests.bench.systems import Told

from holdshort.cli.bench.drain import pass_through, pauses_and_answers
from holdshort.cli.bench.gate import Measured
from holdshort.cli.bench.latency import Rates, latency
from holdshort.cli.bench.wire import Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much to do; the defaults are those of issues 5 and 6."""

    records: int = 600_000
    threads: int = 50_000
    rates: Sequence[int] = (50, 500, 2000)
    rate_seconds: float = 10.0
    warm_up: int = 20_000
    idle_seconds: float = 5.0
    open: int = 200_000
    restarts: int = 3
    settle_seconds: float = 3.0
    kill_rate: int = 200
    kill_seconds: float = 60.0
    kill_every: float = 8.0
    roll_seconds: float = 60.0
    roll_every: float = 8.0
    people_rates: Sequence[int] = (20, 100, 500)
    people_warm_up: int = 5_000
    people_at_once: int = 20_000


SHORT: Final = Sizes(
    records=20_000,
    threads=10_000,
    rates=(50,),
    rate_seconds=1.0,
    warm_up=100,
    idle_seconds=0.5,
    open=2_000,
    restarts=2,
    settle_seconds=0.2,
    kill_rate=50,
    kill_seconds=3.0,
    kill_every=2.0,
    roll_seconds=9.0,
    roll_every=4.0,
    people_rates=(50,),
    people_warm_up=100,
    people_at_once=1_000,
)

Measure = Callable[[Subject, Wire, Sizes, Told], Measured]


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload; `title` says how much is done, for results of other sizes are not comparable."""

    what: str
    title: Callable[[Sizes], str]
    measure: Measure


def _latency(gate: Subject, wire: Wire, sizes: Sizes, told: Told) -> Measured:
    rates = Rates(
        per_second=sizes.rates, seconds=sizes.rate_seconds, warm_up=sizes.warm_up, idle_s=sizes.idle_seconds
    )
    return latency(gate, wire, rates, told)


def _people_load(sizes: Sizes) -> PeopleLoad:
    return PeopleLoad(
        warm_up=sizes.people_warm_up,
        rates=sizes.people_rates,
        seconds=sizes.rate_seconds,
        at_once=sizes.people_at_once,
    )


WORKLOADS: Final[Mapping[str, Workload]] = {
    "W1": Workload(
        "pass-through drain",
        lambda sizes: f"W1 pass-through drain, {sizes.records:,} events",
        lambda gate, wire, sizes, told: pass_through(gate, wire, sizes.records, told),
    ),
    "W2": Workload(
        "gate drain",
        lambda sizes: f"W2 gate drain, {sizes.threads:,} threads",
        lambda gate, wire, sizes, told: pauses_and_answers(gate, wire, sizes.threads, told),
    ),
    "W3": Workload(
        "latency",
        lambda sizes: (
            f"W3 latency at {' and '.join(f'{rate:,}' for rate in sizes.rates)} a second, "
            f"{sizes.rate_seconds:g} s each"
        ),
        _latency,
    ),
    "W4": Workload(
        "restore",
        lambda sizes: f"W4 restore, {sizes.open:,} open pauses",
        lambda gate, wire, sizes, told: restore(
            gate, wire, sizes.open, sizes.restarts, sizes.settle_seconds, told
        ),
    ),
    "W5": Workload(
        "kill loop",
        lambda sizes: (
            f"W5 kill loop, {sizes.kill_rate} threads/s for {sizes.kill_seconds:g} s, "
            f"SIGKILL every {sizes.kill_every:g} s"
        ),
        lambda gate, wire, sizes, told: kills(
            gate, wire, sizes.kill_rate, sizes.kill_seconds, sizes.kill_every, told
        ),
    ),
    "W6": Workload(
        "people",
        lambda sizes: titled(_people_load(sizes)),
        lambda gate, wire, sizes, told: people(gate, wire, _people_load(sizes), told),
    ),
    "W7": Workload(
        "handover",
        lambda sizes: (
            f"W7 handover, {sizes.kill_rate} threads/s for {sizes.roll_seconds:g} s, "
            f"a restart every {sizes.roll_every:g} s"
        ),
        lambda gate, wire, sizes, told: handover(
            gate, wire, sizes.kill_rate, sizes.roll_seconds, sizes.roll_every, told
        ),
    ),
}
