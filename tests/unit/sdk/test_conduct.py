"""A run that was begun ends, whatever the agent does, and all that it said is in the log then."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from structlog.testing import capture_logs
from tests.virtual import in_virtual_time, pass_time

from holdshort.sdk.conduct import LARGEST_EVENT, Function, Habits, Voice, conduct, lost
from holdshort.sdk.runs import Run
from holdshort.stream.errors import Fatal

Json = Any
START = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
TEXT = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m2", "delta": "hello"}
DONE = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
HEARTBEAT = "holdshort:heartbeat"
SECRET = "the password is " + "hunter2"
INPUT = {
    "threadId": "t",
    "runId": "r",
    "messages": [{"id": "m1", "role": "user", "content": "please"}],
    "state": {},
    "tools": [],
    "context": [],
    "forwardedProps": {},
}


class Topic:
    """Takes events; `confirm` says when they are in the log."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.confirmations: list[asyncio.Future[None]] = []
        self.confirms = True
        self.refuses = False
        self._more = asyncio.Event()

    async def send(self, value: bytes) -> "asyncio.Future[None]":
        if self.refuses:
            raise ConnectionError(SECRET)
        self.values.append(value)
        self._more.set()
        confirmation: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.confirmations.append(confirmation)
        if self.confirms:
            confirmation.set_result(None)
        return confirmation

    async def until(self, count: int) -> None:
        while len(self.values) < count:
            self._more.clear()
            await self._more.wait()

    @property
    def events(self) -> list[Json]:
        return [json.loads(value) for value in self.values]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


def run_of(input_: Json = INPUT) -> Run:
    value = input_ if isinstance(input_, bytes) else json.dumps(input_).encode()
    return Run("t", "r", "inputs/0/5", None, 0, 0, value)


def conducted(
    function: Function, topic: Topic, input_: Json = INPUT, **habits: Any
) -> Coroutine[Any, Any, None]:
    told = Habits(**habits)
    return _conducted(function, topic, input_, told)


async def _conducted(function: Function, topic: Topic, input_: Json, habits: Habits) -> None:
    await conduct(run_of(input_), function, Voice(topic.send, habits.publish_deadline), habits)


def says(*events: Json, then: Callable[[], Coroutine[Any, Any, None]] | None = None) -> Function:
    async def function(_: RunAgentInput) -> AsyncIterator[Json]:
        for event in events:
            yield event
        if then is not None:
            await then()

    return function


async def raise_secret() -> None:
    raise RuntimeError(SECRET)


async def for_ever() -> None:
    await asyncio.Event().wait()


# -- what the agent may be ----------------------------------------------------------------------------------


async def test_the_agent_gets_the_input_and_its_events_are_published() -> None:
    topic = Topic()

    async def function(input_: RunAgentInput) -> AsyncIterator[Json]:
        yield {**START, "runId": input_.run_id}
        yield {**TEXT, "delta": input_.messages[0].content}
        yield DONE

    await conducted(function, topic)

    assert topic.events == [START, {**TEXT, "delta": "please"}, DONE]


async def test_a_function_may_return_events_or_await_them_first() -> None:
    def returning(input_: RunAgentInput) -> Any:
        return says(START, DONE)(input_)

    async def awaiting(input_: RunAgentInput) -> Any:
        return says(START, DONE)(input_)

    for function in (returning, awaiting):
        topic = Topic()
        await conducted(function, topic)
        assert topic.events == [START, DONE]


async def test_a_generator_is_closed_when_its_run_is_over() -> None:
    closed = []

    async def function(_: RunAgentInput) -> AsyncIterator[Json]:
        try:
            yield START
            yield {"type": 5}
        finally:
            closed.append(True)

    await conducted(function, Topic())

    assert closed == [True]


async def test_a_legacy_agent_finds_the_answer_in_its_command() -> None:
    topic = Topic()
    answered = {**INPUT, "resume": [{"interruptId": "legacy-0", "status": "resolved", "payload": {"ok": 1}}]}

    async def function(input_: RunAgentInput) -> AsyncIterator[Json]:
        props: Json = input_.forwarded_props
        assert input_.resume is None
        yield {**DONE, "result": props["command"]["resume"]}

    await conducted(function, topic, answered, legacy_interrupts=True)

    assert topic.events[-1]["result"] == {"ok": 1}


async def test_snapshots_can_be_left_to_the_agent() -> None:
    topic = Topic()
    paused = {**DONE, "outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "confirmation"}]}}

    await conducted(says(START, TEXT, paused), topic, snapshots=False)

    assert topic.events == [START, TEXT, paused]


# -- failures -----------------------------------------------------------------------------------------------


async def test_an_exception_is_a_failed_run_and_its_text_stays_here() -> None:
    topic = Topic()

    with capture_logs() as logs:
        await conducted(says(START, TEXT, then=raise_secret), topic)

    [error] = topic.events[2:]
    assert (error["type"], error["code"]) == ("RUN_ERROR", "AGENT_FAILED")
    assert SECRET not in json.dumps([topic.events, logs])
    [failed] = [log for log in logs if log["event"] == "agent_run_failed"]
    assert failed["error"] == "RuntimeError"
    assert "in raise_secret" in failed["traceback"]


async def test_an_exception_is_told_where_that_is_allowed() -> None:
    topic = Topic()

    with capture_logs() as logs:
        await conducted(says(START, then=raise_secret), topic, expose_errors=True)

    assert topic.events[-1]["message"] == f"RuntimeError: {SECRET}"
    assert logs[-1]["error"] == f"RuntimeError: {SECRET}"


async def test_a_generator_that_just_stops_has_failed() -> None:
    topic = Topic()

    await conducted(says(START, TEXT), topic)

    assert topic.types == ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_ERROR"]


async def test_an_exception_after_the_end_changes_nothing() -> None:
    topic = Topic()

    with capture_logs() as logs:
        await conducted(says(START, DONE, then=raise_secret), topic)

    assert topic.events == [START, DONE]
    assert [log["event"] for log in logs] == ["agent_run_started", "agent_run_failed"]


async def test_what_is_not_an_event_fails_the_run_and_the_log_says_why() -> None:
    topic = Topic()

    with capture_logs() as logs:
        await conducted(says(START, {"no": "type"}), topic)

    assert topic.types == ["RUN_STARTED", "RUN_ERROR"]
    assert "string `type`" in logs[-1]["error"]


async def test_an_event_that_kafka_would_not_take_fails_the_run_alone() -> None:
    topic = Topic()

    await conducted(says(START, {**TEXT, "delta": "x" * LARGEST_EVENT}, DONE), topic)

    assert topic.types == ["RUN_STARTED", "RUN_ERROR"]


@pytest.mark.parametrize(
    "input_", [b"{", {**INPUT, "messages": "none"}, {**INPUT, "messages": [{"role": "?"}]}]
)
async def test_an_input_that_the_agent_cannot_read_fails_the_run(input_: Json) -> None:
    topic = Topic()

    with capture_logs() as logs:
        await conducted(says(START, DONE), topic, input_)

    [error] = topic.events
    assert (error["type"], error["code"]) == ("RUN_ERROR", "AGENT_FAILED")
    assert [log["event"] for log in logs] == ["agent_run_failed"]


async def test_a_cancelled_run_says_so_and_stays_cancelled() -> None:
    topic = Topic()
    task = asyncio.create_task(conducted(says(START, TEXT, then=for_ever), topic))
    await topic.until(2)

    task.cancel()
    [result] = await asyncio.gather(task, return_exceptions=True)

    assert isinstance(result, asyncio.CancelledError)
    assert topic.types == ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_ERROR"]


async def test_a_run_that_is_not_executed_is_answered() -> None:
    topic = Topic()

    await lost(Voice(topic.send, 1), "too late")

    assert topic.events == [{"type": "RUN_ERROR", "code": "RUN_LOST", "message": "too late"}]


# -- time ---------------------------------------------------------------------------------------------------


def test_a_silent_run_says_that_it_goes_on() -> None:
    topic = Topic()

    async def slow() -> None:
        await pass_time(1000)

    in_virtual_time(conducted(says(START, then=slow), topic, heartbeat=300))

    assert [event.get("name") for event in topic.events] == [None, HEARTBEAT, HEARTBEAT, HEARTBEAT, None]


def test_a_run_is_heard_of_before_it_says_its_first_word() -> None:
    topic = Topic()

    async def function(_: RunAgentInput) -> AsyncIterator[Json]:
        await pass_time(400)
        yield START
        yield DONE

    in_virtual_time(conducted(function, topic, heartbeat=300))

    assert [event.get("name") for event in topic.events] == [HEARTBEAT, None, None]


def test_a_run_that_speaks_needs_no_heartbeat() -> None:
    topic = Topic()

    async def function(_: RunAgentInput) -> AsyncIterator[Json]:
        yield START
        for __ in range(10):
            await pass_time(200)
            yield TEXT
        yield DONE

    in_virtual_time(conducted(function, topic, heartbeat=300))

    assert HEARTBEAT not in [event.get("name") for event in topic.events]


# -- the log ------------------------------------------------------------------------------------------------


async def test_events_do_not_wait_for_each_other_but_the_end_waits_for_all() -> None:
    topic = Topic()
    topic.confirms = False
    task = asyncio.create_task(conducted(says(START, TEXT, DONE), topic))
    await topic.until(3)

    assert not task.done()

    for confirmation in topic.confirmations:
        confirmation.set_result(None)
    await task


def test_what_is_not_confirmed_in_time_ends_the_process() -> None:
    topic = Topic()
    topic.confirms = False

    with pytest.raises(Fatal, match="in time"):
        in_virtual_time(conducted(says(START, DONE), topic, publish_deadline=60))


def test_a_run_is_not_continued_when_what_it_said_is_not_confirmed() -> None:
    topic = Topic()
    topic.confirms = False

    async def function(_: RunAgentInput) -> AsyncIterator[Json]:
        while True:
            yield TEXT
            await pass_time(10)

    with pytest.raises(Fatal, match="in time"):
        in_virtual_time(conducted(function, topic, publish_deadline=60))
    assert len(topic.events) < 10


def test_a_heartbeat_that_is_not_confirmed_ends_a_silent_run_too() -> None:
    topic = Topic()
    topic.confirms = False

    with pytest.raises(Fatal, match="in time"):
        in_virtual_time(conducted(says(START, then=for_ever), topic, heartbeat=10, publish_deadline=60))


async def test_an_event_that_is_refused_ends_the_process_without_its_text() -> None:
    topic = Topic()
    topic.refuses = True

    with pytest.raises(Fatal, match=r"could not be published: ConnectionError$"):
        await conducted(says(START, DONE), topic)


async def test_an_event_that_is_refused_later_ends_the_process() -> None:
    topic = Topic()
    topic.confirms = False
    task = asyncio.create_task(conducted(says(START, DONE), topic))
    await topic.until(2)

    topic.confirmations[0].set_exception(ConnectionError())
    topic.confirmations[1].set_result(None)
    [result] = await asyncio.gather(task, return_exceptions=True)

    assert isinstance(result, Fatal)
