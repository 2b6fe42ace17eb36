"""Whose event it is, as seen from the thread (contract 2): each is placed before the rows judge it."""

from enum import Enum
from typing import Any

import msgspec

from holdshort.contract.codes import Code
from holdshort.contract.messages import ADMISSION, RUN, Emit, Record, dead_letter, header, text_header, usable
from holdshort.contract.rules import AgentRules, Rules, World
from holdshort.contract.state import EndedRun, GonePause, Run, ThreadState, pointer_of


class Place(Enum):
    """Whose event it is, as seen from the thread."""

    CURRENT = "of the run in flight, or of the lost run that speaks after all"
    INTERRUPTED = "of the run whose pause is there"
    PAST = "of a run that is over"
    OUTSIDE = "of a run that nobody admitted, in an idle thread"
    UNKNOWN = "of none of these"


class Case(msgspec.Struct, frozen=True):
    """One event at the moment of its judgement."""

    state: ThreadState
    record: Record
    event: dict[str, Any]
    type: str
    thread: str
    agent: str
    habits: AgentRules
    now: int
    world: World
    rules: Rules
    too_large: bool

    @property
    def value(self) -> bytes:
        return self.record.value or b""

    def dead(self, code: Code, detail: str) -> Emit:
        limit = self.rules.limits.dead_letter
        return dead_letter(self.record, code, detail, service="gatekeeper", limit=limit)


def place_of(case: Case) -> tuple[Place, Run | None]:
    """Place an event; a run comes with CURRENT, and only then."""
    run = case.state.run or _revivable(case.state)
    if run is not None and run.agent != case.agent:
        run = None
    if (echo := echoed(case)) is not None:
        return _place_by_admission(case, run, echo)
    run_id = named_run(case)
    if run_id is None:
        return _place_nameless(run if case.state.run else None)
    return _place_by_id(case, run, run_id)


def echoed(case: Case) -> bytes | None:
    """The admission that the event echoes, legible or not; None if there is none."""
    echo = header(case.record.headers, ADMISSION)
    return echo if echo and not echo.isspace() else None


def named_run(case: Case) -> str | None:
    """The run id that the event names; an agent with run ids of its own names none that we know."""
    if case.habits.foreign_run_ids:
        return None
    return text_header(case.record.headers, RUN) or usable(case.event.get("runId"))


def _revivable(state: ThreadState) -> Run | None:
    """The lost run that may still come back: the newest, and its question still stands as it left it."""
    lost = state.ended[0].lost if state.run is None and state.ended else None
    if lost is None:
        return None
    open_generation = state.pause.generation if state.pause else None
    return lost if lost.answers == open_generation else None


def _place_by_admission(case: Case, run: Run | None, echo: bytes) -> tuple[Place, Run | None]:
    admission = pointer_of(echo)
    if admission is None:
        return Place.UNKNOWN, None
    if run is not None and run.admission == admission:
        return Place.CURRENT, run
    pause = case.state.pause
    if pause is not None and pause.agent == case.agent and pause.admission == admission:
        return Place.INTERRUPTED, None
    if any(one.agent == case.agent and one.admission == admission for one in _past_ones(case.state)):
        return Place.PAST, None
    return Place.UNKNOWN, None


def _place_nameless(run: Run | None) -> tuple[Place, Run | None]:
    if run is None:
        return Place.UNKNOWN, None
    return (Place.CURRENT, run) if run.started else (Place.PAST, None)


def _place_by_id(case: Case, run: Run | None, run_id: str) -> tuple[Place, Run | None]:
    """Run ids are reused: until its RUN_STARTED is read, an id means the earlier run that had it too."""
    if run is not None and run.run_id != run_id:
        run = None
    if run is not None and (run.started or case.type == "RUN_STARTED"):
        return Place.CURRENT, run
    if (earlier := _earlier(case, run_id)) is not None:
        return earlier, None
    if run is not None:
        return Place.CURRENT, run
    idle = case.state.run is None and case.state.pause is None
    return (Place.OUTSIDE if idle and case.rules.outside_runs == "pass" else Place.UNKNOWN), None


def _earlier(case: Case, run_id: str) -> Place | None:
    state, agent = case.state, case.agent
    if state.pause is not None and state.pause.agent == agent and state.pause.run_id == run_id:
        return Place.INTERRUPTED
    past = _past_ones(state)[1:] if _revivable(state) else _past_ones(state)
    return Place.PAST if any(one.agent == agent and one.run_id == run_id for one in past) else None


def _past_ones(state: ThreadState) -> tuple[EndedRun | GonePause, ...]:
    return (*state.ended, *state.gone)
