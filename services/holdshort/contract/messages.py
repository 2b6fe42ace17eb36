"""Reading and writing the records that the gate sees: AG-UI objects as they came, headers, dead letters."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec
import orjson

from holdshort.contract.codes import Code

Headers: TypeAlias = Sequence[tuple[str, bytes]]

RUN = "holdshort-run"
ADMISSION = "holdshort-admission"
START_BY = "holdshort-start-by"
GENERATION = "holdshort-generation"
ACTION = "holdshort-action"
AGENT = "holdshort-agent"
CODE = "holdshort-code"
PRINCIPAL = "holdshort-principal"
DEAD_LETTER = "holdshort-dead-letter-"
JSON_TYPE = ("content-type", b"application/json")

PROTOCOL_VERSION = "1.0"
_TRACE = frozenset({"traceparent", "tracestate", "baggage"})


class Record(Protocol):
    """One record of a topic; `topic` is without the configured prefix, `timestamp` the append time in ms."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def timestamp(self) -> int: ...


class Emit(NamedTuple):
    """A record to be written to `topic`, in the partition of the record that caused it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


def header(headers: Headers, name: str) -> bytes | None:
    """The last header of that name, as Kafka's clients read it."""
    for key, value in reversed(headers):
        if key == name:
            return value
    return None


def text_header(headers: Headers, name: str) -> str | None:
    """The last header of that name as text; None if absent, blank or not UTF-8."""
    raw = header(headers, name)
    try:
        return usable(raw.decode()) if raw is not None else None
    except UnicodeDecodeError:
        return None


def forwarded(headers: Headers) -> list[tuple[str, bytes]]:
    """The writer's own headers: without ours, and without a trace (a pause is not one trace)."""
    return [h for h in headers if not h[0].startswith("holdshort-") and h[0] not in _TRACE]


def size_of(record: Record) -> int:
    """The bytes of a record's key, value and headers."""
    size = len(record.key or b"") + len(record.value or b"")
    for key, value in record.headers:
        size += len(key) + len(value)
    return size


def usable(value: Any) -> str | None:
    """A string that is not blank; a blank id counts as none everywhere."""
    return value if isinstance(value, str) and value and not value.isspace() else None


def parse_object(value: bytes | None) -> dict[str, Any] | None:
    """A JSON object, strictly: no NaN, no overflow, no lone surrogate; None for everything else."""
    if value is None:
        return None
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return parsed if isinstance(parsed, dict) else None


def lenient_ids(value: bytes | None) -> tuple[str | None, str | None]:
    """Thread and run id of an input that is not strict JSON, where they can be read at all."""
    try:
        parsed = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(parsed, dict):
        return None, None
    return _encodable(parsed.get("threadId")), _encodable(parsed.get("runId"))


def _encodable(value: Any) -> str | None:
    try:
        return text if (text := usable(value)) and text.encode() else None
    except UnicodeEncodeError:
        return None


# -- member names that occur twice --------------------------------------------------------------------------
# Another parser may take the first of two members where ours takes the last: denied here, approved there.
# A second, exact look costs a full parse in Python, so it is taken only where the bytes give cause.


def doubled_names(value: bytes, parsed: dict[str, Any]) -> bool:
    """Whether a member name stands twice at the top, in `resume` or in `forwardedProps`."""
    return _may_be_doubled(value, parsed) and _is_doubled(value)


def _may_be_doubled(value: bytes, parsed: dict[str, Any]) -> bool:
    if b"\\u" in value or b"\\/" in value:  # the two ways to write one name differently
        return True
    if any(value.count(_quoted(name)) > 1 for name in parsed):
        return True
    parts = [name for name in ("resume", "forwardedProps") if isinstance(parsed.get(name), dict | list)]
    if not any(parsed[name] for name in parts):
        return False
    raws = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    return any(_more_than_parsed(bytes(raws[name]), parsed[name]) for name in parts)


def _more_than_parsed(raw: bytes, parsed: Any) -> bool:
    return any(raw.count(_quoted(name)) > count for name, count in Counter(_names(parsed)).items())


def _quoted(name: str) -> bytes:
    return orjson.dumps(name)


def _names(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


class _Doubled(dict[str, Any]):
    """An object of which a member name occurred twice."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    return parsed if len(parsed) == len(pairs) else _Doubled(parsed)


def _is_doubled(value: bytes) -> bool:
    try:
        parsed = json.loads(value, object_pairs_hook=_pairs)
    except (ValueError, RecursionError):
        return True  # two parsers disagree on it: that is the very thing looked for
    parts = (parsed.get("resume"), parsed.get("forwardedProps"))
    return isinstance(parsed, _Doubled) or any(_holds_doubled(part) for part in parts)


def _holds_doubled(value: Any) -> bool:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, _Doubled):
            return True
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False


# -- dead letters -------------------------------------------------------------------------------------------


def dead_letter(record: Record, code: Code, detail: str, *, service: str, limit: int) -> Emit:
    """The record as it came, with why and where from.

    Beyond `limit` bytes the value is left out (what was read stays at its place in the log, which the
    headers name): a dead letter that cannot be written would stop the partition.
    """
    attempts = header(record.headers, DEAD_LETTER + "attempts") or b"0"
    about: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "service": service,
        "code": code,
        "detail": detail,
    }
    ours = tuple((DEAD_LETTER + name, str(what).encode()) for name, what in about.items())
    kept: Iterable[tuple[str, bytes]] = [h for h in record.headers if not h[0].startswith(DEAD_LETTER)]
    value, key = record.value, record.key
    if size_of(record) > limit:
        value, key, kept = (
            None,
            (key or b"")[:1024],
            [(DEAD_LETTER + "cut", str(size_of(record)).encode())],
        )
    return Emit("dead-letters", key, value, (*kept, *ours, (DEAD_LETTER + "attempts", attempts)))
