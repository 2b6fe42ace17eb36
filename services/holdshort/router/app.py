"""The router as a process: settings, engine, metrics and logs around the decider."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric

from holdshort.contract.codes import Code
from holdshort.router.codes import DecisionCode
from holdshort.router.decider import RouterDecider, Told
from holdshort.router.gathering import Gathering
from holdshort.settings import RESERVED_TEAMS, Config, KafkaSettings, Settings
from holdshort.stream.decider import Decider
from holdshort.stream.service import Service
from holdshort.stream.topics import ROUTER, table
from holdshort.telemetry.logs import Event, logger
from holdshort.telemetry.metrics import JudgementMetrics, RouterMetrics, Scraped, input_lag, state_size

_EVENTS = {
    "decided": Event.DECISION_JUDGED,
    "forwarded": Event.BATCH_FORWARDED,
    "held": Event.BATCH_HELD,
    "dead": Event.RECORD_DEAD,
}


class Router:
    """Wires one router process; `run` serves until it is told to stop."""

    def __init__(self, kafka: KafkaSettings, settings: Settings, config: Config) -> None:
        registry = CollectorRegistry()
        rules = config.rules(settings.partitions)
        teams = [*config.teams, *RESERVED_TEAMS]
        self._judged = JudgementMetrics(ROUTER, _verdicts(), registry)
        self._metrics = RouterMetrics(registry)
        self._log = logger().bind(service=ROUTER)
        self._service: Service[Gathering] = Service(
            ROUTER,
            settings,
            kafka,
            [topic for topic in table(list(config.agents), list(config.teams)) if ROUTER in topic.users],
            registry,
            lambda _: RouterDecider(rules, teams),
            self._observe,
        )
        Scraped(self._scrape, registry)

    def run(self) -> int:
        return self._service.run()

    def _observe(self, decider: Decider[Gathering]) -> None:
        """Count and log what has just been committed."""
        assert isinstance(decider, RouterDecider)
        counts, decider.counts = decider.counts, type(decider.counts)()
        told, decider.told = decider.told, []
        self._judged.judged(counts)
        for one in told:
            self._tell(one)

    def _tell(self, told: Told) -> None:
        if told.what == "forwarded":
            self._metrics.forwarded.inc()
        elif told.what == "held":
            self._metrics.held.inc()
        self._log.info(
            _EVENTS[told.what],
            thread_id=told.thread,
            generation=told.generation,
            team=told.team,
            code=told.code,
            run_id=told.run_id,
        )

    def _scrape(self) -> Iterator[Metric]:
        yield from input_lag(ROUTER, self._service.lag())
        yield from state_size(ROUTER, *self._service.state_size())


def _verdicts() -> Iterator[tuple[str, str | None]]:
    """Every pair that can occur, so that the first of each is seen to increase."""
    yield from (("accepted", None), ("duplicate", None))
    for code in (*DecisionCode, *Code):
        yield from (("refused", code), ("unreadable", code))
