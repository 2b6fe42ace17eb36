"""The composed system in virtual time, with the metrics that its processes would serve."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Final

from tests.systems import LANES, PARTITIONS, System
from tests.virtual import in_virtual_time, pass_time

from holdshort.gatekeeper.app import Gatekeeper
from holdshort.router.app import Router
from holdshort.settings import KafkaSettings, Settings
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.memory import MemoryKafka
from holdshort.stream.runner import Runner

APPS: Final[dict[str, type[Gatekeeper] | type[Router]]] = {"gatekeeper": Gatekeeper, "router": Router}
Series = tuple[str, tuple[tuple[str, str], ...]]
Scenario = Callable[["Measured"], Coroutine[Any, Any, None]]


class Failing(MemoryKafka):
    """A view of the broker whose next commits fail with `next_failure`, when nobody knows what happened."""

    next_failure: Exception | None = None

    async def at(self, step: str) -> None:
        await super().at(step)
        if step == "ended" and self.next_failure is not None:
            failure, self.next_failure = self.next_failure, None
            raise failure


class Measured(System):
    """A system whose services count: the very wiring of the processes, on the engine in memory."""

    def __init__(self, config: str) -> None:
        super().__init__(config)
        self.apps: dict[str, Gatekeeper | Router] = {}
        self.kafkas: dict[str, Failing] = {}
        self.at_start: dict[str, dict[Series, float]] = {}

    async def start(self, app: str) -> None:
        settings = Settings(partitions=PARTITIONS, lanes=LANES)
        wired = self.apps[app] = APPS[app](KafkaSettings(), settings, self.config)
        self.at_start[app] = self.scraped(app)
        service: Any = wired._service
        service._clock = self.clock
        runner: Runner[Any] = Runner(
            EngineSettings(app=app, partitions=PARTITIONS, lanes=LANES),
            self.kafkas.setdefault(app, Failing(self.broker)),
            lambda _: wired.new_decider(),
            self.clock,
            service._metrics,
            wired.observe,
        )
        service.runner = runner
        self._processes[app] = runner, asyncio.create_task(runner.run())
        await pass_time(1)
        assert runner.ready, [task.halt for task in runner.tasks.values()]

    def scraped(self, app: str) -> dict[Series, float]:
        """Every series of a service and its value, as a scrape at this moment would have it."""
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in self.apps[app]._service.registry.collect()
            for sample in family.samples
            if sample.name.startswith("holdshort_") and not sample.name.endswith("_created")
        }

    def value(self, name: str, **labels: str) -> float:
        """The sum of a metric over the series with these labels, of both services; NaN if there is none."""
        found = [
            value
            for app in self.apps
            for (series, pairs), value in self.scraped(app).items()
            if series == name and labels.items() <= dict(pairs).items()
        ]
        return sum(found) if found else math.nan


def measured(config: str) -> Callable[[Scenario], Callable[[], None]]:
    """A test in virtual time on a running system that counts."""

    def decorate(scenario: Scenario) -> Callable[[], None]:
        @wraps(scenario)
        def test() -> None:
            in_virtual_time(_run(config, scenario))

        del test.__wrapped__  # pytest would ask for the scenario's argument
        return test

    return decorate


async def _run(config: str, scenario: Scenario) -> None:
    running = Measured(config)
    for app in APPS:
        await running.start(app)
    await scenario(running)
    running.check()
    for app in APPS:
        await running.stop(app)
