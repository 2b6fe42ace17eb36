"""The registry of codes: every machine-readable reason for which a record is refused or dead-lettered.

README's table is made from here. A code is never renamed: clients and alerts depend on it.
"""

from enum import StrEnum
from typing import NamedTuple


class Code(StrEnum):
    """The stable name of a refusal, as it stands in `RUN_ERROR.code`, headers, metrics and logs."""

    MALFORMED_INPUT = "MALFORMED_INPUT"
    MALFORMED_EVENT = "MALFORMED_EVENT"
    MISKEYED_RECORD = "MISKEYED_RECORD"
    TOO_LARGE = "TOO_LARGE"
    INVALID_RESUME = "INVALID_RESUME"
    STALE_BINDING = "STALE_BINDING"
    ABANDONED = "ABANDONED"
    RUN_ID_IN_USE = "RUN_ID_IN_USE"
    RESUME_CONFLICT = "RESUME_CONFLICT"
    THREAD_BUSY = "THREAD_BUSY"
    PENDING_INTERRUPTS = "PENDING_INTERRUPTS"
    CONFLICTING_CHANNELS = "CONFLICTING_CHANNELS"
    UNKNOWN_AGENT = "UNKNOWN_AGENT"
    UNKNOWN_INTERRUPT_ID = "UNKNOWN_INTERRUPT_ID"
    DUPLICATE_INTERRUPT_ID = "DUPLICATE_INTERRUPT_ID"
    RESERVED_FOR_TEAM = "RESERVED_FOR_TEAM"
    PARTIAL_RESUME = "PARTIAL_RESUME"
    INTERRUPT_EXPIRED = "INTERRUPT_EXPIRED"
    INVALID_PAYLOAD = "INVALID_PAYLOAD"
    SCHEMA_REFUSED = "SCHEMA_REFUSED"
    RUN_LOST = "RUN_LOST"
    INVALID_OUTCOME = "INVALID_OUTCOME"
    FOREIGN_RUN = "FOREIGN_RUN"
    STALE_RUN = "STALE_RUN"
    TOO_MANY_PAUSES = "TOO_MANY_PAUSES"

    @property
    def sentence(self) -> str:
        """What happened and what to do next, for people; never with a value of the user's in it."""
        return _REGISTRY[self].sentence

    @property
    def retry(self) -> str:
        """Whether sending again can succeed, and after what."""
        return _REGISTRY[self].retry

    @property
    def tanstack_item(self) -> str:
        """The item code of TanStack's closed vocabulary that says the nearest thing."""
        return _REGISTRY[self].item

    @property
    def tanstack_batch(self) -> str:
        """The batch code of TanStack's closed vocabulary that says the nearest thing."""
        return _REGISTRY[self].batch


class _Entry(NamedTuple):
    sentence: str
    retry: str
    item: str = "stale"
    batch: str = "stale"


_REGISTRY: dict[Code, _Entry] = {
    Code.MALFORMED_INPUT: _Entry(
        "The input is not a RunAgentInput that every parser reads alike; send strict JSON with both ids.",
        "after mending it",
        "invalid-payload",
        "protocol",
    ),
    Code.MALFORMED_EVENT: _Entry(
        "The agent's event is not a JSON object with a string type.", "after mending the agent"
    ),
    Code.MISKEYED_RECORD: _Entry(
        "The record's key must be its thread id, its partition the one of Kafka's default partitioner.",
        "with the right key and partitioner",
        "invalid-payload",
        "protocol",
    ),
    Code.TOO_LARGE: _Entry(
        "The record is over a size limit.",
        "when smaller",
        "invalid-payload",
        "item-validation-failed",
    ),
    Code.INVALID_RESUME: _Entry(
        "The resume is not a list of {interruptId, status: resolved | cancelled, payload}.",
        "after mending it",
        "invalid-payload",
        "item-validation-failed",
    ),
    Code.STALE_BINDING: _Entry(
        "This answers another question than the one that is open; answer what is open now.",
        "no: answer anew",
    ),
    Code.ABANDONED: _Entry(
        "The run was abandoned by an operator or by policy.",
        "with a new input",
        "conflict",
        "conflict",
    ),
    Code.RUN_ID_IN_USE: _Entry(
        "A run with this id is in flight on this thread; use a new run id.",
        "with another run id",
        "conflict",
        "conflict",
    ),
    Code.RESUME_CONFLICT: _Entry(
        "These interrupts have already been answered, and differently.",
        "no",
        "conflict",
        "conflict",
    ),
    Code.THREAD_BUSY: _Entry(
        "A run is in flight on this thread; send again when it has ended.",
        "when the run has ended",
        "conflict",
        "conflict",
    ),
    Code.PENDING_INTERRUPTS: _Entry(
        "The thread waits for an answer; resume it with one entry for every open interrupt.",
        "with a resume",
        "unknown-interrupt",
        "incomplete-batch",
    ),
    Code.CONFLICTING_CHANNELS: _Entry(
        "An answer stands in forwardedProps.command; answer by resume alone.",
        "without the command",
        "conflict",
        "conflict",
    ),
    Code.UNKNOWN_AGENT: _Entry(
        "No agent of this name is configured.", "with a configured agent", "stale", "server"
    ),
    Code.UNKNOWN_INTERRUPT_ID: _Entry(
        "The resume names an interrupt that is not open.",
        "with the open ids",
        "unknown-interrupt",
        "incomplete-batch",
    ),
    Code.DUPLICATE_INTERRUPT_ID: _Entry(
        "The resume answers the same interrupt twice.",
        "with one entry each",
        "conflict",
        "conflict",
    ),
    Code.RESERVED_FOR_TEAM: _Entry(
        "This question belongs to a team and cannot be answered here.",
        "no: the team decides",
        "conflict",
        "conflict",
    ),
    Code.PARTIAL_RESUME: _Entry(
        "The resume must answer every open interrupt at once.",
        "with all entries",
        "unknown-interrupt",
        "incomplete-batch",
    ),
    Code.INTERRUPT_EXPIRED: _Entry(
        "The interrupt has expired; the way on is to cancel it.",
        "with status cancelled",
        "expired",
        "item-validation-failed",
    ),
    Code.INVALID_PAYLOAD: _Entry(
        "The payload does not fit the interrupt's response schema.",
        "with a payload that fits",
        "invalid-payload",
        "item-validation-failed",
    ),
    Code.SCHEMA_REFUSED: _Entry(
        "The interrupt's response schema cannot be checked safely, so it can only be cancelled.",
        "with status cancelled",
        "invalid-response-schema",
        "item-validation-failed",
    ),
    Code.RUN_LOST: _Entry("The run has not been heard of for too long and was given up.", "yes"),
    Code.INVALID_OUTCOME: _Entry(
        "The agent ended its run with an outcome that is not AG-UI.", "after mending the agent"
    ),
    Code.FOREIGN_RUN: _Entry("The thread belongs to a run of another agent.", "no"),
    Code.STALE_RUN: _Entry("The event is of a run that the thread does not know.", "no"),
    Code.TOO_MANY_PAUSES: _Entry(
        "Too many pauses of this agent are open; this one can only be abandoned.",
        "when others are settled",
        "stale",
        "server",
    ),
}
