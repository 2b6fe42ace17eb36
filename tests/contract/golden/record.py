"""Records a golden history: `python -m tests.contract.golden.record NAME` plays a story and keeps its topics.

A real gatekeeper runs on a real Kafka. What is kept, in a directory of its own: the configuration;
`records.jsonl`, the transcript of what the gate judged, with its verdicts; `written.jsonl`, a line for each
of those, with what the gate wrote; and dumps of the topics if `kcat` is on the PATH. A history is never
overwritten: a gate that judges it otherwise is a gate that has changed, and its users must know.
"""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition
from tests.clients import Seen, Wire
from tests.contract.golden.stories import STORIES
from tests.installations import Installation, installed

from holdshort.contract.inputs import INPUTS, RESUMES
from holdshort.contract.pending import decode_pending
from holdshort.contract.rules import Rules
from holdshort.contract.state import ThreadState
from holdshort.contract.thread import AGENT_EVENTS
from holdshort.settings import load_config
from holdshort.stream.embedded import EmbeddedKafka
from holdshort.stream.topics import table

HERE = Path(__file__).parent
PARTITIONS = 2
WRITTEN = ("events", "dead-letters", "pending", "audit", "runs.")


class Kept(NamedTuple):
    """One record as it lies in its topic; the prefix is left out."""

    topic: str
    partition: int
    offset: int
    at: int
    key: str | None
    value: str | None
    headers: dict[str, str]

    @property
    def judged(self) -> bool:
        return self.topic in (INPUTS, RESUMES) or self.topic.startswith(AGENT_EVENTS)


# -- the stage ----------------------------------------------------------------------------------------------


class RealStage:
    """stories.Stage on a running installation."""

    def __init__(self, installation: Installation) -> None:
        self.wire: Wire = installation.wire

    async def say(self, topic: str, value: Any, *, key: str = "", **headers: str) -> None:
        named = {f"holdshort-{name}": text for name, text in headers.items()}
        before = len(self.wire.of(topic))
        self.wire.send(topic, value, key=key or value["threadId"], headers=named)
        await self.wire.until(lambda _: len(self.wire.of(topic)) > before)
        await self._dealt_with()

    async def lost(self, thread: str) -> None:
        def told(_: object) -> bool:
            return "RUN_LOST" in [one.headers.get("holdshort-code") for one in self.wire.of("events", thread)]

        await self.wire.until(told)
        await self._dealt_with()

    def admission(self, agent: str, run: str) -> str:
        runs = [s.headers for s in self.wire.of(f"runs.{agent}") if s.headers["holdshort-run"] == run]
        return runs[-1]["holdshort-admission"]

    def generation(self, thread: str) -> int:
        return int(self.wire.of("pending", thread)[-1].value["generation"])

    async def _dealt_with(self) -> None:
        """Wait until the gate's positions lie behind every record that has been seen."""

        def judged(seen: list[Seen]) -> bool:
            mine = [one for one in seen if one.topic.startswith((INPUTS, RESUMES, AGENT_EVENTS))]
            return all(self._reached(one) > one.offset for one in mine)

        await self.wire.until(judged)

    def _reached(self, record: Seen) -> int:
        reached = 0
        for seen in self.wire.of("gatekeeper.positions"):
            place = seen.value["inputs"].get(record.topic, {}).get(str(record.partition))
            reached = max(reached, place[0] if place else 0)
        return reached


# -- what lies in the topics --------------------------------------------------------------------------------


def read(bootstrap_servers: str, prefix: str, topics: list[str]) -> list[Kept]:
    """Everything in the topics that a read_committed reader sees."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap_servers, "group.id": "golden", "isolation.level": "read_committed",
        "enable.partition.eof": True,
    })  # fmt: skip
    known = consumer.list_topics(timeout=20).topics
    parts = [TopicPartition(prefix + t, p, 0) for t in topics for p in known[prefix + t].partitions]
    consumer.assign(parts)
    kept: list[Kept] = []
    ended: set[tuple[str, int]] = set()
    while len(ended) < len(parts):
        message: Any = consumer.poll(20)
        assert message is not None, "a topic could not be read to its end"
        if message.error():
            ended.add((message.topic(), message.partition()))
            continue
        headers = {name: text.decode() for name, text in message.headers() or ()}
        topic = message.topic().removeprefix(prefix)
        key, value = message.key(), message.value()
        kept.append(
            Kept(
                topic,
                message.partition(),
                message.offset(),
                message.timestamp()[1],
                key.decode() if key is not None else None,
                value.decode() if value is not None else None,
                headers,
            )
        )
    consumer.close()
    return kept


# -- a transcript of it -------------------------------------------------------------------------------------


def history(kept: list[Kept], rules: Rules) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The lines of the transcript, and what was written for each."""
    fired = [_audited(one) for one in kept if _is_fired(one)]
    steps: list[tuple[int, Kept | None]] = [(one.at, one) for one in kept if one.judged]
    steps = sorted([*steps, *((one["at"], None) for one in fired)], key=lambda step: step[0])
    times = [at for at, _ in steps]
    assert len(set(times)) == len(times), "two records of one millisecond: record again"
    outputs = sorted((one for one in kept if one.topic.startswith(WRITTEN)), key=lambda one: one.at)
    lines, written = [], []
    for (at, record), end in zip(steps, [*times[1:], 2**62], strict=True):
        mine = [one for one in outputs if at <= one.at < end]
        line, told = _step(at, record, mine, rules)
        lines.append(line)
        written.append(told)
    return lines, written


def _step(at: int, record: Kept | None, mine: list[Kept], rules: Rules) -> tuple[Any, Any]:
    emits = [
        {"topic": one.topic, "key": one.key, "value": one.value, "headers": one.headers}
        for one in mine
        if one.topic not in ("pending", "audit")
    ]
    stored = [one for one in mine if one.topic == "pending"]
    assert len(stored) <= 1, "two steps in one: record again"
    written: dict[str, Any] = {"emits": emits}
    if stored:
        written["pending"] = json.loads(stored[0].value) if stored[0].value else None
    line: dict[str, Any] = {"at": at}
    if record is not None:
        line = {name: value for name, value in record._asdict().items() if value not in (None, {})}
        line |= _told_to_the_gate(at, emits, stored, rules)
    line["expect"] = _expected(mine, emits)
    return line, written


def _told_to_the_gate(
    at: int, emits: list[dict[str, Any]], stored: list[Kept], rules: Rules
) -> dict[str, int]:
    """The engine's clock and the end of inputs, as far as they were used: they stand in what was written."""
    told: dict[str, int] = {}
    state = decode_pending(stored[0].value.encode()) if stored and stored[0].value else ThreadState()
    for emit in emits:
        if start_by := emit["headers"].get("holdshort-start-by"):
            told["clock"] = int(start_by) - rules.start_lease_ms
    if state.run is not None and state.run.admission is None and state.run.seen_at == at:
        told["clock"] = state.run.admitted_at
    if state.pause is not None and state.pause.inputs_end is not None:
        told["inputs_end"] = state.pause.inputs_end
    return told


def _audited(one: Kept) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(one.value or "{}")
    return found


def _is_fired(one: Kept) -> bool:
    return one.topic == "audit" and _audited(one)["source"]["topic"] == ""


def _expected(mine: list[Kept], emits: list[dict[str, Any]]) -> dict[str, Any]:
    """The verdict as it was audited; what is too quiet for that was passed on if anything was shown."""
    audited = [_audited(one) for one in mine if one.topic == "audit"]
    if audited:
        assert len(audited) == 1, "two judgements in one step: record again"
        return {"verdict": audited[0]["verdict"], "code": audited[0]["code"]}
    return {"verdict": ["passed", "ignored"] if emits else "ignored", "code": None}


# -- the command --------------------------------------------------------------------------------------------


async def record(name: str) -> None:
    config, story = STORIES[name]
    directory = HERE / name
    if directory.exists():
        sys.exit(f"{directory} is there: a golden history is never overwritten; give a new one a new name")
    kafka = EmbeddedKafka()
    await kafka.start()
    try:
        with TemporaryDirectory() as scratch:
            async with installed(
                kafka.bootstrap_servers, Path(scratch), config, routers=0, partitions=PARTITIONS
            ) as installation:
                await story(RealStage(installation))
            known = load_config(Path(scratch) / "holdshort.yaml")
        topics = [one.name for one in table(list(known.agents), list(known.teams))]
        kept = read(kafka.bootstrap_servers, installation.prefix, topics)
        lines, written = history(kept, known.rules(PARTITIONS))
        directory.mkdir()
        (directory / "holdshort.yaml").write_text(config.lstrip())
        for file, parts in (("records.jsonl", lines), ("written.jsonl", written)):
            text = "".join(json.dumps(part, separators=(",", ":")) + "\n" for part in parts)
            (directory / file).write_text(text)
        judged = sorted({one.topic for one in kept if one.judged})
        _dump(kafka.bootstrap_servers, installation.prefix, judged, directory)
    finally:
        await kafka.stop()


def _dump(bootstrap_servers: str, prefix: str, topics: list[str], directory: Path) -> None:
    """The judged topics once more, as kcat prints them."""
    kcat = shutil.which("kcat")
    if kcat is None:
        return
    dumped = b""
    for topic in topics:
        command = [kcat, "-b", bootstrap_servers, "-C", "-e", "-q", "-J", "-t", prefix + topic]
        dumped += subprocess.run(command, capture_output=True, check=True).stdout
    (directory / "kcat.jsonl").write_bytes(dumped.replace(prefix.encode(), b"holdshort."))


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1]))
