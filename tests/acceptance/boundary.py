"""One thread over a run's boundary: an agent pauses, is started anew, and the router alone resumes it."""

import sys
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.chaos.programs import Program
from tests.clients import Json, Seen, Wire, an_input, told
from tests.commands import environment, open_approvals
from tests.installations import Installation, installed

from holdshort.sdk.approvals import Approval, Decision, decision_record

FIRST = "r1"
ASKED = "Pay ACME 950 and migrate the orders table."


@dataclass
class Agent:
    """An agent program behind the agent worker; each `started` one is a process of its own."""

    here: Installation
    command: Sequence[str]
    log: Path
    more: Mapping[str, str]
    ends: Sequence[int] = ()

    @asynccontextmanager
    async def started(self) -> AsyncIterator[None]:
        program = Program("agent", self.command, {**environment(self.here), **self.more}, self.log, None)
        self.ends = program.ends
        program.start()
        try:
            yield
        finally:
            await program.stop()
        self.check()

    def check(self) -> None:
        assert not self.ends, f"the agent ended by itself: {self.log.read_text()[-4000:]}"


@dataclass
class Ended:
    """What came of the thread: the batch as the agent got it, and what clients saw of its run."""

    batch: Json
    events: list[Seen]

    def of(self, type_: str) -> list[Json]:
        return [seen.value for seen in self.events if seen.value["type"] == type_]


@asynccontextmanager
async def installation(bootstrap_servers: str, directory: Path, config: str) -> AsyncIterator[Installation]:
    async with installed(bootstrap_servers, directory, config, partitions=2) as here:
        yield here


async def resumed_by_the_router(agent: Agent, thread: str, decisions: Mapping[str, Decision]) -> Ended:
    """The client sends one input and never again; the agent that is resumed is a new process."""
    wire = agent.here.wire
    async with agent.started():
        wire.send("inputs", an_input(thread, FIRST, messages=[_user(ASKED)]))
        await _ended(agent, thread, FIRST)
        await _asked(wire, decisions)
    async with agent.started():
        for team, decision in decisions.items():
            wire.send(
                f"decisions.{team}", decision_record(_approval(wire, team), decision, datetime.now(UTC))
            )
        await wire.until(lambda _: len(wire.of("runs.default", thread)) == 2, why="the router did not resume")
        batch = wire.of("runs.default", thread)[1].value
        await _ended(agent, thread, batch["runId"])
    run = batch["runId"]
    events = [seen for seen in wire.of("events", thread) if seen.headers.get("holdshort-run") == run]
    assert len(wire.of("inputs", thread)) == 1
    assert [seen.value["runId"] for seen in wire.of("resumes", thread)] == [run]
    return Ended(batch, events)


def _user(text: str) -> Json:
    return {"id": "m1", "role": "user", "content": text}


async def _ended(agent: Agent, thread: str, run: str) -> None:
    wire = agent.here.wire

    def over(_: list[Seen]) -> bool:
        return bool(agent.ends) or any(
            told(wire, "events", thread, end, run) for end in ("RUN_FINISHED", "RUN_ERROR")
        )

    await wire.until(over, patience=60, why=f"{run} did not end")
    agent.check()
    assert not told(wire, "events", thread, "RUN_ERROR", run), wire.of("events", thread)[-1].value


async def _asked(wire: Wire, teams: Collection[str]) -> None:
    def all_asked(_: list[Seen]) -> bool:
        return all(len(open_approvals(wire, team)) == 1 for team in teams)

    await wire.until(all_asked, why="not every team was asked")


def _approval(wire: Wire, team: str) -> Approval:
    (value,) = open_approvals(wire, team).values()
    return Approval.model_validate(value)


def python(*arguments: str) -> list[str]:
    """Our own Python."""
    return [sys.executable, *arguments]
