"""An agent and two teams on the SDK: two questions at once, decided, and the run goes on with the answers."""

import asyncio
import itertools
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from faststream.kafka import KafkaBroker
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from tests.clients import Json, Seen, Wire, an_input
from tests.installations import TWO_TEAMS, Installation, installed

from holdshort.contract.keys import partition_of
from holdshort.sdk.agent import AgentWorker
from holdshort.sdk.approvals import decision_record
from holdshort.sdk.approver import Approval, Approver, Decision, Receipt, approve, claim, deny, release
from holdshort.sdk.desk import Patience
from holdshort.settings import KafkaSettings

pytestmark = [pytest.mark.system, pytest.mark.broker]


async def model(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """Asks for a transfer and a migration at once; when it has what they returned, says so."""
    returned = [p.content for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]
    if returned:
        yield "done: " + ", ".join(str(one) for one in returned)
        return
    transfer, migration = json.dumps({"amount": 500, "to": "ann"}), json.dumps({"table": "users"})
    yield {0: DeltaToolCall("transfer_money", transfer, tool_call_id="c1")}
    yield {1: DeltaToolCall("migrate_database", migration, tool_call_id="c2")}


def banker(done: list[str]) -> Agent[None, str | DeferredToolRequests]:
    agent = Agent(FunctionModel(stream_function=model), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def transfer_money(amount: int, to: str) -> str:
        done.append(f"transfer {amount} to {to}")
        return done[-1]

    @agent.tool_plain(requires_approval=True)
    def migrate_database(table: str) -> str:
        done.append(f"migrate {table}")
        return done[-1]

    return agent


@asynccontextmanager
async def serving(*services: AgentWorker | Approver) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one.serve()) for one in services]
    try:
        yield
    finally:
        for one in services:
            one.stop()
        await asyncio.gather(*tasks)


def a_banker(installation: Installation, done: list[str]) -> AgentWorker:
    kafka = KafkaSettings(bootstrap_servers=installation.stack.bootstrap_servers)
    worker = AgentWorker("default", kafka=kafka, prefix=installation.prefix, session_timeout=6.0)
    agent = banker(done)

    worker.on_run(lambda input_: AGUIAdapter(agent=agent, run_input=input_).run_stream())
    return worker


def a_team(installation: Installation, team: str, service: str | None = None) -> Approver:
    kafka = KafkaSettings(bootstrap_servers=installation.stack.bootstrap_servers)
    return Approver(team, kafka=kafka, prefix=installation.prefix, service=service)


def ends(wire: Wire) -> list[Json]:
    """How each run of the thread ended, as its clients saw it."""
    last = ("RUN_FINISHED", "RUN_ERROR")
    return [seen.value for seen in wire.of("events", "t1") if seen.value["type"] in last]


async def test_two_teams_decide_and_the_run_goes_on_with_their_answers(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    done: list[str] = []
    receipts: list[Receipt] = []
    async with installed(bootstrap_servers, tmp_path, TWO_TEAMS) as installation:
        payments, dba = a_team(installation, "payments"), a_team(installation, "dba")

        @payments.on(tool="transfer_money")
        async def smaller(approval: Approval) -> Decision:
            return approve(edited_args={**approval.args, "amount": 5}, by="kim")

        @payments.on_receipt
        def keep(receipt: Receipt) -> None:
            receipts.append(receipt)

        @dba.on("tool_call")
        def not_today(approval: Approval) -> Decision:
            return deny(by="lee", comment=f"not {approval.args['table']}")

        wire = installation.wire
        async with serving(a_banker(installation, done), payments, dba):
            wire.send("inputs", an_input("t1", "r1"))
            await wire.until(lambda _: len(ends(wire)) == 2, why="the run does not go on")
            await wire.until(lambda _: len(wire.of("receipts.payments")) == 1, why="there is no receipt")

    asked, finished = ends(wire)
    assert [one["id"] for one in asked["outcome"]["interrupts"]] == ["int-c1", "int-c2"]
    assert finished["outcome"]["type"] == "success"
    assert done == ["transfer 5 to ann"]
    assert [(receipt.verdict, receipt.thread_id) for receipt in receipts] == [("accepted", "t1")]
    [decision] = wire.of("decisions.payments")
    [approval, *_] = wire.of("approvals.payments")
    assert decision.partition == approval.partition == partition_of(b"t1", installation.partitions)
    assert decision.value["seen"] == {"int-c1": approval.value["digest"]}


async def test_a_program_waits_while_a_person_holds_the_question_and_answers_when_it_is_free(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    async with installed(bootstrap_servers, tmp_path, TWO_TEAMS) as installation:
        payments, seen = a_team(installation, "payments"), asyncio.Event()

        @payments.on()
        async def once_it_was_held(approval: Approval) -> Decision | None:
            if approval.claim is not None:
                seen.set()
            return approve(by="limits") if seen.is_set() else None

        wire = installation.wire
        async with serving(a_banker(installation, [])):
            wire.send("inputs", an_input("t1", "r1"))
            await wire.until(lambda _: bool(wire.of("approvals.payments")), why="nobody is asked")
            asked = Approval.model_validate(wire.of("approvals.payments")[0].value)
            hold = decision_record(asked, claim(by="ann"), datetime.now(UTC))
            wire.send("decisions.payments", hold)
            await wire.until(lambda _: len(wire.of("approvals.payments")) == 2, why="the claim is not shown")
            async with serving(payments):
                await asyncio.wait_for(seen.wait(), 30)
                wire.send("decisions.payments", decision_record(asked, release(by="ann"), datetime.now(UTC)))
                await wire.until(lambda _: len(wire.of("receipts.payments")) == 3, why="it does not answer")

    told = [one.value["verdict"] for one in wire.of("receipts.payments")]
    by = [one.value["decidedBy"] for one in wire.of("decisions.payments")]
    assert (told, by) == (["accepted"] * 3, ["ann", "ann", "limits"])


async def test_an_answer_that_its_worker_took_with_it_is_asked_for_again(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    """Nobody knows what the killed worker had done, so people decide again, and see that they do."""
    done: list[str] = []
    attempts: list[int] = []
    async with installed(bootstrap_servers, tmp_path, TWO_TEAMS) as installation:
        payments, dba = a_team(installation, "payments"), a_team(installation, "dba")

        @payments.on()
        async def yes(approval: Approval) -> Decision:
            attempts.append(approval.attempt)
            return approve()

        @dba.on()
        async def no(_: Approval) -> Decision:
            return deny()

        wire = installation.wire
        wire.send("inputs", an_input("t1", "r1"))
        async with serving(payments, dba):
            async with killed_when_it_has_the_answer(installation, tmp_path):
                await wire.until(lambda _: len(resumed(wire)) == 1, why="the run is not resumed")
            async with serving(a_banker(installation, done)):
                await wire.until(lambda _: len(ends(wire)) == 3, why="the run does not go on")

    _, lost, finished = ends(wire)
    assert (lost["type"], lost["code"]) == ("RUN_ERROR", "RUN_LOST")
    assert finished["outcome"]["type"] == "success"
    assert done == ["transfer 500 to ann"]
    assert attempts == [1, 2]


def resumed(wire: Wire) -> list[Seen]:
    """What the agent said after it got the answers."""
    return [one for one in wire.of("agent-events.default") if one.headers["holdshort-run"] != "r1"]


@asynccontextmanager
async def killed_when_it_has_the_answer(installation: Installation, tmp_path: Path) -> AsyncIterator[None]:
    """A worker that asks, takes the answers, and is killed at the end of this block while it works."""
    (tmp_path / "agent.py").write_text(ASKS_AND_HANGS)
    environment = {
        **os.environ,
        "KAFKA_BOOTSTRAP_SERVERS": installation.stack.bootstrap_servers,
        "HOLDSHORT_PREFIX": installation.prefix,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(tmp_path / "agent.py"), env=environment, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        await process.wait()


ASKS_AND_HANGS = """
import asyncio, json
from holdshort.contract.keys import partition_of
from holdshort.sdk.agent import AgentWorker

worker = AgentWorker("default", session_timeout=6.0)
CALLS = {"transfer_money": {"amount": 500, "to": "ann"}, "migrate_database": {"table": "users"}}

@worker.on_run
async def run(input):
    ids = {"threadId": input.thread_id, "runId": input.run_id}
    yield {"type": "RUN_STARTED", **ids}
    if input.resume:
        await asyncio.Event().wait()
    interrupts = []
    for number, (name, args) in enumerate(CALLS.items(), 1):
        call = f"c{number}"
        yield {"type": "TOOL_CALL_CHUNK", "toolCallId": call, "toolCallName": name, "delta": json.dumps(args),
               "parentMessageId": "m2"}
        interrupts.append({"id": f"int-{call}", "reason": "tool_call", "toolCallId": call})
    yield {"type": "RUN_FINISHED", **ids, "outcome": {"type": "interrupt", "interrupts": interrupts}}

worker.run()
"""


def neighbour(thread: str, partitions: int) -> str:
    """Another thread of the same partition, whose records come later in the same order."""
    home = partition_of(thread.encode(), partitions)
    names = (f"neighbour-{number}" for number in itertools.count())
    return next(name for name in names if partition_of(name.encode(), partitions) == home)


async def test_each_service_of_a_team_is_asked_once_and_again_only_after_a_failure(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    asked: list[tuple[str, str]] = []
    progress = asyncio.Condition()

    def service(installation: Installation, name: str, decision: Decision | None) -> Approver:
        app = a_team(installation, "payments", service=name)
        app.patience = Patience(first_pause=0.1)

        @app.on()
        async def decide(approval: Approval) -> Decision | None:
            async with progress:
                asked.append((name, approval.thread_id))
                progress.notify_all()
            if asked.count((name, approval.thread_id)) == 1 and name == "clumsy":
                raise RuntimeError
            return decision

        return app

    async def until_asked(*who: tuple[str, str]) -> None:
        async with asyncio.timeout(30), progress:
            await progress.wait_for(lambda: asked == list(who))

    async with installed(bootstrap_servers, tmp_path, TWO_TEAMS) as installation:
        wire, other = installation.wire, neighbour("t1", installation.partitions)
        async with serving(a_banker(installation, [])):
            wire.send("inputs", an_input("t1", "r1"))
            async with serving(service(installation, "watching", None)):
                await until_asked(("watching", "t1"))
            async with serving(service(installation, "clumsy", approve())):
                await until_asked(("watching", "t1"), ("clumsy", "t1"), ("clumsy", "t1"))
                await wire.until(lambda _: bool(wire.of("receipts.payments")), why="nobody decides")
            asked.clear()
            wire.send("inputs", an_input(other, "r2"))
            async with included(installation, service(installation, "watching", None)):
                await until_asked(("watching", other))

    assert [one.value["verdict"] for one in wire.of("receipts.payments")] == ["accepted"]


@asynccontextmanager
async def included(installation: Installation, app: Approver) -> AsyncIterator[None]:
    """The service as a router in somebody's own FastStream broker, at FastStream's defaults."""
    broker = KafkaBroker(installation.stack.bootstrap_servers, logger=None)
    broker.include_router(app.router)
    async with broker:
        await broker.start()
        yield
