"""A team's questions and answers by the team's own credentials: read, decided, and the receipt waited for.

Reads `approvals.<team>` and `receipts.<team>`, writes `decisions.<team>`, and nothing else.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec
import orjson
from pydantic import ValidationError

from holdshort.cli.reading import Cluster, opened
from holdshort.contract import schemas
from holdshort.contract.messages import JSON_TYPE
from holdshort.sdk.approvals import ABSENT, Approval, Decision, Receipt, decision_id, decision_record
from holdshort.sdk.signing import Signer
from holdshort.stream.errors import Fatal
from holdshort.stream.records import Record, TopicPartition, Write
from holdshort.stream.topics import Topic, table

PATIENCE_S: Final = 30.0


class Asked(NamedTuple):
    """An open question, the bytes it came as, and its partition, in which it is answered."""

    approval: Approval
    raw: bytes
    partition: int


class TeamDesk:
    """One team's queue."""

    def __init__(self, cluster: Cluster, team: str, signer: Signer | None) -> None:
        self._cluster = cluster
        self._approvals, self._decisions, self._receipts = _topics(team)
        self._signer = signer

    async def open(self) -> list[Asked]:
        """What is asked of the team, in the order in which it wants to be answered."""
        rows = await self._cluster.latest(self._approvals, _asked)
        return sorted(rows.values(), key=_urgency)

    async def answer(self, asked: Asked, decision: Decision) -> Receipt | None:
        """Write a decision and wait for its receipt; None if none comes in time. Raises CannotSignError."""
        record = self.record(asked.approval, decision)
        where = TopicPartition(self._receipts, asked.partition)
        begin = await self._cluster.ends([where])
        value = Write(self._decisions, asked.approval.thread_id.encode(), orjson.dumps(record), (JSON_TYPE,))
        await self._cluster.write(TopicPartition(self._decisions, asked.partition), value)
        async for came in self._cluster.follow(begin, PATIENCE_S):
            for one in came:
                receipt = _receipt(one)
                if receipt is not None and receipt.decision_id == record["decisionId"]:
                    return receipt
        return None

    def record(self, approval: Approval, decision: Decision) -> dict[str, Any]:
        """The decision.v1. What a person says is said anew each time, so it has an id of its own.

        A program that says the same again means the same; a person who was refused because somebody else
        held the question, and says the same when it is free, wants it judged again.
        """
        record = decision_record(approval, decision, datetime.now(UTC))
        record["decisionId"] = decision_id(approval, [record["resume"], decision.by, record["decidedAt"]])
        if self._signer is None or decision.action not in ("decide", "confirm"):
            return record
        return self._signer.signed(record, approval)

    async def receipts(self) -> AsyncIterator[tuple[int, Receipt]]:
        """Every receipt that is still there, and when it was written (ms since the epoch)."""
        where = self._cluster.partitions(self._receipts)
        ends = await self._cluster.ends(where)
        async for record in self._cluster.scan(dict.fromkeys(where, 0), ends):
            if (receipt := _receipt(record)) is not None:
                yield record.timestamp, receipt


@asynccontextmanager
async def desk(team: str, signer: Signer | None = None) -> AsyncIterator[TeamDesk]:
    """A team's queue on the cluster of the settings. Raises Fatal, MendSettingsError."""
    async with opened(f"approve-{team}", _topics(team)) as cluster:
        yield TeamDesk(cluster, team, signer)


def _topics(team: str) -> tuple[str, str, str]:
    """From the table, so that the names are said once."""
    kinds = ("approvals", "decisions", "receipts")
    known: Mapping[str, Topic] = {one.name: one for one in table((), (team,))}
    approvals, decisions, receipts = (known[f"{kind}.{team}"].name for kind in kinds)
    return approvals, decisions, receipts


def _asked(record: Record) -> Asked:
    value = record.value or b""
    try:
        approval = Approval.model_validate_json(value)
    except ValidationError as error:
        place = f"{record.topic}/{record.partition}/{record.offset}"
        raise Fatal(f"{place} is no approval that this version can read: upgrade first") from error
    return Asked(approval, value, record.partition)


def _receipt(record: Record) -> Receipt | None:
    try:
        return Receipt.model_validate_json(record.value or b"")
    except ValidationError:
        return None


def _urgency(asked: Asked) -> tuple[int, float, datetime]:
    one = asked.approval
    return -one.priority, one.deadline.timestamp() if one.deadline else float("inf"), one.opened_at


def chosen(asked: Sequence[Asked], name: str) -> Asked:
    """The one meant by an approval's id or its beginning, an interrupt's id or a thread. Raises Fatal."""
    found = [one for one in asked if name in (one.approval.approval_id, one.approval.interrupt_id)]
    found = found or [one for one in asked if one.approval.thread_id == name]
    found = found or [one for one in asked if len(name) >= 4 and one.approval.approval_id.startswith(name)]
    if not found:
        raise Fatal(f"nothing of that name is asked of the team: {name}")
    if len(found) > 1:
        ids = ", ".join(one.approval.approval_id for one in found[:5])
        raise Fatal(f"{len(found)} questions are meant by {name}, name one of them: {ids}")
    return found[0]


# -- whether an answer would be taken -----------------------------------------------------------------------


class Misfit(NamedTuple):
    """Where a payload does not fit, as a JSON pointer, and what the schema asks for there."""

    pointer: str
    message: str


def misfits(approval: Approval, payload: Any) -> list[Misfit]:
    """What the gate would say of the payload, by the same code."""
    value = None if payload is ABSENT else payload
    if schemas.unsafe_number(value):
        return [Misfit("", "a number is beyond what JavaScript can hold exactly")]
    if approval.response_schema is None:
        return []
    admission = schemas.admit(approval.response_schema)
    if admission.validator is None:
        return [Misfit("", f"its schema is refused ({admission.refused}): it can only be cancelled")]
    return [Misfit(one.pointer, one.message) for one in schemas.misfits(admission, value)]


def fitting(approval: Approval, *, yes: bool) -> Any:
    """The plainest yes or no that fits: `{approved: ...}`, or the bare word for a confirmation."""
    candidates: list[Any] = [{"approved": yes}, yes]
    if approval.reason == "confirmation" and approval.response_schema is None:
        candidates = [yes]
    return next((one for one in candidates if not misfits(approval, one)), candidates[0])


def counts(receipt: Receipt) -> bool:
    """Whether the decision stands: it was taken, now or when it was said first."""
    entries = receipt.entries
    return receipt.verdict != "refused" and not any(one.verdict == "refused" for one in entries)


def as_object(receipt: Receipt) -> dict[str, Any]:
    """A receipt for programs, as it came."""
    built: dict[str, Any] = msgspec.json.decode(receipt.model_dump_json(by_alias=True))
    return built
