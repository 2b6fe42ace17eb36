"""The bars of issues 5 and 6, and whether they are met: a ratio of medians in one run, or our own figure."""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from tests.bench.results import Run, Spread

OURS: Final = "holdshort"
ROUTED: Final = "holdshort-routed"
TWO_PROCESSES: Final = "holdshort-p2"


class Bar(NamedTuple):
    """One bar: `figure` of ours, as a share of `peer`'s or (None) as it is, against `bar`; we want `want`.

    `size` is a part of the titles that it holds for, `ours` the system of ours that it is about.
    """

    workload: str
    figure: str
    peer: str | None
    side: Literal["at least", "at most"]
    bar: float | None
    want: float | None = None
    size: str = ""
    ours: str = OURS

    def holds_for(self, run: Run) -> bool:
        known = {self.ours} if self.peer is None else {self.ours, self.peer}
        return run.workload == self.workload and self.size in run.title and known <= set(run.systems)

    def is_met(self, value: float, limit: float) -> bool:
        return value >= limit if self.side == "at least" else value <= limit


def _latency_bars() -> Iterator[Bar]:
    for rate in (50, 500, 2000):
        for kind in ("pause", "answer"):
            name = f"{rate}/s {kind}"
            yield Bar("W3", f"{name} p50 ms", "kstreams-c10", "at most", 1.0)
            yield Bar("W3", f"{name} p50 ms", "kstreams", "at most", 0.2)
            yield Bar("W3", f"{name} p99 ms", "limit-rules-lane", "at most", 1.5)
    for kind in ("pause", "answer"):
        yield Bar("W3", f"500/s {kind} p50 ms", None, "at most", None, 5.0)
        yield Bar("W3", f"500/s {kind} p99 ms", None, "at most", None, 15.0)
    yield Bar("W3", "idle CPU %", None, "at most", 2.0)


def _restore_bars() -> Iterator[Bar]:
    for size, share, seconds, memory in (
        ("200,000 open", 0.8, None, None),
        ("1,000,000 open", 0.6, 5.0, 300.0),
    ):
        yield Bar("W4", "all answers s", "kstreams", "at most", share, size=size)
        yield Bar("W4", "memory full MB", "kstreams", "at most", 0.4, size=size)
        yield Bar("W4", "memory restored MB", "kstreams", "at most", 0.4, size=size)
        if seconds is not None:
            yield Bar("W4", "all answers s", None, "at most", None, seconds, size)
            yield Bar("W4", "memory full MB", None, "at most", None, memory, size)
            yield Bar("W4", "memory restored MB", None, "at most", None, memory, size)


def _people_bars() -> Iterator[Bar]:
    yield Bar("W6", "decisions/s", None, "at least", 3_000.0, ours=ROUTED)
    for kind in ("approval", "decision"):
        yield Bar("W6", f"500/s {kind} p50 ms", None, "at most", 15.0, ours=ROUTED)
        yield Bar("W6", f"500/s {kind} p99 ms", None, "at most", 50.0, ours=ROUTED)


BARS: Final = (
    Bar("W1", "events/s", "limit-lane", "at least", 0.5, 0.75),
    Bar("W1", "events/s", "limit-lane", "at least", 0.5, 0.75, ours=TWO_PROCESSES),
    Bar("W1", "events/s", "kstreams", "at least", 1.0),
    Bar("W1", "CPU s per 1,000 events", "kstreams", "at most", 0.5),
    Bar("W2", "pauses/s", "limit-rules", "at least", 0.4, 0.6),
    Bar("W2", "answers/s", "limit-rules", "at least", 0.4, 0.6),
    Bar("W2", "pauses/s", "kstreams", "at least", 1.5, 2.5),
    Bar("W2", "answers/s", "kstreams", "at least", 1.5, 2.5),
    *_latency_bars(),
    *_restore_bars(),
    Bar("W5", "longest silence s", None, "at most", 1.5, 0.6),
    *_people_bars(),
    Bar("W7", "longest silence s", None, "at most", 1.0, ours=TWO_PROCESSES),
)


class Judged(NamedTuple):
    """A bar and what was measured; None where there is nothing to say."""

    bar: Bar
    value: Spread
    met: bool | None
    as_wanted: bool | None


def judged(run: Run) -> Iterator[Judged]:
    """Every bar that the systems of this run allow to judge, by its medians."""
    for bar in BARS:
        if not bar.holds_for(run):
            continue
        value = run.spread(bar.ours, bar.figure)
        if bar.peer is not None:
            value = run.ratio(bar.ours, bar.peer, bar.figure)
        if value is not None:
            met = None if bar.bar is None else bar.is_met(value.median, bar.bar)
            as_wanted = None if bar.want is None else bar.is_met(value.median, bar.want)
            yield Judged(bar, value, met, as_wanted)
