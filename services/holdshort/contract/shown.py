"""What the client sees (contract 3.2): events of ours, and the agent's own with the gate's bindings."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from holdshort.contract.canon import own_run_id, schema_hash
from holdshort.contract.codes import Code
from holdshort.contract.descriptors import described
from holdshort.contract.messages import (
    CODE,
    JSON_TYPE,
    PROTOCOL_VERSION,
    RUN,
    Emit,
    Record,
    forwarded,
    members_of,
)
from holdshort.contract.resume import BINDING, TANSTACK_BINDING, Entry, Problem
from holdshort.contract.state import Interrupt, Pause, Run, ThreadState

EVENTS = "events"
MOST_TOLD = 64  # problems and ids in one refusal; as many as a pause has interrupts
MOST_BYTES = 2 * 1024 * 1024 - 64 * 1024  # of an event of ours: what a record may have, less key and headers


def passed(record: Record, run: Run) -> Emit:
    """The agent's event as it came, under the run that the gate took it for."""
    headers = (*forwarded(record.headers), (RUN, run.run_id.encode()))
    return Emit(EVENTS, record.key, record.value, headers)


def started(thread: str, run_id: str) -> Emit:
    event = {
        "type": "RUN_STARTED",
        "threadId": thread,
        "runId": run_id,
        "protocolVersion": PROTOCOL_VERSION,
    }
    return _event(thread, run_id, event)


def failed(thread: str, run_id: str, code: Code, metadata: dict[str, Any] | None = None) -> Emit:
    """A RUN_ERROR of ours; its message says what to do next."""
    event: dict[str, Any] = {"type": "RUN_ERROR", "message": code.sentence, "code": code}
    if metadata:
        event["metadata"] = metadata
    return _event(thread, run_id, event, code)


def finished(thread: str, run_id: str, **members: Any) -> Emit:
    event = {"type": "RUN_FINISHED", "threadId": thread, "runId": run_id, **members}
    return _event(thread, run_id, event)


def _event(thread: str, run_id: str, event: dict[str, Any], code: Code | None = None) -> Emit:
    headers: tuple[tuple[str, bytes], ...] = (JSON_TYPE, (RUN, run_id.encode()))
    if code:
        headers = (*headers, (CODE, code.encode()))
    return Emit(EVENTS, thread.encode(), msgspec.json.encode(event), headers)


def framed(thread: str, run_id: str, shown_as_running: bool, *emits: Emit) -> tuple[Emit, ...]:
    """Events of a run, preceded by a RUN_STARTED of ours if clients do not see it as running."""
    return emits if shown_as_running else (started(thread, run_id), *emits)


def closing(thread: str, record: Record | None, generation: int, outcome: str) -> tuple[Emit, ...]:
    """A run of ours by which clients forget a pause that went away without the agent's RUN_FINISHED."""
    place = (record.topic, record.partition, record.offset) if record else ()
    run_id = own_run_id("closing", thread, generation, *place)
    return ended(thread, run_id, generation, outcome)


def ended(thread: str, run_id: str, generation: int, outcome: str) -> tuple[Emit, ...]:
    """A run that tells only how things stand: nothing is open."""
    metadata = {"holdshort": {"generation": generation or None, "outcome": outcome}}
    return started(thread, run_id), finished(thread, run_id, metadata=metadata)


# -- open interrupts ----------------------------------------------------------------------------------------


def opened(record: Record, pause: Pause, thread: str) -> Emit:
    """The agent's own RUN_FINISHED with the bindings of this pause; every other value as it was written."""
    event = members_of(record.value or b"")
    outcome: dict[str, Any] = {}
    if bytes(event.get("outcome", b"null")).startswith(b"{"):
        outcome = members_of(event["outcome"])
    outcome |= {"type": "interrupt", "interrupts": open_interrupts(pause)}
    event["outcome"] = outcome
    body = msgspec.json.encode(event)
    headers = (*forwarded(record.headers), (RUN, pause.run_id.encode()))
    return Emit(EVENTS, thread.encode(), body, headers)


def open_interrupts(pause: Pause) -> list[msgspec.Raw]:
    """The descriptors as clients see them: as the agent wrote them, and bound."""
    return [_bound(interrupt, pause) for interrupt in pause.interrupts]


def _bound(interrupt: Interrupt, pause: Pause) -> msgspec.Raw:
    members = members_of(interrupt.descriptor)
    raw = bytes(members.get("metadata", b"null"))
    if not raw.startswith((b"{", b"null")):
        return interrupt.descriptor  # not AG-UI's metadata: left alone, and so unbound
    metadata = members_of(raw) if raw.startswith(b"{") else {}
    hashed = _schema_hash(interrupt)
    metadata[BINDING] = _binding(pause, hashed)
    if not pause.reserved:
        theirs = metadata.get(TANSTACK_BINDING)
        metadata[TANSTACK_BINDING] = _tanstack_binding(interrupt, pause, hashed, theirs)
    members["metadata"] = metadata
    return msgspec.Raw(msgspec.json.encode(members))


def _binding(pause: Pause, hashed: dict[str, str]) -> dict[str, Any]:
    binding: dict[str, Any] = {
        "v": 1,
        "generation": pause.generation,
        "interruptedRunId": pause.run_id,
        "openedAt": pause.opened_at,
    }
    return binding | hashed


def _tanstack_binding(
    interrupt: Interrupt, pause: Pause, hashed: dict[str, str], theirs: Any
) -> dict[str, Any]:
    """TanStack clients leave an unbound interrupt out of their batch, so every one gets a binding."""
    ours = {"interruptedRunId": pause.run_id, "generation": pause.generation}
    if theirs is not None and bytes(theirs).startswith(b"{"):
        return members_of(theirs) | ours
    generic = {"v": 1, "kind": "generic", "interruptId": interrupt.id}
    return generic | ours | hashed


def _schema_hash(interrupt: Interrupt) -> dict[str, str]:
    schema = described(interrupt).get("responseSchema")
    named = schema_hash(schema) if isinstance(schema, dict) else None
    return {"responseSchemaHash": named} if named else {}


# -- refusals -----------------------------------------------------------------------------------------------


class Caller(NamedTuple):
    """Who is told: the ids of the input, and what it tried to answer."""

    thread: str
    run_id: str
    entries: Sequence[Entry] = ()
    parent_run_id: str | None = None


def refusal(
    state: ThreadState,
    caller: Caller,
    code: Code,
    problems: tuple[Problem, ...] = (),
    *,
    retryable: bool = False,
) -> tuple[Emit, ...]:
    """RUN_STARTED and RUN_ERROR under the caller's run id; a bare RUN_ERROR names no run.

    TanStack's list says the same a second time, and is left out where it would not fit.
    """
    ours = _refusal_metadata(state, code, problems, retryable=retryable)
    sent = list(dict.fromkeys(entry.interrupt_id for entry in caller.entries))
    both = ours
    if 0 < len(sent) <= MOST_TOLD:
        theirs = _tanstack_errors(state, caller, code, problems, sent)
        both = ours | {"tanstack": {"interruptErrors": theirs}}
    error = failed(caller.thread, caller.run_id, code, both)
    if len(error.value or b"") > MOST_BYTES:
        error = failed(caller.thread, caller.run_id, code, ours)
    return started(caller.thread, caller.run_id), error


def _refusal_metadata(
    state: ThreadState, code: Code, problems: tuple[Problem, ...], *, retryable: bool
) -> dict[str, Any]:
    ours: dict[str, Any] = {
        "generation": state.generation or None,
        "retryable": retryable,
        "problems": [msgspec.to_builtins(problem) for problem in problems],
        "open": [],
    }
    if state.run is not None and state.run.answers is not None and code is Code.THREAD_BUSY:
        ours["answeredBy"] = state.run.run_id
    elif state.pause is not None and state.run is None:
        ours["open"] = open_interrupts(state.pause)
    return {"holdshort": ours}


def _answered(state: ThreadState, caller: Caller) -> int | None:
    """The generation that the caller means, for its client drops errors of another; else the open one."""
    echoed = {generation for entry in caller.entries for generation in entry.generations}
    if len(echoed) == 1:
        return echoed.pop()
    pauses = (*((state.pause,) if state.pause else ()), *state.gone)
    meant = (pause.generation for pause in pauses if pause.run_id == caller.parent_run_id)
    return next(meant, state.pause.generation if state.pause else None)


def _tanstack_errors(
    state: ThreadState, caller: Caller, code: Code, problems: tuple[Problem, ...], sent: list[str]
) -> list[dict[str, Any]]:
    """The same in TanStack's closed vocabulary; its client drops a list that names ids it did not send."""
    common = {
        "threadId": caller.thread,
        "interruptedRunId": caller.parent_run_id,
        "generation": _answered(state, caller),
        "source": "server",
        "retryable": False,
    }
    errors = [
        common
        | {
            "scope": "item",
            "interruptId": problem.interrupt_id,
            "code": problem.code.tanstack_item,
            "path": [part for part in (problem.path or "").split("/") if part],
            "message": problem.message or problem.code.sentence,
        }
        for problem in problems
        if problem.interrupt_id in sent
    ]
    batch = {
        "scope": "batch",
        "interruptIds": sent,
        "code": code.tanstack_batch,
        "message": code.sentence,
    }
    return [*errors, common | batch]
