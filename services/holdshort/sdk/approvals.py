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
    already, `previous` is the answer of the attempt before, whose use is not known.
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
    priority: int = 0
    batch: dict[str, int] = {}
    quorum: dict[str, int] = {}
    claim: dict[str, Any] | None = None
    previous: dict[str, Any] | None = None
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
    """What a team answers to one approval; made by `approve`, `deny`, `answer` and `cancel`."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    status: Literal["resolved", "cancelled"]
    payload: Any = ABSENT
    by: str | None = None
    comment: str | None = None


def approve(
    payload: Mapping[str, Any] | None = None,
    *,
    edited_args: Mapping[str, Any] | None = None,
    by: str | None = None,
    comment: str | None = None,
) -> Decision:
    """Yes: `{approved: true}`, with the arguments that replace the proposed ones, and further members."""
    whole: dict[str, Any] = {**(payload or {}), "approved": True}
    if edited_args is not None:
        whole["editedArgs"] = dict(edited_args)
    return Decision(status="resolved", payload=whole, by=by, comment=comment)


def deny(
    payload: Mapping[str, Any] | None = None, *, by: str | None = None, comment: str | None = None
) -> Decision:
    """No: `{approved: false}`, with further members. A denial is an answer; `cancel` is none."""
    return Decision(status="resolved", payload={**(payload or {}), "approved": False}, by=by, comment=comment)


def answer(payload: Any, *, by: str | None = None, comment: str | None = None) -> Decision:
    """Any JSON value that fits the question's schema."""
    return Decision(status="resolved", payload=payload, by=by, comment=comment)


def cancel(*, by: str | None = None, comment: str | None = None) -> Decision:
    """Nobody answers; the way past a question that has expired. Some agents take it for a default answer."""
    return Decision(status="cancelled", by=by, comment=comment)


def decision_record(approval: Approval, decision: Decision, now: datetime) -> dict[str, Any]:
    """The decision.v1 that answers the approval, as it was seen and no other.

    The same answer to the same approval has the same `decisionId`, so that one that is sent again, after a
    crash or a rebalance, counts once.
    """
    entry: dict[str, Any] = {"interruptId": approval.interrupt_id, "status": decision.status}
    if decision.payload is not ABSENT:
        entry["payload"] = decision.payload
    return {
        "v": 1,
        "decisionId": decision_id(approval, entry),
        "threadId": approval.thread_id,
        "generation": approval.generation,
        "action": "decide",
        "resume": [entry],
        "decidedBy": usable(decision.by),
        "decidedAt": now.astimezone(UTC).isoformat(timespec="milliseconds"),
        "comment": usable(decision.comment),
        "seen": {approval.interrupt_id: approval.digest},
    }


def decision_id(approval: Approval, entry: Mapping[str, Any]) -> str:
    """22 characters that depend on the approval, its attempt, what it showed and the answer."""
    form = canonical([approval.approval_id, approval.attempt, approval.digest, entry])
    if form is None:
        raise ValueError("a payload is JSON, with integers that fit 53 bits")
    return urlsafe_b64encode(bytes.fromhex(sha256(form))).decode()[:22]


class Entry(_Model):
    """What was said of one interrupt of a decision; `code` says why it was refused."""

    interrupt_id: str
    verdict: Literal["accepted", "refused", "duplicate"]
    code: str | None = None
    problems: list[dict[str, Any]] = []


class Receipt(_Model):
    """The router's answer to a decision (receipt.v1)."""

    decision_id: str
    thread_id: str
    generation: int | None = None
    verdict: Literal["accepted", "refused", "duplicate"]
    code: str | None = None
    entries: list[Entry] = []
    batch: dict[str, Any] = {}
