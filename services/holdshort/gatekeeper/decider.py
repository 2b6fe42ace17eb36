"""The gate on the engine: a thread's records judged by the contract, its state in `pending`. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from holdshort.contract import thread
from holdshort.contract.audit import ATTEMPTED, Chain, Result, args_of, end_of, result_of
from holdshort.contract.codes import Code
from holdshort.contract.inputs import INPUTS, RESUMES
from holdshort.contract.messages import Emit
from holdshort.contract.passing import passed_on
from holdshort.contract.pending import (
    HeadPause,
    UpgradeFirstError,
    decode_head,
    decode_pending,
    encode_pending,
)
from holdshort.contract.routes import CLIENT
from holdshort.contract.rules import Rules, World
from holdshort.contract.state import NOTHING, Pause, ThreadState
from holdshort.contract.verdicts import Kind, Verdict
from holdshort.gatekeeper.facts import Facts
from holdshort.stream.decider import Context, Step
from holdshort.stream.errors import Halt
from holdshort.stream.marks import Mark
from holdshort.stream.records import Record

PENDING: Final = "pending"
QUIET: Final = frozenset({Kind.PASSED, Kind.IGNORED})
AGE_GRAIN_S: Final = 10


class Told(NamedTuple):
    """One judgement as logs and audit want it: ids, codes and places, never content."""

    kind: Kind
    code: Code | None
    thread: str
    run_id: str | None
    generation: int | None
    agent: str | None
    topic: str
    partition: int
    offset: int


class Tally:
    """What a lane holds: pauses and bytes by partition and agent, open interrupts by team and age.

    Ages are counted in grains of ten seconds, so that the oldest is known without a list of all.
    """

    def __init__(self) -> None:
        self.pauses: Counter[tuple[int, str]] = Counter()
        self.bytes: Counter[tuple[int, str]] = Counter()
        self.teams: dict[str, Counter[int]] = {}

    def count(self, partition: int, mark: Mark, times: int) -> None:
        if not mark.tags:
            return
        agent, *teams = mark.tags
        self.pauses[partition, agent] += times
        self.bytes[partition, agent] += times * mark.size
        for team in teams:
            ages = self.teams.setdefault(team, Counter())
            ages[mark.since] += times
            if not ages[mark.since]:
                del ages[mark.since]

    def open_interrupts(self) -> Iterator[tuple[str, int, int]]:
        """Team, open interrupts, and when the oldest opened (seconds since the epoch, 0 if there is none)."""
        for team, ages in list(self.teams.items()):
            yield team, ages.total(), min(ages, default=0)


def _mark(due: int | None, pause: Pause | HeadPause | None) -> Mark:
    """A pause counts for its agent; while it is open, each interrupt for its team, too."""
    if pause is None or pause.sealed:
        return Mark(due)
    open_ = pause.status == "open"  # else it waits for the agent, not for people
    teams = [interrupt.team or CLIENT for interrupt in pause.interrupts] if open_ else ()
    since = pause.opened_at // 1000
    return Mark(due, (pause.agent, *teams), since - since % AGE_GRAIN_S, pause.size)


class Gate:
    """stream.decider.Decider for one lane of the gatekeeper."""

    state = PENDING
    tables: Collection[str] = ()

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.ranks: Sequence[Collection[str]] = (
            (RESUMES,),
            (INPUTS,),
            tuple(thread.AGENT_EVENTS + agent for agent in rules.agents),
        )
        self.notes: dict[int, str] = {}
        self.tally = Tally()
        self.counts: Counter[tuple[Kind, Code | None]] = Counter()
        self.told: list[Told] = []
        self.facts = Facts()

    # -- state ---------------------------------------------------------------------------------------------

    def decode(self, value: bytes) -> ThreadState:
        try:
            return decode_pending(value)
        except UpgradeFirstError as error:
            raise Halt(str(error)) from error

    def encode(self, key: bytes, state: ThreadState) -> bytes:
        """The record of `pending`, its deadline first: what a restore needs is in the first bytes."""
        return encode_pending(key.decode(), state, self._due(state))

    def mark(self, state: ThreadState) -> Mark:
        return _mark(self._due(state), state.pause)

    def _due(self, state: ThreadState) -> int | None:
        due = thread.next_due(state, self.rules)
        return due.at if due else None

    def mark_of(self, value: bytes) -> Mark:
        try:
            head = decode_head(value)
        except UpgradeFirstError as error:
            raise Halt(str(error)) from error
        return _mark(head.due, head.pause)

    def counted(self, partition: int, mark: Mark, times: int) -> None:
        self.tally.count(partition, mark, times)

    # -- judgement -----------------------------------------------------------------------------------------

    def decide(self, state: ThreadState | None, record: Record, context: Context) -> Step[ThreadState]:
        agent = record.topic.removeprefix(thread.AGENT_EVENTS)
        if state is not None and (word := passed_on(state, record, agent, context.now, self.rules)):
            self.counts[Kind.PASSED, None] += 1
            return Step((word,), state)
        before = state or NOTHING
        world = self._world(before, agent, context)
        verdict = thread.decide(before, record, context.now, world, self.rules)
        return self._step(before, state, verdict, record.key, context, record)

    def _world(self, state: ThreadState, agent: str, context: Context) -> World:
        where, pause = (context.partition, agent), state.pause
        own = pause if pause is not None and pause.agent == agent and not pause.sealed else None
        return World(
            clock=context.clock,
            open_pauses=self.tally.pauses[where] - (1 if own else 0),
            open_bytes=self.tally.bytes[where] - (own.size if own else 0),
        )

    def _step(
        self,
        before: ThreadState,
        stored: ThreadState | None,
        verdict: Verdict,
        key: bytes | None,
        context: Context,
        record: Record | None,
    ) -> Step[ThreadState]:
        self.counts[verdict.kind, verdict.code] += 1
        after = thread.evolve(before, verdict.changes)
        place = (record.topic, record.partition, record.offset) if record else ("", context.partition, -1)
        self.facts.note(before, after, verdict, place[0], context.now)
        outputs: Sequence[Emit] = verdict.emits
        result = result_of(record, before.pause, after.pause, verdict.kind) if record else None
        if verdict.kind not in QUIET or result is not None:
            told = _told(before, after, verdict, key, place)
            proved = _proved(before, after, verdict, record, result)
            outputs = (*verdict.emits, self._audit(told, before, after, context, proved))
            if verdict.kind not in QUIET:
                self.told.append(told)
        if after is before:
            return Step(outputs, stored)
        return Step(outputs, None if after.empty else after)

    def _audit(
        self,
        told: Told,
        before: ThreadState,
        after: ThreadState,
        context: Context,
        proved: dict[str, Any],
    ) -> Emit:
        """The judgement; or, where that is a quiet one, the result that it brought (contract/audit.py)."""
        pause, run = after.pause or before.pause, after.run or before.run
        members = {
            "at": context.now,
            "service": "gatekeeper",
            "runId": told.run_id,
            "generation": told.generation,
            "verdict": ATTEMPTED if told.kind in QUIET else told.kind,
            "code": told.code,
            "principal": run.principal if run else (pause.principal if pause else None),
            **proved,
            "source": {"topic": told.topic, "partition": told.partition, "offset": told.offset},
        }
        return Chain(self.notes, self.rules.audit_key).record(context.partition, told.thread, members)

    # -- deadlines -----------------------------------------------------------------------------------------

    def awaits(self, state: ThreadState) -> Collection[str]:
        """A lease waits for its agent's events; memory for everything that may still speak of the past."""
        due = thread.next_due(state, self.rules)
        if due is not None and due.kind == "lease" and state.run is not None:
            return (thread.AGENT_EVENTS + state.run.agent,)
        return [topic for rank in self.ranks for topic in rank]

    def fire(self, key: bytes, state: ThreadState, context: Context) -> Step[ThreadState]:
        due = thread.next_due(state, self.rules)
        assert due is not None
        verdict = thread.fire(state, due, key.decode(), self.rules)
        return self._step(state, state, verdict, key, context, None)

    # -- the end of inputs ---------------------------------------------------------------------------------

    def wants_end(self, state: ThreadState) -> str | None:
        return INPUTS if state.pause is not None and state.pause.inputs_end is None else None

    def with_end(self, state: ThreadState, end: int) -> ThreadState:
        return thread.bounded(state, end)


def _proved(
    before: ThreadState,
    after: ThreadState,
    verdict: Verdict,
    record: Record | None,
    result: Result | None,
) -> dict[str, Any]:
    """What was asked, answered and brought, by digests; and which pauses ended as another opened.

    `args` where a pause opens, `result` where a tool call or a run brought one.
    """
    pause, run = after.pause or before.pause, after.run or before.run
    digests: dict[str, Any] = {
        "descriptors": pause.digest if pause else None,
        "batch": run.batch if run else None,
    }
    members: dict[str, Any] = {"digests": digests}
    if verdict.kind is Kind.OPENED and after.pause is not None:
        digests["args"] = args_of(after.pause)
        ended = {"settled": verdict.settled, "superseded": verdict.superseded}
        members |= {name: generation for name, generation in ended.items() if generation is not None}
    brought = result.digest if result is not None else end_of(record, verdict) if record else None
    if brought is not None:
        digests["result"] = brought
    if result is not None:
        members["toolCallId"] = result.call_id
    return members


def _told(
    before: ThreadState,
    after: ThreadState,
    verdict: Verdict,
    key: bytes | None,
    place: tuple[str, int, int],
) -> Told:
    run = after.run or before.run
    pause = after.pause or before.pause
    return Told(
        verdict.kind,
        verdict.code,
        (key or b"").decode(errors="replace"),
        verdict.run_id or (run.run_id if run else (pause.run_id if pause else None)),
        pause.generation if pause else None,
        run.agent if run else (pause.agent if pause else None),
        *place,
    )
