"""Every metric once: name, meaning, labels. Labels come from closed sets, never from a record.

Children of labels are made at start, so that the first event is seen by `increase()`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

LANE_STATES: Final = ("created", "fencing", "restoring", "running", "halted", "closed")
_FAST: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_RESTORE: Final = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_SIZES: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000)
DECISION_BUCKETS: Final = (1, 5, 15, 60, 300, 900, 1800, 3600, 14400, 28800, 86400, 259200, 604800)


class EngineMetrics:
    """What the engine of one service tells about its lanes."""

    def __init__(self, service: str, lanes: int, registry: CollectorRegistry) -> None:
        self.registry = registry
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
        self._states = dict.fromkeys(range(lanes), "closed")

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
        self._states[lane] = state
        for name, gauge in self._by_state.items():
            gauge.set(sum(known == name for known in self._states.values()))
