"""The lanes of one process: assignments to tasks, handover, shutdown, health.

The group decides who should own a lane, the epoch of the lane's producer decides who does. So a task goes on
through every rebalance until its lane is given to somebody else, and being late or wrong here costs time,
never a record.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from holdshort.stream.decider import Decider
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.errors import Fenced, StreamError
from holdshort.stream.lane import Lane
from holdshort.stream.lifecycle import State
from holdshort.stream.ports import Clock, Kafka, Membership
from holdshort.stream.task import Task
from holdshort.telemetry.logs import Event, logger
from holdshort.telemetry.metrics import EngineMetrics

S = TypeVar("S")

STILL_OURS_S: Final = 7.0  # longer than a session: by then the group has dropped a stale owner
BEAT_S: Final = 1.0
LOOK_S: Final = 2.0  # how often it is asked whether the topics are still those that they were
TELL_S: Final = 5.0  # how often the group is told of positions, for tools that show lag


@dataclass(frozen=True, slots=True)
class LaneHealth:
    """One lane of this process, as `/readyz` shows it."""

    lane: int
    state: str
    restored: int
    remaining: int
    halted: str | None
    command: str | None


class _Aside:
    """Something that is done every so many seconds, and never waited for; times are those of `monotonic`."""

    def __init__(self, every: float, now: float) -> None:
        self._every = every
        self._started_at = now
        self._task: asyncio.Task[None] | None = None

    def is_due(self, now: float) -> bool:
        """Whether it is time for it again, and the last time is over."""
        return now - self._started_at >= self._every and (self._task is None or self._task.done())

    def start(self, doing: Coroutine[Any, Any, None], now: float) -> None:
        self._started_at = now
        self._task = asyncio.create_task(doing)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


class Runner(Generic[S]):
    """Runs the lanes that the group assigns to this process, each in a task of its own."""

    task_type: type[Task[Any]] = Task

    def __init__(
        self,
        settings: EngineSettings,
        kafka: Kafka,
        new_decider: Callable[[int], Decider[S]],
        clock: Clock,
        metrics: EngineMetrics,
        observe: Callable[[Decider[S]], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self.tasks: dict[int, Task[S]] = {}
        self.last_beat = clock.monotonic()
        self.assigned: frozenset[int] | None = None
        self._kafka = kafka
        self._new_decider = new_decider
        self._clock = clock
        self._metrics = metrics
        self._observe = observe
        self._log = logger().bind(service=settings.app)
        self._running: dict[int, asyncio.Task[None]] = {}
        self._ended: asyncio.Event = asyncio.Event()
        self._stopping = asyncio.Event()
        self._membership: Membership | None = None
        self._fatal: BaseException | None = None
        self._telling = _Aside(TELL_S, clock.monotonic())
        self._looking = _Aside(LOOK_S, clock.monotonic())

    async def run(self) -> None:
        """Share the lanes until `stop`. Raises Fatal, or whatever defect ended a task."""
        self._membership = await self._kafka.join(
            self.settings.app, self.settings.positions, self._on_assigned
        )
        try:
            while not self._stopping.is_set() and self._fatal is None:
                await self._beat()
        finally:
            await self._leave()
        if self._fatal is not None:
            raise self._fatal

    def stop(self) -> None:
        """Take nothing more, finish what is in hand, leave the group."""
        self._stopping.set()
        self._ended.set()

    def renew(self) -> None:
        """The rules have changed: every lane begins again with a new decider, between two batches."""
        for task in self.tasks.values():
            task.renew()

    async def _beat(self) -> None:
        self.last_beat = self._clock.monotonic()
        if self._membership is not None:
            self._membership.check()
            self._tell(self._membership)
        self._look()
        try:
            async with asyncio.timeout(BEAT_S):
                await self._ended.wait()
        except TimeoutError:
            return
        self._ended.clear()

    def _tell(self, membership: Membership) -> None:
        """What counts are the positions in the transactions; these are for tools that show lag."""
        if not self._telling.is_due(self.last_beat):
            return
        positions = {where: at for task in self.tasks.values() for where, at in task.positions().items()}
        if positions:
            self._telling.start(membership.tell(positions), self.last_beat)

    def _look(self) -> None:
        """A lane must not write on to a topic that was made again."""
        lanes = [(task, task.lane) for task in self.tasks.values() if task.lane is not None]
        if lanes and self._looking.is_due(self.last_beat):
            self._looking.start(self._look_at(lanes), self.last_beat)

    async def _look_at(self, lanes: Sequence[tuple[Task[S], Lane[S]]]) -> None:
        with suppress(StreamError):  # whoever needs the topics meets the trouble, too
            topics = {topic for _, lane in lanes for topic in lane.topics}
            ids = await self._kafka.log.topic_ids(topics)
            for task, lane in lanes:
                task.look_at(lane, {topic: id_ for topic, id_ in ids.items() if topic in lane.topics})

    async def _leave(self) -> None:
        """Leave the group only when nothing is in flight: others then take over without waiting."""
        for task in self.tasks.values():
            task.stop()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        self._telling.cancel()
        self._looking.cancel()
        if self._membership is not None:
            await self._membership.leave()

    # -- assignments ---------------------------------------------------------------------------------------

    def _on_assigned(self, lanes: frozenset[int]) -> None:
        """The lanes that are ours from here on. Nothing slow in here: the group hears nothing meanwhile."""
        self._metrics.rebalanced()
        self._log.info(Event.LANES_ASSIGNED, lanes=sorted(lanes))
        self.assigned = lanes
        for number in self.tasks.keys() - lanes:
            self.tasks[number].stop()
        for number in lanes:
            running = self._running.get(number)
            if running is None or running.done():
                self._start(number)

    def _start(self, number: int) -> None:
        task: Task[S] = self.task_type(
            number,
            self.settings,
            self._kafka,
            lambda: self._new_decider(number),
            self._clock,
            self._metrics,
            self._observe,
        )
        self.tasks[number] = task
        running = self._running[number] = asyncio.create_task(self._run(number, task))
        running.add_done_callback(lambda _: self._ended.set())

    async def _run(self, number: int, task: Task[S]) -> None:
        """Run one task to its end; then, if the lane is ours (again), another."""
        try:
            await task.run()
        except Fenced:
            self._metrics.fenced()
            self._log.warning(Event.LANE_FENCED, lane=number)
            await self._wait_for_assignment(number)
        except BaseException as fatal:
            self._fatal = fatal
            raise
        self._log.info(Event.LANE_CLOSED, lane=number)
        if self._wanted(number):
            self._start(number)
        else:
            self.tasks.pop(number, None)

    def _wanted(self, number: int) -> bool:
        return not self._stopping.is_set() and self.assigned is not None and number in self.assigned

    async def _wait_for_assignment(self, number: int) -> None:
        """Fenced: somebody else owns the lane. If the group still says we do, a stale owner came late; it
        loses its membership within a session, and then the lane is ours to take again.
        """
        until = self._clock.monotonic() + STILL_OURS_S
        while self._wanted(number) and self._clock.monotonic() < until:
            await self._clock.sleep(0.1)

    # -- health --------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Everything assigned is restored and runs."""
        if self.assigned is None or self._stopping.is_set() or self.assigned - self.tasks.keys():
            return False
        return all(task.state is State.RUNNING for task in self.tasks.values())

    def health(self) -> list[LaneHealth]:
        return [_health(task) for _, task in sorted(self.tasks.items())]


def _health(task: Task[Any]) -> LaneHealth:
    restored = sum(len(places) for places in list(task.changelog.places.values()))
    return LaneHealth(
        lane=task.number,
        state=task.state.value,
        restored=restored,
        remaining=task.changelog.remaining,
        halted=task.halt.reason if task.halt else None,
        command=task.halt.command if task.halt else None,
    )
