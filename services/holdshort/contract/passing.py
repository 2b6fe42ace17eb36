"""A word more of the run in flight, which changes nothing: most records by far. A shorter way to the verdict.

There is no rule in here. Wherever a row of events.py might say anything else, this says nothing, and the rows
are asked; tests hold both against each other on every event of random histories.
"""

from typing import Final

from holdshort.contract.messages import (
    ADMISSION,
    RUN,
    Emit,
    Record,
    header,
    parse_object,
    size_of,
    text_header,
)
from holdshort.contract.rules import Rules
from holdshort.contract.shown import passed
from holdshort.contract.state import Run, ThreadState, pointer_of

PLAIN: Final = frozenset(
    {
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "REASONING_MESSAGE_CONTENT",
        "TOOL_CALL_END",
    }
)


def passed_on(state: ThreadState, record: Record, agent: str, now: int, rules: Rules) -> Emit | None:
    """What is emitted for the record if it is *anything else* and changes nothing; None if it may not be.

    That the thread has a run says that key and partition are the thread's: else it would have no state here.
    """
    run = state.run
    if run is None or run.agent != agent or state.pause is not None or record.key is None:
        return None
    if not (run.started and run.shown and run.messages_changed):
        return None  # the event would change what is known of the run
    if run.seen_at is None or now - run.seen_at >= rules.run_lease_ms // 4:
        return None  # it would renew the lease
    if size_of(record) > rules.limits.event or (event := parse_object(record.value)) is None:
        return None
    if event.get("type") not in PLAIN or event.get("threadId") not in (None, record.key.decode()):
        return None
    return passed(record, run) if _is_of(run, record, event.get("runId"), rules) else None


def _is_of(run: Run, record: Record, named: object, rules: Rules) -> bool:
    """Whether the event names this run, by its admission or else by its id."""
    if not record.headers:
        return named == run.run_id and not rules.agent(run.agent).foreign_run_ids
    if echo := header(record.headers, ADMISSION):
        return run.admission is not None and pointer_of(echo) == run.admission
    if rules.agent(run.agent).foreign_run_ids:
        return False
    return (text_header(record.headers, RUN) or named) == run.run_id
