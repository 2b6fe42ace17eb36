"""A resume batch: its shape, what it covers, whether its answers are in time and fit, and its digest.

Gate and router judge answers by this same code. Problems are listed, never raised: first the row decides
(contract 3), then every problem of that row is told.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeGuard

import msgspec

from holdshort.contract import schemas
from holdshort.contract.canon import canonical, schema_hash, sha256
from holdshort.contract.codes import Code
from holdshort.contract.descriptors import described, expires_at, written_schema
from holdshort.contract.messages import usable
from holdshort.contract.state import GonePause, Interrupt, Pause

BINDING = "holdshort:binding"
TANSTACK_BINDING = "tanstack:interruptBinding"
ABSENT: Any = msgspec.UNSET  # a payload that is not there: not the same answer as null


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """One thing wrong with an input: where, and in words that never hold a value of the user's."""

    code: Code
    interrupt_id: str | None = None
    path: str | None = None
    message: str = ""


class Entry(NamedTuple):
    """One answer of a batch."""

    interrupt_id: str
    resolved: bool
    payload: Any
    metadata: dict[str, Any]

    @property
    def bindings(self) -> list[Any]:
        """The bindings it echoes, ours and TanStack's, as they came."""
        return [self.metadata[name] for name in (BINDING, TANSTACK_BINDING) if name in self.metadata]

    @property
    def generations(self) -> set[int]:
        if not self.metadata:
            return set()
        found = [b.get("generation") for b in self.bindings if isinstance(b, dict)]
        return {int(g) for g in found if _is_number(g) and g == int(g)}


class Digests(NamedTuple):
    """What makes two batches the same: `strict` tells an absent payload from null, `loose` does not.

    None where the batch has no canonical form; such a batch is never the same as another.
    """

    strict: str | None
    loose: str | None


def read_entries(resume: Any, *, from_clients: bool) -> tuple[list[Entry], list[Problem]]:
    """The entries of a `resume` member, and what is wrong with its shape (row *malformed resume*)."""
    if not isinstance(resume, list):
        return [], [Problem(Code.INVALID_RESUME, path="/resume", message="must be a list")]
    entries: list[Entry] = []
    problems: list[Problem] = []
    for position, entry in enumerate(resume):
        wrong = _misshapen(entry, from_clients=from_clients)
        if wrong is not None:
            member, message = wrong
            problems.append(Problem(Code.INVALID_RESUME, path=f"/resume/{position}{member}", message=message))
        else:
            payload = entry.get("payload", ABSENT)
            entries.append(
                Entry(
                    entry["interruptId"],
                    entry["status"] == "resolved",
                    payload,
                    entry.get("metadata", {}),
                )
            )
    return entries, problems


def _misshapen(entry: Any, *, from_clients: bool) -> tuple[str, str] | None:
    if not isinstance(entry, dict):
        return "", "must be an object"
    if usable(entry.get("interruptId")) is None:
        return "/interruptId", "must be a string that is not blank"
    if entry.get("status") not in ("resolved", "cancelled"):
        return "/status", "must be resolved or cancelled"
    metadata = entry.get("metadata", {})
    if not isinstance(metadata, dict):
        return "/metadata", "must be an object"
    if from_clients and any(name.startswith("holdshort") and name != BINDING for name in metadata):
        return "/metadata", "members that begin with holdshort are the router's to write"
    return None


def digests(entries: Iterable[Entry]) -> Digests:
    """The digests of a batch (contract 3.1): order, metadata and a cancelled entry's payload do not count."""
    ordered = sorted(entries, key=lambda entry: entry.interrupt_id.encode("utf-16-be"))
    strict = _digest(ordered)
    if not any(entry.resolved and entry.payload is ABSENT for entry in ordered):
        return Digests(strict, strict)
    with_null = [entry._replace(payload=None) if entry.payload is ABSENT else entry for entry in ordered]
    return Digests(strict, _digest(with_null))


def _digest(entries: Iterable[Entry]) -> str | None:
    form = canonical([_answer(entry) for entry in entries])
    return None if form is None else sha256(form)


def _answer(entry: Entry) -> dict[str, Any]:
    if not entry.resolved:
        return {"interruptId": entry.interrupt_id, "status": "cancelled"}
    answer = {"interruptId": entry.interrupt_id, "status": "resolved"}
    return answer if entry.payload is ABSENT else answer | {"payload": entry.payload}


# -- which pause a batch addresses --------------------------------------------------------------------------


def echoed_generations(entries: Iterable[Entry]) -> set[int]:
    return {generation for entry in entries for generation in entry.generations}


def addresses(
    pause: Pause | GonePause,
    entries: Sequence[Entry],
    parent_run_id: Any,
    others: Iterable[Pause | GonePause],
) -> bool:
    """Whether the batch is *addressed* to that pause: by its ids, and an echo or the interrupted run's id."""
    if not entries or not {entry.interrupt_id for entry in entries} <= set(pause.ids):
        return False
    if pause.generation in echoed_generations(entries):
        return True
    return parent_run_id == pause.run_id and all(other.run_id != pause.run_id for other in others)


# -- the rows that look at the answers ----------------------------------------------------------------------


def answered_twice(entries: Iterable[Entry]) -> list[Problem]:
    entries = tuple(entries)
    if len({entry.interrupt_id for entry in entries}) == len(entries):
        return []
    counts = Counter(entry.interrupt_id for entry in entries)
    return [Problem(Code.DUPLICATE_INTERRUPT_ID, i) for i, count in counts.items() if count > 1]


def unknown(entries: Iterable[Entry], ids: Iterable[str]) -> list[Problem]:
    known = set(ids)
    return [
        Problem(Code.UNKNOWN_INTERRUPT_ID, entry.interrupt_id)
        for entry in entries
        if entry.interrupt_id not in known
    ]


def unanswered(entries: Iterable[Entry], ids: Iterable[str]) -> list[Problem]:
    answered = {entry.interrupt_id for entry in entries}
    return [Problem(Code.PARTIAL_RESUME, i) for i in ids if i not in answered]


def misbound(entry: Entry, pause: Pause, interrupt: Interrupt) -> Problem | None:
    """An echoed binding that is not an object, or is of another run, generation or schema."""
    if not entry.bindings:
        return None
    expected = {
        "generation": (pause.generation,),
        "interruptedRunId": (pause.run_id,),
        "responseSchemaHash": _schema_hashes(interrupt),
    }
    for binding in entry.bindings:
        if not isinstance(binding, dict):
            return Problem(
                Code.STALE_BINDING, entry.interrupt_id, "/metadata", "the binding is not an object"
            )
        for name, right in expected.items():
            if name in binding and not any(_same(binding[name], one) for one in right):
                return Problem(Code.STALE_BINDING, entry.interrupt_id, "/metadata", f"the {name} is another")
    return None


def _schema_hashes(interrupt: Interrupt) -> tuple[Any, ...]:
    """Our hash of the schema, and that of a binding of the agent's own, which clients saw as it stood."""
    descriptor = described(interrupt)
    schema, metadata = descriptor.get("responseSchema"), descriptor.get("metadata")
    ours = schema_hash(schema) if isinstance(schema, dict) else None
    theirs = metadata.get(TANSTACK_BINDING) if isinstance(metadata, dict) else None
    if isinstance(theirs, dict) and "responseSchemaHash" in theirs:
        return ours, theirs["responseSchemaHash"]
    return (ours,)


def _same(one: Any, other: Any) -> bool:
    """Whether two values of JSON are one: `1e3` is 1000, and `true` is not 1."""
    alike = type(one) is type(other) or (_is_number(one) and _is_number(other))
    return alike and bool(one == other)


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def expired(entries: Iterable[Entry], interrupts: Iterable[Interrupt], now: int) -> list[Problem]:
    """Resolved entries that came at or after their interrupt's expiry; a cancelled one always goes on."""
    by_id = {interrupt.id: interrupt for interrupt in interrupts}
    return [
        Problem(Code.INTERRUPT_EXPIRED, entry.interrupt_id)
        for entry in entries
        if entry.resolved and is_expired(by_id[entry.interrupt_id], now)
    ]


def is_expired(interrupt: Interrupt, now: int) -> bool:
    expiry = expires_at(interrupt)
    return expiry is not None and expiry <= now * 1000


class Work:
    """The work budget of one record: no record may hold its partition for long (contract 5)."""

    def __init__(self, budget: int) -> None:
        self.left = budget

    def spend(self, cost: schemas.Cost, payload: Any) -> bool:
        self.left -= schemas.work(cost, payload)
        return self.left >= 0


def payload_problems(
    entry: Entry, interrupt: Interrupt, work: Work, *, check_unusable: bool
) -> list[Problem]:
    """Where a resolved entry's payload does not fit; an absent payload is checked as null."""
    if not entry.resolved:
        return []
    if interrupt.cancel_only and check_unusable:
        return [_unusable(interrupt)]
    payload = None if entry.payload is ABSENT else entry.payload
    if schemas.unsafe_number(payload):
        return [_misfit(interrupt, "", "a number is beyond what JavaScript can hold exactly")]
    schema = written_schema(interrupt)
    if schema == b"null" or interrupt.cancel_only:
        return []
    admission = schemas.admit_written(schema)
    if admission.validator is None:  # under `accept`; else admitted when it opened, by an older version
        return [_unusable(interrupt)] if check_unusable else []
    if not work.spend(admission.cost, payload):
        return [_misfit(interrupt, "", "the payloads of this batch take too long to check")]
    return [_misfit(interrupt, place.pointer, place.message) for place in schemas.misfits(admission, payload)]


def _unusable(interrupt: Interrupt) -> Problem:
    return Problem(Code.SCHEMA_REFUSED, interrupt.id, "", "this interrupt can only be cancelled")


def _misfit(interrupt: Interrupt, pointer: str, message: str) -> Problem:
    return Problem(Code.INVALID_PAYLOAD, interrupt.id, pointer, message)
