"""The state of one thread, exactly as the compacted topic `pending` carries it (pending.v1).

These classes are the record: what is decided, what is restored and what other services read is one thing.
Names are snake_case here and camelCase on the wire. Times are milliseconds since the epoch. Topic names in
pointers are without the configured prefix.
"""

from functools import lru_cache
from typing import Literal

import msgspec

Outcome = Literal["success", "interrupt", "cancelled", "error", "invalid", "lost", "abandoned"]
How = Literal["settled", "superseded", "abandoned"]

_LONGEST_POINTER = 300  # a topic's name has at most 249 characters


class _Part(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of the state: immutable, and on the wire only what differs from its default."""


class Pointer(_Part, frozen=True):
    """A record's place in the log; what lies there never changes."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


def pointer_of(text: bytes) -> Pointer | None:
    """Read `topic/partition/offset`; None for anything that is not exactly what `str(pointer)` writes."""
    return _pointer_of(text) if len(text) <= _LONGEST_POINTER else None


@lru_cache(maxsize=65536)
def _pointer_of(text: bytes) -> Pointer | None:
    try:
        topic, partition, offset = text.decode().rsplit("/", 2)
        pointer = Pointer(topic, int(partition), int(offset))
    except ValueError:
        return None
    return pointer if str(pointer).encode() == text else None


class ToolCall(_Part, frozen=True):
    """A tool call as the agent streamed it; `args` is None when there was more than is kept."""

    call_id: str
    name: str
    args: str | None = None

    @property
    def size(self) -> int:
        """Its bytes in the state, where a quote or a control character is longer than it was streamed."""
        return len(msgspec.json.encode(self))

    def within(self, room: int) -> "ToolCall | None":
        """As much of it as has room: without its arguments if need be, for half of them would mislead."""
        if self.size <= room:
            return self
        bare = msgspec.structs.replace(self, args=None)
        return bare if bare.size <= room else None


class Run(_Part, frozen=True, kw_only=True):
    """The one run in flight.

    `admission` is None for a run started outside the gate. `started` says that the agent's own RUN_STARTED
    was read, `shown` that clients see it as running. The `*_changed` flags say that something followed the
    last snapshot, so that the snapshot alone is not the whole context.
    """

    run_id: str
    agent: str
    admission: Pointer | None
    admitted_at: int
    seen_at: int | None = None
    started: bool = False
    shown: bool = False
    not_gated: bool = False
    principal: str | None = None
    digest: str | None = None
    messages: Pointer | None = None
    state: Pointer | None = None
    messages_changed: bool = False
    state_changed: bool = False
    calls: tuple[ToolCall, ...] = ()
    legacy: tuple[msgspec.Raw, ...] = ()
    legacy_too_large: bool = False
    answers: int | None = None
    batch: str | None = None
    loose_batch: str | None = None

    def due(self, start_lease: int, run_lease: int) -> int:
        """When the run counts as lost unless it speaks before (contract 6)."""
        if self.seen_at is None:
            return self.admitted_at + start_lease
        return max(self.seen_at, self.admitted_at) + run_lease


class Interrupt(_Part, frozen=True, kw_only=True):
    """One open question: what the agent wrote, and what the gate knows about it."""

    id: str
    descriptor: msgspec.Raw
    tool: ToolCall | None = None
    route: str | None = None
    team: str | None = None
    reserved: bool = False
    reused: bool = False
    cancel_only: bool = False


class Context(_Part, frozen=True, kw_only=True):
    """What a run that answers the pause needs: where it lies in the log, and whether that is all of it."""

    input: Pointer | None = None
    messages: Pointer | None = None
    state: Pointer | None = None
    complete: bool = False


class Try(_Part, frozen=True):
    """The last run that answered the pause and did not settle it."""

    run_id: str
    admission: Pointer | None
    outcome: Literal["failed", "lost"]
    at: int


class Refusal(_Part, frozen=True):
    """The last record from `resumes` that was refused; how the router learns of it."""

    run_id: str
    code: str  # a Code, or one of a newer version: a name not known here must not make the state unreadable
    at: int


class Pause(_Part, frozen=True, kw_only=True):
    """The open interrupts of one run; named by (thread, generation).

    `inputs_end` is None until the end of the thread's `inputs` partition is known, just before the opening
    is committed; until then every record of `inputs` lies below it.
    """

    generation: int
    run_id: str
    admission: Pointer | None
    agent: str
    opened_at: int
    digest: str
    principal: str | None = None
    inputs_end: int | None = None
    status: Literal["open", "resuming"] = "open"
    sealed: bool = False
    interrupts: tuple[Interrupt, ...] = ()
    context: Context = Context()
    calls: tuple[ToolCall, ...] = ()
    attempted: tuple[str, ...] = ()
    try_: Try | None = msgspec.field(default=None, name="try")
    refusal: Refusal | None = None

    @property
    def reserved(self) -> bool:
        """AG-UI knows no partial answers: one interrupt of a team's reserves them all (contract 3.3)."""
        return any(interrupt.reserved for interrupt in self.interrupts)

    @property
    def routed(self) -> bool:
        """Whether teams are asked; else it is between the agent and its client."""
        return any(interrupt.team for interrupt in self.interrupts)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(interrupt.id for interrupt in self.interrupts)

    @property
    def size(self) -> int:
        """Bytes of what the agent made us keep."""
        size = 0
        for interrupt in self.interrupts:
            size += len(bytes(interrupt.descriptor))
            if interrupt.tool is not None:
                size += interrupt.tool.size
        for call in self.calls:
            size += call.size
        return size


class EndedRun(_Part, frozen=True, kw_only=True):
    """A run that is over; `lost` is all of it while it may still come back."""

    run_id: str
    admission: Pointer | None
    agent: str
    digest: str | None
    outcome: Outcome
    at: int
    not_gated: bool = False
    lost: Run | None = None


class GonePause(_Part, frozen=True, kw_only=True):
    """A pause that is no more; `batch` is the loose digest (an absent payload is the same as null)."""

    generation: int
    run_id: str
    admission: Pointer | None
    agent: str
    ids: tuple[str, ...]
    digest: str
    how: How
    at: int
    answered_by: str | None = None
    batch: str | None = None
    input_digest: str | None = None
    outcome: Outcome | None = None


class ThreadState(_Part, frozen=True, kw_only=True):
    """All that the gate knows of one thread; the empty state is written as a tombstone."""

    generation: int = 0
    run: Run | None = None
    pause: Pause | None = None
    ended: tuple[EndedRun, ...] = ()
    gone: tuple[GonePause, ...] = ()

    @property
    def empty(self) -> bool:
        return self.run is None and self.pause is None and not self.ended and not self.gone

    @property
    def last_not_gated(self) -> bool:
        """The newest run paused without being gated, and nothing has happened since."""
        return self.pause is None and bool(self.ended) and self.ended[0].not_gated


NOTHING = ThreadState()
