"""The gatekeeper as a process: settings, engine, metrics and logs around the decider."""

from collections.abc import Iterator

from msgspec.structs import replace
from prometheus_client import CollectorRegistry, Metric

from holdshort.contract.codes import Code
from holdshort.contract.state import ThreadState
from holdshort.contract.verdicts import Kind
from holdshort.gatekeeper.decider import Gate, Told
from holdshort.gatekeeper.facts import Facts
from holdshort.settings import Config, KafkaSettings, Settings, rules_of
from holdshort.stream.decider import Decider
from holdshort.stream.service import Service
from holdshort.stream.topics import GATEKEEPER
from holdshort.telemetry.logs import Event, logger
from holdshort.telemetry.metrics import (
    DecisionTimes,
    GateMetrics,
    JudgementMetrics,
    Known,
    Scraped,
    pending_interrupts,
)

_EVENTS = {
    Kind.OPENED: Event.PAUSE_OPENED,
    Kind.SETTLED: Event.PAUSE_SETTLED,
    Kind.REOPENED: Event.PAUSE_REOPENED,
    Kind.LOST: Event.RUN_LOST,
    Kind.REFUSED: Event.INPUT_REFUSED,
    Kind.VIOLATED: Event.RECORD_DEAD,
    Kind.UNREADABLE: Event.RECORD_DEAD,
    Kind.FORGOTTEN: Event.THREAD_FORGOTTEN,
}


class Gatekeeper:
    """Wires one gatekeeper process; `run` serves until it is told to stop."""

    def __init__(self, kafka: KafkaSettings, settings: Settings, config: Config) -> None:
        registry = CollectorRegistry()
        self._partitions = settings.partitions
        self._rules = rules_of(settings, config)
        self._known = Known(config.asked_teams, self._rules.routes.owners)
        self._judged = JudgementMetrics(GATEKEEPER, _verdicts(), Code, registry)
        self._metrics = GateMetrics(self._known, registry)
        self._times = DecisionTimes(self._known, registry)
        self._log = logger().bind(service=GATEKEEPER)
        self._service: Service[ThreadState] = Service(
            GATEKEEPER,
            settings,
            kafka,
            config,
            registry,
            self,
        )
        Scraped(self._scrape, registry)

    def run(self) -> int:
        return self._service.run()

    def new_decider(self) -> Decider[ThreadState]:
        return Gate(self._rules)

    def adopt(self, config: Config) -> None:
        self._rules = replace(config.rules(self._partitions), audit_key=self._rules.audit_key)
        self._known.learn(config.teams, self._rules.routes.owners)
        self._metrics.prepare()
        self._times.prepare()

    def observe(self, decider: Decider[ThreadState]) -> None:
        assert isinstance(decider, Gate)
        counts, decider.counts = decider.counts, type(decider.counts)()
        told, decider.told = decider.told, []
        facts, decider.facts = decider.facts, Facts()
        self._judged.judged(counts)
        self._judged.dead(facts.dead)
        self._metrics.opened(facts.opened)
        self._metrics.closed(facts.closed)
        self._metrics.schemas(facts.schemas)
        self._metrics.not_gated(facts.not_gated)
        self._times.decided(facts.decided)
        for one in told:
            self._tell(one)

    def _tell(self, told: Told) -> None:
        if event := _EVENTS.get(told.kind):
            self._log.info(
                event,
                code=told.code,
                thread_id=told.thread,
                run_id=told.run_id,
                generation=told.generation,
                agent=told.agent,
                topic=told.topic,
                partition=told.partition,
                offset=told.offset,
            )

    def _scrape(self) -> Iterator[Metric]:
        gates = [decider for decider in self._service.deciders() if isinstance(decider, Gate)]
        found = [one for gate in gates for one in gate.tally.open_interrupts()]
        yield from pending_interrupts(self._known, found)
        yield from self._service.scrape()


def _verdicts() -> Iterator[tuple[str, str | None]]:
    """Every pair that can occur, so that the first of each is seen to increase."""
    for kind in Kind:
        yield kind, None
        yield from ((kind, code) for code in Code)
