"""One thread under the contract: `decide` judges what comes, `evolve` is the state after it. Read this first.

Pure: no IO, no clock, no log. Two rules hold everywhere.

1. Every record gets exactly one verdict, and the state changes by the verdict's changes alone. A refused
   input changes nothing but the pause's `refusal`.
2. What a verdict emits may be shown only together with the state it leads to: one transaction.

              agent's interrupt outcome                    covering resume
    (nothing) ─────────────────────────▶ OPEN ────────────────────────────▶ RESUMING
        ▲                                 │ ▲                                │    │
        │ abandon                         │ │   run failed or lost: reopened │    │
        ├─────────────────────────────────┘ └────────────────────────────────┘    │
        └─────────────────────────────────────────────────────────────────────────┘
                        run ended otherwise: settled (its own outcome may open the next pause)

Where to read on: the rows for agent events are in events.py, those for inputs in inputs.py, each in the
order of the contract's tables; what clients are shown is in shown.py.
"""

from typing import Literal, NamedTuple, assert_never

import msgspec

from holdshort.contract import shown
from holdshort.contract.changes import Forgotten, evolve
from holdshort.contract.codes import Code
from holdshort.contract.events import judge_event
from holdshort.contract.inputs import INPUTS, RESUMES, judge_input
from holdshort.contract.messages import Record
from holdshort.contract.rules import Rules, World
from holdshort.contract.state import ThreadState
from holdshort.contract.transitions import end_run, reopen
from holdshort.contract.verdicts import IGNORED, Kind, Verdict

__all__ = ["Due", "bounded", "decide", "evolve", "fire", "next_due"]

AGENT_EVENTS = "agent-events."


class Due(NamedTuple):
    """A deadline of a thread: when, and of what."""

    at: int
    kind: Literal["lease", "memory"]


def decide(state: ThreadState, record: Record, now: int, world: World, rules: Rules) -> Verdict:
    """The verdict on one record; `now` is its append time in ms, monotone in each topic partition."""
    if record.topic in (INPUTS, RESUMES):
        return judge_input(state, record, now, world, rules)
    return judge_event(state, record, record.topic.removeprefix(AGENT_EVENTS), now, world, rules)


def next_due(state: ThreadState, rules: Rules) -> Due | None:
    """The thread's earliest deadline."""
    run, ended, gone = state.run, state.ended, state.gone
    lease = Due(run.due(rules.start_lease_ms, rules.run_lease_ms), "lease") if run is not None else None
    if not (ended or gone):
        return lease
    ends = [one.at for one in ended] + [one.at for one in gone]
    memory = Due(min(ends) + rules.limits.memory_ms, "memory")
    return memory if lease is None else min(lease, memory)


def fire(state: ThreadState, due: Due, thread: str, rules: Rules) -> Verdict:
    """The verdict on a deadline that is due; `now` is its due time."""
    match due.kind:
        case "lease":
            return _lost(state, due.at, thread, rules)
        case "memory":
            return Verdict(Kind.IGNORED, changes=(Forgotten(due.at - rules.limits.memory_ms),))
        case _:
            assert_never(due.kind)


def _lost(state: ThreadState, at: int, thread: str, rules: Rules) -> Verdict:
    """The run was not heard of for its lease (contract 6); a pause it answered is open again."""
    run = state.run
    if run is None:
        return IGNORED
    error = shown.failed(thread, run.run_id, Code.RUN_LOST)
    emits = shown.framed(thread, run.run_id, run.shown, error)
    unseen = msgspec.structs.replace(run, shown=False)  # what it says later begins anew for clients
    ended = end_run(state, unseen, "lost", at, rules)
    return Verdict(Kind.LOST, emits, (ended, *reopen(state, run, "lost", at)), Code.RUN_LOST)


def bounded(state: ThreadState, inputs_end: int) -> ThreadState:
    """The state with the *inputs end* of a pause that has just opened.

    Asked for as late as possible before the opening is committed: what lies below it was written by
    somebody who cannot have seen the question.
    """
    if state.pause is None or state.pause.inputs_end is not None:
        return state
    return msgspec.structs.replace(state, pause=msgspec.structs.replace(state.pause, inputs_end=inputs_end))
