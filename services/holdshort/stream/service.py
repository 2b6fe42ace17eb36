"""One service process on the engine: Kafka, lanes, management port, signals.

Crash-only: what cannot be mended by beginning a lane again ends the process with a non-zero status, and
whoever supervises it starts another.
"""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final, Generic, Protocol, TypeVar

from prometheus_client import CollectorRegistry, Metric

from holdshort.settings import Config, KafkaSettings, Settings
from holdshort.stream.admin import NO_TOPIC, Admin, unfit
from holdshort.stream.clock import WallClock
from holdshort.stream.connection import connection_of, warn_if_overheard
from holdshort.stream.decider import Decider
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.errors import Fatal
from holdshort.stream.kafka import AioKafka
from holdshort.stream.lifecycle import State
from holdshort.stream.reload import RefusedError, Reload, needs_restart
from holdshort.stream.runner import Runner
from holdshort.stream.topics import ROUTER, Topic, table
from holdshort.telemetry.health import Management
from holdshort.telemetry.logs import Event, logger
from holdshort.telemetry.metrics import EngineMetrics, configuration, input_lag, lanes_at_work

S = TypeVar("S")

LOOK_S: Final = 0.25
TOPICS_LOOK_S: Final = 20.0
NEW_TOPICS_S: Final = 1.0  # brokers hear of a topic one after the other, and a lane that misses one halts
HOT_BYTES: Final = 96 * 1024 * 1024  # of states at hand, if one process has all partitions
BLOCKED_S: Final = 15.0  # a loop that has not turned for so long is dead, whatever it says


class UnfitError(Fatal):
    """The topics are not those that this configuration needs."""


class Application(Protocol[S]):
    """What a service is made of: rules, and what is told of them."""

    def new_decider(self) -> Decider[S]:
        """A decider for one life of one lane, by the configuration in force."""
        ...

    def observe(self, decider: Decider[S]) -> None:
        """Count and log what has just been committed."""
        ...

    def adopt(self, config: Config) -> None:
        """Put a newer configuration in force; every lane gets a new decider then."""
        ...


class Service(Generic[S]):
    """One process of one application (`gatekeeper` or `router`)."""

    def __init__(
        self,
        app: str,
        settings: Settings,
        kafka: KafkaSettings,
        config: Config,
        registry: CollectorRegistry,
        application: Application[S],
    ) -> None:
        self.app = app
        self.settings = settings
        self.registry = registry
        self.runner: Runner[S] | None = None
        self._connection = connection_of(kafka, f"holdshort-{app}")
        self._effective = {  # secrets are masked by their type
            "kafka": kafka.model_dump(mode="json", exclude_none=True),
            "settings": settings.model_dump(mode="json", exclude_none=True),
            "configuration": config.model_dump(mode="json", exclude_defaults=True),
        }
        self._topics = _topics_of(app, config)
        self._application = application
        log = logger().bind(service=app)
        self._reload = Reload(settings.config, config, self._check_newer, self._take_over, log)
        self._clock = WallClock()
        self._metrics = EngineMetrics(app, registry)

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

    def scrape(self) -> Iterator[Metric]:
        """What the engine's metrics say of the lanes at this moment."""
        tasks = list(self.runner.tasks.values()) if self.runner else []
        lag = {where: behind for task in tasks for where, behind in task.lag().items()}
        stores = [store for task in tasks if task.lane for store in list(task.lane.stores.values())]
        turns = [task.last_turn for task in tasks if task.state is State.RUNNING]
        since = self._clock.monotonic() - min(turns, default=0.0)
        yield from configuration(self.app, self._reload.digest, refused=self._reload.refused is not None)
        yield from input_lag(self.app, lag)
        yield from lanes_at_work(
            self.app,
            entries=sum(len(store.places) for store in stores),
            size=sum(store.bytes for store in stores),
            remaining=sum(task.changelog.remaining for task in tasks if task.state is State.RESTORING),
            last_poll=self._clock.now() / 1000 - since if turns else None,
        )

    # -- life ----------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT; a second one ends the process at once. Returns the exit status."""
        log = logger().bind(service=self.app)
        management = Management(
            self.settings.management_host, self.settings.management_port, self, self.registry
        )
        try:
            management.start()
            log.info(Event.SERVICE_STARTS, management=management.address, **self._effective)
            warn_if_overheard(self._connection)
            _run(self._serve())
        except (Fatal, OSError) as error:
            log.error(Event.SERVICE_STOPS, error=str(error))  # noqa: TRY400 - a sentence, not a trace
            return 1
        finally:
            management.stop()
        log.info(Event.SERVICE_STOPS)
        return 0

    async def _serve(self) -> None:
        await self._check_topics(self._topics)
        kafka = AioKafka(self._connection, self.settings.prefix, instance=self.settings.instance)
        engine = EngineSettings(
            app=self.app,
            partitions=self.settings.partitions,
            lanes=self.settings.lanes,
            hot_bytes=HOT_BYTES // self.settings.partitions,
        )
        application = self._application
        self.runner = Runner(
            engine,
            kafka,
            lambda _: application.new_decider(),
            self._clock,
            self._metrics,
            application.observe,
        )
        _stop_on_signals(self.runner.stop)
        _reload_on_signal(self._reload.ask)
        loop = asyncio.create_task(_watch_loop(self._metrics))
        watches = [
            asyncio.create_task(_or_stop(self._watch_topics(), self.runner)),
            asyncio.create_task(_or_stop(self._reload.watch(), self.runner)),
        ]
        try:
            await self.runner.run()
            for watch in watches:
                if watch.done():
                    watch.result()
        finally:
            for watch in (loop, *watches):
                watch.cancel()
            await kafka.close()

    # -- the topics ----------------------------------------------------------------------------------------

    async def _check_topics(self, topics: list[Topic]) -> None:
        """Services never create topics, and do not run on ones that would lose state. Raises Fatal."""
        admin = Admin(self._connection, self.settings.prefix)
        plan = await admin.plan(topics, self.settings.partitions, self.settings.lanes)
        if reasons := unfit(plan):
            raise UnfitError(f"the topics do not fit: {'; '.join(reasons)} (holdshort topics apply)")

    async def _watch_topics(self) -> None:
        """Look again now and then: what clients write into partitions that were added, nobody reads."""
        while True:
            await asyncio.sleep(TOPICS_LOOK_S)
            try:
                await self._check_topics(self._topics)
            except UnfitError:
                raise
            except Fatal:
                continue  # that they cannot be looked at now is no reason to stop

    # -- a newer configuration -----------------------------------------------------------------------------

    async def _check_newer(self, config: Config) -> None:
        """Raises RefusedError for what needs a restart, UnfitError or Fatal for topics that do not fit."""
        if reasons := list(needs_restart(self._reload.config, config)):
            raise RefusedError(f"{'; '.join(reasons)}: restart to take it")
        known = set(_topics(self._reload.config))
        if new := [topic for topic in _topics(config) if topic not in known]:
            await self._check_new_topics(config, new)
            await asyncio.sleep(NEW_TOPICS_S)
            await self._check_new_topics(config, new)

    async def _check_new_topics(self, config: Config, new: Sequence[Topic]) -> None:
        """Ours, and those that the router has to write for what the gate routes: it would stand still."""
        await self._check_topics(_topics_of(self.app, config))
        others = [one.name for one in new if ROUTER in one.writers and self.app not in one.users]
        seen = await Admin(self._connection, self.settings.prefix).look(others)
        for topic, one in seen.items():
            if one.trouble == NO_TOPIC:
                raise RefusedError(f"the topics do not fit: {topic} does not exist (holdshort topics apply)")
            if one.trouble is not None:
                raise RefusedError(f"whether {topic} exists may not be looked at: restart to take it")

    def _take_over(self, config: Config) -> None:
        self._topics = _topics_of(self.app, config)
        self._application.adopt(config)
        if self.runner is not None:
            self.runner.renew()


def _topics(config: Config) -> list[Topic]:
    return table(list(config.agents), list(config.teams))


def _topics_of(app: str, config: Config) -> list[Topic]:
    """The topics that one application uses."""
    return [topic for topic in _topics(config) if app in topic.users]


async def _or_stop(watch: Coroutine[Any, Any, None], runner: Runner[S]) -> None:
    """What ends a watch ends the service."""
    try:
        await watch
    except Exception:
        runner.stop()
        raise


async def _watch_loop(metrics: EngineMetrics) -> None:
    """Tell how late the loop is: everything that blocks it makes this late, too."""
    clock = asyncio.get_running_loop().time
    while True:
        due = clock() + LOOK_S
        await asyncio.sleep(LOOK_S)
        metrics.loop_was_late(clock() - due)


def _run(main: Any) -> None:
    # The states at hand are many small objects that live long: the collector's defaults look through all of
    # them every few hundred records, and find nothing.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    if sys.platform == "win32":
        asyncio.run(main)
        return
    import uvloop  # noqa: PLC0415 - not on every platform

    uvloop.run(main)


def _reload_on_signal(ask: Callable[[], None]) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, ask)


def _stop_on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        stop()
        loop.remove_signal_handler(number)  # the second one ends the process at once

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
