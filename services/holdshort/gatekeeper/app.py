"""The gatekeeper as a process: settings, engine, metrics and logs around the decider."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric

from holdshort.contract.codes import Code
from holdshort.contract.state import ThreadState
from holdshort.contract.verdicts import Kind
from holdshort.gatekeeper.decider import Gate, Told
from holdshort.settings import RESERVED_TEAMS, Config, KafkaSettings, Settings
from holdshort.stream.decider import Decider
from holdshort.stream.service import Service
from holdshort.stream.topics import GATEKEEPER, table
from holdshort.telemetry.logs import Event, logger
from holdshort.telemetry.metrics import (
    GateMetrics,
    JudgementMetrics,
    Scraped,
    input_lag,
    pending_interrupts,
    state_size,
)

_EVENTS = {
    Kind.OPENED: Event.PAUSE_OPENED,
    Kind.SETTLED: Event.PAUSE_SETTLED,
    Kind.REOPENED: Event.PAUSE_REOPENED,
    Kind.LOST: Event.RUN_LOST,
    Kind.REFUSED: Event.INPUT_REFUSED,
    Kind.VIOLATED: Event.RECORD_DEAD,
    Kind.UNREADABLE: Event.RECORD_DEAD,
}


class Gatekeeper:
    """Wires one gatekeeper process; `run` serves until it is told to stop."""

    def __init__(self, kafka: KafkaSettings, settings: Settings, config: Config) -> None:
        registry = CollectorRegistry()
        rules = config.rules(settings.partitions)
        self._teams = [*config.teams, *RESERVED_TEAMS]
        self._judged = JudgementMetrics(GATEKEEPER, _verdicts(), registry)
        self._metrics = GateMetrics(self._teams, registry)
        self._log = logger().bind(service=GATEKEEPER)
        self._service: Service[ThreadState] = Service(
            GATEKEEPER,
            settings,
            kafka,
            [topic for topic in table(list(config.agents), list(config.teams)) if _is_ours(topic.users)],
            registry,
            lambda _: Gate(rules),
            self._observe,
        )
        Scraped(self._scrape, registry)

    def run(self) -> int:
        return self._service.run()

    def _observe(self, decider: Decider[ThreadState]) -> None:
        """Count and log what has just been committed."""
        assert isinstance(decider, Gate)
        counts, decider.counts = decider.counts, type(decider.counts)()
        told, decider.told = decider.told, []
        self._judged.judged(counts)
        for one in told:
            self._tell(one)

    def _tell(self, told: Told) -> None:
        if told.kind is Kind.OPENED:
            for team in told.teams:
                self._metrics.opened[team].inc()
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
        pending = dict.fromkeys(self._teams, (0, 0))
        gates = [decider for decider in self._service.deciders() if isinstance(decider, Gate)]
        for gate in gates:
            for team, count, since in gate.tally.open_interrupts():
                known, oldest = pending.get(team, (0, 0))
                pending[team] = (
                    known + count,
                    min(one for one in (oldest, since) if one) if count else oldest,
                )
        yield from pending_interrupts(pending)
        yield from input_lag(GATEKEEPER, self._service.lag())
        yield from state_size(GATEKEEPER, *self._service.state_size())


def _is_ours(users: tuple[str, ...]) -> bool:
    return GATEKEEPER in users


def _verdicts() -> Iterator[tuple[str, str | None]]:
    """Every pair that can occur, so that the first of each is seen to increase."""
    for kind in Kind:
        yield kind, None
        yield from ((kind, code) for code in Code)
