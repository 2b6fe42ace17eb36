"""What an older version stored, and what was said to it, is gone on with: nothing twice, nothing lost.

The engine runs on the recorded topics, every record at the place that it had (see record.py).
"""

import json
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, Final

import pytest
from tests.clients import Json
from tests.systems import System
from tests.virtual import EPOCH_MS, in_virtual_time, pass_time

from holdshort.contract.chains import Chains
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.memory import MemoryBroker
from holdshort.stream.records import Record, TopicPartition

RECORDED: Final = sorted((Path(__file__).parent / "recorded").glob("*/topics.jsonl"))
PARTITIONS: Final = 2
LANES: Final = 2


def lines(recording: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in recording.read_text().splitlines()]


class Recorded(System):
    """An installation whose topics hold what was recorded; it is a little later."""

    def __init__(self, recording: Path) -> None:
        super().__init__((recording.parent / "holdshort.yaml").read_text())
        self.recorded = [line for line in lines(recording) if "at" in line]
        for service in ("gatekeeper", "router"):
            self.broker.create(f"{service}.positions", LANES)
        for line in lines(recording):
            _put(self.broker, line)
        self.clock.skew_ms = max(line["at"] for line in self.recorded) + 1000 - EPOCH_MS
        for topics in self.positions("topics").values():
            self.broker.ids |= topics
        self.backlog = self._unread()

    def engine(self, app: str) -> EngineSettings:
        return EngineSettings(app=app, partitions=PARTITIONS, lanes=LANES)

    def positions(self, member: str) -> dict[tuple[str, str], Json]:
        """A member of the latest positions of each service and lane."""
        found = {}
        for service in ("gatekeeper", "router"):
            for said in self.said(f"{service}.positions"):
                found[service, said.key or ""] = said.value[member]
        return found

    def _unread(self) -> list[tuple[str, int, int]]:
        """The places of recorded inputs that their services had not read."""
        reached: dict[tuple[str, int], int] = {}
        for inputs in self.positions("inputs").values():
            for topic, places in inputs.items():
                for number, (offset, _) in places.items():
                    reached[topic, int(number)] = max(offset, reached.get((topic, int(number)), 0))
        places = [(line["topic"], line["partition"], line["offset"]) for line in self.recorded]
        return [one for one in places if one[0].startswith(READ) and one[2] >= reached.get(one[:2], 0)]


READ: Final = ("inputs", "resumes", "agent-events.", "decisions.")


def _put(broker: MemoryBroker, line: dict[str, Any]) -> None:
    """One record at its offset; what lies between two are markers. Or the end of a partition."""
    partition = broker.partition(TopicPartition(line["topic"], line["partition"]))
    while partition.end < (line["offset"] if "at" in line else line["end"]):
        partition.append(None)
    if "at" in line:
        key, value = (None if line[name] is None else line[name].encode() for name in ("key", "value"))
        headers = tuple((name, text.encode()) for name, text in line["headers"].items())
        partition.append(Record(line["topic"], line["partition"], 0, key, value, headers, line["at"]))


Scenario = Callable[[Recorded], Coroutine[Any, Any, None]]


def each(scenario: Scenario) -> Callable[[Path], None]:
    """A test on every recording, the services of this version started on it."""

    @wraps(scenario)
    def test(recording: Path) -> None:
        async def main() -> None:
            installation = Recorded(recording)
            await installation.start("gatekeeper")
            await installation.start("router")
            await pass_time(10)
            installation.check()
            await scenario(installation)

        in_virtual_time(main())

    del test.__wrapped__  # pytest would ask for the scenario's argument
    return pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.parent.name)(test)


def test_there_is_a_recording_with_something_unread() -> None:
    assert RECORDED
    for recording in RECORDED:
        assert {topic for topic, _, _ in Recorded(recording).backlog} == {
            "inputs",
            "agent-events.default",
            "decisions.dba",
            "decisions.payments",
        }


@each
async def test_what_was_unread_is_judged_once_and_nothing_is_judged_again(system: Recorded) -> None:
    old = [line for line in system.recorded if line["topic"] == "audit"]
    before = Counter(_source(json.loads(line["value"])) for line in old)
    now = Counter(_source(said.value) for said in system.said("audit"))

    new = {place for place in now - before if place[0]}
    sent = {(one.record.topic, one.record.partition, one.record.offset) for one in system.said("resumes")}
    assert new <= {*system.backlog, *sent}
    assert new >= {place for place in system.backlog if not place[0].startswith("agent-events.")}
    once = {place: times for place, times in now.items() if place[0] in ("inputs", "resumes")}
    assert set(once.values()) == {1}


def _source(audited: Json) -> tuple[str, int, int]:
    source = audited["source"]
    return source["topic"], source["partition"], source["offset"]


@each
async def test_every_thread_goes_on_from_where_it_stood(system: Recorded) -> None:
    assert _answers(system, "half") == [{"pay": True, "drop": False}]
    assert _answers(system, "claimed") == []
    assert _answers(system, "with-agent") == _answers(system, "over") == [{"pay": True, "drop": False}]
    assert _answers(system, "failed") == [{"pay": True, "drop": False}, {"pay": True, "drop": True}]
    assert _answers(system, "plain") == [{"i": True}]
    assert len(system.said("runs.default", "new")) == 1
    assert system.thread("with-agent").pause is None
    open_now = system.pause("running")
    assert open_now is not None
    assert open_now.ids == ("drop",)


def _answers(system: Recorded, thread: str) -> list[dict[str, Json]]:
    """The batches that reached the agent, old and new."""
    return [
        {entry["interruptId"]: entry["payload"] for entry in said.value["resume"]}
        for said in system.said("runs.default", thread)
        if said.value.get("resume")
    ]


@each
async def test_people_are_told_what_became_of_what_they_had_said(system: Recorded) -> None:
    claimed = system.said("receipts.payments", "claimed")[-1].value
    over = system.said("receipts.dba", "over")[-1].value
    [refused] = [
        said.value
        for said in system.said("events", "plain")
        if said.headers.get("holdshort-run") == "wrong" and said.value["type"] == "RUN_ERROR"
    ]

    assert [entry["code"] for entry in claimed["entries"]] == ["CLAIMED"]
    assert over["verdict"] == "duplicate"
    assert refused["code"] == "PENDING_INTERRUPTS"
    assert sorted(system.asked("payments")) == ["pay"]
    assert sorted(value["threadId"] for value in system.asked("dba").values()) == ["running"]


@each
async def test_the_chains_of_the_audit_go_on(system: Recorded) -> None:
    heads = {
        (service, int(number)): head
        for (service, _), notes in system.positions("notes").items()
        for number, head in notes.items()
    }
    chains = Chains(dict.fromkeys(range(PARTITIONS), 0), heads)
    for said in system.said("audit"):
        record = said.record
        chains.follow(record.partition, record.offset, record.timestamp, record.key, record.value)
    chains.end()

    assert chains.findings == []
    assert {service for service, _ in chains.chains} == {"gatekeeper", "router"}


@each
async def test_what_this_version_stores_is_taken_up_by_it_again(system: Recorded) -> None:
    said = {topic: len(system.said(topic)) for topic in system.broker.topics if "positions" not in topic}
    await system.restart("gatekeeper")
    await system.restart("router")
    await pass_time(10)
    system.check()

    assert {topic: len(system.said(topic)) for topic in said} == said
