"""Each checker reports what it is there for: a small world that adds up, and what it looks like damaged."""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from tests.chaos import checkers
from tests.chaos.checkers import Evidence, Finding
from tests.chaos.log import Ends, digest_of, place_of
from tests.clients import Json, Seen, finished, paused, started

from holdshort.contract.canon import sha256
from holdshort.contract.pending import encode_pending
from holdshort.contract.state import Pause, ThreadState
from holdshort.router.gathering import Gathering, encode_gathering
from holdshort.stream.positions import Positions, Reached, encode_positions

YES = {"interruptId": "i", "status": "resolved", "payload": {"slip": "s", "approved": True}}
RECEIPT = {
    "decisionId": "d",
    "verdict": "accepted",
    "entries": [{"interruptId": "i", "verdict": "accepted"}],
}
EFFECT = {"thread": "t", "run": "hs-1", "interrupt": "i", "slip": "s"}


class Written:
    """A log in the making; markers are left out."""

    def __init__(self) -> None:
        self.records: dict[str, list[Seen]] = defaultdict(list)

    def add(self, topic: str, value: Json, key: str = "t", **headers: str) -> Seen:
        raw = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
        named = {f"holdshort-{name}": text for name, text in headers.items()}
        parsed = None if raw is None else json.loads(raw)
        seen = Seen(topic, 0, len(self.records[topic]), key, parsed, named, raw)
        self.records[topic].append(seen)
        return seen

    def judged(self, *places: str) -> None:
        head = ""
        for place in places:
            topic, partition, offset = place.split("/")
            source = {"topic": topic, "partition": int(partition), "offset": int(offset)}
            raw = self.add("audit", {"service": "gatekeeper", "source": source, "previous": head}).raw
            assert raw is not None
            head = sha256(raw)

    def run(self, run: str, last: Json) -> None:
        self.add("events", started("t", run), run=run)
        for number in range(3):
            self.add("events", {"type": "TEXT_MESSAGE_CHUNK", "delta": str(number)}, run=run)
        self.add("events", last, run=run)


def a_pause(generation: int = 7) -> bytes:
    pause = Pause(generation=generation, run_id="a", admission=None, agent="default", opened_at=1, digest="x")
    return encode_pending("t", ThreadState(generation=generation, pause=pause), None)


def a_gathering(closed_at: int | None) -> bytes:
    return encode_gathering(
        Gathering(v=1, thread_id="t", generation=7, opened_at=1, digest="x", closed_at=closed_at)
    )


def positions_of(**inputs: int) -> bytes:
    reached = {topic.replace("_", "."): {"0": Reached(offset)} for topic, offset in inputs.items()}
    return encode_positions(
        Positions(partitions=1, lanes=1, topics={}, inputs=reached, changelog={}, notes={})
    )


def a_world() -> Evidence:
    """A thread that asks, is paused, tries something else, is answered and ends."""
    log = Written()
    log.add("inputs", {"runId": "a"})
    log.add("inputs", {"runId": "w"})
    log.add("resumes", {"runId": "hs-1"})
    log.add("runs.default", {}, run="a", admission="inputs/0/0")
    log.add("runs.default", {}, run="hs-1", admission="resumes/0/0")
    log.run("a", paused("t", "a"))
    log.add("events", started("t", "w"), run="w")
    log.add("events", {"type": "RUN_ERROR"}, run="w", code="PENDING_INTERRUPTS")
    log.run("hs-1", finished("t", "hs-1"))
    log.judged("inputs/0/0", "inputs/0/1", "resumes/0/0")
    log.add("decisions.payments", {"decisionId": "d", "resume": [YES]})
    log.add("receipts.payments", RECEIPT)
    log.add("pending", a_pause())
    log.add("pending", None)
    log.add("gathering", a_gathering(None))
    log.add("gathering", a_gathering(2))
    log.add("approvals.payments", {}, key="q")
    log.add("approvals.payments", None, key="q")
    log.add("gatekeeper.positions", positions_of(inputs=2, resumes=1), key="0")
    log.add("router.positions", positions_of(decisions_payments=1), key="0")
    return Evidence(
        records=log.records,
        ends={("events", 0): Ends(13, 13)},
        witnessed={place_of(seen): digest_of(seen) for some in log.records.values() for seen in some},
        effects=[EFFECT],
        acknowledged=frozenset({"a", "w"}),
        must_be_refused=frozenset({"w"}),
        pauses={"t": {7}},
        longest_gap=1.0,
    )


def with_records(evidence: Evidence, topic: str, records: Sequence[Seen]) -> Evidence:
    return replace(evidence, records={**evidence.records, topic: records})


def without(topic: str, number: int) -> Callable[[Evidence], Evidence]:
    def damage(evidence: Evidence) -> Evidence:
        kept = [seen for at, seen in enumerate(evidence.of(topic)) if at != number]
        return with_records(evidence, topic, kept)

    return damage


def twice(topic: str, number: int) -> Callable[[Evidence], Evidence]:
    def damage(evidence: Evidence) -> Evidence:
        records = evidence.of(topic)
        return with_records(evidence, topic, [*records, records[number]])

    return damage


def swapped(topic: str, one: int, other: int) -> Callable[[Evidence], Evidence]:
    def damage(evidence: Evidence) -> Evidence:
        records = list(evidence.of(topic))
        records[one], records[other] = records[other], records[one]
        return with_records(evidence, topic, records)

    return damage


def with_receipt(verdict: str) -> Callable[[Evidence], Evidence]:
    def damage(evidence: Evidence) -> Evidence:
        receipt = evidence.of("receipts.payments")[0]
        return with_records(
            evidence, "receipts.payments", [receipt._replace(value={**RECEIPT, "verdict": verdict})]
        )

    return damage


def with_denial(evidence: Evidence) -> Evidence:
    decision = evidence.of("decisions.payments")[0]
    no = {**YES, "payload": {"slip": "s", "approved": False}}
    return with_records(
        evidence, "decisions.payments", [decision._replace(value={"decisionId": "d", "resume": [no]})]
    )


def let_through(evidence: Evidence) -> Evidence:
    """The input that had to be refused was forwarded instead."""
    run = evidence.of("runs.default")[0]
    headers = {"holdshort-run": "w", "holdshort-admission": "inputs/0/1"}
    damaged = with_records(
        evidence, "runs.default", [*evidence.of("runs.default"), run._replace(headers=headers)]
    )
    return with_records(
        damaged, "events", [s for s in damaged.of("events") if "holdshort-code" not in s.headers]
    )


def with_positions(evidence: Evidence) -> Evidence:
    seen = evidence.of("gatekeeper.positions")[0]
    return with_records(
        evidence, "gatekeeper.positions", [seen._replace(raw=positions_of(inputs=1, resumes=1))]
    )


DAMAGES: Sequence[tuple[str, Callable[[Evidence], Evidence], Finding]] = [
    ("inputs", without("runs.default", 0), Finding("lost", "input a at inputs/0/0: answers: 0")),
    ("inputs", twice("runs.default", 1), Finding("doubled", "input hs-1 at resumes/0/0: answers: 2")),
    ("inputs", without("events", 6), Finding("lost", "input w at inputs/0/1: answers: 0")),
    ("inputs", twice("audit", 1), Finding("doubled", "input w at inputs/0/1: judgements: 2")),
    ("inputs", let_through, Finding("wrong", "w was let through while a pause was open")),
    (
        "inputs",
        without("inputs", 0),
        Finding("lost", "a was acknowledged to its client and is not in the log"),
    ),
    (
        "decisions",
        without("receipts.payments", 0),
        Finding("lost", "decision d, said 1 times, has receipts []"),
    ),
    (
        "decisions",
        twice("receipts.payments", 0),
        Finding("doubled", "decision d, said 1 times, has receipts ['accepted', 'accepted']"),
    ),
    (
        "decisions",
        with_receipt("duplicate"),
        Finding("doubled", "decision d counted not exactly once: ['duplicate']"),
    ),
    (
        "effects",
        lambda evidence: replace(evidence, effects=[EFFECT, EFFECT]),
        Finding("doubled", "hs-1 did i 2 times"),
    ),
    ("effects", with_denial, Finding("wrong", "hs-1 did i without an approval")),
    (
        "effects",
        without("runs.default", 1),
        Finding("wrong", "hs-1 ran without having been forwarded"),
    ),
    (
        "audit",
        without("audit", 1),
        Finding("reordered", "the audit's chain is broken at audit/0/2 of gatekeeper"),
    ),
    ("state", without("pending", 1), Finding("open", "t still has a pause or a run in pending")),
    ("state", without("gathering", 1), Finding("open", "t is still gathered")),
    ("state", without("approvals.payments", 1), Finding("open", "approval q is still shown to payments")),
    (
        "state",
        lambda evidence: replace(evidence, pauses={"t": {7, 8}}),
        Finding("wrong", "t had pauses [7], its client saw [7, 8]"),
    ),
    (
        "positions",
        with_positions,
        Finding(
            "lost",
            "gatekeeper stands at [1] in TopicPartition(topic='inputs', partition=0), behind it lies 1",
        ),
    ),
    (
        "transactions",
        lambda evidence: replace(evidence, ends={("events", 0): Ends(12, 13)}),
        Finding("open", "a transaction is open in ('events', 0): Ends(committed=12, written=13)"),
    ),
    ("visible", without("events", 3), Finding("gone", "what was seen at events/0/3 is gone")),
    (
        "progress",
        lambda evidence: replace(evidence, longest_gap=100.0),
        Finding("wrong", "nothing happened for 100.0 s"),
    ),
    (
        "order",
        swapped("events", 1, 2),
        Finding("reordered", "the pieces of ('t', 'a') are shown as ['1', '0', '2']"),
    ),
    (
        "order",
        twice("events", 1),
        Finding("doubled", "the pieces of ('t', 'a') are shown as ['0', '1', '2', '0']"),
    ),
    ("order", without("events", 3), Finding("lost", "of finished ('t', 'a') only ['0', '1'] is shown")),
    (
        "order",
        swapped("runs.default", 0, 1),
        Finding("reordered", "runs of t were admitted as ['hs-1', 'a'], shown as ['a', 'hs-1']"),
    ),
]


def test_a_world_that_adds_up_has_no_findings() -> None:
    assert checkers.findings(a_world()) == []


@pytest.mark.parametrize(
    ("checker", "damage", "finding"), DAMAGES, ids=[f"{name}: {found.text}" for name, _, found in DAMAGES]
)
def test_what_does_not_add_up_is_found(
    checker: str, damage: Callable[[Evidence], Evidence], finding: Finding
) -> None:
    assert finding in list(getattr(checkers, checker)(damage(a_world())))
