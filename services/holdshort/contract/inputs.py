"""Inputs: the rows of contract section 3, in their order; the first that matches decides.

Records from `inputs` (clients) and `resumes` (router and operators) meet the same rows except where a row
says so. Each row is one function of the same name: it returns a verdict, or None to let the next row look.
The rows for answers are in answers.py, those for `resumes` alone in addressed.py; what a row may say of an
input is in replies.py.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdshort.contract import resume as batch
from holdshort.contract import shown
from holdshort.contract.addressed import ABANDON, ACTIONS, abandon, forget, wrong_address
from holdshort.contract.answers import (
    answered_twice,
    conflicting_answer,
    covering_resume,
    expired,
    partial,
    past_answer,
    payload_refused,
    reserved,
    stale_binding,
    unknown_interrupt,
)
from holdshort.contract.canon import own_run_id
from holdshort.contract.codes import Code
from holdshort.contract.keys import partition_of
from holdshort.contract.messages import (
    ACTION,
    AGENT,
    PRINCIPAL,
    Record,
    doubled_but_for_case,
    doubled_names,
    lenient_ids,
    parse_object,
    size_of,
    usable,
)
from holdshort.contract.replies import INPUTS, RESUMES, Case, admit, dead, refuse, repeatable, replay
from holdshort.contract.resume import Problem
from holdshort.contract.rules import Rules, World
from holdshort.contract.state import ThreadState
from holdshort.contract.verdicts import DUPLICATE, Kind, Verdict, about

__all__ = ["ABANDON", "INPUTS", "RESUMES", "ROWS", "judge_input", "row_and_verdict"]

Row = Callable[[Case], Verdict | None]


def judge_input(state: ThreadState, record: Record, now: int, world: World, rules: Rules) -> Verdict:
    """The verdict on one record of `inputs` or `resumes`."""
    return row_and_verdict(state, record, now, world, rules)[1]


def row_and_verdict(
    state: ThreadState, record: Record, now: int, world: World, rules: Rules
) -> tuple[str, Verdict]:
    """The verdict, and the name of the row that gave it."""
    value = parse_object(record.value)
    if value is None or not _readable(record.value or b"", value):
        return "unreadable_input", _unreadable_input(state, record, rules)
    if _miskeyed(record, value, rules):
        return "miskeyed", about(value["runId"], _miskeyed_input(record, rules, value), rules)
    case = Case(state, record, now, world, rules, value)
    for name, row in _NAMED_ROWS:
        if (verdict := row(case)) is not None:
            return name, about(case.run_id, verdict, rules)
    raise AssertionError("the last row matches always")


# -- unreadable and miskeyed: no thread can be trusted yet --------------------------------------------------


def _readable(raw: bytes, value: dict[str, Any]) -> bool:
    if usable(value.get("threadId")) is None or usable(value.get("runId")) is None:
        return False
    return not doubled_but_for_case(value) and not doubled_names(raw, value)


def _unreadable_input(state: ThreadState, record: Record, rules: Rules) -> Verdict:
    """Row *unreadable input*: a dead letter; the client is told if it can be."""
    emits = [dead(record, rules, Code.MALFORMED_INPUT, "not a RunAgentInput that every parser reads alike")]
    thread, run_id = lenient_ids(record.value)
    in_flight = state.run is not None and state.run.run_id == run_id
    if thread and run_id and not in_flight and _may_be_told(record, rules, thread, run_id):
        emits += shown.refusal(state, shown.Caller(thread, run_id), Code.MALFORMED_INPUT)
    return about(run_id, Verdict(Kind.UNREADABLE, tuple(emits), code=Code.MALFORMED_INPUT), rules)


def _may_be_told(record: Record, rules: Rules, thread: str, run_id: str) -> bool:
    return record.topic == INPUTS and record.key == thread.encode() and repeatable(rules, thread, run_id)


def _miskeyed(record: Record, value: dict[str, Any], rules: Rules) -> bool:
    thread = value["threadId"].encode()
    return bool(record.key != thread or partition_of(thread, rules.partitions) != record.partition)


def _miskeyed_input(record: Record, rules: Rules, value: dict[str, Any]) -> Verdict:
    """Row *miskeyed*: the error is shown where the record lies, so that its writer can see why."""
    emits = [dead(record, rules, Code.MISKEYED_RECORD, "the key or the partition is not the thread's")]
    caller = {"threadId": value["threadId"], "runId": value["runId"]}
    key = (record.key or b"").decode(errors="replace") or value["threadId"]
    if record.topic == INPUTS and repeatable(rules, key, *caller.values()):
        run_id = own_run_id("miskeyed", record.topic, record.partition, record.offset)
        told = (
            shown.started(key, run_id),
            shown.failed(key, run_id, Code.MISKEYED_RECORD, {"holdshort": caller | {"retryable": False}}),
        )
        emits += [emit._replace(key=record.key) for emit in told]
    return Verdict(Kind.UNREADABLE, tuple(emits), code=Code.MISKEYED_RECORD)


# -- the rows -----------------------------------------------------------------------------------------------


def too_large(case: Case) -> Verdict | None:
    """A limit of section 9."""
    limits, problems = case.rules.limits, []
    ids = [("/threadId", case.thread), ("/runId", case.run_id)]
    ids += [(f"/resume/{n}/interruptId", entry.interrupt_id) for n, entry in enumerate(case.entries)]
    for path, one in (*ids, ("header", case.text_header(PRINCIPAL) or "")):
        if len(one.encode()) > limits.id:
            problems.append(Problem(Code.TOO_LARGE, path=path, message=f"more than {limits.id} bytes"))
    if size_of(case.record) > limits.input:
        problems.append(Problem(Code.TOO_LARGE, message=f"more than {limits.input} bytes"))
    if len(case.record.value or b"") > min(limits.payload, limits.entries) and isinstance(case.resume, list):
        problems += _large_answers(case)
    return refuse(case, Code.TOO_LARGE, problems) if problems else None


def _large_answers(case: Case) -> list[Problem]:
    limits = case.rules.limits
    raw = msgspec.json.decode(case.record.value or b"", type=dict[str, msgspec.Raw])["resume"]
    problems = []
    if len(bytes(raw)) > limits.entries:
        problems.append(Problem(Code.TOO_LARGE, path="/resume", message=f"more than {limits.entries} bytes"))
    for n, entry in enumerate(msgspec.json.decode(raw, type=list[msgspec.Raw])):
        if bytes(entry).startswith(b"{"):
            members = msgspec.json.decode(entry, type=dict[str, msgspec.Raw])
            payload = members.get("payload")
            cancelled = bytes(members.get("status", b"")) == b'"cancelled"'  # its payload is ignored
            if payload is not None and not cancelled and len(bytes(payload)) > limits.payload:
                message = f"more than {limits.payload} bytes"
                problems.append(Problem(Code.TOO_LARGE, path=f"/resume/{n}/payload", message=message))
    return problems


def malformed_resume(case: Case) -> Verdict | None:
    """The resume's shape; what only the router may write; on `resumes` neither a resume nor an action."""
    problems = list(case.misshapen)
    if case.from_clients and case.run_id.startswith("hs-"):
        problems.append(Problem(Code.INVALID_RESUME, path="/runId", message="hs- begins our own run ids"))
    if not case.from_clients and case.resume is None and case.text_header(ACTION) not in ACTIONS:
        problems.append(Problem(Code.INVALID_RESUME, message="neither a resume nor a known action"))
    return refuse(case, Code.INVALID_RESUME, problems) if problems else None


def same_input_again(case: Case) -> Verdict | None:
    """Byte for byte the input of the run in flight: its caller already follows that run."""
    run = case.state.run
    return DUPLICATE if run is not None and run.digest == case.digest else None


def same_input_late(case: Case) -> Verdict | None:
    """Byte for byte the input of a run that has ended, written before it had."""
    for ended in case.state.ended:
        if ended.digest == case.digest and case.now < ended.at:
            return replay(case, ended.outcome)
    return None


def run_id_in_use(case: Case) -> Verdict | None:
    return refuse(case, Code.RUN_ID_IN_USE) if case.under_run_in_flight else None


def thread_busy(case: Case) -> Verdict | None:
    """Retryable unless it carries a resume: the question may be another by the time that run ends."""
    if case.state.run is None:
        return None
    return refuse(case, Code.THREAD_BUSY, retryable=not case.entries)


def sealed(case: Case) -> Verdict | None:
    return refuse(case, Code.TOO_MANY_PAUSES) if case.pause is not None and case.pause.sealed else None


def input_while_pending(case: Case) -> Verdict | None:
    """No resume, or an empty one, whatever side door it tries."""
    if case.pause is None or case.entries:
        return None
    problems = [Problem(Code.PENDING_INTERRUPTS, one) for one in case.pause.ids]
    return refuse(case, Code.PENDING_INTERRUPTS, problems)


def two_channels(case: Case) -> Verdict | None:
    """An answer in `forwardedProps.command`: frameworks differ in which of the two they obey."""
    doors = case.side_doors
    if not doors or case.state.last_not_gated:
        return None
    problems = [Problem(Code.CONFLICTING_CHANNELS, path=path) for path in doors]
    return refuse(case, Code.CONFLICTING_CHANNELS, problems)


def ordinary_input(case: Case) -> Verdict | None:
    if case.pause is not None or case.entries:
        return None
    return admit(case, case.text_header(AGENT) or case.rules.default_agent)


def resume_of_nothing(case: Case) -> Verdict | None:
    """Nothing is open and nothing remembered; a gate put before agents that already pause lets it pass."""
    if case.pause is not None:
        return None
    if case.rules.cold_resume == "forward" or case.state.last_not_gated:
        return admit(case, case.text_header(AGENT) or case.rules.default_agent)
    return refuse(case, Code.UNKNOWN_INTERRUPT_ID, batch.unknown(case.entries, ()))


ROWS: Final[tuple[Row, ...]] = (
    too_large,
    malformed_resume,
    wrong_address,
    abandon,
    forget,
    same_input_again,
    same_input_late,
    run_id_in_use,
    past_answer,
    conflicting_answer,
    thread_busy,
    sealed,
    input_while_pending,
    two_channels,
    ordinary_input,
    resume_of_nothing,
    answered_twice,
    unknown_interrupt,
    stale_binding,
    reserved,
    partial,
    expired,
    payload_refused,
    covering_resume,
)
_NAMED_ROWS: Final = tuple((row.__name__, row) for row in ROWS)
