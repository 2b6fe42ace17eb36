"""Rows for records of `resumes`: whether what they name is what is there; abandoning and forgetting it."""

from typing import Final

import msgspec

from holdshort.contract import shown
from holdshort.contract.changes import Change, Forgotten
from holdshort.contract.codes import Code
from holdshort.contract.messages import ACTION, ADMISSION, GENERATION, RUN
from holdshort.contract.replies import Case, refuse
from holdshort.contract.state import EndedRun, Run
from holdshort.contract.transitions import end_pause, end_run
from holdshort.contract.verdicts import DUPLICATE, Kind, Verdict

ABANDON: Final = "abandon"
FORGET: Final = "forget"
ACTIONS: Final = frozenset({ABANDON, FORGET})
_EVERYTHING: Final = 2**63  # in ms: nothing has ended later


def wrong_address(case: Case) -> Verdict | None:
    """On `resumes`, what is meant for another pause or run than is there."""
    if case.from_clients:
        return None
    if case.text_header(ACTION) == ABANDON:
        return _misaddressed_abandon(case)
    if case.text_header(ACTION) == FORGET:
        return _misaddressed_forget(case)
    generation = _generation(case)
    if case.pause is not None and generation == case.pause.generation:
        return None
    for gone in case.state.gone:
        if gone.generation == generation and gone.how == "settled" and gone.input_digest == case.digest:
            return DUPLICATE
    return refuse(case, Code.STALE_BINDING)


def _misaddressed_abandon(case: Case) -> Verdict | None:
    generation = _generation(case)
    if case.text_header(GENERATION) is not None:
        if case.pause is not None and generation == case.pause.generation:
            return None
        gone = [one for one in case.state.gone if one.generation == generation]
        return DUPLICATE if gone and gone[0].how == "abandoned" else refuse(case, Code.STALE_BINDING)
    if case.pause is None and case.state.run is not None and _names(case, case.state.run):
        return None
    if any(run.outcome == "abandoned" and _names(case, run) for run in case.state.ended):
        return DUPLICATE
    return refuse(case, Code.STALE_BINDING)


def _misaddressed_forget(case: Case) -> Verdict | None:
    """It names the pause or the run that is there, as an abandon does, or nothing where there is neither."""
    if case.state.empty:
        return DUPLICATE
    if case.text_header(GENERATION) is not None:
        right = case.pause is not None and _generation(case) == case.pause.generation
    elif case.state.run is not None:
        right = case.pause is None and _names(case, case.state.run)
    else:
        named = (case.text_header(ADMISSION), case.text_header(RUN))
        right = case.pause is None and named == (None, None)
    return None if right else refuse(case, Code.STALE_BINDING)


def _generation(case: Case) -> int | None:
    text = case.text_header(GENERATION) or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def _names(case: Case, run: Run | EndedRun) -> bool:
    """Whether an abandon means that run: by its admission, or the run id if it has none."""
    if run.admission is not None:
        return case.text_header(ADMISSION) == str(run.admission)
    return case.text_header(RUN) == run.run_id


def abandon(case: Case) -> Verdict | None:
    """Run and pause end, nothing is forwarded: the way out when an agent can no longer resume or end."""
    if case.from_clients or case.text_header(ACTION) != ABANDON:
        return None
    return _abandoned(case)


def forget(case: Case) -> Verdict | None:
    """What is open is abandoned, and nothing is remembered: the thread is as one that never was."""
    if case.from_clients or case.text_header(ACTION) != FORGET:
        return None
    state, nothing_more = case.state, Forgotten(_EVERYTHING)
    if state.run is None and state.pause is None:
        return Verdict(Kind.FORGOTTEN, changes=(nothing_more,))
    verdict = _abandoned(case)
    return msgspec.structs.replace(verdict, kind=Kind.FORGOTTEN, changes=(*verdict.changes, nothing_more))


def _abandoned(case: Case) -> Verdict:
    state, run, pause = case.state, case.state.run, case.pause
    changes: list[Change] = []
    if run is not None:
        changes.append(end_run(state, run, "abandoned", case.now, case.rules))
    if pause is not None:
        changes.append(end_pause(state, "abandoned", case.now, case.rules, run, "abandoned"))
    run_id = run.run_id if run else (pause.run_id if pause else case.run_id)
    error = shown.failed(case.thread, run_id, Code.ABANDONED)
    emits = shown.framed(case.thread, run_id, run is not None and run.shown, error)
    if pause is not None:
        emits += shown.closing(case.thread, case.record, pause.generation, "abandoned")
    settled = pause.generation if pause else None
    return Verdict(Kind.SETTLED, emits, tuple(changes), Code.ABANDONED, settled=settled, run_id=run_id)
