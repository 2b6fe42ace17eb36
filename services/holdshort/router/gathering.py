"""What the router knows of one paused thread (gathering.v1): who is asked, what was answered. Pure.

A gathering belongs to one pause, by generation, opening time and digest of the descriptors; it is never
continued for another one. When its pause is over it is only remembered, for its receipts.
"""

from typing import Any, Final, Literal

import msgspec

from holdshort.contract.canon import own_run_id
from holdshort.contract.resume import ABSENT, Entry, digests
from holdshort.contract.routes import PLAIN, Policy
from holdshort.contract.state import Pause

VERSION: Final = 1
RECEIPTS_KEPT: Final = 64
COUNTED_KEPT: Final = 256
RECEIPT_BYTES_KEPT: Final = 256 * 1024
MEMORY_MS: Final = 24 * 3600 * 1000

Cause = Literal["deadline", "denial", "overflow", "expired"]


class _Part(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of the record: immutable, and on the wire only what differs from its default."""


class Answer(_Part, frozen=True, kw_only=True):
    """One accepted answer, and who gave it.

    `proof` says how the decider is proved, if at all; `cause` why the router itself gave it, if it did.
    """

    status: Literal["resolved", "cancelled"]
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # beside None, Raw decodes nothing but null
    digest: str
    decision_id: str
    team: str
    decided_by: str | None = None
    decided_at: Any = None
    comment: str | None = None
    proof: Literal["signature", "principal"] | None = None
    signature: str | None = None
    cause: Cause | None = None

    @property
    def size(self) -> int:
        """Bytes of what its author made us keep."""
        payload = b"" if self.payload is msgspec.UNSET else bytes(self.payload)
        metadata = b"" if self.metadata is msgspec.UNSET else bytes(self.metadata)
        texts = len(self.comment or "") + len(self.signature or "")
        return len(payload) + len(metadata) + texts


class Claim(_Part, frozen=True):
    """Who holds a question for themselves, until when (ms since the epoch)."""

    by: str
    until: int


class Asked(_Part, frozen=True, kw_only=True):
    """One interrupt and its team; `shown` says that its approval stands in the team's topic.

    `expires_at` is when the interrupt expires, `policy` that of its route (None: the plain one), `fallback`
    the payload that the router answers with if it must, `votes` the answers of a quorum that is not complete,
    `overdue` that nobody answered in time and that cancelling would not be safe, `spent` the decisions whose
    signatures have been used up by earlier attempts.
    """

    interrupt_id: str
    team: str
    approval_id: str
    shown: bool = False
    answer: Answer | None = None
    previous: Answer | None = None
    expires_at: int | None = None
    policy: Policy | None = None
    unknown_route: bool = False
    fallback: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    claim: Claim | None = None
    votes: tuple[Answer, ...] = ()
    reminded: bool = False
    escalated: bool = False
    overdue: bool = False
    moved_from: str | None = None
    spent: tuple[str, ...] = ()

    @property
    def put(self) -> Policy:
        """How it is put to people."""
        return self.policy or PLAIN

    @property
    def given(self) -> tuple[Answer, ...]:
        """What people have answered and what counts or may still count."""
        by_people = () if self.answer is None or self.answer.cause is not None else (self.answer,)
        return (*self.votes, *by_people)

    def claimed_by(self, now: int) -> str | None:
        """Who holds it; a lease that has expired is simply over."""
        return self.claim.by if self.claim is not None and now < self.claim.until else None


class Receipt(_Part, frozen=True):
    """A receipt as it was given, so that the same decision gets the same answer again.

    `digest` is that of what the decision said, `counted` that something of it was accepted.
    """

    team: str
    decision_id: str
    value: msgspec.Raw
    digest: str | None = None
    counted: bool = False


class Gathering(_Part, frozen=True, kw_only=True):
    """The state of one thread in the router; times are in ms since the epoch.

    `due` is the earliest deadline. `attempt` counts how often the questions were put, `put_at` says when last
    (0: at the opening), `problem` the code for which they were put again. `forwarded` is the run id of the
    batch that is under way, `held` why a complete batch is not sent, `resuming` that some answer is with the
    agent, `abandoned` that the router has asked for the end of the pause. `tried` names the last run that
    had an answer and did not settle the pause, `tries` and `retries` count, `attempted` are the interrupts
    whose tool call had a result when they were last put. `closed_at` is when its pause was over.
    """

    v: int
    due: int | None = None
    thread_id: str
    generation: int
    opened_at: int
    digest: str
    attempt: int = 1
    put_at: int = 0
    problem: str | None = None
    asked: tuple[Asked, ...] = ()
    forwarded: str | None = None
    held: str | None = None
    resuming: bool = False
    abandoned: bool = False
    tried: str | None = None
    tries: int = 0
    retries: int = 0
    attempted: tuple[str, ...] = ()
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
        return bool(self.asked) and all(one.answer is not None for one in self.asked)

    @property
    def settled(self) -> bool:
        """Whether nothing more is asked of people: an answer is under way, or the end has been asked for."""
        return self.forwarded is not None or self.resuming or self.abandoned

    @property
    def last_put(self) -> int:
        return self.put_at or self.opened_at

    @property
    def size(self) -> int:
        """Bytes of the answers gathered so far."""
        answers = (answer for one in self.asked for answer in (*one.votes, one.answer) if answer is not None)
        return sum(answer.size for answer in answers)

    @property
    def waiting_for(self) -> list[str]:
        return sorted({one.team for one in self.asked if one.answer is None})

    @property
    def run_id(self) -> str:
        """The id of the run that a batch of this attempt starts."""
        return own_run_id(self.thread_id, self.generation, self.attempt)

    def one(self, interrupt_id: str) -> Asked | None:
        return next((asked for asked in self.asked if asked.interrupt_id == interrupt_id), None)


class HeadAsked(msgspec.Struct, frozen=True):
    """As much of a question as is counted."""

    team: str
    shown: bool = False


class Head(msgspec.Struct, frozen=True, rename="camel"):
    """As much of a gathering as a restore needs: its deadline, and what is counted."""

    v: int
    due: int | None = None
    asked: tuple[HeadAsked, ...] = ()
    forwarded: str | None = None
    held: str | None = None
    closed_at: int | None = None


_decoder = msgspec.json.Decoder(Gathering)
_heads = msgspec.json.Decoder(Head)
_encoder = msgspec.json.Encoder()
_replace = msgspec.structs.replace


def encode_gathering(gathering: Gathering) -> bytes:
    return _encoder.encode(gathering)


def decode_gathering(value: bytes) -> Gathering:
    """Raises msgspec.MsgspecError."""
    return _decoder.decode(value)


def decode_head(value: bytes) -> Head:
    """Raises msgspec.MsgspecError."""
    return _heads.decode(value)


def with_asked(gathering: Gathering, asked: Asked) -> Gathering:
    """With this question as it is now."""
    return _replace(
        gathering,
        asked=tuple(asked if one.interrupt_id == asked.interrupt_id else one for one in gathering.asked),
    )


def asked_again(gathering: Gathering, now: int, problem: str | None = None) -> Gathering:
    """The next attempt: nobody knows whether the answers were used, so people are asked again."""
    asked = tuple(
        _replace(
            one,
            answer=None,
            previous=one.answer or one.previous,
            claim=None,
            votes=(),
            reminded=False,
            overdue=False,
            spent=(*one.spent, *_signed(one)),
        )
        for one in gathering.asked
    )
    return _replace(
        gathering,
        attempt=gathering.attempt + 1,
        put_at=now,
        problem=problem,
        asked=asked,
        forwarded=None,
        held=None,
    )


def _signed(asked: Asked) -> tuple[str, ...]:
    return tuple(one.decision_id for one in asked.given if one.signature is not None)


def sent_again(gathering: Gathering) -> Gathering:
    """The next attempt with the same answers."""
    return _replace(gathering, attempt=gathering.attempt + 1, forwarded=None, held=None)


def remembered(gathering: Gathering, receipt: Receipt) -> Gathering:
    """With this receipt; the oldest are forgotten, those that counted last: a record has its limits."""
    others = [one for one in gathering.receipts if not one.counted]
    counted = [one for one in gathering.receipts if one.counted]
    (counted if receipt.counted else others).append(receipt)
    del others[:-RECEIPTS_KEPT], counted[:-COUNTED_KEPT]
    size = sum(len(bytes(one.value)) for one in (*others, *counted))
    while size > RECEIPT_BYTES_KEPT:
        oldest = (others if len(others) > 1 or not counted else counted).pop(0)
        size -= len(bytes(oldest.value))
    return _replace(gathering, receipts=(*others, *counted))


def batch_digest(gathering: Gathering) -> str | None:
    """The digest of the answers as one batch, by which the gate knows it (contract 3.1)."""
    return digests(
        Entry(
            one.interrupt_id,
            one.answer.status == "resolved",
            ABSENT if one.answer.payload is msgspec.UNSET else msgspec.json.decode(one.answer.payload),
            {},
        )
        for one in gathering.asked
        if one.answer is not None
    ).strict


def closed(gathering: Gathering, at: int) -> Gathering:
    """Its pause is over: who decided is remembered, but no content; its questions are not shown any more."""
    asked = tuple(
        Asked(
            interrupt_id=one.interrupt_id,
            team=one.team,
            approval_id=one.approval_id,
            answer=_without_content(one.answer) if one.answer is not None else None,
        )
        for one in gathering.asked
    )
    return Gathering(
        v=gathering.v,
        due=at + MEMORY_MS,
        thread_id=gathering.thread_id,
        generation=gathering.generation,
        opened_at=gathering.opened_at,
        digest=gathering.digest,
        attempt=gathering.attempt,
        asked=asked,
        forwarded=gathering.forwarded,
        receipts=gathering.receipts,
        closed_at=at,
    )


def _without_content(answer: Answer) -> Answer:
    return _replace(answer, payload=msgspec.UNSET, metadata=msgspec.UNSET, comment=None, signature=None)
