"""What a team is asked and what it answers: approval.v1, decision.v1, receipt.v1. Pure."""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel

from holdshort.contract.canon import canonical, sha256
from holdshort.contract.messages import usable


class UnreadableArgumentsError(ValueError):
    """The question is not about a tool call, or its arguments are not (or not wholly) known.

    Nothing may be approved by arguments that nobody can read: an Approver leaves the question to people.
    """


def _from_ms(value: Any) -> Any:
    return datetime.fromtimestamp(value / 1000, UTC) if isinstance(value, int) else value


Moment = Annotated[datetime, BeforeValidator(_from_ms)]


class _Model(BaseModel):
    """snake_case here, camelCase on the wire; members that are not known here are kept."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="allow", frozen=True
    )


class Tool(_Model):
    """The tool call that an interrupt asks about; `args` is JSON text as the agent streamed it.

    `args` is None when there was more than is kept.
    """

    call_id: str
    name: str
    args: str | None = None


class Approval(_Model):
    """One open question for one team (approval.v1).

    `interrupt` is the agent's descriptor as it wrote it, `attempted` says that the tool has had a result
    already, `previous` is the answer of the attempt before, whose use is not known, `problem` the code for
    which it was refused. `claim` says who holds it, until when (ms since the epoch).
    """

    v: Literal[1] = 1
    approval_id: str
    thread_id: str
    generation: int
    attempt: int = 1
    interrupted_run_id: str
    agent: str
    requester: str | None = None
    team: str
    route: str | None = None
    interrupt: dict[str, Any]
    tool: Tool | None = None
    attempted: bool = False
    opened_at: Moment
    deadline: Moment | None = None
    reminded: bool = False
    moved_from: str | None = None
    priority: int = 0
    batch: dict[str, int] = {}
    quorum: dict[str, int] = {}
    requester_may_decide: bool = True
    signature: Literal["optional", "required"] = "optional"
    claim: dict[str, Any] | None = None
    previous: dict[str, Any] | None = None
    problem: str | None = None
    digest: str

    @property
    def interrupt_id(self) -> str:
        return str(self.interrupt["id"])

    @property
    def reason(self) -> str:
        return str(self.interrupt["reason"])

    @property
    def message(self) -> str | None:
        """What the agent says to people."""
        message = self.interrupt.get("message")
        return message if isinstance(message, str) else None

    @property
    def response_schema(self) -> dict[str, Any] | None:
        """The JSON Schema that a payload must fit."""
        schema = self.interrupt.get("responseSchema")
        return schema if isinstance(schema, dict) else None

    def held_by(self, now: datetime) -> str | None:
        """Who has claimed it and still holds it."""
        claim = self.claim
        return None if claim is None or now.timestamp() * 1000 >= claim["until"] else str(claim["by"])

    def held_for(self, now: datetime) -> float:
        """Seconds until its claim is over; 0 if nobody holds it."""
        return 0.0 if self.claim is None else max(0.0, self.claim["until"] / 1000 - now.timestamp())

    @property
    def args(self) -> dict[str, Any]:
        """The tool's arguments, parsed. Raises UnreadableArgumentsError where they cannot be known."""
        try:
            args = orjson.loads(self.tool.args or "") if self.tool else None
        except orjson.JSONDecodeError:
            args = None
        if not isinstance(args, dict):
            raise UnreadableArgumentsError("the tool's arguments are not known")
        return args


class _Absent:
    """No payload at all, which is not the same as null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


class Decision(BaseModel):
    """What a team does about one approval; made by `approve`, `deny`, `answer`, `cancel`, `confirm`, and by
    `claim` and `release`.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    action: Literal["decide", "confirm", "claim", "release"] = "decide"
    status: Literal["resolved", "cancelled"] = "resolved"
    payload: Any = ABSENT
    by: str | None = None
    comment: str | None = None


def approve(
    payload: Mapping[str, Any] | BaseModel | None = None,
    *,
    edited_args: Mapping[str, Any] | BaseModel | None = None,
    by: str | None = None,
    comment: str | None = None,
) -> Decision:
    """Yes: `{approved: true}`, with the arguments that replace the proposed ones, and further members."""
    whole: dict[str, Any] = {**(_plain(payload) or {}), "approved": True}
    if edited_args is not None:
        whole["editedArgs"] = dict(_plain(edited_args))
    return Decision(status="resolved", payload=whole, by=by, comment=comment)


def deny(
    payload: Mapping[str, Any] | BaseModel | None = None, *, by: str | None = None, comment: str | None = None
) -> Decision:
    """No: `{approved: false}`, with further members. A denial is an answer; `cancel` is none."""
    whole = {**(_plain(payload) or {}), "approved": False}
    return Decision(status="resolved", payload=whole, by=by, comment=comment)


def answer(payload: Any, *, by: str | None = None, comment: str | None = None) -> Decision:
    """Any JSON value, or pydantic model, that fits the question's schema."""
    return Decision(status="resolved", payload=_plain(payload), by=by, comment=comment)


def _plain(payload: Any) -> Any:
    """A model as the JSON it stands for, its members called by their aliases."""
    return payload.model_dump(mode="json", by_alias=True) if isinstance(payload, BaseModel) else payload


def cancel(*, by: str | None = None, comment: str | None = None) -> Decision:
    """Nobody answers; the way past a question that has expired. Some agents take it for a default answer."""
    return Decision(status="cancelled", by=by, comment=comment)


def confirm(*, by: str | None = None, comment: str | None = None) -> Decision:
    """The answer of the attempt before once more, as it stands in `previous`."""
    return Decision(action="confirm", by=by, comment=comment)


def claim(*, by: str) -> Decision:
    """Hold the question for this person for a while: nobody else of the team decides it meanwhile."""
    return Decision(action="claim", by=by)


def release(*, by: str) -> Decision:
    """Give a claim back."""
    return Decision(action="release", by=by)


def decision_record(
    approval: Approval, decision: Decision, now: datetime, place: str | None = None
) -> dict[str, Any]:
    """The decision.v1 that answers the approval, as it was seen and no other.

    The same answer to the same approval has the same `decisionId`, so that one that is sent again, after a
    crash or a rebalance, counts once. `place` is where the approval was read: what the router writes anew
    is asked anew, so that an answer that was refused while somebody held the question is judged again.
    """
    entry: dict[str, Any] = {"interruptId": approval.interrupt_id}
    moment = now.astimezone(UTC).isoformat(timespec="milliseconds")
    if decision.action == "decide":
        entry["status"] = decision.status
        if decision.payload is not ABSENT:
            entry["payload"] = decision.payload
        named: Any = entry
    elif decision.action == "confirm":
        named = [decision.action, entry]
    else:  # claims come and go: each is a decision of its own
        named = [decision.action, entry, decision.by, moment]
    return {
        "v": 1,
        "decisionId": decision_id(approval, named if place is None else [named, place]),
        "threadId": approval.thread_id,
        "generation": approval.generation,
        "attempt": approval.attempt,
        "action": decision.action,
        "resume": [entry],
        "decidedBy": usable(decision.by),
        "decidedAt": moment,
        "comment": usable(decision.comment),
        "seen": {approval.interrupt_id: approval.digest},
    }


def decision_id(approval: Approval, said: Any) -> str:
    """22 characters that depend on the approval, its attempt, what it showed and what is said of it."""
    form = canonical([approval.approval_id, approval.attempt, approval.digest, said])
    if form is None:
        raise ValueError("a payload is JSON, with integers that fit 53 bits")
    return urlsafe_b64encode(bytes.fromhex(sha256(form))).decode()[:22]


class Entry(_Model):
    """What was said of one interrupt of a decision; `code` says why it was refused.

    `decided` is the answer that stood already: status, payload, decidedBy, decidedAt.
    """

    interrupt_id: str
    verdict: Literal["accepted", "refused", "duplicate"]
    code: str | None = None
    problems: list[dict[str, Any]] = []
    decided: dict[str, Any] | None = None


class Receipt(_Model):
    """The router's answer to a decision (receipt.v1); a later one says what does not count after all."""

    decision_id: str
    thread_id: str
    generation: int | None = None
    verdict: Literal["accepted", "refused", "duplicate"]
    code: str | None = None
    entries: list[Entry] = []
    batch: dict[str, Any] = {}
