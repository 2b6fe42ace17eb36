"""What an operator writes to `resumes`, and what becomes of it: to cancel, abandon, forget (contract 3, 6).

The gate judges these records like the router's. It tells nobody about those that it refuses, so the answer is
read from the thread's row of `pending`.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from holdshort.cli.reading import Cluster
from holdshort.contract.addressed import ABANDON, FORGET
from holdshort.contract.canon import own_run_id
from holdshort.contract.keys import partition_of
from holdshort.contract.messages import ACTION, ADMISSION, GENERATION, JSON_TYPE, RUN
from holdshort.contract.pending import UpgradeFirstError, decode_pending
from holdshort.contract.state import NOTHING, Pause, Run, ThreadState
from holdshort.router.context import places, rebuild, without_context
from holdshort.router.forwarding import RESUMES
from holdshort.stream.errors import Fatal
from holdshort.stream.records import RecordPlace, TopicPartition, Write

PENDING: Final = "pending"
GATHERING: Final = "gathering"
PATIENCE_S: Final = 30.0


class Outcome(NamedTuple):
    """What became of a record: whether it did what it was meant to do, and in words."""

    fine: bool
    said: str


Over = Callable[[ThreadState], Outcome | None]


# -- abandon ------------------------------------------------------------------------------------------------


def abandon_pause(thread: str, pause: Pause) -> tuple[Write, Over]:
    """The record that ends a pause without an answer, and how to see that it has."""
    run_id = _run_id(thread)
    headers = ((GENERATION, str(pause.generation).encode()), (ACTION, ABANDON.encode()))

    def over(state: ThreadState) -> Outcome | None:
        return _refused(state, run_id) or _gone(state, pause.generation, None)

    return _record(thread, {"threadId": thread, "runId": run_id}, headers), over


def abandon_run(thread: str, run: Run) -> tuple[Write, Over]:
    """The record that ends a run that blocks its thread."""
    named = _named(run)
    value = {"threadId": thread, "runId": _run_id(thread)}

    def over(state: ThreadState) -> Outcome | None:
        if state.pause is not None:
            return Outcome(
                False, "the run has paused meanwhile: `holdshort interrupts show` has the question"
            )
        if state.run is not None and (state.run.run_id, state.run.admission) == (run.run_id, run.admission):
            return None
        for ended in state.ended:
            if (ended.run_id, ended.admission) == (run.run_id, run.admission):
                return Outcome(ended.outcome == "abandoned", f"run {run.run_id} has ended: {ended.outcome}")
        return Outcome(False, f"run {run.run_id} is not there any more")

    return _record(thread, value, (named, (ACTION, ABANDON.encode()))), over


def _named(run: Run) -> tuple[str, bytes]:
    return (RUN, run.run_id.encode()) if run.admission is None else (ADMISSION, str(run.admission).encode())


# -- forget -------------------------------------------------------------------------------------------------


def forget_thread(thread: str, known: ThreadState) -> tuple[Write, Over]:
    """The record that has a thread forgotten, with what is open of it as it is known here."""
    run_id, headers = _run_id(thread), [(ACTION, FORGET.encode())]
    if known.pause is not None:
        headers.append((GENERATION, str(known.pause.generation).encode()))
    elif known.run is not None:
        headers.append(_named(known.run))

    def over(state: ThreadState) -> Outcome | None:
        if state.empty:
            return Outcome(True, f"thread {thread} is forgotten")
        return _refused(state, run_id) or _otherwise(state, known)

    return _record(thread, {"threadId": thread, "runId": run_id}, tuple(headers)), over


def _otherwise(state: ThreadState, known: ThreadState) -> Outcome | None:
    """Whether another pause or run is there than the one that was named: then nothing is forgotten."""
    there = (state.pause and state.pause.generation, state.run and (state.run.run_id, state.run.admission))
    named = (known.pause and known.pause.generation, known.run and (known.run.run_id, known.run.admission))
    if there == named:
        return None
    return Outcome(
        False, "the thread has gone on meanwhile, and is not forgotten: look at it, and say it again"
    )


# -- cancel -------------------------------------------------------------------------------------------------


async def cancel_pause(
    cluster: Cluster, thread: str, pause: Pause, by: str | None, comment: str | None
) -> tuple[Write, Over, bool]:
    """One batch that cancels every open interrupt, how to see it judged, and whether its context is whole."""
    members, complete = await _context(cluster, pause)
    run_id = _run_id(thread)
    told = {"cause": "operator", "decidedBy": by, "comment": comment}
    told |= {"context": None if complete else "incomplete"}
    said = {name: value for name, value in told.items() if value is not None}
    entries = [
        {"interruptId": id_, "status": "cancelled", "metadata": {"holdshort": said}} for id_ in pause.ids
    ]
    ids = {"threadId": thread, "runId": run_id, "parentRunId": pause.run_id}
    value = {**ids, **members, "resume": entries}

    def over(state: ThreadState) -> Outcome | None:
        if state.run is not None and state.run.run_id == run_id:
            return Outcome(True, f"the cancels are with the agent, as run {run_id}")
        return _refused(state, run_id) or _gone(state, pause.generation, run_id)

    return _record(thread, value, ((GENERATION, str(pause.generation).encode()),)), over, complete


async def _context(cluster: Cluster, pause: Pause) -> tuple[Mapping[str, Any], bool]:
    """Messages, state and the rest as the router would send them, as far as this principal may read them."""
    wanted: list[RecordPlace] = places(pause)
    if not all(cluster.may_read(where.topic) for where, _ in wanted):
        return without_context().members, False
    rebuilt = rebuild(pause, await cluster.fetch(wanted))
    return rebuilt.members, rebuilt.complete


# -- writing and seeing -------------------------------------------------------------------------------------


async def written(cluster: Cluster, record: Write, over: Over) -> Outcome:
    """Write the record and wait for what the gate makes of it. Raises Fatal and Retry."""
    assert record.key is not None
    number = partition_of(record.key, cluster.seen[PENDING].partitions)
    rows = TopicPartition(PENDING, number)
    begin = await cluster.ends([rows])
    await cluster.write(TopicPartition(RESUMES, number), record)
    async for came in cluster.follow(begin, PATIENCE_S):
        for row in came:
            if row.key == record.key and (outcome := over(_state(row.value))) is not None:
                return outcome
    return Outcome(
        False,
        f"written, but the gatekeeper has not judged it within {PATIENCE_S:.0f} s: is one running, is its "
        "lane halted (`holdshort doctor`), or had the thread changed already?",
    )


async def forgotten_by_router(cluster: Cluster, thread: str) -> bool:
    """Whether the router follows a gate that has forgotten a thread; waits for it. Raises Fatal and Retry."""
    key = thread.encode()
    rows = TopicPartition(GATHERING, partition_of(key, cluster.seen[GATHERING].partitions))
    ends = await cluster.ends([rows])
    if key not in await cluster.latest(GATHERING, lambda row: row.key == key or None, ends):
        return True
    async for came in cluster.follow(ends, PATIENCE_S):
        if any(row.key == key and row.value is None for row in came):
            return True
    return False


def _state(value: bytes | None) -> ThreadState:
    try:
        return NOTHING if value is None else decode_pending(value)
    except UpgradeFirstError as error:
        raise Fatal(str(error)) from error


def _record(thread: str, value: Any, headers: tuple[tuple[str, bytes], ...]) -> Write:
    return Write(RESUMES, thread.encode(), msgspec.json.encode(value), (JSON_TYPE, *headers))


def _run_id(thread: str) -> str:
    """One of ours, and of this attempt alone: so its refusal is known from that of an earlier one."""
    return own_run_id(thread, "operator", secrets.token_hex(8))


def _refused(state: ThreadState, run_id: str) -> Outcome | None:
    refusal = state.pause.refusal if state.pause is not None else None
    if refusal is None or refusal.run_id != run_id:
        return None
    return Outcome(False, f"the gatekeeper refused it: {refusal.code}")


def _gone(state: ThreadState, generation: int, run_id: str | None) -> Outcome | None:
    """How the pause ended, if it has; `run_id` is the run that was to end it, None for an abandon."""
    if state.pause is not None and state.pause.generation == generation:
        return None
    for gone in state.gone:
        if gone.generation == generation:
            meant = gone.how == "abandoned" if run_id is None else gone.answered_by == run_id
            return Outcome(meant, f"pause {generation} is over: {gone.how}")
    return Outcome(False, f"pause {generation} is not there any more")
