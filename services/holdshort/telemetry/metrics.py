"""What gatekeeper and router tell, in the metrics of catalogue.py.

Children of labels are made at start, so that the first event is seen by `increase()`. A name that the
configuration does not know (any more) is counted as REMOVED: label values stay bounded whatever is read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from time import perf_counter
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from holdshort import __version__
from holdshort.contract.routes import Owner
from holdshort.telemetry import catalogue

LANE_STATES: Final = ("created", "fencing", "restoring", "running", "halted")
OUTCOMES: Final = ("settled", "expired", "superseded", "abandoned")
REMOVED: Final = "(removed)"


class Known:
    """The teams and routes of the configuration, and everything else as REMOVED."""

    def __init__(self, teams: Iterable[str], owners: Iterable[Owner]) -> None:
        self.teams = tuple(dict.fromkeys(teams))
        self.owners = tuple(dict.fromkeys(owners))

    def learn(self, teams: Iterable[str], owners: Iterable[Owner]) -> None:
        """Those of a newer configuration, too: what is open under the earlier ones goes on being counted."""
        self.teams = tuple(dict.fromkeys([*self.teams, *teams]))
        self.owners = tuple(dict.fromkeys([*self.owners, *owners]))

    def team(self, name: str) -> str:
        return name if name in self.teams else REMOVED

    def owner(self, owner: Owner) -> Owner:
        return owner if owner in self.owners else Owner(REMOVED, self.team(owner.team))


class EngineMetrics:
    """What the engine of one service tells about its lanes."""

    def __init__(self, service: str, registry: CollectorRegistry) -> None:
        transactions = catalogue.TRANSACTIONS.counter(registry)
        self._committed = transactions.labels(service, "committed")
        self._failed = transactions.labels(service, "failed")
        self._fenced = transactions.labels(service, "fenced")
        self._commit_seconds = catalogue.TRANSACTION_SECONDS.histogram(registry).labels(service)
        self._batch_records = catalogue.BATCH_RECORDS.histogram(registry).labels(service)
        self._restore_seconds = catalogue.RESTORE_SECONDS.histogram(registry).labels(service)
        self._retries = catalogue.LANE_RETRIES.counter(registry).labels(service)
        self._rebalances = catalogue.REBALANCES.counter(registry).labels(service)
        self._loop_lag = catalogue.LOOP_LAG.histogram(registry).labels(service)
        lanes = catalogue.LANES.gauge(registry)
        self._by_state = {state: lanes.labels(service, state) for state in LANE_STATES}
        self._states: dict[int, str] = {}
        catalogue.BUILD_INFO.gauge(registry).labels(service, __version__).set(1)
        ProcessCollector(registry=registry)

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

    def not_committed(self) -> None:
        self._failed.inc()

    def fenced(self) -> None:
        self._fenced.inc()

    def retried(self) -> None:
        self._retries.inc()

    def rebalanced(self) -> None:
        self._rebalances.inc()

    def loop_was_late(self, seconds: float) -> None:
        self._loop_lag.observe(max(0.0, seconds))

    def lane_is(self, lane: int, state: str) -> None:
        self._states[lane] = state  # one that is closed is not counted any more
        for name, gauge in self._by_state.items():
            gauge.set(sum(known == name for known in self._states.values()))


class JudgementMetrics:
    """What one service tells about the records that it has judged, and those it could not use."""

    def __init__(
        self,
        service: str,
        verdicts: Iterable[tuple[str, str | None]],
        codes: Iterable[str],
        registry: CollectorRegistry,
    ) -> None:
        self._service = service
        self._judged = catalogue.RECORDS_JUDGED.counter(registry)
        self._dead = catalogue.DEAD_LETTERS.counter(registry)
        for verdict, code in verdicts:
            self._judged.labels(service, verdict, code or "")
        for code in codes:
            self._dead.labels(service, code)

    def judged(self, counts: Mapping[Any, int]) -> None:
        """By (verdict, code)."""
        for (verdict, code), count in counts.items():
            self._judged.labels(self._service, verdict, code or "").inc(count)

    def dead(self, counts: Mapping[Any, int]) -> None:
        """By code."""
        for code, count in counts.items():
            self._dead.labels(self._service, code).inc(count)


class DecisionTimes:
    """How long people took, by route and team."""

    def __init__(self, known: Known, registry: CollectorRegistry) -> None:
        self._known = known
        self._seconds = catalogue.DECISION_SECONDS.histogram(registry)
        self.prepare()

    def prepare(self) -> None:
        """Make the children of everything that is known by now."""
        for owner in self._known.owners:
            self._seconds.labels(*owner)

    def decided(self, times: Iterable[tuple[Owner, float]]) -> None:
        for owner, seconds in times:
            self._seconds.labels(*self._known.owner(owner)).observe(max(0.0, seconds))


class GateMetrics:
    """What the gatekeeper tells about interrupts beside its verdicts."""

    def __init__(self, known: Known, registry: CollectorRegistry) -> None:
        self._known = known
        self._opened = catalogue.INTERRUPTS_OPENED.counter(registry)
        self._closed = catalogue.INTERRUPTS_CLOSED.counter(registry)
        schemas = catalogue.SCHEMA_ADMISSIONS.counter(registry)
        self._schemas = {admitted: schemas.labels(_result(admitted)) for admitted in (True, False)}
        self._not_gated = catalogue.RUNS_NOT_GATED.counter(registry)
        self.prepare()

    def prepare(self) -> None:
        """Make the children of everything that is known by now."""
        for owner in self._known.owners:
            self._opened.labels(*owner)
            for outcome in OUTCOMES:
                self._closed.labels(*owner, outcome)

    def opened(self, counts: Mapping[Owner, int]) -> None:
        for owner, count in counts.items():
            self._opened.labels(*self._known.owner(owner)).inc(count)

    def closed(self, counts: Mapping[tuple[Owner, str], int]) -> None:
        """By owner and outcome, one of OUTCOMES."""
        for (owner, outcome), count in counts.items():
            self._closed.labels(*self._known.owner(owner), outcome).inc(count)

    def schemas(self, counts: Mapping[bool, int]) -> None:
        """By whether it was admitted."""
        for admitted, count in counts.items():
            self._schemas[admitted].inc(count)

    def not_gated(self, count: int) -> None:
        self._not_gated.inc(count)


def _result(admitted: bool) -> str:
    return "admitted" if admitted else "refused"


class RouterMetrics:
    """What the router tells about decisions and batches beside its verdicts."""

    def __init__(
        self,
        known: Known,
        verdicts: Iterable[tuple[str, str | None]],
        deeds: Iterable[str],
        registry: CollectorRegistry,
    ) -> None:
        self._known = known
        self._verdicts, self._kinds = tuple(verdicts), tuple(deeds)
        self._judged = catalogue.DECISIONS_JUDGED.counter(registry)
        self._deeds = catalogue.ROUTER_DEEDS.counter(registry)
        self._forwarded = catalogue.BATCHES_FORWARDED.counter(registry)
        self._waits = catalogue.BATCH_WAIT_SECONDS.histogram(registry)
        self.prepare()

    def prepare(self) -> None:
        """Make the children of everything that is known by now."""
        for team, (verdict, code) in product(self._known.teams, self._verdicts):
            self._judged.labels(team, verdict, code or "")
        for deed, team in product(self._kinds, ("", *self._known.teams)):
            self._deeds.labels(deed, team)

    def judged(self, counts: Mapping[tuple[str, str, str | None], int]) -> None:
        """By (team, verdict, code)."""
        for (team, verdict, code), count in counts.items():
            self._judged.labels(self._known.team(team), verdict, code or "").inc(count)

    def did(self, counts: Mapping[tuple[str, str], int]) -> None:
        """By deed and team, empty for none."""
        for (deed, team), count in counts.items():
            self._deeds.labels(deed, self._known.team(team) if team else "").inc(count)

    def forwarded(self, waits: Iterable[float]) -> None:
        """Batches, by how long each waited, in s."""
        for seconds in waits:
            self._forwarded.inc()
            self._waits.observe(max(0.0, seconds))


# -- computed at a scrape -----------------------------------------------------------------------------------


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


def pending_interrupts(known: Known, found: Iterable[tuple[str, int, int]]) -> Iterator[Metric]:
    """Open interrupts: `found` is team, how many, and when the oldest opened (s since the epoch)."""
    pending = dict.fromkeys(known.teams, 0)
    oldest: dict[str, int] = {}
    for name, count, since in found:
        if count:
            team = known.team(name)
            pending[team] = pending.get(team, 0) + count
            oldest[team] = min(oldest.get(team, since), since)
    yield _by(catalogue.INTERRUPTS_PENDING, {(team,): count for team, count in pending.items()})
    yield _by(catalogue.INTERRUPTS_OLDEST, {(team,): since for team, since in oldest.items()})


def batches(found: Iterable[tuple[tuple[str, str], int]], held: Iterable[str]) -> Iterator[Metric]:
    """Batches by (state, code); `held` are the codes for which one can be held."""
    states = [("gathering", ""), ("forwarded", ""), *(("held", code) for code in held)]
    counts: dict[tuple[str, ...], int] = dict.fromkeys(states, 0)
    for key, count in found:
        counts[key] = counts.get(key, 0) + count
    yield _by(catalogue.BATCHES, counts)


def input_lag(service: str, lag: Mapping[Any, int]) -> Iterator[Metric]:
    """Offsets that each input topic is behind its end, over its partitions read by this process."""
    topics: dict[tuple[str, ...], int] = {}
    for (topic, _), behind in lag.items():
        topics[service, topic] = topics.get((service, topic), 0) + behind
    yield _by(catalogue.INPUT_LAG, topics)


def lanes_at_work(
    service: str, *, entries: int, size: int, remaining: int, last_poll: float | None
) -> Iterator[Metric]:
    """What the lanes of this process hold and how far they are; `last_poll` in s since the epoch."""
    yield _by(catalogue.STATE_ENTRIES, {(service,): entries})
    yield _by(catalogue.STATE_BYTES, {(service,): size})
    yield _by(catalogue.RESTORE_REMAINING, {(service,): remaining})
    yield _by(catalogue.LAST_POLL, {} if last_poll is None else {(service,): last_poll})


def configuration(service: str, digest: str, *, refused: bool) -> Iterator[Metric]:
    """Which configuration is in force, and whether the file holds another one that was refused."""
    yield _by(catalogue.CONFIGURATION_INFO, {(service, digest): 1})
    yield _by(catalogue.CONFIGURATION_REFUSED, {(service,): int(refused)})


def _by(spec: catalogue.Spec, values: Mapping[tuple[str, ...], float]) -> Metric:
    family = spec.family()
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family
