"""Services restarted one after the other under load, with other agents, teams, routes: nothing twice or lost.

Two processes of each service on a real Kafka; each restart is a SIGTERM, as an upgrade's is.
"""

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.clients import Seen, Wire, an_input, an_interrupt, finished, paused, started, told
from tests.commands import environment, run
from tests.installations import Installation, installed

from holdshort.stream.topics import table

pytestmark = [pytest.mark.system, pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(400)]

BEFORE = """
agents: {default: {}, other: {}}
teams: {payments: {}}
routes:
  - {reason: "payments:*", team: payments}
limits: {remembered: 3}
"""
MORE = """
agents: {default: {}, other: {}, third: {}}
teams: {payments: {}, legal: {}}
routes:
  - {reason: "payments:*", team: payments}
  - {reason: "legal:*", team: legal, priority: 3}
limits: {remembered: 3}
"""
WITHOUT_OTHER = MORE.replace(" other: {},", "")
A_BATCH = 6
OUTSIDE = [
    f"o{number}" for number in range(6)
]  # more runs than are remembered: read again, they are shown again


class Talk:
    """Threads of one agent that ask a team, try something that is not allowed, are answered, and are done."""

    def __init__(self, wire: Wire, agent: str, team: str) -> None:
        self.wire = wire
        self.agent = agent
        self.team = team
        self.threads: list[str] = []
        self._decided: set[str] = set()

    def begin(self, count: int = A_BATCH) -> None:
        for _ in range(count):
            thread = f"{self.agent}-{self.team}-{len(self.threads)}"
            self.threads.append(thread)
            self.wire.send("inputs", an_input(thread, "r1"), headers={"holdshort-agent": self.agent})

    def react(self, seen: Seen) -> None:
        if seen.topic == f"runs.{self.agent}" and seen.key in self.threads:
            self._run(seen.key, seen)
        elif seen.topic == f"approvals.{self.team}" and seen.value is not None:
            self._decide(seen.value)

    def _run(self, thread: str, seen: Seen) -> None:
        name = seen.value["runId"]
        last = finished(thread, name)
        if name == "r1":
            last = paused(thread, name, an_interrupt("i", reason=f"{self.team}:it"))
        headers = {"holdshort-run": name, "holdshort-admission": seen.headers["holdshort-admission"]}
        for event in (started(thread, name), last):
            self.wire.send(f"agent-events.{self.agent}", event, headers=headers)

    def _decide(self, approval: Any) -> None:
        thread = approval["threadId"]
        if thread in self._decided or thread not in self.threads:
            return
        self._decided.add(thread)
        self.wire.send("inputs", an_input(thread, "wrong"))
        decision = {
            "v": 1,
            "decisionId": f"d-{thread}",
            "threadId": thread,
            "generation": approval["generation"],
            "resume": [{"interruptId": "i", "status": "resolved", "payload": thread}],
        }
        self.wire.send(f"decisions.{self.team}", decision)

    @property
    def done(self) -> set[str]:
        return {
            seen.key or ""
            for seen in self.wire.of("events")
            if seen.key in self.threads
            and seen.headers.get("holdshort-run", "").startswith("hs-")
            and seen.value["type"] == "RUN_FINISHED"
        }

    async def until_done(self) -> None:
        wanted = set(self.threads)
        why = f"not all threads of {self.agent} were answered"
        await self.wire.until(lambda _: self.done >= wanted, patience=90, why=why)

    def check(self) -> None:
        """Every run was delivered once, every decision got one receipt, every judgement was written once."""
        runs = [seen for seen in self.wire.of(f"runs.{self.agent}") if seen.key in self.threads]
        assert Counter(seen.key for seen in runs) == dict.fromkeys(self.threads, 2)
        assert len({seen.headers["holdshort-admission"] for seen in runs}) == len(runs)
        answered = {seen.key: seen.value["resume"] for seen in runs if seen.value.get("resume")}
        assert {thread: entry["payload"] for thread, [entry] in answered.items()} == {
            thread: thread for thread in self.threads
        }
        receipts = [seen.value for seen in self.wire.of(f"receipts.{self.team}")]
        said = Counter(
            (one["threadId"], one["verdict"]) for one in receipts if one["threadId"] in self.threads
        )
        assert said == {(thread, "accepted"): 1 for thread in self.threads}
        audited = Counter(
            (seen.key, seen.value["verdict"]) for seen in self.wire.of("audit") if seen.key in self.threads
        )
        for verdict, times in {
            "admitted": 2,
            "opened": 1,
            "forwarded": 1,
            "accepted": 1,
            "settled": 1,
        }.items():
            assert {thread: audited[thread, verdict] for thread in self.threads} == dict.fromkeys(
                self.threads, times
            ), verdict


async def roll(site: Installation, *talks: Talk) -> None:
    """Each process stopped by SIGTERM and started again, one after the other, while threads begin."""
    for process in site.stack.processes:
        for talk in talks:
            talk.begin()
        before = process.pid
        assert before is not None
        process.killed += 1
        os.kill(before, signal.SIGTERM)
        async with asyncio.timeout(60):
            while process.pid in (None, before):  # noqa: ASYNC110 - it is kept alive by another task
                await asyncio.sleep(0.05)
        await site.stack.until_ready()


def wire_of(site: Installation, agents: list[str], teams: list[str]) -> Wire:
    names = [one.name for one in table(agents, teams)]
    return Wire(site.stack.bootstrap_servers, site.prefix, names)


async def long_and_outside(wire: Wire) -> dict[str, str]:
    """A run of `other` that goes on for long, whose echo is returned, and runs of it that nobody admitted."""
    wire.send("inputs", an_input("long", "r1"), headers={"holdshort-agent": "other"})
    await wire.until(lambda _: bool(wire.of("runs.other", "long")), why="not delivered")
    echo = wire.of("runs.other", "long")[0].headers
    mine = {name: echo[name] for name in ("holdshort-run", "holdshort-admission")}
    wire.send("agent-events.other", started("long", "r1"), headers=mine)
    for name in OUTSIDE:
        for event in (started("outside", name), finished("outside", name)):
            wire.send("agent-events.other", event)
    await wire.until(lambda _: bool(told(wire, "events", "outside", "RUN_FINISHED", OUTSIDE[-1])))
    return mine


async def test_agents_teams_and_routes_change_under_load(bootstrap_servers: str, tmp_path: Path) -> None:
    async with installed(bootstrap_servers, tmp_path, BEFORE, gatekeepers=2, routers=2) as site:
        file = tmp_path / "holdshort.yaml"
        default, other = Talk(site.wire, "default", "payments"), Talk(site.wire, "other", "payments")
        talks = [default, other]

        def react(seen: Seen) -> None:
            for talk in talks:
                talk.react(seen)

        site.wire.react = react

        await roll(site, default, other)

        file.write_text(MORE)
        applied = await run(environment(site), "topics", "apply")
        assert applied.status == 0, applied.err
        await roll(site, default)
        wire = wire_of(site, ["default", "other", "third"], ["payments", "legal"])
        third = Talk(wire, "third", "legal")
        wire.react = third.react
        third.begin()

        await other.until_done()
        mine = await long_and_outside(site.wire)

        file.write_text(WITHOUT_OTHER)
        await roll(site, default, third)
        site.wire.send("agent-events.other", finished("long", "r1"), headers=mine)
        site.wire.send("inputs", an_input("nobody", "r1"), headers={"holdshort-agent": "other"})
        await site.wire.until(lambda _: bool(told(site.wire, "events", "nobody", "RUN_ERROR", "r1")))
        assert told(site.wire, "events", "long", "RUN_FINISHED", "r1") == []

        file.write_text(MORE)
        await roll(site, default, third)
        other.begin()
        await site.wire.until(lambda _: bool(told(site.wire, "events", "long", "RUN_FINISHED", "r1")))
        for talk in (default, other, third):
            await talk.until_done()
        verified = await run(environment(site), "audit", "verify")
        wire.close()

        for talk in (default, other, third):
            talk.check()
        for seen in told(site.wire, "events", "nobody", "RUN_ERROR", "r1"):
            assert seen.value["code"] == "UNKNOWN_AGENT"
        assert len(told(site.wire, "events", "long", "RUN_FINISHED", "r1")) == 1
        assert site.wire.of("dead-letters") == []
        shown = [seen.headers["holdshort-run"] for seen in site.wire.of("events", "outside")]
        assert shown == [name for name in OUTSIDE for _ in range(2)], "read again from its beginning"
        assert verified.status == 0, verified.out
        assert all(len(process.ended) == 4 for process in site.stack.processes)
