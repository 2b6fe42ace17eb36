"""Decisions of teams, read: our own form, or plain AG-UI. Judged they are in judging.py. Pure."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, NamedTuple, cast

import msgspec

from holdshort.contract import resume as batch
from holdshort.contract.canon import digest_of
from holdshort.contract.codes import Code
from holdshort.contract.messages import usable
from holdshort.contract.resume import Entry, Problem
from holdshort.contract.rules import Limits
from holdshort.contract.schemas import MAX_PROBLEMS
from holdshort.contract.statement import LONGEST, SIGNATURE
from holdshort.router.codes import DecisionCode
from holdshort.router.gathering import Answer, Asked

Action = Literal["decide", "confirm", "claim", "release"]
ACTIONS: Final = ("decide", "confirm", "claim", "release")


class Decision(NamedTuple):
    """One record of `decisions.<team>`; a bare AG-UI resume has no generation and says nothing it saw.

    `attempt` is that of the approval as its author saw it, None if not said. `principal` is the person whom a
    trusted edge has authenticated, `digest` that of what the decision says.
    """

    decision_id: str
    thread: str
    generation: int | None
    action: Action
    entries: list[Entry]
    decided_by: str | None
    decided_at: Any
    comment: str | None
    seen: dict[str, str]
    attempt: int | None
    principal: str | None
    digest: str


class Judged(NamedTuple):
    """What was said of one entry.

    `asked` is the question with what was accepted, `answer` the answer that counts or may count, `decided`
    the answer that stood already, for whoever comes second; `own_voice` says that it is their own.
    """

    interrupt_id: str
    verdict: Literal["accepted", "refused", "duplicate"]
    code: str | None = None
    problems: tuple[Problem, ...] = ()
    asked: Asked | None = None
    answer: Answer | None = None
    decided: Answer | None = None
    own_voice: bool = False


class Misread(NamedTuple):
    """A decision that cannot be judged, and why; its author can be told."""

    decision_id: str
    generation: int | None
    code: str
    problems: tuple[Problem, ...] = ()


class _Form(msgspec.Struct, frozen=True, rename="camel"):
    """A decision.v1 beside its entries; a bare AG-UI object has none of it."""

    decision_id: str
    generation: int
    action: str = "decide"
    decided_by: str | None = None
    decided_at: str | int | float | None = None
    comment: str | None = None
    seen: dict[str, str] = {}
    attempt: Annotated[int, msgspec.Meta(ge=1)] | None = None


_OURS: Final = tuple(field.encode_name for field in msgspec.structs.fields(_Form))
COMMENT_BYTES: Final = 4096
METADATA_BYTES: Final = 4096
MOMENT_BYTES: Final = 64


def read_decision(
    value: dict[str, Any], place: str, limits: Limits, principal: str | None = None
) -> Decision | Misread:
    """Read a decision.v1 or a bare AG-UI object; `place` names one without an id of its own.

    Our own form is read strictly: what is not understood of it might have been a condition.
    """
    form = _read_form(value, place)
    if isinstance(form, Misread):
        return form
    decision_id = form.decision_id if form else place
    generation = form.generation if form else None
    if form and form.action not in ACTIONS:
        return Misread(decision_id, generation, DecisionCode.UNKNOWN_ACTION)
    action = cast(Action, form.action) if form else "decide"
    entries, problems = batch.read_entries(_resume(value.get("resume"), action), from_clients=False)
    if not entries and not problems:
        problems = [Problem(Code.INVALID_RESUME, path="/resume", message="must hold an entry")]
    problems = problems or batch.answered_twice(entries) or list(_too_large(entries, form, limits))
    if problems:
        return Misread(decision_id, generation, problems[0].code, tuple(problems[:MAX_PROBLEMS]))
    return Decision(
        decision_id=decision_id,
        thread=value["threadId"],
        generation=generation,
        action=action,
        entries=entries,
        decided_by=principal or (usable(form.decided_by) if form else None),
        decided_at=form.decided_at if form else None,
        comment=usable(form.comment) if form else None,
        seen=form.seen if form else {},
        attempt=form.attempt if form else None,
        principal=principal,
        digest=_digest(value, generation, action, form),
    )


def _digest(value: dict[str, Any], generation: int | None, action: Action, form: _Form | None) -> str:
    """That of what it says; an attempt only if one is said, for digests are kept with receipts."""
    said = [generation, action, value.get("resume")]
    return digest_of(said if form is None or form.attempt is None else [*said, form.attempt])


def _resume(resume: Any, action: Action) -> Any:
    """The entries; where nothing is answered, an interrupt's id is enough of one."""
    if action == "decide" or not isinstance(resume, list):
        return resume
    return [{"status": "resolved", **one} if isinstance(one, dict) else one for one in resume]


def _read_form(value: dict[str, Any], place: str) -> _Form | Misread | None:
    """The members of our own form; None for a bare object, in which no word of ours would be heeded."""
    if "v" not in value:
        if words := [name for name in _OURS if name in value]:
            said = f"says {words[0]}, and so must say v, too"
            problem = Problem(Code.INVALID_RESUME, path=f"/{words[0]}", message=said)
            return Misread(place, None, DecisionCode.MALFORMED_DECISION, (problem,))
        return None
    named = usable(value.get("decisionId"))
    known = named if named and len(named) <= MOMENT_BYTES else place
    if value["v"] != 1 or isinstance(value["v"], bool):
        problem = Problem(Code.INVALID_RESUME, path="/v", message="version 1 is what is known here")
        return Misread(known, None, DecisionCode.MALFORMED_DECISION, (problem,))
    try:
        form = msgspec.convert(value, _Form)
    except msgspec.ValidationError as error:
        problem = Problem(Code.INVALID_RESUME, message=str(error))
        return Misread(known, None, DecisionCode.MALFORMED_DECISION, (problem,))
    return form if usable(form.decision_id) else msgspec.structs.replace(form, decision_id=place)


def _too_large(entries: list[Entry], form: _Form | None, limits: Limits) -> Iterator[Problem]:
    """What would not fit into a gathering or a batch; everything that is kept has a limit."""
    if len(entries) > limits.interrupts:
        yield _over("/resume", limits.interrupts, "entries")
    for path, text, most in _texts(form, limits):
        if len(str(text or "").encode()) > most:
            yield _over(path, most)
    for number, entry in enumerate(entries):
        place = f"/resume/{number}"
        if len(entry.interrupt_id.encode()) > limits.id:
            yield _over(f"{place}/interruptId", limits.id)
        if entry.payload is not batch.ABSENT and len(msgspec.json.encode(entry.payload)) > limits.payload:
            yield _over(f"{place}/payload", limits.payload)
        own = {name: one for name, one in entry.metadata.items() if name != SIGNATURE}
        if len(msgspec.json.encode(own)) > METADATA_BYTES:
            yield _over(f"{place}/metadata", METADATA_BYTES)
        if len(msgspec.json.encode(entry.metadata.get(SIGNATURE))) > LONGEST:
            yield _over(f"{place}/metadata/{SIGNATURE}", LONGEST)


def _texts(form: _Form | None, limits: Limits) -> Iterator[tuple[str, Any, int]]:
    if form is not None:
        yield "/decisionId", form.decision_id, limits.id
        yield "/decidedBy", form.decided_by, limits.id
        yield "/decidedAt", form.decided_at, MOMENT_BYTES
        yield "/comment", form.comment, COMMENT_BYTES


def _over(path: str, most: int, unit: str = "bytes") -> Problem:
    return Problem(Code.TOO_LARGE, path=path, message=f"more than {most} {unit}")
