"""One service process on the engine: Kafka, lanes, management port, signals.

Crash-only: what cannot be mended by beginning a lane again ends the process with a non-zero status, and
whoever supervises it starts another.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final, Generic, TypeVar

from prometheus_client import CollectorRegistry

from holdshort.settings import KafkaSettings, Settings
from holdshort.stream.admin import Admin, unfit
from holdshort.stream.clock import WallClock
from holdshort.stream.connection import connection_of
from holdshort.stream.decider import Decider
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.errors import Fatal
from holdshort.stream.kafka import AioKafka
from holdshort.stream.records import TopicPartition
from holdshort.stream.runner import Runner
from holdshort.stream.topics import Topic
from holdshort.telemetry.health import Management
from holdshort.telemetry.logs import Event, logger
from holdshort.telemetry.metrics import EngineMetrics

S = TypeVar("S")

BLOCKED_S: Final = 15.0  # a loop that has not turned for so long is dead, whatever it says


class Service(Generic[S]):
    """One process of one application (`gatekeeper` or `router`)."""

    def __init__(
        self,
        app: str,
        settings: Settings,
        kafka: KafkaSettings,
        topics: Sequence[Topic],
        registry: CollectorRegistry,
        new_decider: Callable[[int], Decider[S]],
        observe: Callable[[Decider[S]], None],
    ) -> None:
        self.app = app
        self.settings = settings
        self.registry = registry
        self.runner: Runner[S] | None = None
        self._connection = connection_of(kafka, f"holdshort-{app}")
        self._topics = topics
        self._new_decider = new_decider
        self._observe = observe
        self._clock = WallClock()

    # -- health --------------------------------------------------------------------------------------------

    def live(self) -> bool:
        return self.runner is None or self._clock.monotonic() - self.runner.last_beat < BLOCKED_S

    def ready(self) -> bool:
        return self.runner is not None and self.runner.ready

    def report(self) -> list[dict[str, Any]]:
        return [asdict(lane) for lane in self.runner.health()] if self.runner else []

    def deciders(self) -> list[Decider[S]]:
        """The deciders of the lanes that run here, for what is computed at a scrape."""
        tasks = list(self.runner.tasks.values()) if self.runner else []
        return [task.lane.decider for task in tasks if task.lane is not None]

    def lag(self) -> dict[TopicPartition, int]:
        """Offsets behind the end as last heard of, of every input partition read here."""
        tasks = list(self.runner.tasks.values()) if self.runner else []
        return {where: behind for task in tasks for where, behind in task.lag().items()}

    def state_size(self) -> tuple[int, int]:
        """Keys with state in the lanes of this process, and their bytes."""
        tasks = list(self.runner.tasks.values()) if self.runner else []
        stores = [store for task in tasks if task.lane for store in list(task.lane.stores.values())]
        return sum(len(store.places) for store in stores), sum(store.bytes for store in stores)

    # -- life ----------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT; a second one ends the process at once. Returns the exit status."""
        log = logger().bind(service=self.app)
        management = Management(
            self.settings.management_host, self.settings.management_port, self, self.registry
        )
        try:
            management.start()
            log.info(Event.SERVICE_STARTS, management=management.address)
            _run(self._serve())
        except (Fatal, OSError) as error:
            log.error(Event.SERVICE_STOPS, error=str(error))  # noqa: TRY400 - a sentence, not a trace
            return 1
        finally:
            management.stop()
        log.info(Event.SERVICE_STOPS)
        return 0

    async def _serve(self) -> None:
        await self._check_topics()
        kafka = AioKafka(self._connection, self.settings.prefix, instance=self.settings.instance)
        engine = EngineSettings(app=self.app, partitions=self.settings.partitions, lanes=self.settings.lanes)
        metrics = EngineMetrics(self.app, self.registry)
        self.runner = Runner(engine, kafka, self._new_decider, self._clock, metrics, self._observe)
        _stop_on_signals(self.runner.stop)
        try:
            await self.runner.run()
        finally:
            await kafka.close()

    async def _check_topics(self) -> None:
        """Services never create topics, and do not run on ones that would lose state. Raises Fatal."""
        admin = Admin(self._connection, self.settings.prefix)
        plan = await admin.plan(self._topics, self.settings.partitions, self.settings.lanes)
        if reasons := unfit(plan):
            raise Fatal(f"the topics do not fit: {'; '.join(reasons)} (holdshort topics apply)")


def _run(main: Any) -> None:
    if sys.platform == "win32":
        asyncio.run(main)
        return
    import uvloop  # noqa: PLC0415 - not on every platform

    uvloop.run(main)


def _stop_on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        stop()
        loop.remove_signal_handler(number)  # the second one ends the process at once

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
