"""The whole batch as AG-UI wants it: a RunAgentInput rebuilt from the pause's pointers into the log. Pure.

Continuation must work for agents that replay from messages and for agents that restore a checkpoint, so
messages and state are those of the agent's last snapshots before the interrupt, and everything else is of
the interrupted run's own input. Values travel as the bytes they were written with.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import orjson

from holdshort.contract.state import Pause, Pointer
from holdshort.contract.statement import SIGNATURE
from holdshort.router.gathering import Answer, Asked, Gathering
from holdshort.stream.records import Record, RecordPlace, TopicPartition

_EMPTY: Final[dict[str, Any]] = {
    "state": {},
    "messages": [],
    "tools": [],
    "context": [],
    "forwardedProps": {},
}


def places(pause: Pause) -> list[RecordPlace]:
    """The records that a batch for this pause is made of."""
    context = pause.context
    return [_place(one) for one in (context.input, context.messages, context.state) if one is not None]


def _place(pointer: Pointer) -> RecordPlace:
    return TopicPartition(pointer.topic, pointer.partition), pointer.offset


class Rebuilt(msgspec.Struct, frozen=True):
    """The members of a RunAgentInput beside ids and resume, and whether nothing of them is missing."""

    members: dict[str, Any]
    complete: bool


def without_context() -> Rebuilt:
    """None of it: what is too large to be sent, for an agent that has a checkpoint of its own."""
    return Rebuilt(dict(_EMPTY), complete=False)


def rebuild(pause: Pause, fetched: Mapping[RecordPlace, Record | None]) -> Rebuilt:
    """Messages, state, tools, context and forwardedProps as they were at the interrupt."""
    context = pause.context
    before = _members(context.input, fetched)
    messages = _members(context.messages, fetched)
    state = _members(context.state, fetched)
    members = {name: before.get(name, default) for name, default in _EMPTY.items()}
    if "messages" in messages:
        members["messages"] = messages["messages"]
    if "snapshot" in state:
        members["state"] = state["snapshot"]
    members["forwardedProps"] = _without_command(members["forwardedProps"])
    wanted = ((context.input, before), (context.messages, messages), (context.state, state))
    found = all(record or pointer is None for pointer, record in wanted)
    return Rebuilt(members, context.complete and found and context.input is not None)


def _members(pointer: Pointer | None, fetched: Mapping[RecordPlace, Record | None]) -> dict[str, Any]:
    record = fetched[_place(pointer)] if pointer is not None else None
    if record is None or record.value is None:
        return {}
    return dict(msgspec.json.decode(record.value, type=dict[str, msgspec.Raw]))


def _without_command(props: Any) -> Any:
    """An answer that stood in the command of the interrupted run must not answer this pause."""
    raw = bytes(props) if isinstance(props, msgspec.Raw) else b"{}"
    if not raw.startswith(b"{"):
        return props
    members = dict(msgspec.json.decode(raw, type=dict[str, msgspec.Raw]))
    members.pop("command", None)
    return members


def run_input(pause: Pause, gathering: Gathering, run_id: str, rebuilt: Rebuilt) -> bytes:
    """The RunAgentInput that resumes the pause, its entries in the order of the interrupts."""
    whole = {
        "threadId": gathering.thread_id,
        "runId": run_id,
        "parentRunId": pause.run_id,
        **rebuilt.members,
        "resume": [_entry(gathering, id_, rebuilt.complete) for id_ in pause.ids],
    }
    return orjson.dumps(whole, default=_raw)


def _entry(gathering: Gathering, interrupt_id: str, complete: bool) -> dict[str, Any]:
    asked = gathering.one(interrupt_id)
    answer = asked.answer if asked is not None else None
    assert asked is not None
    assert answer is not None, "only a complete batch is sent"
    entry: dict[str, Any] = {"interruptId": interrupt_id, "status": answer.status}
    if answer.payload is not msgspec.UNSET:
        entry["payload"] = answer.payload
    own: dict[str, Any] = {}
    if answer.metadata is not msgspec.UNSET:
        own |= msgspec.json.decode(answer.metadata, type=dict[str, msgspec.Raw])
    entry["metadata"] = {**own, **_signatures(asked, answer), "holdshort": _said(asked, answer, complete)}
    return entry


def _said(asked: Asked, answer: Answer, complete: bool) -> dict[str, Any]:
    """Who decided: one person, or all of a quorum; or why nobody did."""
    said = {
        "team": answer.team,
        "decisionId": answer.decision_id,
        **_decider(answer),
        "quorum": [_decider(one) for one in (*asked.votes, answer)] if asked.votes else None,
        "cause": answer.cause,
        "unsigned": _unsigned(answer),
        "context": None if complete else "incomplete",
    }
    return {name: value for name, value in said.items() if value is not None}


def _unsigned(answer: Answer) -> list[str] | None:
    """What stands beside a signed answer without being signed, for whoever trusts the signature alone."""
    if answer.signature is None:
        return None
    own = {} if answer.metadata is msgspec.UNSET else msgspec.json.decode(answer.metadata)
    comment = ["holdshort.comment"] if answer.comment is not None else []
    return [*comment, *sorted(own)] or None


def _decider(answer: Answer) -> dict[str, Any]:
    said = {
        "decidedBy": answer.decided_by,
        "decidedAt": answer.decided_at,
        "comment": answer.comment,
        "proof": answer.proof,
    }
    return {name: value for name, value in said.items() if value is not None}


def _signatures(asked: Asked, answer: Answer) -> dict[str, Any]:
    """As they came, so that the agent can check them again; of a quorum, all of them beside the last."""
    found = [one.signature for one in (*asked.votes, answer) if one.signature is not None]
    last = {SIGNATURE: answer.signature} if answer.signature is not None else {}
    return {**last, SIGNATURE + "s": found} if len(found) > 1 else last


def _raw(value: Any) -> orjson.Fragment:
    if isinstance(value, msgspec.Raw):
        return orjson.Fragment(bytes(value))
    raise TypeError(type(value))
