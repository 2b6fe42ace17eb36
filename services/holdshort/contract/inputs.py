"""Inputs: the rows of contract section 3, in their order; the first that matches decides.

Records from `inputs` (clients) and `resumes` (router and operators) meet the same rows except where a row
says so. Each row is one function of the same name: it returns a verdict, or None to let the next row look.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Final

import msgspec

from holdshort.contract import resume as batch
from holdshort.contract import shown
from holdshort.contract.canon import own_run_id, sha256
from holdshort.contract.changes import Change, PauseIs, RunIs
from holdshort.contract.codes import Code
from holdshort.contract.keys import partition_of
from holdshort.contract.messages import (
    ACTION,
    ADMISSION,
    AGENT,
    GENERATION,
    PRINCIPAL,
    RUN,
    START_BY,
    Emit,
    Record,
    dead_letter,
    doubled_names,
    forwarded,
    lenient_ids,
    parse_object,
    size_of,
    text_header,
    usable,
)
from holdshort.contract.resume import Entry, Problem
from holdshort.contract.rules import Rules, World
from holdshort.contract.state import EndedRun, GonePause, Pause, Pointer, Refusal, Run, ThreadState
from holdshort.contract.transitions import end_pause, end_run
from holdshort.contract.verdicts import DUPLICATE, Kind, Verdict

INPUTS: Final = "inputs"
RESUMES: Final = "resumes"
ABANDON: Final = "abandon"

_replace = msgspec.structs.replace


class Case:
    """One input at the moment of its judgement."""

    def __init__(
        self,
        state: ThreadState,
        record: Record,
        now: int,
        world: World,
        rules: Rules,
        value: dict[str, Any],
    ) -> None:
        self.state = state
        self.record = record
        self.now = now
        self.world = world
        self.rules = rules
        self.value = value
        self.thread: str = value["threadId"]
        self.run_id: str = value["runId"]
        self.from_clients = record.topic == INPUTS
        self.resume = value.get("resume")
        self.parent_run_id = value.get("parentRunId")
        entries, self.misshapen = ([], []) if self.resume is None else self._read()
        self.entries: list[Entry] = entries

    def _read(self) -> tuple[list[Entry], list[Problem]]:
        return batch.read_entries(self.resume, from_clients=self.from_clients)

    @cached_property
    def digest(self) -> str:
        """The digest of the input's bytes: the same input is the same bytes."""
        return sha256(self.record.value or b"")

    @cached_property
    def digests(self) -> batch.Digests:
        return batch.digests(self.entries)

    @cached_property
    def ids(self) -> set[str]:
        return {entry.interrupt_id for entry in self.entries}

    @cached_property
    def command(self) -> dict[str, Any]:
        """`forwardedProps.command`, the channel by which some frameworks take answers too."""
        props = self.value.get("forwardedProps")
        command = props.get("command") if isinstance(props, dict) else None
        return command if isinstance(command, dict) else {}

    @property
    def pause(self) -> Pause | None:
        return self.state.pause

    @property
    def under_run_in_flight(self) -> bool:
        """What is shown under the id of the run in flight would reach that run's rightful caller."""
        return self.state.run is not None and self.state.run.run_id == self.run_id

    def text_header(self, name: str) -> str | None:
        return text_header(self.record.headers, name)


Row = Callable[[Case], Verdict | None]


def judge_input(state: ThreadState, record: Record, now: int, world: World, rules: Rules) -> Verdict:
    """The verdict on one record of `inputs` or `resumes`."""
    value = parse_object(record.value)
    if value is None or not _readable(record.value or b"", value):
        return _unreadable_input(state, record, rules)
    if _miskeyed(record, value, rules):
        return _miskeyed_input(record, rules, value)
    case = Case(state, record, now, world, rules, value)
    for row in ROWS:
        if (verdict := row(case)) is not None:
            return verdict
    raise AssertionError("the last row matches always")


# -- unreadable and miskeyed: no thread can be trusted yet --------------------------------------------------


def _readable(raw: bytes, value: dict[str, Any]) -> bool:
    if usable(value.get("threadId")) is None or usable(value.get("runId")) is None:
        return False
    return not doubled_names(raw, value)


def _unreadable_input(state: ThreadState, record: Record, rules: Rules) -> Verdict:
    """Row *unreadable input*: a dead letter; the client is told if it can be."""
    emits = [_dead(record, rules, Code.MALFORMED_INPUT, "not a RunAgentInput that every parser reads alike")]
    thread, run_id = lenient_ids(record.value)
    in_flight = state.run is not None and state.run.run_id == run_id
    if thread and run_id and not in_flight and _may_be_told(record, rules, thread, run_id):
        emits += shown.refusal(state, shown.Caller(thread, run_id), Code.MALFORMED_INPUT)
    return Verdict(Kind.UNREADABLE, tuple(emits), code=Code.MALFORMED_INPUT)


def _may_be_told(record: Record, rules: Rules, thread: str, run_id: str) -> bool:
    return record.topic == INPUTS and record.key == thread.encode() and _short(rules, thread, run_id)


def _miskeyed(record: Record, value: dict[str, Any], rules: Rules) -> bool:
    thread = value["threadId"].encode()
    return bool(record.key != thread or partition_of(thread, rules.partitions) != record.partition)


def _miskeyed_input(record: Record, rules: Rules, value: dict[str, Any]) -> Verdict:
    """Row *miskeyed*: the error is shown where the record lies, so that its writer can see why."""
    emits = [_dead(record, rules, Code.MISKEYED_RECORD, "the key or the partition is not the thread's")]
    caller = {"threadId": value["threadId"], "runId": value["runId"]}
    key = (record.key or b"").decode(errors="replace") or value["threadId"]
    if record.topic == INPUTS and _short(rules, key, *caller.values()):
        run_id = own_run_id("miskeyed", record.topic, record.partition, record.offset)
        told = (
            shown.started(key, run_id),
            shown.failed(key, run_id, Code.MISKEYED_RECORD, {"holdshort": caller | {"retryable": False}}),
        )
        emits += [emit._replace(key=record.key) for emit in told]
    return Verdict(Kind.UNREADABLE, tuple(emits), code=Code.MISKEYED_RECORD)


def _short(rules: Rules, *ids: str) -> bool:
    """Whether ids may be repeated to their writer: huge ones would make events that cannot be written."""
    return all(len(one.encode()) <= rules.limits.id for one in ids)


def _dead(record: Record, rules: Rules, code: Code, detail: str) -> Emit:
    return dead_letter(record, code, detail, service="gatekeeper", limit=rules.limits.dead_letter)


# -- what a row may answer ----------------------------------------------------------------------------------


def refuse(case: Case, code: Code, problems: Iterable[Problem] = (), *, retryable: bool = False) -> Verdict:
    """Refused: shown to the caller; a record from `resumes` is told in the pause instead."""
    told = tuple(problems)
    emits: tuple[Emit, ...] = ()
    if case.under_run_in_flight or not _short(case.rules, case.thread, case.run_id):
        emits = (_dead(case.record, case.rules, code, code.sentence),)
    elif case.from_clients:
        emits = shown.refusal(case.state, _caller(case), code, told, retryable=retryable)
    changes: tuple[Change, ...] = ()
    if not case.from_clients and case.pause is not None:
        refusal = Refusal(case.run_id[: case.rules.limits.id], code, case.now)
        changes = (PauseIs(_replace(case.pause, refusal=refusal)),)
    return Verdict(Kind.REFUSED, emits, changes, code, told)


def _caller(case: Case) -> shown.Caller:
    parent = usable(case.parent_run_id)
    known = parent if parent and _short(case.rules, parent) else None
    return shown.Caller(case.thread, case.run_id, case.entries, known)


def replay(case: Case, outcome: str) -> Verdict:
    """Replayed: the thread as it is *now*, under the caller's run id (contract 3.2)."""
    state, code = case.state, None
    if case.under_run_in_flight or not case.from_clients:
        return Verdict(Kind.REPLAYED)
    if state.run is not None:
        code = Code.THREAD_BUSY
    elif state.pause is not None and state.pause.sealed:
        code = Code.TOO_MANY_PAUSES
    if code is not None:
        refused = refuse(case, code, retryable=code is Code.THREAD_BUSY and not case.entries)
        return Verdict(Kind.REPLAYED, refused.emits, code=code)
    if state.pause is not None:
        open_now = {"type": "interrupt", "interrupts": shown.open_interrupts(state.pause)}
        return Verdict(
            Kind.REPLAYED,
            (
                shown.started(case.thread, case.run_id),
                shown.finished(case.thread, case.run_id, outcome=open_now),
            ),
        )
    return Verdict(Kind.REPLAYED, shown.ended(case.thread, case.run_id, state.generation, outcome))


def admit(case: Case, agent: str | None, answers: Pause | None = None) -> Verdict:
    """Admitted: the bytes as they came go to the agent, and the run is in flight from here on."""
    if agent is None or agent not in case.rules.agents:
        return refuse(case, Code.UNKNOWN_AGENT)
    record, rules = case.record, case.rules
    admission = Pointer(record.topic, record.partition, record.offset)
    admitted_at = max(case.now, case.world.clock)
    run = Run(
        run_id=case.run_id,
        agent=agent,
        admission=admission,
        admitted_at=admitted_at,
        principal=_principal(case, answers),
        digest=case.digest,
        calls=answers.calls if answers else (),
        answers=answers.generation if answers else None,
        batch=case.digests.strict if answers else None,
        loose_batch=case.digests.loose if answers else None,
    )
    headers = [
        *forwarded(record.headers),
        (RUN, run.run_id.encode()),
        (ADMISSION, str(admission).encode()),
        (START_BY, str(admitted_at + rules.start_lease_ms).encode()),
    ]
    if answers:
        headers.append((GENERATION, str(answers.generation).encode()))
    if run.principal:
        headers.append((PRINCIPAL, run.principal.encode()))
    emit = Emit(f"runs.{agent}", record.key, record.value, tuple(headers))
    return Verdict(Kind.ADMITTED, (emit,), (RunIs(run),))


def _principal(case: Case, answers: Pause | None) -> str | None:
    """Who asks: believed only on trusted topics; the router answers on behalf of the run that paused."""
    if case.record.topic in case.rules.trust_principal and (named := case.text_header(PRINCIPAL)):
        return named
    return answers.principal if answers and not case.from_clients else None


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
    if len(case.record.value or b"") > limits.payload and isinstance(case.resume, list):
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
            payload = msgspec.json.decode(entry, type=dict[str, msgspec.Raw]).get("payload")
            if payload is not None and len(bytes(payload)) > limits.payload:
                message = f"more than {limits.payload} bytes"
                problems.append(Problem(Code.TOO_LARGE, path=f"/resume/{n}/payload", message=message))
    return problems


def malformed_resume(case: Case) -> Verdict | None:
    """The resume's shape; what only the router may write; on `resumes` neither a resume nor an action."""
    problems = list(case.misshapen)
    if case.from_clients and case.run_id.startswith("hs-"):
        problems.append(Problem(Code.INVALID_RESUME, path="/runId", message="hs- begins our own run ids"))
    if not case.from_clients:
        action = case.text_header(ACTION)
        if action not in (None, ABANDON) or (action is None and case.resume is None):
            problems.append(Problem(Code.INVALID_RESUME, message="neither a resume nor a known action"))
    return refuse(case, Code.INVALID_RESUME, problems) if problems else None


def wrong_address(case: Case) -> Verdict | None:
    """On `resumes`, what is meant for another pause or run than is there."""
    if case.from_clients:
        return None
    if case.text_header(ACTION) == ABANDON:
        return _misaddressed_abandon(case)
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
    return Verdict(Kind.SETTLED, emits, tuple(changes), Code.ABANDONED, settled=settled)


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
    named = [name for name in ("resume", "interruptEvent") if name in case.command]
    if not named or case.state.last_not_gated:
        return None
    problems = [Problem(Code.CONFLICTING_CHANNELS, path=f"/forwardedProps/command/{name}") for name in named]
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


ROWS: Final[tuple[Row, ...]] = (
    too_large,
    malformed_resume,
    wrong_address,
    abandon,
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
