"""Every metric once: name, type, labels, help. services/metrics.md is made from here.

Labels come from closed sets: the configuration, our own enumerations, the table of topics. Never a thread, a
run, a user or a raw reason.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily

_FAST: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_RESTORE: Final = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_SIZES: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000)
_DECISION: Final = (1, 5, 15, 60, 300, 900, 1800, 3600, 14400, 28800, 86400, 259200, 604800)

Service = Literal["gatekeeper", "router"]
BOTH: Final[tuple[Service, ...]] = ("gatekeeper", "router")
GATEKEEPER: Final[tuple[Service, ...]] = ("gatekeeper",)
ROUTER: Final[tuple[Service, ...]] = ("router",)


class Spec(NamedTuple):
    """One metric; a counter's name is without the `_total` under which it is scraped.

    A `scraped` gauge is computed from the state when it is asked for, and so cannot drift from it.
    """

    name: str
    kind: Literal["counter", "gauge", "scraped", "histogram"]
    help: str
    labels: Sequence[str] = ("service",)
    services: Sequence[Service] = BOTH
    buckets: Sequence[float] = ()

    @property
    def type(self) -> str:
        """The type as Prometheus knows it."""
        return "gauge" if self.kind == "scraped" else self.kind

    @property
    def series(self) -> tuple[str, ...]:
        """The names under which Prometheus stores it."""
        if self.kind == "histogram":
            return tuple(self.name + suffix for suffix in ("_bucket", "_count", "_sum"))
        return (self.name + "_total",) if self.kind == "counter" else (self.name,)

    def counter(self, registry: CollectorRegistry) -> Counter:
        assert self.kind == "counter"
        return Counter(self.name, self.help, self.labels, registry=registry)

    def gauge(self, registry: CollectorRegistry) -> Gauge:
        assert self.kind == "gauge"
        return Gauge(self.name, self.help, self.labels, registry=registry)

    def histogram(self, registry: CollectorRegistry) -> Histogram:
        assert self.kind == "histogram"
        return Histogram(self.name, self.help, self.labels, buckets=self.buckets, registry=registry)

    def family(self) -> GaugeMetricFamily:
        """An empty family, to be filled at a scrape."""
        assert self.kind == "scraped"
        return GaugeMetricFamily(self.name, self.help, labels=self.labels)


# -- what was judged ----------------------------------------------------------------------------------------

RECORDS_JUDGED: Final = Spec(
    "holdshort_records_judged",
    "counter",
    "Records and deadlines judged, by verdict and code; of a decision each entry.",
    ("service", "verdict", "code"),
)
DEAD_LETTERS: Final = Spec(
    "holdshort_dead_letters",
    "counter",
    "Records that could not be used and were kept in dead-letters, by code.",
    ("service", "code"),
)

# -- interrupts ---------------------------------------------------------------------------------------------

INTERRUPTS_OPENED: Final = Spec(
    "holdshort_interrupts_opened", "counter", "Interrupts opened.", ("route", "team"), GATEKEEPER
)
INTERRUPTS_CLOSED: Final = Spec(
    "holdshort_interrupts_closed",
    "counter",
    "Interrupts closed, by outcome: settled, expired (settled, but answered only after its expiry, by a "
    "cancellation), superseded, abandoned.",
    ("route", "team", "outcome"),
    GATEKEEPER,
)
INTERRUPTS_PENDING: Final = Spec(
    "holdshort_interrupts_pending",
    "scraped",
    "Interrupts that are open now, in the lanes of this process.",
    ("team",),
    GATEKEEPER,
)
INTERRUPTS_OLDEST: Final = Spec(
    "holdshort_interrupts_oldest_timestamp_seconds",
    "scraped",
    "When the oldest open interrupt of the team was opened, to ten seconds; absent if there is none.",
    ("team",),
    GATEKEEPER,
)
DECISION_SECONDS: Final = Spec(
    "holdshort_interrupt_decision_seconds",
    "histogram",
    "Time from an interrupt's opening to the answer that was accepted: of a team by the router, of a client "
    "by the gatekeeper.",
    ("route", "team"),
    BOTH,
    _DECISION,
)
SCHEMA_ADMISSIONS: Final = Spec(
    "holdshort_schema_admissions",
    "counter",
    "Response schemas of interrupts opened: admitted, or refused, so that they can only be cancelled.",
    ("result",),
    GATEKEEPER,
)
RUNS_NOT_GATED: Final = Spec(
    "holdshort_runs_not_gated",
    "counter",
    "Runs that paused by a legacy event without being gated: declare legacy_interrupts.",
    (),
    GATEKEEPER,
)

# -- decisions and batches ----------------------------------------------------------------------------------

DECISIONS_JUDGED: Final = Spec(
    "holdshort_decisions_judged",
    "counter",
    "Entries of teams' decisions judged, by verdict and code.",
    ("team", "verdict", "code"),
    ROUTER,
)
ROUTER_DEEDS: Final = Spec(
    "holdshort_router_deeds",
    "counter",
    "What the router has done by itself: forwarded, held, shown_again, sent_again, reminded, escalated, "
    "overflowed, answered, cancelled, expired, overdue, unfit, abandoned, overruled; team may be empty.",
    ("deed", "team"),
    ROUTER,
)
BATCHES: Final = Spec(
    "holdshort_batches",
    "scraped",
    "Batches of answers now, by state: gathering, forwarded (with the agent), or held: complete, but asking "
    "again would not help; the code says why.",
    ("state", "code"),
    ROUTER,
)
BATCHES_FORWARDED: Final = Spec(
    "holdshort_batches_forwarded", "counter", "Whole batches sent to the gate.", (), ROUTER
)
BATCH_WAIT_SECONDS: Final = Spec(
    "holdshort_batch_wait_seconds",
    "histogram",
    "Time from a pause's opening to its whole batch of answers being sent to the gate.",
    (),
    ROUTER,
    _DECISION,
)

# -- the engine ---------------------------------------------------------------------------------------------

TRANSACTIONS: Final = Spec(
    "holdshort_transactions",
    "counter",
    "Transactions, by how they ended: committed, failed (the log says whether it happened) or fenced.",
    ("service", "result"),
)
TRANSACTION_SECONDS: Final = Spec(
    "holdshort_transaction_seconds",
    "histogram",
    "Time from the first write of a transaction to the broker's word that it is committed.",
    buckets=_FAST,
)
BATCH_RECORDS: Final = Spec(
    "holdshort_batch_records", "histogram", "Records decided in one transaction.", buckets=_SIZES
)
LANES: Final = Spec(
    "holdshort_lanes", "gauge", "Lanes of this process, by the state of their task.", ("service", "state")
)
LANE_RETRIES: Final = Spec(
    "holdshort_lane_retries", "counter", "Times that a lane met trouble and began again with a fence."
)
REBALANCES: Final = Spec("holdshort_rebalances", "counter", "Assignments of lanes by the group.")
RESTORE_SECONDS: Final = Spec(
    "holdshort_restore_seconds",
    "histogram",
    "Time from the fence of a lane to its state being restored.",
    buckets=_RESTORE,
)
RESTORE_REMAINING: Final = Spec(
    "holdshort_restore_remaining_records",
    "scraped",
    "Offsets of the changelog that lanes being restored have still to read.",
)
STATE_ENTRIES: Final = Spec("holdshort_state_entries", "scraped", "Keys with state in the lanes here.")
STATE_BYTES: Final = Spec("holdshort_state_bytes", "scraped", "Bytes of state in the lanes here.")
INPUT_LAG: Final = Spec(
    "holdshort_input_lag_records",
    "scraped",
    "Offsets behind the end of an input topic, as last heard of.",
    ("service", "topic"),
)
LAST_POLL: Final = Spec(
    "holdshort_last_poll_timestamp_seconds",
    "scraped",
    "When the running lane that is furthest behind last went round its loop; absent if none runs.",
)
LOOP_LAG: Final = Spec(
    "holdshort_event_loop_lag_seconds",
    "histogram",
    "How late the event loop of the service was, measured four times a second.",
    buckets=_FAST,
)
BUILD_INFO: Final = Spec(
    "holdshort_build_info", "gauge", "Always 1; the version that runs.", ("service", "version")
)
CONFIGURATION_INFO: Final = Spec(
    "holdshort_configuration_info",
    "scraped",
    "Always 1; the configuration in force, by the first 12 digits of its file's SHA-256; empty: no file.",
    ("service", "digest"),
)
CONFIGURATION_REFUSED: Final = Spec(
    "holdshort_configuration_refused",
    "scraped",
    "1 if the configuration file holds something that was not taken (the log says why), else 0.",
)

CATALOGUE: Final = (
    RECORDS_JUDGED,
    DEAD_LETTERS,
    INTERRUPTS_OPENED,
    INTERRUPTS_CLOSED,
    INTERRUPTS_PENDING,
    INTERRUPTS_OLDEST,
    DECISION_SECONDS,
    SCHEMA_ADMISSIONS,
    RUNS_NOT_GATED,
    DECISIONS_JUDGED,
    ROUTER_DEEDS,
    BATCHES,
    BATCHES_FORWARDED,
    BATCH_WAIT_SECONDS,
    TRANSACTIONS,
    TRANSACTION_SECONDS,
    BATCH_RECORDS,
    LANES,
    LANE_RETRIES,
    REBALANCES,
    RESTORE_SECONDS,
    RESTORE_REMAINING,
    STATE_ENTRIES,
    STATE_BYTES,
    INPUT_LAG,
    LAST_POLL,
    LOOP_LAG,
    BUILD_INFO,
    CONFIGURATION_INFO,
    CONFIGURATION_REFUSED,
)
