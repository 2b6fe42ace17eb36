"""Every metric once: name, meaning, labels. Labels come from closed sets, never from a record.

Children of labels are made at start, so that the first event is seen by `increase()`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

LANE_STATES: Final = ("created", "fencing", "restoring", "running", "halted")
_FAST: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_RESTORE: Final = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_SIZES: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000)
DECISION_BUCKETS: Final = (1, 5, 15, 60, 300, 900, 1800, 3600, 14400, 28800, 86400, 259200, 604800)


class EngineMetrics:
    """What the engine of one service tells about its lanes."""

    def __init__(self, service: str, registry: CollectorRegistry) -> None:
        labels = {"service": service}
        self._transactions = Counter(
            "holdshort_transactions",
            "Transactions, by how they ended: committed, failed (outcome read from the log) or fenced.",
            ("service", "result"),
            registry=registry,
        )
        self._committed = self._transactions.labels(**labels, result="committed")
        self._failed = self._transactions.labels(**labels, result="failed")
        self._fenced = self._transactions.labels(**labels, result="fenced")
        self._commit_seconds = Histogram(
            "holdshort_transaction_seconds",
            "Time from the first record of a transaction to its commit.",
            ("service",),
            buckets=_FAST,
            registry=registry,
        ).labels(**labels)
        self._batch_records = Histogram(
            "holdshort_batch_records",
            "Records decided in one transaction.",
            ("service",),
            buckets=_SIZES,
            registry=registry,
        ).labels(**labels)
        self._restore_seconds = Histogram(
            "holdshort_restore_seconds",
            "Time from the fence of a lane to its state being restored.",
            ("service",),
            buckets=_RESTORE,
            registry=registry,
        ).labels(**labels)
        self._lane_states = Gauge(
            "holdshort_lanes",
            "Lanes of this process, by the state of their task.",
            ("service", "state"),
            registry=registry,
        )
        self._by_state = {state: self._lane_states.labels(**labels, state=state) for state in LANE_STATES}
        self._rebalances = Counter(
            "holdshort_rebalances",
            "Assignments of lanes by the group.",
            ("service",),
            registry=registry,
        ).labels(**labels)
        self._states: dict[int, str] = {}

    @contextmanager
    def committing(self, records: int) -> Iterator[None]:
        began = perf_counter()
        yield
        self._committed.inc()
        self._commit_seconds.observe(perf_counter() - began)
        self._batch_records.observe(records)

    @contextmanager
    def restoring(self) -> Iterator[None]:
        began = perf_counter()
        yield
        self._restore_seconds.observe(perf_counter() - began)

    def retried(self) -> None:
        self._failed.inc()

    def fenced(self) -> None:
        self._fenced.inc()

    def rebalanced(self) -> None:
        self._rebalances.inc()

    def lane_is(self, lane: int, state: str) -> None:
        self._states[lane] = state  # one that is closed is not counted any more
        for name, gauge in self._by_state.items():
            gauge.set(sum(known == name for known in self._states.values()))


class JudgementMetrics:
    """What one service tells about the records that it has judged."""

    def __init__(
        self, service: str, verdicts: Iterable[tuple[str, str | None]], registry: CollectorRegistry
    ) -> None:
        judged = Counter(
            "holdshort_records_judged",
            "Records and deadlines judged, by verdict and code.",
            ("service", "verdict", "code"),
            registry=registry,
        )
        self._judged = {
            (verdict, code): judged.labels(service=service, verdict=verdict, code=code or "")
            for verdict, code in verdicts
        }

    def judged(self, counts: Mapping[Any, int]) -> None:
        for key, count in counts.items():
            self._judged[key].inc(count)


class GateMetrics:
    """What the gatekeeper tells about pauses and inputs beside its verdicts."""

    def __init__(self, teams: Iterable[str], registry: CollectorRegistry) -> None:
        opened = Counter(
            "holdshort_interrupts_opened", "Interrupts opened, by team.", ("team",), registry=registry
        )
        self.opened = {team: opened.labels(team=team) for team in teams}
        closed = Counter(
            "holdshort_pauses_closed",
            "Pauses that ended, by how: settled, superseded, abandoned.",
            ("how",),
            registry=registry,
        )
        self.closed = {how: closed.labels(how=how) for how in ("settled", "superseded", "abandoned")}
        self.not_gated = Counter(
            "holdshort_runs_not_gated",
            "Runs that paused by a legacy event without being gated: declare legacy_interrupts.",
            registry=registry,
        )


class RouterMetrics:
    """What the router tells about batches beside its verdicts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.forwarded = Counter(
            "holdshort_batches_forwarded", "Whole batches sent to the gate.", registry=registry
        )
        self.held = Counter(
            "holdshort_batches_held",
            "Complete batches that are not sent, because asking again would not help; see the log.",
            registry=registry,
        )


class Scraped(Collector):
    """Metrics that are computed from the state when they are asked for, and so cannot drift from it."""

    def __init__(self, collect: Callable[[], Iterable[Metric]], registry: CollectorRegistry) -> None:
        self._collect = collect
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        for _ in range(3):
            try:
                return list(self._collect())
            except RuntimeError:  # the service's own thread changed something just then
                continue
        return []

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: names are made at the scrape."""
        return []


def pending_interrupts(teams: Mapping[str, tuple[int, int]]) -> Iterator[Metric]:
    """Open interrupts by team, and when the oldest opened."""
    count = GaugeMetricFamily(
        "holdshort_interrupts_pending", "Interrupts that are open now, by team.", labels=["team"]
    )
    oldest = GaugeMetricFamily(
        "holdshort_interrupts_oldest_timestamp_seconds",
        "When the oldest open interrupt of the team was opened; absent if there is none.",
        labels=["team"],
    )
    for team, (pending, since) in teams.items():
        count.add_metric([team], pending)
        if pending:
            oldest.add_metric([team], since)
    yield count
    yield oldest


def input_lag(service: str, lag: Mapping[Any, int]) -> Iterator[Metric]:
    """Offsets that each input topic is behind its end, over its partitions read by this process."""
    family = GaugeMetricFamily(
        "holdshort_input_lag_records",
        "Offsets behind the end of an input topic, as last heard of.",
        labels=["service", "topic"],
    )
    topics: dict[str, int] = {}
    for (topic, _), behind in lag.items():
        topics[topic] = topics.get(topic, 0) + behind
    for topic, behind in topics.items():
        family.add_metric([service, topic], behind)
    yield family


def state_size(service: str, entries: int, size: int) -> Iterator[Metric]:
    """What the lanes of this process hold in memory."""
    for name, meaning, value in (
        ("entries", "Keys with state in the lanes of this process.", entries),
        ("bytes", "Bytes of state in the lanes of this process.", size),
    ):
        family = GaugeMetricFamily(f"holdshort_state_{name}", meaning, labels=["service"])
        family.add_metric([service], value)
        yield family
