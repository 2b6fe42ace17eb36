"""Agent events: the rows of contract section 2.

An event is first placed: which run is it of, as seen from the thread (places.py)? Then the rows of that place
judge it. What a run says is kept as far as people or a later run need it (kept.py).
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdshort.contract import shown
from holdshort.contract.changes import Change, PauseIs, RunIs, RunRevived, evolve
from holdshort.contract.codes import Code
from holdshort.contract.kept import attempted, kept
from holdshort.contract.keys import partition_of
from holdshort.contract.messages import (
    HEARTBEAT,
    LEGACY_INTERRUPT,
    Emit,
    Record,
    dead_letter,
    legible_event,
    parse_object,
    size_of,
    usable,
)
from holdshort.contract.outcomes import Malformed, Paused, read_outcome, translated
from holdshort.contract.places import Case, Place, echoed, named_run, place_of
from holdshort.contract.rules import Rules, World
from holdshort.contract.state import (
    Outcome,
    Pause,
    Run,
    ThreadState,
)
from holdshort.contract.transitions import context_of, end_pause, end_run, open_pause, reopen
from holdshort.contract.verdicts import IGNORED, Kind, Verdict, about

LEGACY_FRAME: Final = 64  # what the standard outcome adds to a legacy pause
OVER_LIMIT: Final = "the event is over the limit"

_replace = msgspec.structs.replace


def judge_event(
    state: ThreadState, record: Record, agent: str, now: int, world: World, rules: Rules
) -> Verdict:
    """The verdict on one record of `agent-events.<agent>`."""
    case = read_event(state, record, agent, now, world, rules)
    if isinstance(case, Verdict):
        return case
    place, run = place_of(case)
    if run is None:
        return _ROWS[place](case)
    return _current(case, run) if state.run is run else _revived(case, run)


def read_event(
    state: ThreadState, record: Record, agent: str, now: int, world: World, rules: Rules
) -> Case | Verdict:
    """The event, ready to be placed; rows *unreadable* and *miskeyed* if it cannot be."""
    event = parse_object(record.value) or legible_event(record.value)
    if event is None or not isinstance(type_ := event.get("type"), str):
        return _unreadable(record, rules, Code.MALFORMED_EVENT, "not a JSON object with a string type")
    thread = _thread_of(record, event, rules)
    if thread is None:
        return _unreadable(
            record, rules, Code.MISKEYED_RECORD, "the key or the partition is not the thread's"
        )
    too_large = size_of(record) > rules.limits.event
    habits = rules.agent(agent)
    return Case(state, record, event, type_, thread, agent, habits, now, world, rules, too_large)


def _unreadable(record: Record, rules: Rules, code: Code, detail: str) -> Verdict:
    emit = dead_letter(record, code, detail, service="gatekeeper", limit=rules.limits.dead_letter)
    return Verdict(Kind.UNREADABLE, (emit,), code=code)


def _thread_of(record: Record, event: dict[str, Any], rules: Rules) -> str | None:
    """The thread of a record: its key, if the value and the partition agree (row *miskeyed*)."""
    if record.key is None:
        return None
    try:
        key = record.key.decode()
    except UnicodeDecodeError:
        return None
    named = event.get("threadId")
    if not usable(key) or (named != key and not _blank(named)):
        return None
    return key if partition_of(record.key, rules.partitions) == record.partition else None


def _blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and usable(value) is None)


# -- the rows of a run that is not current ------------------------------------------------------------------


def _past(case: Case) -> Verdict:
    """Row *echo of the past*: nothing is kept but that a call has had its result."""
    pause = case.state.pause
    if pause is None or pause.agent != case.agent:
        return IGNORED
    return _ignored(pause, attempted(pause, case.type, case.event))


def _unknown(case: Case) -> Verdict:
    """Rows *foreign* and *unknown run*."""
    owners = {owned.agent for owned in (case.state.run, case.state.pause) if owned is not None}
    if owners - {case.agent}:
        return _violated(case, Code.FOREIGN_RUN, "the thread has a run or a pause of another agent")
    if case.type.startswith("RUN_") and (echoed(case) or named_run(case)):
        return _violated(case, Code.STALE_RUN, "no run of this name is known here")
    return IGNORED


def _violated(case: Case, code: Code, detail: str) -> Verdict:
    return about(named_run(case), Verdict(Kind.VIOLATED, (case.dead(code, detail),), code=code), case.rules)


def _interrupted(case: Case) -> Verdict:
    """Rows *said again*, *said differently* and *interrupted run runs on*."""
    pause = case.state.pause
    assert pause is not None
    if case.type == "RUN_FINISHED":
        read = _outcome(case)
        if isinstance(read, Malformed):
            return Verdict(Kind.IGNORED, (case.dead(read.code, read.detail),), code=read.code)
        if isinstance(read, Paused) and pause.status == "open":
            return _said_again(case, pause, read)
    return _ignored(pause, _runs_on(case, pause))


def _outcome(case: Case) -> Outcome | Paused | Malformed:
    return read_outcome(case.event, case.value, case.rules.limits, too_large=case.too_large)


def _said_again(case: Case, pause: Pause, read: Paused) -> Verdict:
    if read.digest != pause.digest:
        return _said_differently(case, pause, read)
    if pause.sealed:
        return IGNORED
    event = shown.opened(case.record, pause, case.thread)
    return Verdict(Kind.IGNORED, shown.framed(case.thread, pause.run_id, False, event))


def _said_differently(case: Case, pause: Pause, read: Paused) -> Verdict:
    """What people saw is no longer what is asked: another pause of the same run."""
    superseded = end_pause(case.state, "superseded", case.now, case.rules)
    after = evolve(case.state, (superseded,))
    return _opened(case, after, _run_of(pause), read, (superseded,), superseded=pause.generation)


def _run_of(pause: Pause) -> Run:
    """The interrupted run as far as its pause remembers it; clients saw it end."""
    return Run(
        run_id=pause.run_id,
        agent=pause.agent,
        admission=pause.admission,
        admitted_at=pause.opened_at,
        principal=pause.principal,
        messages=pause.context.messages,
        state=pause.context.state,
        messages_changed=not pause.context.complete,
        state_changed=not pause.context.complete,
        calls=pause.calls,
    )


def _runs_on(case: Case, pause: Pause) -> Pause:
    """What the interrupted run still says is kept in the pause, and shown to nobody."""
    pause = attempted(pause, case.type, case.event)
    before = _run_of(pause)
    after = kept(before, case.type, case.event, case.record, case.too_large, case.rules.limits)
    if after is before:
        return pause
    return _replace(pause, calls=after.calls, context=context_of(after))


def _ignored(before: Pause, after: Pause) -> Verdict:
    return IGNORED if after is before else Verdict(Kind.IGNORED, changes=(PauseIs(after),))


def _outside(case: Case) -> Verdict:
    """A run that nobody admitted begins with its RUN_STARTED, or ends without one."""
    if case.type not in ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"):
        return IGNORED
    run_id = named_run(case)
    assert run_id is not None
    if max(len(run_id.encode()), len(case.thread.encode())) > case.rules.limits.id:
        return _violated(case, Code.TOO_LARGE, "the thread or the run id is over the limit")
    began = max(case.now, case.world.clock)
    return _current(case, Run(run_id=run_id, agent=case.agent, admission=None, admitted_at=began))


_ROWS: Final[dict[Place, Callable[[Case], Verdict]]] = {
    Place.INTERRUPTED: _interrupted,
    Place.PAST: _past,
    Place.OUTSIDE: _outside,
    Place.UNKNOWN: _unknown,
}


# -- the rows of the current run ----------------------------------------------------------------------------


def _revived(case: Case, run: Run) -> Verdict:
    """The lost run speaks after all, and nothing newer was admitted: it is in flight again."""
    revived = RunRevived(run)
    verdict = _current(_replace(case, state=evolve(case.state, (revived,))), run)
    return _replace(verdict, changes=(revived, *verdict.changes))


def _current(case: Case, run: Run) -> Verdict:
    """The rows from *started* to *anything else*."""
    row = _CURRENT_ROWS.get(case.type, _anything_else)
    return row(case, _heard(case, run))


def _heard(case: Case, run: Run) -> Run:
    """The lease is renewed by events, but written at most every quarter of it (contract 6)."""
    if run.seen_at is not None and case.now - run.seen_at < case.rules.run_lease_ms // 4:
        return run
    return _replace(run, seen_at=case.now)


def _run_is(case: Case, run: Run) -> tuple[Change, ...]:
    return () if run is case.state.run else (RunIs(run),)


def _in_its_place(case: Case, run: Run, ours: Emit) -> tuple[Emit, ...]:
    """The agent's lifecycle event; ours, and the agent's as a dead letter, if it is over the limit."""
    if not case.too_large:
        return (shown.passed(case.record, run),)
    return (case.dead(Code.TOO_LARGE, OVER_LIMIT), ours)


def _ended_emits(case: Case, run: Run, *emits: Emit) -> tuple[Emit, ...]:
    """Emits of which the last is the first event shown of the run, if clients do not see it as running."""
    return (*emits[:-1], *shown.framed(case.thread, run.run_id, run.shown, emits[-1]))


def _run_started(case: Case, run: Run) -> Verdict:
    """Row *started*; where a RUN_STARTED is shown already, the agent's own is not."""
    changes = _run_is(case, _replace(run, started=True, shown=True))
    if run.shown:
        return Verdict(Kind.IGNORED, changes=changes)
    emits = _in_its_place(case, run, shown.started(case.thread, run.run_id))
    return Verdict(Kind.PASSED, emits, changes)


def _run_finished(case: Case, run: Run) -> Verdict:
    """Rows *malformed outcome*, *interrupted* and *finished*."""
    read = _outcome(case)
    if read == "success" and (run.legacy or run.legacy_too_large):
        over = case.too_large or run.legacy_too_large
        read = Malformed(Code.TOO_LARGE, OVER_LIMIT) if over else translated(run.legacy)
    if isinstance(read, Malformed):
        return _malformed_outcome(case, run, read)
    if isinstance(read, Paused):
        settled = _settled(case, run, "interrupt")
        changes = (*_run_over(case, run, "interrupt"), *settled)
        after = evolve(case.state, changes)
        return _opened(case, after, run, read, changes, settled=run.answers if settled else None)
    return _finished(case, run, read)


def _run_over(case: Case, run: Run, outcome: Outcome) -> tuple[Change, ...]:
    return (end_run(case.state, run, outcome, case.now, case.rules),)


def _settled(case: Case, run: Run, outcome: Outcome) -> tuple[Change, ...]:
    """The pause that the run answered is closed by how the run ended."""
    if case.state.pause is None or run.answers != case.state.pause.generation:
        return ()
    return (end_pause(case.state, "settled", case.now, case.rules, by=run, outcome=outcome),)


def _finished(case: Case, run: Run, outcome: Outcome) -> Verdict:
    settled = _settled(case, run, outcome)
    emits = _in_its_place(case, run, shown.finished(case.thread, run.run_id))
    return Verdict(
        Kind.SETTLED if settled else Kind.PASSED,
        _ended_emits(case, run, *emits),
        (*_run_over(case, run, outcome), *settled),
        settled=run.answers if settled else None,
    )


def _malformed_outcome(case: Case, run: Run, read: Malformed) -> Verdict:
    """The run has ended and its answer was used; clients get RUN_ERROR, and forget what was answered."""
    settled = _settled(case, run, "invalid")
    error = shown.failed(case.thread, run.run_id, read.code)
    emits = _ended_emits(case, run, case.dead(read.code, read.detail), error)
    if settled:
        emits += shown.closing(case.thread, case.record, case.state.generation, "settled")
    changes = (*_run_over(case, run, "invalid"), *settled)
    return Verdict(Kind.VIOLATED, emits, changes, read.code, settled=run.answers if settled else None)


def _opened(
    case: Case,
    after: ThreadState,
    run: Run,
    read: Paused,
    changes: tuple[Change, ...],
    *,
    settled: int | None = None,
    superseded: int | None = None,
) -> Verdict:
    """Row *interrupted*: a new pause upon the state `after` the old one went; stored before it is shown."""
    pause = open_pause(after, run, read, case.now, case.world, case.rules, follows=case.state.pause)
    if pause.sealed:
        code: Code | None = Code.TOO_MANY_PAUSES
        error = shown.failed(case.thread, run.run_id, Code.TOO_MANY_PAUSES)
        emits = shown.framed(case.thread, run.run_id, run.shown, error)
        emits += shown.closing(case.thread, case.record, pause.generation, "sealed")
    else:
        code = None
        event = shown.opened(case.record, pause, case.thread)
        emits = shown.framed(case.thread, run.run_id, run.shown, event)
    changes = (*changes, PauseIs(pause))
    return Verdict(Kind.OPENED, emits, changes, code, settled=settled, superseded=superseded)


def _run_error(case: Case, run: Run) -> Verdict:
    """Row *failed*: a pause it answered is open again, its answer perhaps used."""
    emits = _in_its_place(case, run, shown.failed(case.thread, run.run_id, Code.TOO_LARGE))
    reopened = reopen(case.state, run, "failed", case.now)
    return Verdict(
        Kind.REOPENED if reopened else Kind.PASSED,
        _ended_emits(case, run, *emits),
        (*_run_over(case, run, "error"), *reopened),
    )


def _custom(case: Case, run: Run) -> Verdict:
    """Row *heartbeat*; legacy pauses, kept for translation or marked as not gated."""
    name = case.event.get("name")
    if name == HEARTBEAT:
        return Verdict(Kind.IGNORED, changes=_run_is(case, run))
    if name == LEGACY_INTERRUPT:
        run = _legacy(case, run) if case.habits.legacy_interrupts else _replace(run, not_gated=True)
    return _anything_else(case, run)


def _legacy(case: Case, run: Run) -> Run:
    """Keep a legacy pause until the run ends; what cannot be kept must not fail open."""
    try:
        members = msgspec.json.decode(case.value, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:  # JSON, but not strictly
        return _replace(run, legacy=(), legacy_too_large=True)
    legacy = (*run.legacy, members.get("value", msgspec.Raw(b"null")).copy())
    limits = case.rules.limits
    size = sum(len(bytes(raw)) + LEGACY_FRAME for raw in legacy)
    illegible = members.keys() - case.event.keys()
    if len(legacy) > limits.interrupts or size > limits.descriptors or illegible:
        return _replace(run, legacy=(), legacy_too_large=True)
    return _replace(run, legacy=legacy)


def _anything_else(case: Case, run: Run) -> Verdict:
    """Rows *too large* and *anything else*."""
    after = kept(run, case.type, case.event, case.record, case.too_large, case.rules.limits)
    if case.too_large:
        dead = case.dead(Code.TOO_LARGE, OVER_LIMIT)
        return Verdict(Kind.VIOLATED, (dead,), _run_is(case, after) + _attempts(case), Code.TOO_LARGE)
    event = shown.passed(case.record, run)
    if run.shown:
        return Verdict(Kind.PASSED, (event,), _run_is(case, after) + _attempts(case))
    emits = shown.framed(case.thread, run.run_id, False, event)
    changes = _run_is(case, _replace(after, shown=True))
    return Verdict(Kind.PASSED, emits, changes + _attempts(case))


def _attempts(case: Case) -> tuple[Change, ...]:
    pause = case.state.pause
    if pause is None:
        return ()
    after = attempted(pause, case.type, case.event)
    return () if after is pause else (PauseIs(after),)


_CURRENT_ROWS: Final[dict[str, Callable[[Case, Run], Verdict]]] = {
    "RUN_STARTED": _run_started,
    "RUN_FINISHED": _run_finished,
    "RUN_ERROR": _run_error,
    "CUSTOM": _custom,
}
