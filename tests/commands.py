"""Commands as people type them, against an installation that runs; and an agent that asks."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.clients import Json, Wire, an_input, finished, paused, started, told
from tests.installations import Installation

PAYMENTS_AND_DBA = """
agents: {default: {}, other: {}, graph: {cancel: unsafe}}
teams: {payments: {}, dba: {}}
routes:
  - {reason: "payments:*", team: payments}
  - {reason: "dba:*", team: dba}
"""
SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "amount": {"type": "integer", "maximum": 1000}},
    "required": ["approved"],
    "additionalProperties": False,
}


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def objects(self) -> list[Json]:
        return [json.loads(line) for line in self.out.splitlines()]


def environment(installation: Installation, *, config: bool = True, **more: str) -> dict[str, str]:
    """What a person at a terminal has set; without `config`, what a team has: no more than credentials."""
    ours = dict(installation.stack._environment) | more
    if not config:
        wanted = ("KAFKA_", "HOLDSHORT_PREFIX")
        ours = {name: value for name, value in ours.items() if name.startswith(wanted)}
    return clean(ours)


def clean(settings: Mapping[str, str]) -> dict[str, str]:
    kept = {name: one for name, one in os.environ.items() if not name.startswith(("KAFKA_", "HOLDSHORT_"))}
    return {**kept, "COLUMNS": "200", "NO_COLOR": "1", **settings}


async def run(settings: Mapping[str, str], *command: str, typed: str = "") -> Done:
    """A command to its end; `typed` is what the person types."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "holdshort.cli", *command],
        env=clean(settings),
        input=typed,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


# -- an agent -----------------------------------------------------------------------------------------------


async def asks(wire: Wire, thread: str, *interrupts: Json, run: str = "r1", agent: str = "default") -> None:
    """An input, and an agent that answers it by asking; returns once clients see the question."""
    await runs(wire, thread, run=run, agent=agent)
    wire.send(f"agent-events.{agent}", paused(thread, run, *interrupts), headers={"holdshort-run": run})
    await wire.until(lambda _: bool(told(wire, "events", thread, "RUN_FINISHED", run)), why="no question")


async def runs(wire: Wire, thread: str, *, run: str = "r1", agent: str = "default") -> None:
    """An input, and an agent that begins with it and says no more."""
    wire.send("inputs", an_input(thread, run), headers={"holdshort-agent": agent})
    await wire.until(lambda _: bool(wire.of(f"runs.{agent}", thread)), why="the run is not delivered")
    wire.send(f"agent-events.{agent}", started(thread, run), headers={"holdshort-run": run})
    await wire.until(lambda _: bool(told(wire, "events", thread, "RUN_STARTED", run)), why="no start")


async def asked(wire: Wire, team: str, count: int) -> None:
    """Wait until so many questions stand in a team's topic."""
    await wire.until(lambda _: len(open_approvals(wire, team)) == count, why=f"{team} is not asked {count}")


def open_approvals(wire: Wire, team: str) -> dict[str, Json]:
    latest = {seen.key: seen.value for seen in wire.of(f"approvals.{team}")}
    return {str(key): value for key, value in latest.items() if value is not None}


def resumed(wire: Wire, thread: str, agent: str = "default") -> list[Json]:
    """The runs with answers that the agent got."""
    return [seen.value for seen in wire.of(f"runs.{agent}", thread) if seen.value.get("resume")]


async def goes_on(wire: Wire, thread: str, agent: str = "default") -> Json:
    """Wait for the answers to reach the agent, let it end that run, and return what it got."""
    await wire.until(lambda _: bool(resumed(wire, thread, agent)), why="the agent is not resumed")
    [given] = resumed(wire, thread, agent)
    for event in (started(thread, given["runId"]), finished(thread, given["runId"])):
        wire.send(f"agent-events.{agent}", event, headers={"holdshort-run": given["runId"]})
    return given


def a_transfer(id_: str = "i1", **more: Any) -> Json:
    return {
        "id": id_,
        "reason": "payments:transfer",
        "message": "Pay ACME 950?",
        "responseSchema": SCHEMA,
        **more,
    }
