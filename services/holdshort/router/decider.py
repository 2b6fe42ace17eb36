"""The router on the engine: pauses fan out to teams, decisions gather, one whole batch goes back. Pure.

Every turn ends alike (`_end`): what is complete is forwarded, teams are shown what is open, the earliest
deadline is noted.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from holdshort.contract.audit import Chain
from holdshort.contract.codes import Code
from holdshort.contract.keys import partition_of
from holdshort.contract.messages import (
    JSON_TYPE,
    PRINCIPAL,
    Emit,
    dead_letter,
    doubled_names,
    parse_object,
    size_of,
    text_header,
    usable,
)
from holdshort.contract.pending import UpgradeFirstError, decode_pending
from holdshort.contract.resume import Problem
from holdshort.contract.rules import Rules
from holdshort.contract.state import Pause, ThreadState
from holdshort.router import deadlines, fanout, outcomes, records
from holdshort.router import gathering as gather
from holdshort.router.codes import DecisionCode
from holdshort.router.context import places
from holdshort.router.decisions import Decision, Judged, Misread, read_decision
from holdshort.router.facts import Facts
from holdshort.router.forwarding import INCOMPLETE, forward
from holdshort.router.gathering import Gathering, Receipt
from holdshort.router.judging import judge_decision
from holdshort.router.turn import Turn
from holdshort.stream.decider import Context, Step
from holdshort.stream.errors import Halt
from holdshort.stream.marks import Mark
from holdshort.stream.records import Record

PENDING: Final = "pending"
DECISIONS: Final = "decisions."
HELD: Final = (INCOMPLETE, Code.INTERRUPT_EXPIRED, *sorted(outcomes.HOLD))  # why a batch may be held

_replace = msgspec.structs.replace


class Told(NamedTuple):
    """What happened, for the log: ids and codes, never content."""

    what: str
    thread: str
    generation: int | None
    team: str | None = None
    code: str | None = None
    run_id: str | None = None


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
        self.facts = Facts()
        self.batches: Counter[tuple[str, str]] = Counter()
        self._teams = frozenset(teams)
        self._limited = {name for name, team in rules.teams.items() if team.max_open is not None}
        self._shown: Counter[tuple[int, str]] = Counter()

    # -- state ---------------------------------------------------------------------------------------------

    def decode(self, value: bytes) -> Gathering:
        try:
            found = gather.decode_gathering(value)
        except msgspec.MsgspecError as error:
            raise Halt("a record of gathering cannot be read") from error
        _check(found.v)
        return found

    def encode(self, key: bytes, state: Gathering) -> bytes:
        return gather.encode_gathering(state)

    def mark(self, state: Gathering) -> Mark:
        return self._mark(state)

    def mark_of(self, value: bytes) -> Mark:
        try:
            head = gather.decode_head(value)
        except msgspec.MsgspecError as error:
            raise Halt("a record of gathering cannot be read") from error
        _check(head.v)
        return self._mark(head)

    def _mark(self, state: Gathering | gather.Head) -> Mark:
        """While its pause is there, it counts as a batch, and for the teams that take only so many."""
        if state.closed_at is not None:
            return Mark(state.due)
        stage = "held" if state.held else "forwarded" if state.forwarded else "gathering"
        limited = sorted(one.team for one in state.asked if one.shown and one.team in self._limited)
        return Mark(state.due, (stage, state.held or "", *limited))

    def counted(self, partition: int, mark: Mark, times: int) -> None:
        if mark.tags:
            stage, held, *teams = mark.tags
            self.batches[stage, held] += times
            for team in teams:
                self._shown[partition, team] += times

    def _room(self, partition: int, team: str) -> tuple[int, int | None]:
        """A team's share of this partition: no lane knows the others' questions."""
        most = self.rules.team(team).max_open
        share = None if most is None else max(1, -(-most // self.rules.partitions))
        return self._shown[partition, team], share

    # -- judgement -----------------------------------------------------------------------------------------

    def decide(self, state: Gathering | None, record: Record, context: Context) -> Step[Gathering]:
        if record.topic != PENDING:
            return self._judge(state, record, context)
        if record.key is None:
            return Step((), state)
        return self._follow(state, record.key.decode(), _thread(record), context, _source(record))

    # -- pauses --------------------------------------------------------------------------------------------

    def _follow(
        self,
        state: Gathering | None,
        thread: str,
        row: ThreadState | None,
        context: Context,
        source: dict[str, Any],
        *,
        firing: bool = False,
    ) -> Step[Gathering]:
        """Bring what is asked of teams in line with the pause; doing it twice does nothing more."""
        pause = row.pause if row is not None else None
        now = context.now or context.clock
        outputs: list[Emit] = []
        after = state
        if after is not None and after.closed_at is None and not after.is_of(pause):
            after = self._over(after, row, now, outputs)
        if row is None:  # forgotten, or older than what is remembered
            return Step(outputs, None)
        if pause is None:
            return Step(outputs, after)
        opening = after is None or after.closed_at is not None
        if after is None or opening:
            after = fanout.opened(thread, pause, after.receipts if after is not None else (), self.rules)
        turn = Turn(
            gathering=after,
            before=None if opening else after,
            pause=pause,
            rules=self.rules,
            now=now,
            clock=context.clock,
            fetched=context.fetched,
            outputs=outputs,
        )
        if opening:
            fanout.settle_in(turn, lambda team: self._room(context.partition, team))
        fanout.learn_routes(turn)
        outcomes.follow(turn)
        if firing:
            deadlines.fire(turn)
        if not self._end(turn):
            return Step((), state, turn.wanted)
        outputs += self._done(turn, context, source)
        return Step(outputs, turn.gathering)

    def _over(
        self, gathering: Gathering, row: ThreadState | None, now: int, outputs: list[Emit]
    ) -> Gathering | None:
        """The pause is over: questions are withdrawn, and whose answer did not count is told so.

        Where nobody has decided anything there is nothing to remember.
        """
        outputs += fanout.withdraw(gathering)
        why = outcomes.why_over(gathering, row)
        after = gather.closed(gathering, now)
        if why is not None:
            for asked in gathering.asked:
                outputs += [records.correction(after, asked, answer, why) for answer in asked.given]
        return after if after.receipts or any(one.answer for one in after.asked) else None

    def _end(self, turn: Turn) -> bool:
        """What every turn ends with; False if records must be read first."""
        forward(turn)
        if turn.wanted:
            return False
        fanout.show(turn)
        due = deadlines.due(turn.gathering, self.rules)
        if due != turn.gathering.due:
            turn.gathering = _replace(turn.gathering, due=due)
        return True

    def _done(self, turn: Turn, context: Context, source: dict[str, Any]) -> list[Emit]:
        """The audit of what the router has done by itself."""
        gathering = turn.gathering
        audit = []
        for one in turn.done:
            run_id = one.run_id or gathering.forwarded
            self.facts.deeds[one.deed, one.team or ""] += 1
            if one.deed == "forwarded":
                self.facts.forwarded(turn.pause, context.now or context.clock)
            told = Told(one.deed, gathering.thread_id, gathering.generation, one.team, one.code, one.run_id)
            self.told.append(told)
            members = {
                "at": context.now or context.clock,
                "service": "router",
                "runId": run_id,
                "generation": gathering.generation,
                "verdict": one.deed,
                "code": one.code,
                **({"team": one.team} if one.team is not None else {}),
                **({"interruptId": one.interrupt_id} if one.interrupt_id is not None else {}),
                "digests": _digests(gathering, sent=one.deed == "forwarded"),
                "source": source,
            }
            audit.append(self._chained(context.partition, gathering.thread_id, members))
        return audit

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
            outputs = self._receipt(case, state, decision.decision_id, decision.generation, receipt)
            return Step(outputs, state)
        for known in state.receipts if state else ():
            if (known.team, known.decision_id) == (team, decision.decision_id):
                otherwise = known.digest is not None and known.digest != decision.digest
                again = records.as_duplicate(bytes(known.value), says_otherwise=otherwise)
                outputs = self._receipt(case, state, decision.decision_id, decision.generation, again)
                return Step(outputs, state)
        return self._decided(state, decision, case)

    def _read(self, value: dict[str, Any], record: Record) -> Decision | Misread:
        place = f"{record.topic}/{record.partition}/{record.offset}"
        if size_of(record) > self.rules.limits.input:
            return Misread(place, None, Code.TOO_LARGE)
        if doubled_names(record.value or b"", value):
            problem = Problem(Code.INVALID_RESUME, message="a name stands twice")
            return Misread(place, None, DecisionCode.MALFORMED_DECISION, (problem,))
        trusted = record.topic in self.rules.trust_principal
        principal = text_header(record.headers, PRINCIPAL) if trusted else None
        return read_decision(value, place, self.rules.limits, principal)

    def _decided(self, state: Gathering | None, decision: Decision, case: "_Case") -> Step[Gathering]:
        context, row = case.context, _thread(case.context.rows[PENDING])
        pause = row.pause if row is not None else None
        if wanted := _foreseen(state, pause, decision, context):
            return Step((), state, wanted)
        if state is not None and pause is not None and state.is_of(pause):
            turn = Turn(
                gathering=state,
                before=state,
                pause=pause,
                rules=self.rules,
                now=context.now,
                clock=context.clock,
                fetched=context.fetched,
            )
            fanout.learn_routes(turn)
            judged, after = judge_decision(
                decision, case.team, pause, turn.gathering, context.now, self.rules
            )
            assert after is not None
            if after is not state:
                turn.gathering = after
                _overrule(turn, judged)
                if not self._end(turn):
                    return Step((), state, turn.wanted)
            return self._answered(turn.gathering, decision, judged, case, turn)
        judged, _ = judge_decision(decision, case.team, pause, state, context.now, self.rules)
        return self._answered(state, decision, judged, case, None)

    def _answered(
        self,
        after: Gathering | None,
        decision: Decision,
        judged: Sequence[Judged],
        case: "_Case",
        turn: Turn | None,
    ) -> Step[Gathering]:
        receipt = records.receipt(decision, judged, after)
        outputs = self._receipt(case, after, decision.decision_id, decision.generation, receipt, judged)
        if turn is not None:
            self.facts.answered(turn.pause, judged, case.context.now)
            outputs += [*turn.outputs, *self._done(turn, case.context, _source(case.record))]
        if after is not None:
            kept = msgspec.Raw(records.kept_receipt(receipt))
            counted = any(one.answer is not None for one in judged)
            after = gather.remembered(
                after, Receipt(case.team, decision.decision_id, kept, decision.digest, counted)
            )
        return Step(outputs, after)

    def _receipt(
        self,
        case: "_Case",
        state: Gathering | None,
        decision_id: str,
        generation: int | None,
        receipt: bytes,
        judged: Sequence[Judged] = (),
    ) -> list[Emit]:
        """The receipt of a decision, and its record in the audit."""
        said = records.verdict_of(receipt)
        told: list[tuple[str, str | None]] = [(one.verdict, one.code) for one in judged] or [said]
        for verdict, code in told:
            self.counts[verdict, code] += 1
            self.facts.judged[case.team, verdict, code] += 1
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
            "entries": [_audited(one) for one in judged],
            **({"digests": _digests(state)} if state is not None else {}),
            "source": _source(case.record),
        }
        audit = self._chained(case.context.partition, case.thread, members)
        key = case.thread.encode()
        return [Emit(f"receipts.{case.team}", key, receipt, (JSON_TYPE,)), audit]

    def _dead(
        self, state: Gathering | None, record: Record, code: Code | DecisionCode, context: Context
    ) -> Step[Gathering]:
        thread = (record.key or b"").decode(errors="replace")
        self.counts["unreadable", code] += 1
        self.facts.dead[code] += 1
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
        return Step((emit, self._chained(context.partition, thread, members)), state)

    def _chained(self, partition: int, thread: str, members: dict[str, Any]) -> Emit:
        return Chain(self.notes, self.rules.audit_key).record(partition, thread, members)

    # -- deadlines -----------------------------------------------------------------------------------------

    def awaits(self, state: Gathering) -> Collection[str]:
        """A deadline waits for what the teams that are asked may have decided; memory for every team."""
        teams = self._teams if state.closed_at is not None else {one.team for one in state.asked}
        return [DECISIONS + team for team in teams if team in self._teams]

    def fire(self, key: bytes, state: Gathering, context: Context) -> Step[Gathering]:
        """A deadline of an open pause, or the end of the memory of one that is over."""
        if state.closed_at is not None:
            return Step((), None)
        row = _thread(context.rows[PENDING])
        source = {"topic": "", "partition": context.partition, "offset": -1}
        return self._follow(state, key.decode(), row, context, source, firing=True)

    # -- ends: the router asks for none --------------------------------------------------------------------

    def wants_end(self, state: Gathering) -> str | None:
        return None

    def with_end(self, state: Gathering, end: int) -> Gathering:
        return state


class _Case(NamedTuple):
    """A decision at the moment of its judgement."""

    record: Record
    team: str
    thread: str
    context: Context


def _check(version: int) -> None:
    if version > gather.VERSION:
        raise Halt(f"a record of gathering has version {version}, not {gather.VERSION}: upgrade first")


def _thread(row: Record | None) -> ThreadState | None:
    """The thread of a row of `pending`."""
    if row is None or row.value is None:
        return None
    try:
        return decode_pending(row.value)
    except UpgradeFirstError as error:
        raise Halt(str(error)) from error


def _foreseen(
    state: Gathering | None, pause: Pause | None, decision: Decision, context: Context
) -> list[Any]:
    """What the batch will need if this decision completes it, so that it is judged only once."""
    if state is None or pause is None or state.settled or not state.is_of(pause):
        return []
    missing = {one.interrupt_id for one in state.asked if one.answer is None}
    if decision.action == "claim" or not missing <= {entry.interrupt_id for entry in decision.entries}:
        return []
    return [place for place in places(pause) if place not in context.fetched]


def _overrule(turn: Turn, judged: Sequence[Judged]) -> None:
    """Whoever voted otherwise than the quorum, or a denial, has decided is told so."""
    assert turn.before is not None
    for one in judged:
        if one.asked is None or one.asked.answer is None:
            continue
        before = turn.before.one(one.interrupt_id)
        for vote in before.votes if before is not None else ():
            if vote not in one.asked.votes:
                turn.tell(one.asked, vote, DecisionCode.ALREADY_DECIDED)


def _digests(gathering: Gathering, *, sent: bool = False) -> dict[str, Any]:
    """Of the question's descriptors; of the batch, where it is sent: the gate writes the same two."""
    return {"descriptors": gathering.digest, **({"batch": gather.batch_digest(gathering)} if sent else {})}


def _audited(judged: Judged) -> dict[str, Any]:
    return {
        "interruptId": judged.interrupt_id,
        "verdict": judged.verdict,
        "code": judged.code,
        "digest": judged.answer.digest if judged.answer else None,
        "decidedBy": judged.answer.decided_by if judged.answer else None,
    }


def _source(record: Record) -> dict[str, Any]:
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset}
