"""Rows for answers: to a pause that is gone, to one that has been answered, and to the one that is open."""

from holdshort.contract import resume as batch
from holdshort.contract.codes import Code
from holdshort.contract.replies import Case, admit, refuse, replay
from holdshort.contract.resume import Problem
from holdshort.contract.state import GonePause, Pause
from holdshort.contract.verdicts import Verdict


def past_answer(case: Case) -> Verdict | None:
    """Rows *past answer* and *other past answer*: an old answer must never approve a new question."""
    if not case.entries:
        return None
    if len(batch.echoed_generations(case.entries)) > 1:
        problem = Problem(Code.STALE_BINDING, path="/resume", message="the entries echo several generations")
        return refuse(case, Code.STALE_BINDING, [problem])
    candidates = [gone for gone in case.state.gone if _answers_gone(case, gone)]
    if not candidates:
        return None
    for gone in candidates:
        if gone.batch is not None and gone.batch == case.digests.loose:
            return replay(case, gone.how)
    if not any(entry.resolved for entry in case.entries):
        return replay(case, "answeredElsewhere")
    return refuse(case, Code.RESUME_CONFLICT)


def _answers_gone(case: Case, gone: GonePause) -> bool:
    others: list[Pause | GonePause] = [one for one in case.state.gone if one is not gone]
    if case.pause is not None:
        others.append(case.pause)
    elif case.ids <= set(gone.ids):
        return True
    return batch.addresses(gone, case.entries, case.parent_run_id, others)


def conflicting_answer(case: Case) -> Verdict | None:
    """The pause has been answered, the run is at it, and this is another answer."""
    if case.pause is None or case.state.run is None or not case.entries:
        return None
    if not case.ids <= set(case.pause.ids):
        return None
    same = case.digests.strict is not None and case.digests.strict == case.state.run.batch
    return None if same else refuse(case, Code.RESUME_CONFLICT)


# -- the open pause -----------------------------------------------------------------------------------------


def answered_twice(case: Case) -> Verdict | None:
    problems = batch.answered_twice(case.entries)
    return refuse(case, Code.DUPLICATE_INTERRUPT_ID, problems) if problems else None


def unknown_interrupt(case: Case) -> Verdict | None:
    problems = batch.unknown(case.entries, _open(case).ids)
    return refuse(case, Code.UNKNOWN_INTERRUPT_ID, problems) if problems else None


def stale_binding(case: Case) -> Verdict | None:
    """Written before the question could be seen, or bound to another one."""
    pause = _open(case)
    if case.from_clients and (pause.inputs_end is None or case.record.offset < pause.inputs_end):
        problem = Problem(Code.STALE_BINDING, message="it was written before the question could be seen")
        return refuse(case, Code.STALE_BINDING, [problem])
    by_id = {interrupt.id: interrupt for interrupt in pause.interrupts}
    problems = []
    for entry in case.entries:
        if problem_ := batch.misbound(entry, pause, by_id[entry.interrupt_id]):
            problems.append(problem_)
        elif by_id[entry.interrupt_id].reused and _refuses_unaddressed(case, pause):
            problems.append(Problem(Code.STALE_BINDING, entry.interrupt_id, message="the id is reused"))
    return refuse(case, Code.STALE_BINDING, problems) if problems else None


def _refuses_unaddressed(case: Case, pause: Pause) -> bool:
    if case.rules.unaddressed_reuse == "accept" or not case.from_clients:
        return False
    return not batch.addresses(pause, case.entries, case.parent_run_id, case.state.gone)


def reserved(case: Case) -> Verdict | None:
    """A question of a team's must not be answerable by whoever sits in front of the chat (contract 3.3)."""
    pause = _open(case)
    if not case.from_clients or not pause.reserved:
        return None
    problems = [
        Problem(Code.RESERVED_FOR_TEAM, one.id, message=f"it is for team {one.team}")
        for one in pause.interrupts
        if one.id in case.ids
    ]
    return refuse(case, Code.RESERVED_FOR_TEAM, problems)


def partial(case: Case) -> Verdict | None:
    problems = batch.unanswered(case.entries, _open(case).ids)
    return refuse(case, Code.PARTIAL_RESUME, problems) if problems else None


def expired(case: Case) -> Verdict | None:
    problems = batch.expired(case.entries, _open(case).interrupts, case.now)
    return refuse(case, Code.INTERRUPT_EXPIRED, problems) if problems else None


def payload_refused(case: Case) -> Verdict | None:
    """Each payload against its schema; the work budget is the record's, the order the pause's."""
    work = batch.Work(case.rules.limits.work)
    by_id = {entry.interrupt_id: entry for entry in case.entries}
    check_unusable = case.rules.unusable_schema == "cancel_only"
    problems: list[Problem] = []
    for interrupt in _open(case).interrupts:
        entry = by_id[interrupt.id]
        problems += batch.payload_problems(entry, interrupt, work, check_unusable=check_unusable)
    return refuse(case, problems[0].code, problems) if problems else None


def covering_resume(case: Case) -> Verdict:
    """Complete and valid: to the agent that paused, whatever agent a header names."""
    pause = _open(case)
    return admit(case, pause.agent, pause)


def _open(case: Case) -> Pause:
    assert case.pause is not None, "the rows above have dealt with everything else"
    return case.pause
