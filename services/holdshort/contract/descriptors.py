"""What is read of a descriptor, as the agent wrote it: whole, or just what an answer is judged by."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
import orjson

from holdshort.contract.messages import usable
from holdshort.contract.state import Interrupt
from holdshort.contract.times import read_time

_KEPT_BYTES: Final = 16 * 1024  # of a descriptor, parsed; a longer one is parsed again each time


class _Asked(msgspec.Struct, frozen=True, rename="camel"):
    """As much of a descriptor as an answer is judged by; to read no more takes a fifth of the time."""

    expires_at: Any = None
    response_schema: msgspec.Raw = msgspec.Raw(b"null")


_ASKED: Final = msgspec.json.Decoder(_Asked)


def described(interrupt: Interrupt) -> Mapping[str, Any]:
    """The descriptor, parsed."""
    return parsed_descriptor(bytes(interrupt.descriptor))


def parsed_descriptor(raw: bytes) -> Mapping[str, Any]:
    """A descriptor, parsed; nobody may change it, for whoever asks next is given the same object."""
    return _parsed_kept(raw) if len(raw) <= _KEPT_BYTES else _parsed(raw)


def _parsed(raw: bytes) -> Mapping[str, Any]:
    parsed: dict[str, Any] = orjson.loads(raw)
    return parsed


_parsed_kept = lru_cache(maxsize=64)(_parsed)  # one record asks for its descriptors several times


def call_id_of(descriptor: Mapping[str, Any]) -> str | None:
    """The tool call that an interrupt asks about; None if it asks about none."""
    return usable(descriptor.get("toolCallId"))


def written_schema(interrupt: Interrupt) -> bytes:
    """Its response schema as it was written; `null` for none."""
    return bytes(_ASKED.decode(interrupt.descriptor).response_schema)


def expires_at(interrupt: Interrupt) -> int | None:
    """The interrupt's expiry in microseconds since the epoch; None for never, and for what cannot be read.

    AG-UI leaves the format open and reads an unreadable one as never; a time without an offset means UTC.
    """
    return read_time(_ASKED.decode(interrupt.descriptor).expires_at)
