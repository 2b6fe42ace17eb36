"""The composed system in memory and in virtual time: gatekeeper and router on the real engine."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import yaml
from prometheus_client import CollectorRegistry
from tests.clients import Json
from tests.virtual import VirtualClock, pass_time

from holdshort.contract.pending import decode_pending
from holdshort.contract.rules import Rules
from holdshort.contract.state import Pause, ThreadState
from holdshort.gatekeeper.decider import Gate
from holdshort.router.decider import RouterDecider
from holdshort.settings import Config
from holdshort.stream.decider import Decider
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.memory import MemoryBroker, MemoryKafka
from holdshort.stream.records import Record
from holdshort.stream.runner import Runner
from holdshort.stream.topics import table
from holdshort.telemetry.metrics import EngineMetrics

PARTITIONS = 2
LANES = 1


class Said(NamedTuple):
    """One committed record, parsed."""

    key: str | None
    value: Json
    headers: dict[str, str]
    record: Record


class System:
    """One installation; every record that is sent has been dealt with when `send` returns."""

    def __init__(self, config: str) -> None:
        self.config = Config.model_validate(yaml.safe_load(config))
        self.clock = VirtualClock()
        self.broker = MemoryBroker(self.clock)
        for topic in table(list(self.config.agents), list(self.config.teams)):
            self.broker.create(topic.name, PARTITIONS if topic.partitions == "threads" else LANES)
        self.rules: Rules = self.config.rules(PARTITIONS)
        self._newer: dict[str, Rules] = {}
        self._decisions = 0
        self._processes: dict[str, tuple[Runner[Any], asyncio.Task[None]]] = {}

    async def start(self, app: str) -> None:
        settings = self.engine(app)
        metrics = EngineMetrics(app, CollectorRegistry())
        runner: Runner[Any] = Runner(
            settings,
            self.kafka(app),
            lambda _: self._decider(app),
            self.clock,
            metrics,
        )
        self._processes[app] = runner, asyncio.create_task(runner.run())
        await pass_time(1)
        assert runner.ready, [task.halt for task in runner.tasks.values()]

    def _decider(self, app: str) -> Decider[Any]:
        rules, teams = self._newer.get(app, self.rules), self.config.asked_teams
        return Gate(rules) if app == "gatekeeper" else RouterDecider(rules, teams)

    def reload(self, config: str, *apps: str) -> None:
        """A newer configuration for these services (all that run), whose topics have been made."""
        self.config = Config.model_validate(yaml.safe_load(config))
        for topic in table(list(self.config.agents), list(self.config.teams)):
            if topic.name not in self.broker.topics:
                self.broker.create(topic.name, PARTITIONS)
        for app in apps or self._processes:
            known = self._newer.get(app, self.rules)
            self._newer[app] = self.config.rules(PARTITIONS).after(known)
            self._processes[app][0].renew()

    def engine(self, app: str) -> EngineSettings:
        return EngineSettings(app=app, partitions=PARTITIONS, lanes=LANES)

    def kafka(self, app: str) -> MemoryKafka:
        """The broker as a new process of this service sees it."""
        return MemoryKafka(self.broker)

    async def stop(self, app: str) -> None:
        runner, task = self._processes.pop(app)
        runner.stop()
        await task

    async def restart(self, app: str) -> None:
        await self.stop(app)
        await self.start(app)

    # -- what clients, agents and teams do -------------------------------------------------------------------

    async def send(
        self, topic: str, value: Json, *, key: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        named = tuple((name, text.encode()) for name, text in (headers or {}).items())
        self.broker.append(topic, (key or value["threadId"]).encode(), raw, named)
        await pass_time(1)
        self.check()

    async def decide(self, team: str, thread: str, answers: dict[str, Json], **more: Json) -> Json:
        """A team's decision, resolved with these payloads; returns its receipt."""
        entries = [{"interruptId": i, "status": "resolved", "payload": p} for i, p in answers.items()]
        return await self.send_decision(team, thread, entries, **more)

    async def send_decision(self, team: str, thread: str, entries: Sequence[Json], **more: Json) -> Json:
        """A decision.v1 for the pause that is open, under a new id; `bare=True` sends plain AG-UI."""
        decision: dict[str, Any] = {"threadId": thread, "resume": list(entries)}
        headers = more.pop("headers", None)
        if not more.pop("bare", False):
            self._decisions += 1
            known = {"decisionId": f"d{self._decisions}", "generation": self.thread(thread).generation}
            decision = {"v": 1, **known, **decision, **more}
        await self.send(f"decisions.{team}", decision, headers=headers)
        return self.said(f"receipts.{team}", thread)[-1].value

    def check(self) -> None:
        for app, (runner, task) in self._processes.items():
            halted = [one.halt for one in runner.tasks.values() if one.halt]
            assert not halted, f"{app} halted: {halted}"
            assert not task.done(), f"{app} ended: {task}"

    # -- what has become visible -----------------------------------------------------------------------------

    def said(self, topic: str, thread: str | None = None) -> list[Said]:
        found = []
        for record in self.broker.committed(topic):
            key = record.key.decode() if record.key is not None else None
            value = json.loads(record.value) if record.value is not None else None
            headers = {name: text.decode() for name, text in record.headers}
            if thread is None or thread in (key, (value or {}).get("threadId")):
                found.append(Said(key, value, headers, record))
        return found

    def asked(self, team: str) -> dict[str, Json]:
        """The open questions of a team, by interrupt id: what is left of its compacted topic."""
        latest = {one.key: one.value for one in self.said(f"approvals.{team}")}
        return {value["interrupt"]["id"]: value for value in latest.values() if value is not None}

    def thread(self, thread: str) -> ThreadState:
        record = [one.record for one in self.said("pending") if one.key == thread][-1]
        assert record.value is not None
        return decode_pending(record.value)

    def pause(self, thread: str) -> Pause | None:
        return self.thread(thread).pause


@asynccontextmanager
async def system(config: str) -> AsyncIterator[System]:
    """A running system; stopped in order at the end."""
    installation = System(config)
    await installation.start("gatekeeper")
    await installation.start("router")
    yield installation
    installation.check()
    await installation.stop("router")
    await installation.stop("gatekeeper")
