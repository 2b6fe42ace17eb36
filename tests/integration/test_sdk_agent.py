"""An agent worker on a real Kafka, the test in the place of the gate: every run is executed at most once."""

import asyncio
import json
import os
import random
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ag_ui.core import RunAgentInput
from tests.clients import Json, Seen, Wire, an_input, finished, started

from holdshort.contract.keys import partition_of
from holdshort.sdk.agent import AgentWorker
from holdshort.sdk.conduct import LARGEST_EVENT
from holdshort.settings import KafkaSettings
from holdshort.stream.admin import Admin
from holdshort.stream.connection import Connection
from holdshort.stream.errors import Fatal
from holdshort.stream.topics import table

pytestmark = [pytest.mark.system, pytest.mark.broker]

PARTITIONS = 4
SESSION_S = 6.0  # the least that Kafka allows by default
PROGRAM = """
import asyncio
from holdshort.sdk.agent import AgentWorker
from holdshort.sdk.conduct import LARGEST_EVENT

worker = AgentWorker("default", session_timeout=6.0, grace=20.0)

@worker.on_run
async def run(input):
    ids = {"threadId": input.thread_id, "runId": input.run_id}
    yield {"type": "RUN_STARTED", **ids}
    if input.messages[0].content == "hang":
        await asyncio.Event().wait()
    await asyncio.sleep(1)
    yield {"type": "RUN_FINISHED", **ids}

worker.run()
"""


@dataclass
class Gate:
    """What the gate does for an agent, and what it hears of it."""

    wire: Wire
    kafka: KafkaSettings
    prefix: str
    admitted: dict[str, str] = field(default_factory=dict)

    def admit(self, thread: str, text: str = "please", *, start_by: int | None = None) -> str:
        """One run for the thread. Returns its run id."""
        run = f"run-{len(self.admitted)}"
        self.admitted[run] = f"inputs/{partition_of(thread.encode(), PARTITIONS)}/{len(self.admitted)}"
        headers = {"holdshort-run": run, "holdshort-admission": self.admitted[run]}
        if start_by is not None:
            headers["holdshort-start-by"] = str(start_by)
        said = [{"id": "m1", "role": "user", "content": text}]
        self.wire.send("runs.default", an_input(thread, run, messages=said), headers=headers)
        return run

    def heard(self, run: str) -> list[Seen]:
        return [one for one in self.wire.of("agent-events.default") if one.headers["holdshort-run"] == run]

    def types(self, run: str) -> list[str]:
        return [one.value["type"] for one in self.heard(run)]

    async def until_over(self, *runs: str, patience: float = 30.0) -> None:
        await self.wire.until(
            lambda _: all({"RUN_FINISHED", "RUN_ERROR"} & set(self.types(run)) for run in runs),
            patience=patience,
            why="a run does not end",
        )

    async def until_begun(self, *runs: str) -> None:
        await self.wire.until(lambda _: all(self.types(run) for run in runs), why="a run does not begin")

    def worker(self, **habits: float) -> AgentWorker:
        return AgentWorker(
            "default",
            kafka=self.kafka,
            prefix=self.prefix,
            session_timeout=SESSION_S,
            grace=habits.get("grace", 20.0),
        )


@pytest.fixture
async def gate(bootstrap_servers: str) -> AsyncIterator[Gate]:
    prefix = f"t{secrets.token_hex(4)}."
    admin = Admin(Connection(bootstrap_servers=bootstrap_servers), prefix)
    topics = [topic for topic in table(["default"], []) if topic.name.endswith(".default")]
    await admin.apply(await admin.plan(topics, PARTITIONS, 1), replication=1, min_isr=1)
    wire = Wire(bootstrap_servers, prefix, ["agent-events.default"])
    yield Gate(wire, KafkaSettings(bootstrap_servers=bootstrap_servers), prefix)
    wire.close()


@asynccontextmanager
async def serving(*workers: AgentWorker) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one.serve()) for one in workers]
    try:
        yield
    finally:
        for one in workers:
            one.stop()
        await asyncio.gather(*tasks)


@asynccontextmanager
async def program(gate: Gate, tmp_path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """An agent service as its developers start it."""
    (tmp_path / "agent.py").write_text(PROGRAM)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("HOLDSHORT_")},
        "KAFKA_BOOTSTRAP_SERVERS": gate.kafka.bootstrap_servers,
        "HOLDSHORT_PREFIX": gate.prefix,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(tmp_path / "agent.py"), env=environment, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def an_event(delta: str) -> Json:
    return {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": delta}


def echo(worker: AgentWorker, deltas: Sequence[str] = ()) -> None:
    @worker.on_run
    async def run(input_: RunAgentInput) -> AsyncIterator[Json]:
        yield started(input_.thread_id, input_.run_id)
        for delta in deltas:
            yield an_event(delta)
            await asyncio.sleep(0)  # so that threads mix
        yield finished(input_.thread_id, input_.run_id)


async def test_events_go_where_the_run_came_from_in_order_and_with_its_echo(gate: Gate) -> None:
    worker = gate.worker()
    deltas = [f"word {number}" for number in range(50)]
    echo(worker, deltas)
    threads = {gate.admit(f"thread {number}"): f"thread {number}" for number in range(20)}

    async with serving(worker):
        await gate.until_over(*threads)

    for run, thread in threads.items():
        heard = gate.heard(run)
        assert [one.value.get("delta") for one in heard] == [None, *deltas, None]
        assert {one.key for one in heard} == {thread}
        assert {one.partition for one in heard} == {partition_of(thread.encode(), PARTITIONS)}
        assert all(
            one.headers
            == {
                "content-type": "application/json",
                "holdshort-run": run,
                "holdshort-admission": gate.admitted[run],
            }
            for one in heard
        )


async def test_the_largest_event_fits_and_a_larger_one_fails_its_run_alone(gate: Gate) -> None:
    worker = gate.worker()
    frame = len(json.dumps(an_event("")))

    @worker.on_run
    async def run(input_: RunAgentInput) -> AsyncIterator[Json]:
        more = 1 if input_.thread_id == "larger" else 0
        yield started(input_.thread_id, input_.run_id)
        yield json.dumps(an_event("x" * (LARGEST_EVENT - frame + more)))
        yield finished(input_.thread_id, input_.run_id)

    largest, larger = gate.admit("largest"), gate.admit("larger")
    async with serving(worker):
        await gate.until_over(largest, larger)

    assert gate.types(largest) == ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_FINISHED"]
    assert gate.types(larger) == ["RUN_STARTED", "RUN_ERROR"]


async def test_a_worker_that_starts_again_goes_on_where_it_stopped(gate: Gate) -> None:
    for _ in range(2):
        worker = gate.worker()
        echo(worker)
        runs = [gate.admit(f"t{number}") for number in range(8)]
        async with serving(worker):
            await gate.until_over(*runs)

    assert all(gate.types(run) == ["RUN_STARTED", "RUN_FINISHED"] for run in gate.admitted)


async def test_a_run_that_comes_too_late_is_answered_and_not_executed(gate: Gate) -> None:
    worker = gate.worker()
    echo(worker)
    late = gate.admit("t1", start_by=int(time.time() * 1000) - 1)
    timely = gate.admit("t2", start_by=int(time.time() * 1000) + 60_000)

    async with serving(worker):
        await gate.until_over(late, timely)

    [error] = gate.heard(late)
    assert (error.value["type"], error.value["code"]) == ("RUN_ERROR", "RUN_LOST")
    assert error.headers["holdshort-admission"] == gate.admitted[late]
    assert gate.types(timely) == ["RUN_STARTED", "RUN_FINISHED"]


async def test_runs_in_flight_survive_that_another_worker_comes(gate: Gate) -> None:
    go_on = asyncio.Event()
    first, second = gate.worker(), gate.worker()
    for worker in (first, second):

        @worker.on_run
        async def run(input_: RunAgentInput) -> AsyncIterator[Json]:
            yield started(input_.thread_id, input_.run_id)
            if input_.thread_id.startswith("slow"):
                await go_on.wait()
            yield finished(input_.thread_id, input_.run_id)

    slow = [gate.admit(f"slow {number}") for number in range(8)]
    async with serving(first):
        await gate.until_begun(*slow)
        async with serving(second):
            quick = [gate.admit(f"quick {number}") for number in range(8)]
            await gate.until_over(*quick)
            go_on.set()
            await gate.until_over(*slow)

    assert all(gate.types(run) == ["RUN_STARTED", "RUN_FINISHED"] for run in (*slow, *quick))


async def test_what_a_killed_worker_had_begun_is_answered_at_once_and_never_executed_again(
    gate: Gate, tmp_path: Path
) -> None:
    async with program(gate, tmp_path) as process:
        begun = [gate.admit(f"t{number}", "hang") for number in range(8)]
        await gate.until_begun(*begun)
        process.kill()
        await process.wait()

    worker = gate.worker()
    echo(worker)
    fresh = gate.admit("t9")
    async with serving(worker):
        await gate.until_over(*begun, fresh)

    for run in begun:
        assert gate.types(run) == ["RUN_STARTED", "RUN_ERROR"]
        assert gate.heard(run)[-1].value["code"] == "RUN_LOST"
    assert gate.types(fresh) == ["RUN_STARTED", "RUN_FINISHED"]


async def test_sigterm_lets_runs_in_flight_finish_and_leaves_the_rest(gate: Gate, tmp_path: Path) -> None:
    async with program(gate, tmp_path) as process:
        begun = [gate.admit(f"t{number}") for number in range(4)]
        await gate.until_begun(*begun)
        process.send_signal(signal.SIGTERM)
        await gate.until_over(*begun)
        status = await process.wait()
        left = gate.admit("t9")
        gate.wire.flush()

    assert status == 0
    assert all(gate.types(run) == ["RUN_STARTED", "RUN_FINISHED"] for run in begun)
    assert gate.types(left) == []


async def test_a_worker_without_topics_says_what_to_do(gate: Gate) -> None:
    worker = AgentWorker("other", kafka=gate.kafka, prefix=gate.prefix)
    echo(worker)

    with pytest.raises(Fatal, match=r"runs\.other.*holdshort topics apply"):
        await worker.serve()


async def test_of_many_runs_none_is_executed_twice_and_each_ends_while_workers_are_killed(
    gate: Gate, tmp_path: Path
) -> None:
    dice = random.Random(7)
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(program(gate, tmp_path)) for _ in range(2)]
        for kill in range(4):
            runs = [gate.admit(f"t{kill}-{number}") for number in range(40)]
            await gate.until_begun(dice.choice(runs))
            workers.pop(dice.randrange(2)).kill()
            workers.append(await stack.enter_async_context(program(gate, tmp_path)))
        await gate.until_over(*gate.admitted, patience=60)

    for run in gate.admitted:
        assert gate.types(run).count("RUN_STARTED") <= 1
        assert gate.types(run)[-1] in {"RUN_FINISHED", "RUN_ERROR"}
    finished_ = sum("RUN_FINISHED" in gate.types(run) for run in gate.admitted)
    assert 0 < finished_ < len(gate.admitted)
