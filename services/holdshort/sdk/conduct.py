"""One run, from its input to its last event confirmed: the user's generator, framed, with heartbeats."""

import asyncio
import inspect
import traceback
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

from holdshort.contract.codes import Code
from holdshort.sdk.codes import AGENT_FAILED, FAILED, STOPPED, UNREADABLE
from holdshort.sdk.framing import HEARTBEAT, Framing, MendAgentError, run_error
from holdshort.sdk.runs import Run, as_command, parse_input, transcript_of
from holdshort.stream.errors import Fatal
from holdshort.telemetry.logs import Event, logger

Function = Callable[[Any], AsyncIterable[Any] | Awaitable[AsyncIterable[Any]]]
Send = Callable[[bytes], Awaitable["asyncio.Future[Any]"]]

LARGEST_EVENT: Final = 2 * 1024 * 1024 - 64 * 1024  # what the topic takes, less key, headers and framing


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How an agent's runs are conducted; times in seconds (AgentWorker explains them)."""

    heartbeat: float = 300.0
    publish_deadline: float = 60.0
    expose_errors: bool = False
    legacy_interrupts: bool = False
    snapshots: bool = True


class Voice:
    """The way of one run to its topic: in order, without waiting for each confirmation.

    Raises Fatal where an event was not confirmed within the deadline (seconds) or was refused: what
    follows must not be said then, and a producer that has met an error is not to be trusted any more.
    """

    def __init__(self, send: Send, deadline: float) -> None:
        self._send = send
        self._deadline = deadline
        self._unconfirmed: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self.last_said = asyncio.get_running_loop().time()

    async def say(self, value: bytes) -> None:
        if len(value) > LARGEST_EVENT:
            raise MendAgentError("an event is larger than Kafka takes")
        self._check()
        try:
            confirmation = await self._send(value)
        except Exception as error:
            raise Fatal(f"an event could not be published: {type(error).__name__}") from error
        self.last_said = asyncio.get_running_loop().time()
        self._unconfirmed.append((self.last_said, confirmation))

    async def settle(self) -> None:
        """Wait until everything that was said is in the log."""
        if self._unconfirmed:
            last = self._unconfirmed[-1][1]
            await asyncio.wait([last], timeout=self._deadline)
        self._check()
        if self._unconfirmed:
            raise Fatal("an event was not confirmed in time")

    def _check(self) -> None:
        while self._unconfirmed and self._unconfirmed[0][1].done():
            if (error := self._unconfirmed.popleft()[1].exception()) is not None:
                raise Fatal(f"an event was not published: {type(error).__name__}") from error
        now = asyncio.get_running_loop().time()
        if self._unconfirmed and now - self._unconfirmed[0][0] > self._deadline:
            raise Fatal("an event was not confirmed in time")

    async def beat(self, every: float) -> None:
        """Say that the run goes on, whenever it has been silent for so many seconds."""
        while True:
            silent = asyncio.get_running_loop().time() - self.last_said
            if silent >= every:
                await self.say(HEARTBEAT)
            else:
                await asyncio.sleep(every - silent)


async def conduct(run: Run, function: Function, voice: Voice, habits: Habits) -> None:
    """Execute the run, once and for all; returns when its last event is confirmed. Raises Fatal.

    Whatever the agent does, the run ends: an exception, a generator that just stops, and a cancellation of
    the task all become RUN_ERROR. A cancellation goes on being one afterwards.
    """
    log = logger().bind(thread_id=run.thread, run_id=run.run_id, admission=run.admission)
    try:
        parsed = parse_input(run.value)
        transcript = transcript_of(parsed) if habits.snapshots else None
        input_ = _input_of(as_command(parsed) if habits.legacy_interrupts else parsed)
    except ValueError as error:
        log.error(Event.AGENT_RUN_FAILED, error=type(error).__name__)  # noqa: TRY400 - its text has the input
        await voice.say(run_error(AGENT_FAILED, UNREADABLE))
        await voice.settle()
        return
    log.info(Event.AGENT_RUN_STARTED)
    speaker = _Speaker(function, voice, habits, Framing(run.thread, run.run_id, transcript), log)
    try:
        async with asyncio.TaskGroup() as tasks:
            heart = tasks.create_task(voice.beat(habits.heartbeat))
            try:
                await speaker.speak(input_)
            finally:
                heart.cancel()
    except BaseExceptionGroup as group:  # of Fatal: everything else has become an event
        raise group.exceptions[0] from None
    await voice.settle()


async def lost(voice: Voice, message: str) -> None:
    """Answer a run that is not executed: RUN_ERROR RUN_LOST. Raises Fatal."""
    await voice.say(run_error(Code.RUN_LOST, message))
    await voice.settle()


class _Speaker:
    """The agent's function, and its events on their way."""

    def __init__(self, function: Function, voice: Voice, habits: Habits, framing: Framing, log: Any) -> None:
        self._function = function
        self._voice = voice
        self._habits = habits
        self._framing = framing
        self._log = log

    async def speak(self, input_: Any) -> None:
        try:
            await self._events(input_)
            ending = self._framing.broke_off()
        except asyncio.CancelledError:
            for value in self._framing.failed(AGENT_FAILED, STOPPED):
                await self._voice.say(value)
            await self._voice.settle()
            raise
        except Fatal:
            raise
        except Exception as error:
            ending = self._framing.failed(AGENT_FAILED, self._failure(error))
        for value in ending:
            await self._voice.say(value)

    async def _events(self, input_: Any) -> None:
        async with AsyncExitStack() as stack:
            events = await _called(self._function, input_)
            if (close := getattr(events, "aclose", None)) is not None:
                stack.push_async_callback(close)
            async for event in events:
                for value in self._framing.said(event):
                    await self._voice.say(value)

    def _failure(self, error: Exception) -> str:
        """Log where it failed. An exception's text may hold what users said: it is told only if allowed."""
        told = f"{type(error).__name__}: {error}"
        exposed = isinstance(error, MendAgentError) or self._habits.expose_errors
        self._log.error(
            Event.AGENT_RUN_FAILED,
            error=told if exposed else type(error).__name__,
            traceback="".join(traceback.format_tb(error.__traceback__)),
        )
        return told if self._habits.expose_errors else FAILED


async def _called(function: Function, input_: Any) -> AsyncIterator[Any]:
    """An async generator function, or one that returns (or awaits and returns) async iterables."""
    events = function(input_)
    if inspect.isawaitable(events):
        events = await events
    return aiter(events)


def _input_of(parsed: dict[str, Any]) -> Any:
    """The RunAgentInput of ag_ui. Raises ValueError (pydantic's is one)."""
    from ag_ui.core import RunAgentInput  # noqa: PLC0415 - only agents need it

    return RunAgentInput.model_validate(parsed)
