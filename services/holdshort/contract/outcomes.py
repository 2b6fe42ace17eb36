"""How a run ended: the `outcome` of a RUN_FINISHED (contract 2.1)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from holdshort.contract.canon import digest_of
from holdshort.contract.codes import Code
from holdshort.contract.descriptors import parsed_descriptor
from holdshort.contract.messages import members_of, usable
from holdshort.contract.rules import Limits
from holdshort.contract.state import Outcome

_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])


class Malformed(NamedTuple):
    """An outcome that is not AG-UI, or is over a limit."""

    code: Code
    detail: str


class Paused(NamedTuple):
    """A well-formed interrupt outcome: each descriptor as written and parsed, and the digest of them all."""

    raws: list[msgspec.Raw]
    descriptors: list[Mapping[str, Any]]
    digest: str


def read_outcome(
    event: dict[str, Any], value: bytes, limits: Limits, *, too_large: bool
) -> Outcome | Paused | Malformed:
    """Read the outcome; an unknown type counts as success, as the specification says."""
    outcome = event.get("outcome")
    if outcome is None:
        return "success"
    if not isinstance(outcome, dict) or not isinstance(outcome.get("type"), str):
        return _invalid("the outcome is not an object with a type")
    if outcome["type"] == "interrupt":
        return _read_interrupts(outcome.get("interrupts"), value, limits, too_large=too_large)
    if outcome.get("interrupts"):
        return _invalid("interrupts under another type of outcome")
    return "cancelled" if outcome["type"] == "cancelled" else "success"


def translated(legacy: Sequence[msgspec.Raw]) -> Paused:
    """Legacy pauses as the standard outcome: one interrupt for each `on_interrupt` of the run."""
    descriptors = [
        {
            "id": f"legacy-{n}",
            "reason": "legacy",
            "metadata": {"value": orjson.Fragment(bytes(raw))},
        }
        for n, raw in enumerate(legacy)
    ]
    return _paused([msgspec.Raw(orjson.dumps(descriptor)) for descriptor in descriptors])


def _read_interrupts(interrupts: Any, value: bytes, limits: Limits, *, too_large: bool) -> Paused | Malformed:
    if not isinstance(interrupts, list) or not interrupts:
        return _invalid("an interrupt outcome without interrupts")
    if any(not _well_formed(interrupt) for interrupt in interrupts):
        return _invalid("an interrupt without an id or a reason, or with a schema that is no object")
    ids = [interrupt["id"] for interrupt in interrupts]
    if len(set(ids)) != len(ids):
        return _invalid("two interrupts with the same id")
    if too_large or len(ids) > limits.interrupts:
        return Malformed(Code.TOO_LARGE, "more interrupts, or a larger event, than the limit")
    if any(len(orjson.dumps(one)) - 2 > limits.id for one in ids):
        return Malformed(Code.TOO_LARGE, "an interrupt id over the limit")
    raws = _raw_interrupts(value)
    if sum(len(bytes(raw)) for raw in raws) > limits.descriptors:
        return Malformed(Code.TOO_LARGE, "descriptors over the limit")
    return _paused(raws)


def _well_formed(interrupt: Any) -> bool:
    if not isinstance(interrupt, dict):
        return False
    named = usable(interrupt.get("id")) is not None and usable(interrupt.get("reason")) is not None
    return named and isinstance(interrupt.get("responseSchema", {}), dict)


def _raw_interrupts(value: bytes) -> list[msgspec.Raw]:
    """Each descriptor with the bytes it was written with: numbers and escapes stay as they are."""
    outcome = members_of(members_of(value)["outcome"])
    return [raw.copy() for raw in _LIST.decode(outcome["interrupts"])]


def _paused(raws: list[msgspec.Raw]) -> Paused:
    descriptors = [parsed_descriptor(bytes(raw)) for raw in raws]
    said = [{name: one[name] for name in one if name != "expiresAt"} for one in descriptors]
    return Paused(raws, descriptors, digest_of(said))


def _invalid(detail: str) -> Malformed:
    return Malformed(Code.INVALID_OUTCOME, detail)
