"""A configuration that changes under services that run, on a real Kafka: on SIGHUP, and by the file alone."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from tests.clients import Json, Wire, an_input, an_interrupt, paused, started
from tests.commands import environment, run
from tests.installations import Installation, installed

from holdshort.cli.stack import Process

pytestmark = [pytest.mark.broker, pytest.mark.system]

PATIENCE_S = 40.0
OLD = """
agents: {default: {}}
teams: {payments: {}, dba: {}}
routes: [{reason: "pay:*", team: payments}]
"""
NEW = OLD.replace("team: payments", "team: dba, priority: 7")
MORE = OLD.replace("dba: {}", "dba: {}, legal: {}").replace("team: payments", "team: legal")


def looking(found: Callable[[], bool]) -> bool:
    """Ask again and again until it is so; False if it is not in time."""
    end = time.monotonic() + PATIENCE_S
    while not found():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


async def until(why: str, found: Callable[..., bool], *arguments: object) -> None:
    assert await asyncio.to_thread(looking, partial(found, *arguments)), why


def tells(process: Process, series: str) -> bool:
    """Whether the management port shows a line that begins so."""
    page = process.ask("/metrics")[1] or ""
    return any(line.startswith(series) for line in page.splitlines())


def says(process: Process, words: str) -> bool:
    """Whether it stands in its log."""
    return words in process.log.read_text()


def ready(process: Process) -> bool:
    return process.ask("/readyz")[0]


async def in_force(installation: Installation, text: str) -> None:
    digest = sha256(text.encode()).hexdigest()[:12]
    for process in installation.stack.processes:
        series = f'holdshort_configuration_info{{digest="{digest}"'
        await until(f"{process.service} has not taken it", tells, process, series)
        await until(f"{process.service} does not get ready", ready, process)


async def asks(wire: Wire, thread: str, team: str) -> Json:
    """A run that pauses; returns what that team is asked."""
    wire.send("inputs", an_input(thread, "r1"))
    wire.send("agent-events.default", started(thread, "r1"))
    wire.send("agent-events.default", paused(thread, "r1", an_interrupt("i", reason="pay:x")))
    topic = f"approvals.{team}"
    await wire.until(lambda _: bool(_asked(wire, topic, thread)), why=f"{team} was not asked")
    return _asked(wire, topic, thread)[-1]


def _asked(wire: Wire, topic: str, thread: str) -> list[Json]:
    return [one.value for one in wire.of(topic) if one.value and one.value["threadId"] == thread]


async def decides(wire: Wire, team: str, asked: Json) -> Json:
    """The team says yes; returns the entry of its receipt."""
    thread = asked["threadId"]
    entry = {"interruptId": "i", "status": "resolved", "payload": {"approved": True}}
    known = {"decisionId": f"d-{thread}", "generation": asked["generation"], "decidedBy": "ann"}
    wire.send(f"decisions.{team}", {"v": 1, "threadId": thread, **known, "resume": [entry]})
    await wire.until(lambda _: bool(wire.of(f"receipts.{team}", thread)), why="no receipt")
    return wire.of(f"receipts.{team}", thread)[-1].value["entries"][0]


async def goes_on(wire: Wire, thread: str) -> None:
    """The batch of answers reaches the agent."""
    await wire.until(lambda _: any("resume" in one.value for one in wire.of("runs.default", thread)))


async def test_sighup_changes_routes_for_new_pauses_and_nothing_is_restarted(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    async with installed(bootstrap_servers, tmp_path, OLD) as installation:
        wire = installation.wire
        await in_force(installation, OLD)
        before = await asks(wire, "before", "payments")

        (tmp_path / "holdshort.yaml").write_text(NEW)
        for process in installation.stack.processes:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGHUP)
        await in_force(installation, NEW)
        after = await asks(wire, "after", "dba")

        assert after["priority"] == 7
        assert (await decides(wire, "payments", before))["verdict"] == "accepted"
        assert (await decides(wire, "dba", after))["verdict"] == "accepted"
        await goes_on(wire, "before")
        await goes_on(wire, "after")
        assert not _asked(wire, "approvals.dba", "before")
        assert [process.starts for process in installation.stack.processes] == [1, 1]


async def test_a_changed_file_is_taken_by_itself_once_it_is_right_and_its_topics_are_there(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    async with installed(bootstrap_servers, tmp_path, OLD) as installation:
        wire, file, processes = installation.wire, tmp_path / "holdshort.yaml", installation.stack.processes
        refused = 'holdshort_configuration_refused{service="'
        await in_force(installation, OLD)
        for text, why in (
            (NEW.replace("7", "x"), "whole number"),
            (OLD.replace(", dba: {}", ""), "teams.dba is gone: restart to take it"),
            (MORE, "legal does not exist"),
        ):
            file.write_text(text)
            for process in processes:
                line = f'{refused}{process.service}"}} 1'
                await until("it was not refused", tells, process, line)
                await until(f"it was not told why: {process.log.read_text()}", says, process, why)
            await asks(wire, f"while {why}", "payments")

        assert (await run(environment(installation), "topics", "apply")).status == 0
        await in_force(installation, MORE)
        newer = Wire(bootstrap_servers, installation.prefix, ["approvals.legal", "receipts.legal"])
        try:
            wire.send("inputs", an_input("after", "r1"))
            asked = await asks_legal(wire, newer)
            assert (await decides(newer, "legal", asked))["verdict"] == "accepted"
        finally:
            newer.close()
        await goes_on(wire, "after")
        assert [process.starts for process in processes] == [1, 1]


async def asks_legal(wire: Wire, newer: Wire) -> Json:
    """The agent's side on one wire, the new team's on another, which began when its topics were there."""
    wire.send("agent-events.default", started("after", "r1"))
    wire.send("agent-events.default", paused("after", "r1", an_interrupt("i", reason="pay:x")))
    wire.flush()
    await newer.until(lambda _: bool(_asked(newer, "approvals.legal", "after")), why="legal was not asked")
    return _asked(newer, "approvals.legal", "after")[-1]
