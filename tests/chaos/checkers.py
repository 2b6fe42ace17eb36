"""What must be true of a chaos world at its end; each checker yields what is not (notes/kafka.md, 6.3)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from tests.chaos.log import Ends, Place, digest_of, place_of
from tests.chaos.story import CHUNKS, TEAMS
from tests.clients import Json, Seen
from tests.readers import BadlyFramedError, Reader

from holdshort.contract.canon import sha256
from holdshort.contract.codes import Code
from holdshort.contract.pending import decode_pending
from holdshort.router.gathering import decode_gathering
from holdshort.stream.positions import Positions, decode_positions
from holdshort.stream.records import TopicPartition

Kind = Literal["lost", "doubled", "reordered", "gone", "open", "wrong"]

LONGEST_GAP_S: Final = 90.0
INPUTS: Final = ("inputs", "resumes")
# Ends that the gate tells of runs which it had admitted: no refusals, though they carry a code.
ENDS_OF_ADMITTED: Final = frozenset({Code.RUN_LOST, Code.INVALID_OUTCOME, Code.ABANDONED})


class Finding(NamedTuple):
    """One thing that is not as it must be."""

    kind: Kind
    text: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A world at its end: `records` by topic in the order of the log, and what was seen while it lived."""

    records: Mapping[str, Sequence[Seen]]
    ends: Mapping[tuple[str, int], Ends]
    witnessed: Mapping[Place, bytes]
    effects: Sequence[Json]
    acknowledged: frozenset[str] = frozenset()  # run ids of inputs
    must_be_refused: frozenset[str] = frozenset()
    pauses: Mapping[str, set[int]] = field(default_factory=dict)  # generations that clients saw, by thread
    unfinished: Sequence[str] = ()
    troubles: Sequence[str] = ()
    longest_gap: float = 0.0

    def of(self, topic: str) -> Sequence[Seen]:
        return self.records.get(topic, ())

    def latest(self, topic: str) -> dict[str, Seen]:
        """The last record of every key."""
        return {seen.key or "": seen for seen in self.of(topic)}


# -- (a) everything is answered exactly once ----------------------------------------------------------------


def inputs(evidence: Evidence) -> Iterator[Finding]:
    """Every input is forwarded to the agent once, or refused once; and so its judgement is audited once."""
    forwarded = Counter(seen.headers["holdshort-admission"] for seen in evidence.of("runs.default"))
    refused = Counter(seen.headers["holdshort-run"] for seen in evidence.of("events") if _refuses(seen))
    audited = Counter(_source(seen) for seen in evidence.of("audit") if seen.value["service"] == "gatekeeper")
    runs: set[str] = set()
    for topic in INPUTS:
        for seen in evidence.of(topic):
            place, run = str(place_of(seen)), seen.value["runId"]
            yield from _exactly_one(f"input {run} at {place}: answers", forwarded[place] + refused[run])
            yield from _exactly_one(f"input {run} at {place}: judgements", audited[place])
            if run in evidence.must_be_refused and forwarded[place]:
                yield Finding("wrong", f"{run} was let through while a pause was open")
            if run in runs:
                yield Finding("doubled", f"the run id {run} stands in the log twice")
            runs.add(run)
    for run in evidence.acknowledged - runs:
        yield Finding("lost", f"{run} was acknowledged to its client and is not in the log")
    places = {str(place_of(seen)) for topic in INPUTS for seen in evidence.of(topic)}
    for admission in forwarded.keys() - places:
        yield Finding("wrong", f"{admission} was forwarded and is no input")


def _refuses(seen: Seen) -> bool:
    code = seen.headers.get("holdshort-code")
    return seen.value["type"] == "RUN_ERROR" and code is not None and code not in ENDS_OF_ADMITTED


def _source(seen: Seen) -> str:
    return "{topic}/{partition}/{offset}".format(**seen.value["source"])


def _exactly_one(what: str, count: int) -> Iterator[Finding]:
    if count != 1:
        yield Finding("doubled" if count else "lost", f"{what}: {count}")


def decisions(evidence: Evidence) -> Iterator[Finding]:
    """Every decision gets one receipt; of those that say the same twice, one that is not a duplicate."""
    for team in TEAMS:
        told = Counter(seen.value["decisionId"] for seen in evidence.of(f"decisions.{team}"))
        receipts: dict[str, list[str]] = defaultdict(list)
        for seen in evidence.of(f"receipts.{team}"):
            receipts[seen.value["decisionId"]].append(seen.value["verdict"])
        for decision, times in told.items():
            got = receipts[decision]
            if len(got) != times:
                kind: Kind = "lost" if len(got) < times else "doubled"
                yield Finding(kind, f"decision {decision}, said {times} times, has receipts {got}")
            elif sum(verdict != "duplicate" for verdict in got) != 1:
                yield Finding("doubled", f"decision {decision} counted not exactly once: {got}")
        for decision in receipts.keys() - told.keys():
            yield Finding("wrong", f"a receipt for a decision that nobody made: {decision}")


def effects(evidence: Evidence) -> Iterator[Finding]:
    """What tools did: at most once a run, never of a run that was not let through, never without a yes."""
    runs = {seen.headers["holdshort-run"] for seen in evidence.of("runs.default")}
    allowed = {slip for slip, yes in _accepted(evidence) if yes}
    done = Counter((effect["run"], effect["interrupt"]) for effect in evidence.effects)
    for (run, interrupt), times in done.items():
        if times > 1:
            yield Finding("doubled", f"{run} did {interrupt} {times} times")
    for effect in evidence.effects:
        if effect["run"] not in runs:
            yield Finding("wrong", f"{effect['run']} ran without having been forwarded")
        if (effect["interrupt"], effect["slip"]) not in allowed:
            yield Finding("wrong", f"{effect['run']} did {effect['interrupt']} without an approval")


def _accepted(evidence: Evidence) -> Iterator[tuple[tuple[str, str], bool]]:
    """Interrupt and slip of each accepted answer, and whether it was a yes."""
    for team in TEAMS:
        accepted = {
            (seen.value["decisionId"], entry["interruptId"])
            for seen in evidence.of(f"receipts.{team}")
            for entry in seen.value["entries"]
            if entry["verdict"] == "accepted"
        }
        for seen in evidence.of(f"decisions.{team}"):
            for entry in seen.value["resume"]:
                if (seen.value["decisionId"], entry["interruptId"]) in accepted:
                    yield (entry["interruptId"], entry["payload"]["slip"]), entry["payload"]["approved"]


def audit(evidence: Evidence) -> Iterator[Finding]:
    """Each service's records of a partition form one chain of hashes: none is missing, doubled or moved."""
    heads: dict[tuple[str, int], str] = {}
    for seen in evidence.of("audit"):
        chain = (seen.value["service"], seen.partition)
        if seen.value["previous"] != heads.get(chain, ""):
            yield Finding("reordered", f"the audit's chain is broken at {place_of(seen)} of {chain[0]}")
        assert seen.raw is not None
        heads[chain] = sha256(seen.raw)


# -- (b) the final state ------------------------------------------------------------------------------------


def state(evidence: Evidence) -> Iterator[Finding]:
    """Nothing is open any more, and there were as many pauses as clients saw."""
    for key, seen in evidence.latest("pending").items():
        final = decode_pending(seen.raw) if seen.raw is not None else None
        if final is not None and (final.pause is not None or final.run is not None):
            yield Finding("open", f"{key} still has a pause or a run in pending")
    for key, seen in evidence.latest("gathering").items():
        if seen.raw is not None and decode_gathering(seen.raw).closed_at is None:
            yield Finding("open", f"{key} is still gathered")
    for team in TEAMS:
        for key, seen in evidence.latest(f"approvals.{team}").items():
            if seen.raw is not None:
                yield Finding("open", f"approval {key} is still shown to {team}")
    yield from _generations(evidence)
    for seen in evidence.of("dead-letters"):
        yield Finding("wrong", f"a dead letter: {seen.headers}")
    for text in (*evidence.unfinished, *evidence.troubles):
        yield Finding("lost", text)


def _generations(evidence: Evidence) -> Iterator[Finding]:
    stored: dict[str, set[int]] = defaultdict(set)
    for seen in evidence.of("pending"):
        if seen.raw is not None and (pause := decode_pending(seen.raw).pause) is not None:
            stored[seen.key or ""].add(pause.generation)
    for thread in stored.keys() | evidence.pauses.keys():
        saw, have = evidence.pauses.get(thread, set()), stored.get(thread, set())
        if saw != have:
            yield Finding("wrong", f"{thread} had pauses {sorted(have)}, its client saw {sorted(saw)}")
        if have and max(have) - min(have) + 1 != len(have):
            yield Finding("lost", f"the pauses of {thread} have gaps: {sorted(have)}")


# -- (c) and (d) positions and transactions -----------------------------------------------------------------


def positions(evidence: Evidence) -> Iterator[Finding]:
    """Every lane has read every input to its end."""
    read = {"gatekeeper": (*INPUTS, "agent-events.default"), "router": tuple(f"decisions.{t}" for t in TEAMS)}
    for service, topics in read.items():
        lanes = [_positions(seen) for seen in evidence.latest(f"{service}.positions").values()]
        for topic in topics:
            lasts = {seen.partition: seen.offset for seen in evidence.of(topic)}
            for partition, last in lasts.items():
                where = TopicPartition(topic, partition)
                reached = [found.offset for lane in lanes if (found := lane.reached(where)) is not None]
                if max(reached, default=-1) <= last:
                    yield Finding("lost", f"{service} stands at {reached} in {where}, behind it lies {last}")


def _positions(seen: Seen) -> Positions:
    assert seen.raw is not None
    return decode_positions(seen.raw)


def transactions(evidence: Evidence) -> Iterator[Finding]:
    """No transaction is left open: the last stable offset is the end."""
    for where, ends in evidence.ends.items():
        if ends.committed != ends.written:
            yield Finding("open", f"a transaction is open in {where}: {ends}")


# -- (e) and (f) as seen from outside -----------------------------------------------------------------------


def visible(evidence: Evidence) -> Iterator[Finding]:
    """Nothing that a live read_committed reader saw has disappeared or changed, and it saw all there is."""
    there = {place_of(seen): digest_of(seen) for records in evidence.records.values() for seen in records}
    for place, digest in evidence.witnessed.items():
        if there.get(place) != digest:
            yield Finding(
                "gone", f"what was seen at {place} is {'gone' if place not in there else 'another'}"
            )
    for place in there.keys() - evidence.witnessed.keys():
        yield Finding("wrong", f"{place} became visible without having been seen live")


def progress(evidence: Evidence) -> Iterator[Finding]:
    if evidence.longest_gap > LONGEST_GAP_S:
        yield Finding("wrong", f"nothing happened for {evidence.longest_gap:.1f} s")


# -- order --------------------------------------------------------------------------------------------------


def order(evidence: Evidence) -> Iterator[Finding]:
    """What is shown of a thread is well framed, run after run as they were admitted, piece after piece."""
    reader = Reader()
    shown: dict[str, list[str]] = defaultdict(list)
    pieces: dict[tuple[str, str], list[str]] = defaultdict(list)
    done: set[tuple[str, str]] = set()
    for seen in evidence.of("events"):
        thread, run = seen.key or "", seen.headers["holdshort-run"]
        try:
            reader.read([{"topic": "events", "key": thread, "value": seen.value, "headers": seen.headers}])
        except BadlyFramedError as error:
            yield Finding("reordered", str(error))
        if seen.value["type"] == "RUN_STARTED":
            shown[thread].append(run)
        elif seen.value["type"] == "TEXT_MESSAGE_CHUNK":
            pieces[thread, run].append(seen.value["delta"])
        elif seen.value["type"] == "RUN_FINISHED":
            done.add((thread, run))
    for where, numbers in pieces.items():
        if numbers != [str(number) for number in range(CHUNKS)][: len(numbers)]:
            kind: Kind = "reordered" if len(set(numbers)) == len(numbers) else "doubled"
            yield Finding(kind, f"the pieces of {where} are shown as {numbers}")
        if where in done and len(set(numbers)) < CHUNKS:
            yield Finding("lost", f"of finished {where} only {numbers} is shown")
    yield from _admitted_in_order(evidence, shown)


def _admitted_in_order(evidence: Evidence, shown: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    admitted: dict[str, list[str]] = defaultdict(list)
    came: dict[tuple[str, str], list[int]] = defaultdict(list)
    for seen in evidence.of("runs.default"):
        thread = seen.key or ""
        admitted[thread].append(seen.headers["holdshort-run"])
        topic, _, offset = seen.headers["holdshort-admission"].rsplit("/", 2)
        came[thread, topic].append(int(offset))
    for where, offsets in came.items():
        if any(one >= other for one, other in pairwise(offsets)):
            yield Finding("reordered", f"inputs of {where} were forwarded as {offsets}")
    for thread, runs in admitted.items():
        seen_runs = [run for run in dict.fromkeys(shown[thread]) if run in runs]
        if seen_runs != [run for run in runs if run in seen_runs]:
            yield Finding("reordered", f"runs of {thread} were admitted as {runs}, shown as {seen_runs}")


CHECKERS: Final[Sequence[Callable[[Evidence], Iterator[Finding]]]] = (
    inputs,
    decisions,
    effects,
    audit,
    state,
    positions,
    transactions,
    visible,
    progress,
    order,
)


def findings(evidence: Evidence) -> list[Finding]:
    return [finding for checker in CHECKERS for finding in checker(evidence)]
