"""The router on the engine: pauses fan out to teams, decisions gather, one whole batch goes back. Pure."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from holdshort.contract.audit import Chain
from holdshort.contract.codes import Code
from holdshort.contract.keys import partition_of
from holdshort.contract.messages import (
    GENERATION,
    JSON_TYPE,
    Emit,
    dead_letter,
    parse_object,
    size_of,
    usable,
)
from holdshort.contract.pending import UpgradeFirstError, decode_pending
from holdshort.contract.rules import Rules
from holdshort.contract.state import Pause
from holdshort.router import gathering as gather
from holdshort.router import records
from holdshort.router.codes import DecisionCode
from holdshort.router.context import places, rebuild, run_input
from holdshort.router.decisions import Decision, Judged, Misread, judge_decision, read_decision
from holdshort.router.gathering import Asked, Gathering, Receipt
from holdshort.stream.decider import Context, Step
from holdshort.stream.errors import Halt
from holdshort.stream.marks import Mark
from holdshort.stream.records import Record

PENDING: Final = "pending"
DECISIONS: Final = "decisions."
RESUMES: Final = "resumes"

# Refusals after which asking people again would not help: the batch stays gathered, an alert says why.
HOLD: Final = frozenset({Code.TOO_LARGE, Code.UNKNOWN_AGENT, Code.INVALID_RESUME, Code.MALFORMED_INPUT})

HEADERS_BYTES: Final = 2048  # room for key and headers of the batch, which count for the limit too

_replace = msgspec.structs.replace


class Told(NamedTuple):
    """What happened, for logs and metrics: ids and codes, never content."""

    what: str
    thread: str
    generation: int | None
    team: str | None = None
    code: str | None = None
    run_id: str | None = None


class _Case(NamedTuple):
    """A decision at the moment of its judgement."""

    record: Record
    team: str
    thread: str
    context: Context


class RouterDecider:
    """stream.decider.Decider for one lane of the router."""

    state = "gathering"
    tables: Collection[str] = (PENDING,)

    def __init__(self, rules: Rules, teams: Sequence[str]) -> None:
        self.rules = rules
        self.ranks: Sequence[Collection[str]] = (tuple(DECISIONS + team for team in teams),)
        self.notes: dict[int, str] = {}
        self.counts: Counter[tuple[str, str | None]] = Counter()
        self.told: list[Told] = []

    # -- state ---------------------------------------------------------------------------------------------

    def decode(self, value: bytes) -> Gathering:
        try:
            found = gather.decode_gathering(value)
        except msgspec.MsgspecError as error:
            raise Halt("a record of gathering cannot be read") from error
        if found.v > gather.VERSION:
            raise Halt(f"a record of gathering has version {found.v}, not {gather.VERSION}: upgrade first")
        return found

    def encode(self, key: bytes, state: Gathering) -> bytes:
        return gather.encode_gathering(state)

    def mark(self, state: Gathering) -> Mark:
        return Mark(None if state.closed_at is None else state.closed_at + gather.MEMORY_MS)

    def mark_of(self, value: bytes) -> Mark:
        return self.mark(self.decode(value))

    def counted(self, partition: int, mark: Mark, times: int) -> None:
        """Nothing is counted here: what waits on whom is in `pending`."""

    # -- judgement -----------------------------------------------------------------------------------------

    def decide(self, state: Gathering | None, record: Record, context: Context) -> Step[Gathering]:
        if record.topic == PENDING:
            if record.key is None:
                return Step((), state)
            return self._follow(state, record.key.decode(), _pause(record), context)
        return self._judge(state, record, context)

    # -- pauses --------------------------------------------------------------------------------------------

    def _follow(
        self, state: Gathering | None, thread: str, pause: Pause | None, context: Context
    ) -> Step[Gathering]:
        """Bring what is asked of teams in line with the pause; doing it twice does nothing more."""
        outputs: list[Emit] = []
        after = state
        if after is not None and after.closed_at is None and not after.is_of(pause):
            outputs += [records.withdrawn(one) for one in after.asked if one.shown]
            after = gather.closed(after, context.now or context.clock)
        if pause is not None and any(one.team for one in pause.interrupts):
            if after is None or after.closed_at is not None:
                after = self._opened(after, thread, pause)
            after = self._reconsidered(after, pause)
            after, shown = _shown_as_it_should_be(after, pause)
            outputs += shown
        return Step(outputs, after)

    def _opened(self, before: Gathering | None, thread: str, pause: Pause) -> Gathering:
        asked = tuple(
            Asked(
                interrupt_id=one.id,
                team=one.team or "client",
                approval_id=records.approval_id(thread, pause.generation, one.id),
            )
            for one in pause.interrupts
        )
        return Gathering(
            v=gather.VERSION,
            thread_id=thread,
            generation=pause.generation,
            opened_at=pause.opened_at,
            digest=pause.digest,
            asked=asked,
            receipts=before.receipts if before else (),
        )

    def _reconsidered(self, gathering: Gathering, pause: Pause) -> Gathering:
        """What became of the batch that is under way, as the pause tells it (router 4)."""
        if gathering.forwarded is None or pause.status != "open":
            return gathering
        if pause.try_ is not None and pause.try_.run_id == gathering.forwarded:
            return gather.asked_again(gathering)
        if pause.refusal is None or pause.refusal.run_id != gathering.forwarded:
            return gathering
        if pause.refusal.code not in HOLD:  # of a busy thread, too: the pause is open again
            return gather.asked_again(gathering)
        return gathering if gathering.held else self._held(gathering, pause.refusal.code)

    # -- decisions -----------------------------------------------------------------------------------------

    def _judge(self, state: Gathering | None, record: Record, context: Context) -> Step[Gathering]:
        team = record.topic.removeprefix(DECISIONS)
        value = parse_object(record.value)
        if value is None or usable(value.get("threadId")) is None:
            return self._dead(state, record, DecisionCode.MALFORMED_DECISION, context)
        thread = value["threadId"]
        home = partition_of(thread.encode(), self.rules.partitions)
        if record.key != thread.encode() or home != record.partition:
            return self._dead(state, record, Code.MISKEYED_RECORD, context)
        case = _Case(record, team, thread, context)
        decision = self._read(value, record)
        if isinstance(decision, Misread):
            receipt = records.misread_receipt(decision, thread)
            return self._answered(case, state, decision.decision_id, decision.generation, receipt)
        for known in state.receipts if state else ():
            if (known.team, known.decision_id) == (team, decision.decision_id):
                again = records.as_duplicate(bytes(known.value))
                return self._answered(case, state, decision.decision_id, decision.generation, again)
        return self._decided(state, decision, case)

    def _read(self, value: dict[str, Any], record: Record) -> Decision | Misread:
        place = f"{record.topic}/{record.partition}/{record.offset}"
        if size_of(record) > self.rules.limits.input:
            return Misread(place, None, Code.TOO_LARGE)
        return read_decision(value, place, self.rules.limits)

    def _decided(self, state: Gathering | None, decision: Decision, case: "_Case") -> Step[Gathering]:
        context, pause = case.context, _pause(case.context.rows[PENDING])
        judged = judge_decision(decision, case.team, pause, state, context.now, self.rules)
        after, outputs = state, []
        for one in judged:
            if one.answer is not None and after is not None:
                asked = after.one(one.interrupt_id)
                outputs += [records.withdrawn(asked)] if asked is not None and asked.shown else []
                after = gather.answered(after, one.interrupt_id, one.answer)
        if after is not state and after is not None and pause is not None and after.complete:
            wanted = [place for place in places(pause) if place not in context.fetched]
            if wanted:
                return Step((), state, wanted)
            after, forwarded = self._forwarded(after, pause, context)
            outputs += forwarded
        receipt = records.receipt(decision, judged, after)
        if after is not None:
            kept = msgspec.Raw(records.kept_receipt(receipt))
            after = gather.remembered(after, Receipt(case.team, decision.decision_id, kept))
        step = self._answered(case, after, decision.decision_id, decision.generation, receipt, judged)
        return Step([*outputs, *step.outputs], after)

    def _forwarded(
        self, gathering: Gathering, pause: Pause, context: Context
    ) -> tuple[Gathering, list[Emit]]:
        """The batch is complete: one RunAgentInput for this pause, which the gate judges like any other."""
        rebuilt = rebuild(pause, context.fetched)
        if not rebuilt.complete and self.rules.agent(pause.agent).resume == "replay":
            return self._held(gathering, "INCOMPLETE_CONTEXT"), []
        value = run_input(pause, gathering, rebuilt)
        if len(value) > self.rules.limits.input - HEADERS_BYTES:
            return self._held(gathering, Code.TOO_LARGE), []
        headers = (JSON_TYPE, (GENERATION, str(pause.generation).encode()))
        self._tell("forwarded", gathering, run_id=gathering.run_id)
        emit = Emit(RESUMES, gathering.thread_id.encode(), value, headers)
        return _replace(gathering, forwarded=gathering.run_id), [emit]

    def _held(self, gathering: Gathering, why: str) -> Gathering:
        """Complete, but not sent: asking people again would not help; an alert says why."""
        self._tell("held", gathering, code=why)
        return _replace(gathering, held=why)

    def _answered(
        self,
        case: "_Case",
        state: Gathering | None,
        decision_id: str,
        generation: int | None,
        receipt: bytes,
        judged: Sequence[Judged] = (),
    ) -> Step[Gathering]:
        """The receipt of a decision, and its record in the audit."""
        said = records.verdict_of(receipt)
        told: list[tuple[str, str | None]] = [(one.verdict, one.code) for one in judged] or [said]
        for verdict, code in told:
            self.counts[verdict, code] += 1
            self.told.append(Told("decided", case.thread, generation, case.team, code))
        members = {
            "at": case.context.now,
            "service": "router",
            "runId": state.forwarded if state else None,
            "generation": generation,
            "verdict": said[0],
            "code": said[1],
            "team": case.team,
            "decisionId": decision_id,
            "entries": [
                {
                    "interruptId": one.interrupt_id,
                    "verdict": one.verdict,
                    "code": one.code,
                    "digest": one.answer.digest if one.answer else None,
                    "decidedBy": one.answer.decided_by if one.answer else None,
                }
                for one in judged
            ],
            "source": _source(case.record),
        }
        audit = Chain(self.notes).record(case.context.partition, case.thread, members)
        key = case.thread.encode()
        return Step((Emit(f"receipts.{case.team}", key, receipt, (JSON_TYPE,)), audit), state)

    def _dead(
        self, state: Gathering | None, record: Record, code: Code | DecisionCode, context: Context
    ) -> Step[Gathering]:
        thread = (record.key or b"").decode(errors="replace")
        self.counts["unreadable", code] += 1
        self.told.append(Told("dead", thread, None, None, code))
        limit = self.rules.limits.dead_letter
        emit = dead_letter(record, code, code.sentence, service="router", limit=limit)
        members = {
            "at": context.now,
            "service": "router",
            "verdict": "unreadable",
            "code": code,
            "source": _source(record),
        }
        return Step((emit, Chain(self.notes).record(context.partition, thread, members)), state)

    def _tell(
        self, what: str, gathering: Gathering, *, code: str | None = None, run_id: str | None = None
    ) -> None:
        told = Told(what, gathering.thread_id, gathering.generation, None, code, run_id)
        self.told.append(told)

    # -- deadlines -----------------------------------------------------------------------------------------

    def awaits(self, state: Gathering) -> Collection[str]:
        return [topic for rank in self.ranks for topic in rank]

    def fire(self, key: bytes, state: Gathering, context: Context) -> Step[Gathering]:
        """The memory of a pause that is over ends."""
        return Step((), None)

    # -- ends: the router asks for none --------------------------------------------------------------------

    def wants_end(self, state: Gathering) -> str | None:
        return None

    def with_end(self, state: Gathering, end: int) -> Gathering:
        return state


def _pause(row: Record | None) -> Pause | None:
    """The pause of a row of `pending`."""
    if row is None or row.value is None:
        return None
    try:
        return decode_pending(row.value).pause
    except UpgradeFirstError as error:
        raise Halt(str(error)) from error


def _source(record: Record) -> dict[str, Any]:
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset}


def _shown_as_it_should_be(gathering: Gathering, pause: Pause) -> tuple[Gathering, list[Emit]]:
    """While the pause is open, unanswered questions stand in the teams' topics; otherwise none does."""
    outputs: list[Emit] = []
    asked = []
    for one in gathering.asked:
        wanted = pause.status == "open" and gathering.forwarded is None and one.answer is None
        if wanted and not one.shown:
            outputs.append(records.approval(gathering, one, pause))
        elif one.shown and not wanted:
            outputs.append(records.withdrawn(one))
        asked.append(one if one.shown == wanted else _replace(one, shown=wanted))
    if not outputs:
        return gathering, []
    return _replace(gathering, asked=tuple(asked)), outputs
