"""What the router writes for teams: approvals and receipts. Pure."""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec
import orjson

from holdshort.contract.canon import canonical
from holdshort.contract.descriptors import described
from holdshort.contract.messages import JSON_TYPE, Emit
from holdshort.contract.state import Interrupt, Pause
from holdshort.contract.statement import shown_digest
from holdshort.router.codes import DecisionCode
from holdshort.router.decisions import Decision, Judged, Misread
from holdshort.router.gathering import Answer, Asked, Gathering
from holdshort.router.quorum import have


def approval_id(thread: str, generation: int, interrupt_id: str) -> str:
    """The key of an approval: the same question has the same name wherever it is spoken of."""
    name = canonical([thread, generation, interrupt_id])
    assert name is not None
    return urlsafe_b64encode(sha256(name).digest()).decode()[:22]


def approval(gathering: Gathering, asked: Asked, pause: Pause, deadline: int) -> Emit:
    """One open question for one team: everything to show it and to check an answer (approval.v1)."""
    interrupt = next(one for one in pause.interrupts if one.id == asked.interrupt_id)
    policy = asked.put
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
        "deadline": deadline,
        "reminded": asked.reminded,
        "movedFrom": asked.moved_from,
        "priority": policy.priority,
        "batch": _batch(gathering, asked.team),
        "quorum": {"need": max(policy.quorum, len(policy.groups)), "have": have(asked.votes)},
        "requesterMayDecide": policy.requester_may_decide,
        "signature": policy.signature,
        "claim": None if asked.claim is None else {"by": asked.claim.by, "until": asked.claim.until},
        "previous": _previous(asked.previous),
        "problem": gathering.problem,
        "digest": seen_digest(interrupt),
    }
    return Emit(f"approvals.{asked.team}", asked.approval_id.encode(), orjson.dumps(record), (JSON_TYPE,))


def seen_digest(interrupt: Interrupt) -> str:
    """The digest of what is shown for an interrupt: descriptor, tool and arguments."""
    return shown_digest(described(interrupt), _tool(interrupt))


def withdrawn(asked: Asked) -> Emit:
    """The team is no longer needed for this question."""
    return Emit(f"approvals.{asked.team}", asked.approval_id.encode(), None)


def _tool(interrupt: Interrupt) -> dict[str, Any] | None:
    tool = interrupt.tool
    return None if tool is None else {"callId": tool.call_id, "name": tool.name, "args": tool.args}


def _batch(gathering: Gathering, team: str) -> dict[str, int]:
    yours = sum(asked.team == team for asked in gathering.asked)
    return {"total": len(gathering.asked), "yours": yours}


def _previous(answer: Answer | None) -> dict[str, Any] | None:
    return None if answer is None else _decided(answer)


def _decided(answer: Answer) -> dict[str, Any]:
    """An answer, and who gave it, as its team may see it; by nobody if the router gave it, and why."""
    decided: dict[str, Any] = {
        "status": answer.status,
        "decidedBy": answer.decided_by,
        "decidedAt": answer.decided_at,
        "cause": answer.cause,
    }
    if answer.payload is not msgspec.UNSET:
        decided["payload"] = orjson.Fragment(bytes(answer.payload))
    return decided


# -- receipts -----------------------------------------------------------------------------------------------


def receipt(decision: Decision, judged: Sequence[Judged], gathering: Gathering | None) -> bytes:
    """The router's answer to a decision, entry by entry (receipt.v1)."""
    verdicts = {one.verdict for one in judged}
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
            "batch": _standing(gathering),
        }
    )


def _standing(gathering: Gathering | None) -> dict[str, Any]:
    """How the pause stands."""
    if gathering is None or gathering.closed_at is not None:
        return {"complete": False, "waitingFor": [], "runId": None}
    return {
        "complete": gathering.complete,
        "waitingFor": gathering.waiting_for,
        "runId": gathering.forwarded,
    }


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
            "batch": _standing(None),
        }
    )


OWN_VOICE: Final = "this person has answered it already, and differently; a vote cannot be taken back"


def _entry(judged: Judged) -> dict[str, Any]:
    problems = [msgspec.to_builtins(problem) for problem in judged.problems]
    if judged.own_voice:
        place = {"interruptId": judged.interrupt_id, "path": None}
        problems.append({"code": judged.code, **place, "message": OWN_VOICE})
    return {
        "interruptId": judged.interrupt_id,
        "verdict": judged.verdict,
        "code": judged.code,
        "problems": problems,
        "decided": None if judged.decided is None else _decided(judged.decided),
    }


def correction(gathering: Gathering, asked: Asked, answer: Answer, code: str) -> Emit:
    """Another receipt for a decision that was accepted: this answer of it does not count after all."""
    told = {
        "v": 1,
        "decisionId": answer.decision_id,
        "threadId": gathering.thread_id,
        "generation": gathering.generation,
        "verdict": "refused",
        "code": None,
        "problems": [],
        "entries": [_entry(Judged(asked.interrupt_id, "refused", code))],
        "batch": _standing(gathering),
    }
    return Emit(f"receipts.{answer.team}", gathering.thread_id.encode(), orjson.dumps(told), (JSON_TYPE,))


RECEIPT_KEPT_BYTES: Final = 4096
OTHERWISE: Final = "this decisionId has been used for another decision, whose receipt this is; say it anew"


def kept_receipt(value: bytes) -> bytes:
    """A receipt as it is remembered: a long one without its problems and payloads, which were told once."""
    if len(value) <= RECEIPT_KEPT_BYTES:
        return value
    whole = orjson.loads(value)
    entries = [{**entry, "problems": [], "decided": None} for entry in whole["entries"]]
    return orjson.dumps({**whole, "entries": entries})


def as_duplicate(value: bytes, *, says_otherwise: bool) -> bytes:
    """The first receipt again, for a decision that came twice; a problem says if it is another now."""
    first = orjson.loads(value)
    if not says_otherwise:
        return orjson.dumps({**first, "verdict": "duplicate"})
    problem = {
        "code": DecisionCode.ALREADY_DECIDED,
        "interruptId": None,
        "path": "/decisionId",
        "message": OTHERWISE,
    }
    return orjson.dumps({**first, "verdict": "duplicate", "problems": [problem]})
