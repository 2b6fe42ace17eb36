"""The router as a process: settings, engine, metrics and logs around the decider."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric

from holdshort.contract.codes import Code
from holdshort.router.codes import DecisionCode
from holdshort.router.decider import HELD, RouterDecider, Told
from holdshort.router.facts import Facts
from holdshort.router.gathering import Gathering
from holdshort.router.turn import ALERTS, DEEDS
from holdshort.settings import Config, KafkaSettings, Settings, rules_of
from holdshort.stream.decider import Decider
from holdshort.stream.service import Service
from holdshort.stream.topics import ROUTER
from holdshort.telemetry.logs import Event, logger
from holdshort.telemetry.metrics import (
    DecisionTimes,
    JudgementMetrics,
    Known,
    RouterMetrics,
    Scraped,
    batches,
)

_EVENTS = {
    "decided": Event.DECISION_JUDGED,
    "forwarded": Event.BATCH_FORWARDED,
    "held": Event.BATCH_HELD,
    "dead": Event.RECORD_DEAD,
    "shown_again": Event.QUESTIONS_SHOWN_AGAIN,
    "sent_again": Event.BATCH_SENT_AGAIN,
    "reminded": Event.QUESTION_REMINDED,
    "escalated": Event.QUESTION_ESCALATED,
    "overflowed": Event.QUESTION_OVERFLOWED,
    "answered": Event.QUESTION_ANSWERED_BY_ROUTER,
    "cancelled": Event.QUESTION_CANCELLED_BY_ROUTER,
    "expired": Event.ANSWER_EXPIRED,
    "overdue": Event.QUESTION_OVERDUE,
    "unfit": Event.ROUTERS_ANSWER_UNFIT,
    "abandoned": Event.PAUSE_ABANDONED,
    "overruled": Event.ANSWER_OVERRULED,
}


class Router:
    """Wires one router process; `run` serves until it is told to stop."""

    def __init__(self, kafka: KafkaSettings, settings: Settings, config: Config) -> None:
        registry = CollectorRegistry()
        self._partitions = settings.partitions
        self._rules = rules_of(settings, config)
        self._teams = config.asked_teams
        self._known = known = Known(self._teams, self._rules.routes.owners)
        self._judged = JudgementMetrics(ROUTER, _verdicts(), (*DecisionCode, Code.MISKEYED_RECORD), registry)
        self._metrics = RouterMetrics(known, _of_entries(), DEEDS, registry)
        self._times = DecisionTimes(known, registry)
        self._log = logger().bind(service=ROUTER)
        self._service: Service[Gathering] = Service(
            ROUTER,
            settings,
            kafka,
            config,
            registry,
            self,
        )
        Scraped(self._scrape, registry)

    def run(self) -> int:
        return self._service.run()

    def new_decider(self) -> Decider[Gathering]:
        return RouterDecider(self._rules, self._teams)

    def adopt(self, config: Config) -> None:
        self._rules = config.rules(self._partitions).after(self._rules)
        self._teams = config.asked_teams
        self._known.learn(self._teams, self._rules.routes.owners)
        self._metrics.prepare()
        self._times.prepare()

    def observe(self, decider: Decider[Gathering]) -> None:
        assert isinstance(decider, RouterDecider)
        counts, decider.counts = decider.counts, type(decider.counts)()
        told, decider.told = decider.told, []
        facts, decider.facts = decider.facts, Facts()
        self._judged.judged(counts)
        self._judged.dead(facts.dead)
        self._metrics.judged(facts.judged)
        self._metrics.did(facts.deeds)
        self._metrics.forwarded(facts.waits)
        self._times.decided(facts.decided)
        for one in told:
            self._tell(one)

    def _tell(self, told: Told) -> None:
        log = self._log.warning if told.what in ALERTS else self._log.info
        log(
            _EVENTS[told.what],
            thread_id=told.thread,
            generation=told.generation,
            team=told.team,
            code=told.code,
            run_id=told.run_id,
        )

    def _scrape(self) -> Iterator[Metric]:
        routers = [one for one in self._service.deciders() if isinstance(one, RouterDecider)]
        yield from batches((one for router in routers for one in list(router.batches.items())), HELD)
        yield from self._service.scrape()


def _of_entries() -> Iterator[tuple[str, str | None]]:
    """Every verdict and code of an entry of a decision, so that the first of each is seen to increase."""
    yield from (("accepted", None), ("duplicate", None))
    yield from (("refused", code) for code in (*DecisionCode, *Code))


def _verdicts() -> Iterator[tuple[str, str | None]]:
    """Every verdict and code of a record."""
    yield from _of_entries()
    yield from (("unreadable", code) for code in (*DecisionCode, *Code))
