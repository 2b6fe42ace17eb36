"""What a row for inputs may say of one input: refused, replayed or admitted, and to whom it is told."""

from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import Any, Final

import msgspec

from holdshort.contract import resume as batch
from holdshort.contract import shown
from holdshort.contract.canon import sha256
from holdshort.contract.changes import Change, PauseIs, RunIs
from holdshort.contract.codes import Code
from holdshort.contract.messages import (
    ADMISSION,
    COMMAND,
    FORWARDED_PROPS,
    GENERATION,
    PRINCIPAL,
    RUN,
    START_BY,
    Emit,
    Record,
    dead_letter,
    forwarded,
    spelt,
    text_header,
    usable,
)
from holdshort.contract.resume import Entry, Problem
from holdshort.contract.rules import Rules, World
from holdshort.contract.state import Pause, Pointer, Refusal, Run, ThreadState
from holdshort.contract.verdicts import Kind, Verdict

INPUTS: Final = "inputs"
RESUMES: Final = "resumes"

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
        self.pause = state.pause
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
    def side_doors(self) -> list[str]:
        """Where an answer stands in `forwardedProps.command`, however an agent's parser spells the two."""
        return [
            f"/{props_name}/{command_name}/{name}"
            for props_name, props in spelt(self.value, FORWARDED_PROPS)
            for command_name, command in spelt(props, COMMAND)
            if isinstance(command, dict)
            for name in ("resume", "interruptEvent")
            if name in command
        ]

    @property
    def under_run_in_flight(self) -> bool:
        """What is shown under the id of the run in flight would reach that run's rightful caller."""
        return self.state.run is not None and self.state.run.run_id == self.run_id

    def text_header(self, name: str) -> str | None:
        return text_header(self.record.headers, name)


def refuse(case: Case, code: Code, problems: Iterable[Problem] = (), *, retryable: bool = False) -> Verdict:
    """Refused: shown to the caller; a record from `resumes` is told in the pause instead."""
    told = tuple(islice(problems, shown.MOST_TOLD))
    emits: tuple[Emit, ...] = ()
    if case.under_run_in_flight or not repeatable(case.rules, case.thread, case.run_id):
        emits = (dead(case.record, case.rules, code, code.sentence),)
    elif case.from_clients:
        emits = shown.refusal(case.state, _caller(case), code, told, retryable=retryable)
    changes: tuple[Change, ...] = ()
    if not case.from_clients and case.pause is not None:
        refusal = Refusal(case.run_id[: case.rules.limits.id], code, case.now)
        changes = (PauseIs(_replace(case.pause, refusal=refusal)),)
    return Verdict(Kind.REFUSED, emits, changes, code, told)


def _caller(case: Case) -> shown.Caller:
    parent = usable(case.parent_run_id)
    known = parent if parent and repeatable(case.rules, parent) else None
    return shown.Caller(case.thread, case.run_id, case.entries, known)


def replay(case: Case, outcome: str) -> Verdict:
    """Replayed: the thread as it is *now*, under the caller's run id (contract 3.2)."""
    state, code = case.state, None
    if case.under_run_in_flight:
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


def repeatable(rules: Rules, *ids: str) -> bool:
    """Whether ids may be repeated to their writer: huge ones would make events that cannot be written."""
    return all(len(one.encode()) <= rules.limits.id for one in ids)


def dead(record: Record, rules: Rules, code: Code, detail: str) -> Emit:
    return dead_letter(record, code, detail, service="gatekeeper", limit=rules.limits.dead_letter)
