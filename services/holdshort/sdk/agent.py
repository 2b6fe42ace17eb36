"""An agent service: a worker that takes the runs of one agent and publishes what the agent says.

    from collections.abc import AsyncIterator
    from ag_ui.core import BaseEvent, RunAgentInput, RunFinishedEvent, TextMessageChunkEvent
    from holdshort.sdk.agent import AgentWorker

    worker = AgentWorker("billing")

    @worker.on_run
    async def run(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
        yield TextMessageChunkEvent(message_id="m1", delta="Hello!")
        yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)

    worker.run()

A framework that speaks AG-UI is plugged in with one line, as here pydantic-ai:

    worker.on_run(lambda input: AGUIAdapter(agent=agent, run_input=input).run_stream())
"""

import asyncio
import re
import secrets
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from holdshort.sdk.conduct import Function, Habits, Voice, conduct, lost
from holdshort.sdk.intake import Intake, Pace
from holdshort.sdk.program import main, wiring
from holdshort.sdk.runs import Run
from holdshort.settings import NAME, KafkaSettings
from holdshort.stream.clock import WallClock
from holdshort.telemetry.logs import Event, logger

if TYPE_CHECKING:
    from holdshort.sdk.wire import AgentWire

F = TypeVar("F", bound=Function)


@dataclass(eq=False)
class AgentWorker:
    """Takes runs from `runs.<name>`, executes each at most once, publishes to `agent-events.<name>`.

    The cluster is that of `KAFKA_*` and `HOLDSHORT_PREFIX`, unless `kafka` and `prefix` say otherwise. All
    times are in seconds.

    concurrency        runs at once in this process; those of one thread go one after the other
    heartbeat          a run that is silent for so long says that it goes on: a third of the gate's run lease
    grace              how long runs in flight may go on after SIGTERM, before they are cancelled
    publish_deadline   an event that is not in the log by then ends the process
    session_timeout    how long the process may be silent towards Kafka before its runs are taken for lost
    expose_errors      tell clients the text of the agent's exceptions, which may hold what users said
    legacy_interrupts  the agent pauses by CUSTOM `on_interrupt`: answers are forwardedProps.command.resume
    snapshots          before a pause, publish the messages and the state if the agent has not; turn it off
                       for an agent that keeps the conversation itself and is sent only what is new
    """

    name: str
    _: KW_ONLY
    concurrency: int = 100
    heartbeat: float = 300.0
    grace: float = 25.0
    publish_deadline: float = 60.0
    session_timeout: float = 30.0
    expose_errors: bool = False
    legacy_interrupts: bool = False
    snapshots: bool = True
    kafka: KafkaSettings | None = None
    prefix: str | None = None
    function: Function | None = field(default=None, init=False)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(NAME, self.name):
            raise ValueError(f"an agent's name is like billing-2, not {self.name!r}")

    def on_run(self, function: F) -> F:
        """Use this function for every run.

        It takes a RunAgentInput of `ag_ui.core` and is an async generator of AG-UI events (or returns async
        iterables of them): models of `ag_ui.core`, dicts, or JSON as text or bytes. It must not block the
        event loop.
        """
        self.function = function
        return function

    @property
    def habits(self) -> Habits:
        """How its runs are conducted."""
        return Habits(
            heartbeat=self.heartbeat,
            publish_deadline=self.publish_deadline,
            expose_errors=self.expose_errors,
            legacy_interrupts=self.legacy_interrupts,
            snapshots=self.snapshots,
        )

    # -- serving -------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; a second one ends the process at once. Exits 1 when it must."""
        main(self.serve, self.stop, f"agent-{self.name}")

    async def serve(self) -> None:
        """Serve until `stop`. Raises Fatal where the process cannot be of use, MendSettingsError."""
        from holdshort.sdk.wire import AgentWire  # noqa: PLC0415 - brings FastStream

        assert self.function is not None, "an agent needs a function: @worker.on_run"
        worker = secrets.token_hex(4)
        kafka, prefix = wiring(self.kafka, self.prefix)
        wire = AgentWire(kafka, prefix, self.name, worker, self.session_timeout)
        intake = Intake(
            wire,
            worker,
            partial(self._conduct, wire),
            partial(self._lost, wire),
            Pace(concurrency=self.concurrency, grace=self.grace),
            WallClock().now,
        )
        log = logger().bind(agent=self.name, worker=worker)
        try:
            await wire.start(intake)
            log.info(Event.SERVICE_STARTS)
            await intake.serve(self._stopping)
        finally:
            await wire.stop()
        log.info(Event.SERVICE_STOPS)

    def stop(self) -> None:
        """Take no more runs, let those in flight finish within the grace, then return from `serve`."""
        self._stopping.set()

    async def _conduct(self, wire: "AgentWire", run: Run) -> None:
        assert self.function is not None
        await conduct(run, self.function, Voice(wire.sender(run), self.publish_deadline), self.habits)

    async def _lost(self, wire: "AgentWire", run: Run, message: str) -> None:
        await lost(Voice(wire.sender(run), self.publish_deadline), message)
