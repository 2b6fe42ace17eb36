"""What the router knows of one paused thread (gathering.v1): who is asked, what was answered. Pure.

A gathering belongs to one pause, by generation, opening time and digest of the descriptors; it is never
continued for another one. When its pause is over it is only remembered, for its receipts.
"""

from typing import Any, Final, Literal

import msgspec

from holdshort.contract.canon import own_run_id
from holdshort.contract.state import Pause

VERSION: Final = 1
RECEIPTS_KEPT: Final = 64
MEMORY_MS: Final = 24 * 3600 * 1000


class _Part(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of the record: immutable, and on the wire only what differs from its default."""


class Answer(_Part, frozen=True, kw_only=True):
    """One accepted answer, and who gave it."""

    status: Literal["resolved", "cancelled"]
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    metadata: msgspec.Raw | None = None
    digest: str
    decision_id: str
    team: str
    decided_by: str | None = None
    decided_at: Any = None
    comment: str | None = None

    @property
    def size(self) -> int:
        """Bytes of what its author made us keep."""
        payload = b"" if self.payload is msgspec.UNSET else bytes(self.payload)
        return len(payload) + len(bytes(self.metadata or b"")) + len(self.comment or "")


class Asked(_Part, frozen=True, kw_only=True):
    """One interrupt and its team; `shown` says that its approval stands in the team's topic."""

    interrupt_id: str
    team: str
    approval_id: str
    shown: bool = False
    answer: Answer | None = None
    previous: Answer | None = None


class Receipt(_Part, frozen=True):
    """A receipt as it was given, so that the same decision gets the same answer again."""

    team: str
    decision_id: str
    value: msgspec.Raw


class Gathering(_Part, frozen=True, kw_only=True):
    """The state of one thread in the router.

    `attempt` counts how often the questions were put, `forwarded` is the run id of the batch that is under
    way, `held` says why a complete batch is not sent, `closed_at` (ms) when its pause was over.
    """

    v: int
    thread_id: str
    generation: int
    opened_at: int
    digest: str
    attempt: int = 1
    asked: tuple[Asked, ...] = ()
    forwarded: str | None = None
    held: str | None = None
    receipts: tuple[Receipt, ...] = ()
    closed_at: int | None = None

    def is_of(self, pause: Pause | None) -> bool:
        """Whether it belongs to that pause."""
        if pause is None or self.closed_at is not None:
            return False
        return (self.generation, self.opened_at, self.digest) == (
            pause.generation,
            pause.opened_at,
            pause.digest,
        )

    @property
    def complete(self) -> bool:
        return all(one.answer is not None for one in self.asked)

    @property
    def size(self) -> int:
        """Bytes of the answers gathered so far."""
        return sum(one.answer.size for one in self.asked if one.answer is not None)

    @property
    def waiting_for(self) -> list[str]:
        return sorted({one.team for one in self.asked if one.answer is None})

    @property
    def run_id(self) -> str:
        """The id of the run that a batch of this attempt starts."""
        return own_run_id(self.thread_id, self.generation, self.attempt)

    def one(self, interrupt_id: str) -> Asked | None:
        return next((asked for asked in self.asked if asked.interrupt_id == interrupt_id), None)


_decoder = msgspec.json.Decoder(Gathering)
_replace = msgspec.structs.replace


def encode_gathering(gathering: Gathering) -> bytes:
    return msgspec.json.encode(gathering)


def decode_gathering(value: bytes) -> Gathering:
    """Raises msgspec.MsgspecError."""
    return _decoder.decode(value)


def answered(gathering: Gathering, interrupt_id: str, answer: Answer) -> Gathering:
    """With this answer; its team is no longer needed for it."""
    asked = tuple(
        _replace(one, answer=answer, shown=False) if one.interrupt_id == interrupt_id else one
        for one in gathering.asked
    )
    return _replace(gathering, asked=asked)


def asked_again(gathering: Gathering) -> Gathering:
    """The next attempt: nobody knows whether the answers were used, so people are asked again."""
    asked = tuple(_replace(one, answer=None, previous=one.answer or one.previous) for one in gathering.asked)
    return _replace(gathering, attempt=gathering.attempt + 1, asked=asked, forwarded=None, held=None)


def remembered(gathering: Gathering, receipt: Receipt) -> Gathering:
    """With this receipt, the oldest ones forgotten."""
    receipts = (*gathering.receipts, receipt)[-RECEIPTS_KEPT:]
    return _replace(gathering, receipts=receipts)


def closed(gathering: Gathering, at: int) -> Gathering:
    """Its pause is over; what it asked is withdrawn by whoever calls this."""
    asked = tuple(_replace(one, shown=False) for one in gathering.asked)
    return _replace(gathering, asked=asked, closed_at=at)
