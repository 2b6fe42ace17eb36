"""What the router writes for teams: approvals and receipts. Pure."""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec
import orjson

from holdshort.contract.canon import canonical
from holdshort.contract.messages import JSON_TYPE, Emit
from holdshort.contract.resume import expires_at
from holdshort.contract.state import Interrupt, Pause
from holdshort.router.decisions import Decision, Judged, Misread, seen_digest
from holdshort.router.gathering import Answer, Asked, Gathering


def approval_id(thread: str, generation: int, interrupt_id: str) -> str:
    """The key of an approval: the same question has the same name wherever it is spoken of."""
    name = canonical([thread, generation, interrupt_id])
    assert name is not None
    return urlsafe_b64encode(sha256(name).digest()).decode()[:22]


def approval(gathering: Gathering, asked: Asked, pause: Pause) -> Emit:
    """One open question for one team: everything to show it and to check an answer (approval.v1)."""
    interrupt = next(one for one in pause.interrupts if one.id == asked.interrupt_id)
    expiry = expires_at(interrupt)
    record = {
        "v": 1,
        "approvalId": asked.approval_id,
        "threadId": gathering.thread_id,
        "generation": gathering.generation,
        "attempt": gathering.attempt,
        "interruptedRunId": pause.run_id,
        "agent": pause.agent,
        "requester": pause.principal,
        "team": asked.team,
        "route": interrupt.route,
        "interrupt": orjson.Fragment(bytes(interrupt.descriptor)),
        "tool": _tool(interrupt),
        "attempted": interrupt.id in pause.attempted,
        "openedAt": pause.opened_at,
        "deadline": None if expiry is None else expiry // 1000,
        "priority": 0,
        "batch": _batch(gathering, asked.team),
        "quorum": {"need": 1, "have": 0},
        "claim": None,
        "previous": _previous(asked.previous),
        "digest": seen_digest(interrupt),
    }
    return Emit(f"approvals.{asked.team}", asked.approval_id.encode(), orjson.dumps(record), (JSON_TYPE,))


def withdrawn(asked: Asked) -> Emit:
    """The team is no longer needed for this question."""
    return Emit(f"approvals.{asked.team}", asked.approval_id.encode(), None)


def _tool(interrupt: Interrupt) -> Any:
    tool = interrupt.tool
    return None if tool is None else {"callId": tool.call_id, "name": tool.name, "args": tool.args}


def _batch(gathering: Gathering, team: str) -> dict[str, int]:
    yours = sum(asked.team == team for asked in gathering.asked)
    return {"total": len(gathering.asked), "yours": yours}


def _previous(answer: Answer | None) -> Any:
    if answer is None:
        return None
    previous: dict[str, Any] = {"status": answer.status, "decidedBy": answer.decided_by}
    if answer.payload is not msgspec.UNSET:
        previous["payload"] = orjson.Fragment(bytes(answer.payload))
    return previous


def receipt(decision: Decision, judged: Sequence[Judged], gathering: Gathering | None) -> bytes:
    """The router's answer to a decision, entry by entry (receipt.v1)."""
    verdicts = {one.verdict for one in judged}
    open_one = gathering if gathering is not None and gathering.closed_at is None else None
    return orjson.dumps(
        {
            "v": 1,
            "decisionId": decision.decision_id,
            "threadId": decision.thread,
            "generation": decision.generation,
            "verdict": next((v for v in ("accepted", "duplicate") if v in verdicts), "refused"),
            "code": None,
            "problems": [],
            "entries": [_entry(one) for one in judged],
            "batch": {
                "complete": open_one.complete if open_one else False,
                "waitingFor": open_one.waiting_for if open_one else [],
                "runId": open_one.forwarded if open_one else None,
            },
        }
    )


def verdict_of(value: bytes) -> tuple[str, str | None]:
    """The verdict and code of a receipt; where it has no code of its own, that of its first entry."""
    said = orjson.loads(value)
    codes = [entry["code"] for entry in said["entries"]]
    return said["verdict"], said["code"] or (codes[0] if said["verdict"] == "refused" and codes else None)


def misread_receipt(misread: Misread, thread: str) -> bytes:
    """The answer to a decision that could not be judged."""
    return orjson.dumps(
        {
            "v": 1,
            "decisionId": misread.decision_id,
            "threadId": thread,
            "generation": misread.generation,
            "verdict": "refused",
            "code": misread.code,
            "problems": [msgspec.to_builtins(problem) for problem in misread.problems],
            "entries": [],
            "batch": {"complete": False, "waitingFor": [], "runId": None},
        }
    )


def _entry(judged: Judged) -> dict[str, Any]:
    return {
        "interruptId": judged.interrupt_id,
        "verdict": judged.verdict,
        "code": judged.code,
        "problems": [msgspec.to_builtins(problem) for problem in judged.problems],
    }


RECEIPT_KEPT_BYTES: Final = 4096


def kept_receipt(value: bytes) -> bytes:
    """A receipt as it is remembered: a long one without its problems, which were told once."""
    if len(value) <= RECEIPT_KEPT_BYTES:
        return value
    whole = orjson.loads(value)
    return orjson.dumps({**whole, "entries": [{**entry, "problems": []} for entry in whole["entries"]]})


def as_duplicate(value: bytes) -> bytes:
    """The first receipt again, for a decision that came twice."""
    return orjson.dumps({**orjson.loads(value), "verdict": "duplicate"})
