"""Records an installation: `python -m tests.upgrades.record NAME` plays a story and keeps its topics.

A real gatekeeper and a real router run on a real Kafka until threads stand in every state that there is. Then
they are stopped, and clients, agents and teams say more, which nobody has read. What is kept, in a directory
of its own: the configuration, and every record of every topic at its place, with where each partition ends.
Run it in a checkout of the version whose state is wanted. A recording is never overwritten.
"""

import asyncio
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from tests.clients import Wire, a_resume, an_input, an_interrupt, finished, paused, started
from tests.contract.golden.record import RealStage, read
from tests.installations import Installation, installed

from holdshort.settings import load_config
from holdshort.stream.embedded import EmbeddedKafka
from holdshort.stream.topics import table

HERE = Path(__file__).parent / "recorded"
PARTITIONS = 2
CONFIG = """
agents: {default: {}}
teams: {payments: {}, dba: {}}
routes:
  - {tool: transfer_money, team: payments}
  - {reason: "db:*", team: dba}
  - {reason: input_required, team: dba, answer_by: anyone}
"""


class Stage(RealStage):
    """An installation whose router is waited for, too."""

    def __init__(self, installation: Installation) -> None:
        super().__init__(installation)
        self.decisions = 0

    async def asks(self, thread: str, *interrupts: Any) -> None:
        await self.say("inputs", an_input(thread, "r1"))
        for event in (
            started(thread, "r1"),
            {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "transfer_money"},
            {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"amount":950}'},
            paused(thread, "r1", *interrupts),
        ):
            await self.event(thread, "r1", event)
        if interrupts[0]["reason"] != "input_required":
            await self.wire.until(lambda _: bool(self.wire.of("gathering", thread)))

    async def event(self, thread: str, run: str, event: Any) -> None:
        await self.say("agent-events.default", event, key=thread, run=run)

    def decision(self, team: str, thread: str, payloads: dict[str, Any], **more: Any) -> tuple[str, Any]:
        self.decisions += 1
        entries = [
            {"interruptId": id_, "status": "resolved", "payload": payload}
            for id_, payload in payloads.items()
        ]
        known = {"v": 1, "decisionId": f"d{self.decisions}", "threadId": thread, "resume": entries}
        return f"decisions.{team}", {**known, "generation": self.generation(thread), **more}

    async def decides(self, team: str, thread: str, payloads: dict[str, Any], **more: Any) -> None:
        topic, decision = self.decision(team, thread, payloads, **more)
        before = len(self.wire.of(f"receipts.{team}"))
        self.wire.send(topic, decision)
        await self.wire.until(lambda _: len(self.wire.of(f"receipts.{team}")) > before, why="no receipt")

    async def resumed(self, thread: str, count: int = 1) -> str:
        """The run that carries the answers, once the agent has it."""

        def batches() -> list[Any]:
            return [one for one in self.wire.of("runs.default", thread) if one.value.get("resume")]

        await self.wire.until(lambda _: len(batches()) == count, why="the agent is not resumed")
        run: str = batches()[-1].value["runId"]
        return run


PAY, DROP = an_interrupt("pay", toolCallId="c1"), an_interrupt("drop", reason="db:drop")
RESULT = {"type": "TOOL_CALL_RESULT", "toolCallId": "c1", "messageId": "m2", "content": "paid"}


async def before(stage: Stage) -> dict[str, str]:
    """Threads in every state; returns the runs that carry answers."""
    runs = {}
    await stage.asks("half", PAY, DROP)
    await stage.decides("payments", "half", {"pay": True}, decidedBy="ann")
    await stage.asks("claimed", PAY)
    await stage.decides("payments", "claimed", {"pay": None}, action="claim", decidedBy="ann")
    for thread in ("with-agent", "failed", "over"):
        await stage.asks(thread, PAY, DROP)
        await stage.decides("payments", thread, {"pay": True}, decidedBy="ann")
        await stage.decides("dba", thread, {"drop": False})
        runs[thread] = await stage.resumed(thread)
        await stage.event(thread, runs[thread], started(thread, runs[thread]))
        await stage.event(thread, runs[thread], RESULT)
    await stage.event("failed", runs["failed"], {"type": "RUN_ERROR", "message": "the bank is closed"})
    await stage.wire.until(
        lambda _: any(one.value and one.value["attempt"] == 2 for one in stage.wire.of("approvals.dba"))
    )
    await stage.event("over", runs["over"], finished("over", runs["over"]))
    await stage.asks("plain", an_interrupt("i", reason="input_required"))
    await stage.say("inputs", an_input("running", "r1"))
    await stage.event("running", "r1", started("running", "r1"))
    return runs


def after(stage: Stage, runs: dict[str, str]) -> list[tuple[str, Any, str, dict[str, str]]]:
    """What is said while nobody reads it: topic, value, thread, headers."""
    over = stage.wire.of("decisions.dba", "over")[-1].value
    said = [
        stage.decision("dba", "half", {"drop": False}, decidedBy="bob"),
        stage.decision("payments", "claimed", {"pay": True}, decidedBy="bob"),
        stage.decision("payments", "failed", {"pay": True}),
        stage.decision("dba", "failed", {"drop": True}),
        ("decisions.dba", over),
        ("inputs", an_input("plain", "wrong")),
        ("inputs", a_resume("plain", "r2", {"i": True})),
        ("inputs", an_input("new", "r1")),
    ]
    events = [
        ("with-agent", runs["with-agent"], finished("with-agent", runs["with-agent"])),
        ("running", "r1", paused("running", "r1", DROP)),
    ]
    return [
        *((topic, value, value["threadId"], {}) for topic, value in said),
        *(("agent-events.default", event, thread, {"holdshort-run": run}) for thread, run, event in events),
    ]


def ends(bootstrap_servers: str, prefix: str, topics: list[str]) -> list[dict[str, Any]]:
    """Where each partition ends, markers included."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "recorded"})
    known = consumer.list_topics(timeout=20).topics
    found = []
    for topic in topics:
        for number in known[prefix + topic].partitions:
            _, end = consumer.get_watermark_offsets(TopicPartition(prefix + topic, number), timeout=20)
            found.append({"topic": topic, "partition": number, "end": end})
    consumer.close()
    return found


async def record(name: str) -> None:
    directory = HERE / name
    if directory.exists():
        sys.exit(f"{directory} is there: a recording is never overwritten; give a new one a new name")
    kafka = EmbeddedKafka()
    await kafka.start()
    try:
        servers = kafka.bootstrap_servers
        with TemporaryDirectory() as scratch:
            async with installed(servers, Path(scratch), CONFIG, partitions=PARTITIONS) as installation:
                stage = Stage(installation)
                backlog = after(stage, await before(stage))
            known = load_config(Path(scratch) / "holdshort.yaml")
        wire = Wire(servers, installation.prefix, ["inputs"])
        for topic, value, thread, headers in backlog:
            wire.send(topic, value, key=thread, headers=headers)
        await asyncio.to_thread(wire.flush)
        wire.close()
        topics = [one.name for one in table(list(known.agents), list(known.teams))]
        lines = [one._asdict() for one in read(servers, installation.prefix, topics)]
        lines += ends(servers, installation.prefix, topics)
        directory.mkdir(parents=True)
        (directory / "holdshort.yaml").write_text(CONFIG.lstrip())
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (directory / "topics.jsonl").write_text(text)
    finally:
        await kafka.stop()


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1]))
