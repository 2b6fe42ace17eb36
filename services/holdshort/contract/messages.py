"""Reading and writing the records that the gate sees: AG-UI objects as they came, headers, dead letters."""

import json
import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec
import orjson

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

HEARTBEAT = "holdshort:heartbeat"  # name of the CUSTOM event by which a silent run says that it is alive
LEGACY_INTERRUPT = "on_interrupt"  # name of the CUSTOM event by which older agents pause

PROTOCOL_VERSION = "1.0"
_TRACE = frozenset({"traceparent", "tracestate", "baggage"})
_SURELY_FLAT = 500  # so few bytes cannot be nested 252 deep
_ROOM_FOR_OURS = 4096  # what our headers add to a dead letter
_ROOM_A_HEADER = 10  # what Kafka's framing adds for one header


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
    if not headers:
        return None
    for key, value in reversed(headers):
        if key == name:
            return value
    return None


def text_header(headers: Headers, name: str) -> str | None:
    """The last header of that name as text; None if absent or blank. What is not UTF-8 names nothing."""
    raw = header(headers, name)
    return usable(raw.decode(errors="replace")) if raw is not None else None


def forwarded(headers: Headers) -> list[tuple[str, bytes]]:
    """The writer's own headers: without ours, and without a trace (a pause is not one trace)."""
    if not headers:
        return []
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
    """A JSON object, strictly: no NaN, no overflow, no lone surrogate; None for everything else.

    What is nested more than 252 deep counts as none, too: there every parser gives up at a depth of its own,
    and orjson could not write a part of it again two levels down.
    """
    if value is None:
        return None
    try:
        parsed = orjson.loads(value)
        if len(value) > _SURELY_FLAT:
            orjson.dumps([[parsed]])
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    return parsed if isinstance(parsed, dict) else None


_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])  # made once: it costs as much as a use


def members_of(raw: bytes | msgspec.Raw) -> dict[str, Any]:
    """An object's members, each value as the bytes it was written with (msgspec.Raw), to be added to.

    Raises msgspec.DecodeError.
    """
    return _MEMBERS.decode(raw)


_ILLEGIBLE = "\ud800"  # stands for a number that no float holds


def legible_event(value: bytes | None) -> dict[str, Any] | None:
    """An agent's event that is JSON, but not strictly: those of its members that can be written again.

    JavaScript writes half a surrogate pair where it cuts a text. Such an event is passed on as it came; but
    an outcome that cannot be kept must not be taken for a success. None for what is no JSON object, and for
    what is only nested too deep, unless it ends a run: no two readers agree where that ends.
    """
    try:
        parsed = json.loads((value or b"").decode(), parse_constant=_refused, parse_float=_float)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict) or (parsed.get("type") != "RUN_FINISHED" and _is_strict(value)):
        return None
    legible = {name: member for name, member in parsed.items() if _legible({name: member})}
    if "outcome" in parsed and ("outcome" not in legible or b"interrupt" in orjson.dumps(legible["outcome"])):
        legible["outcome"] = {"type": "interrupt"}  # its descriptors cannot be kept as they were written
    return legible


def _is_strict(value: bytes | None) -> bool:
    try:
        orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return False
    return True


def _refused(constant: str) -> Any:
    raise ValueError(constant)


def _float(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else _ILLEGIBLE


def _legible(value: Any) -> bool:
    try:
        orjson.dumps([[value]])
    except orjson.JSONEncodeError:
        return False
    return True


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
# A second, exact look costs a full parse in Python, so it is taken only where the bytes give cause: what
# orjson has parsed and writes again has the same quotes, unless a member was lost or a quote was escaped.


def doubled_names(value: bytes, parsed: dict[str, Any]) -> bool:
    """Whether a member name stands twice at the top, in `resume` or in `forwardedProps`."""
    quotes = value.count(b'"') + value.count(b"\\u0022")
    return quotes != orjson.dumps(parsed).count(b'"') and _is_doubled(value)


class _Doubled(dict[str, Any]):
    """An object of which a member name occurred twice."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    return parsed if len(parsed) == len(pairs) else _Doubled(parsed)


def _is_doubled(value: bytes) -> bool:
    try:
        parsed = json.loads(value, object_pairs_hook=_pairs)
    except ValueError:
        return True  # two parsers disagree on it: that is the very thing looked for
    parts = (parsed.get("resume"), *(props for _, props in spelt(parsed, FORWARDED_PROPS)))
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


# -- member names that another parser takes for ours ---------------------------------------------------------
# Go's encoding/json reads a name whatever its case, and the last of several wins; the Python models read
# forwarded_props, too; LangGraph's adapter lowers the names in forwardedProps.

FORWARDED_PROPS: Final = frozenset({"forwardedprops", "forwarded_props"})
COMMAND: Final = frozenset({"command"})
_JUDGED: Final = {name.casefold(): name for name in ("threadId", "runId", "resume")}
_JUDGED_OF_ENTRY: Final = {name.casefold(): name for name in ("interruptId", "status", "payload")}
_OF_INPUTS: Final = {"threadId", "runId", "parentRunId", "protocolVersion", "state", "messages", "tools"}
_OF_RESUMES: Final = {"context", "forwardedProps", "resume", "interruptId", "status", "payload", "metadata"}
_USUAL: Final = frozenset(_OF_INPUTS | _OF_RESUMES)  # AG-UI's own names, which need no second look


def spelt(value: Any, names: frozenset[str]) -> list[tuple[str, Any]]:
    """The members whose name some parser takes for one of `names` (in lower case), and what they hold."""
    return [one for one in value.items() if one[0].casefold() in names] if isinstance(value, dict) else []


def doubled_but_for_case(parsed: dict[str, Any]) -> bool:
    """Whether a member that is judged, at the top or in an entry, stands there in another case as well."""
    entries = parsed.get("resume")
    return _has_twin(parsed, _JUDGED) or (
        isinstance(entries, list) and any(_has_twin(entry, _JUDGED_OF_ENTRY) for entry in entries)
    )


def _has_twin(value: Any, judged: dict[str, str]) -> bool:
    if not isinstance(value, dict) or value.keys() <= _USUAL:
        return False
    return any((own := judged.get(name.casefold(), name)) != name and own in value for name in value)


# -- dead letters -------------------------------------------------------------------------------------------


def dead_letter(record: Record, code: StrEnum, detail: str, *, service: str, limit: int) -> Emit:
    """The record as it came, with why and where from.

    Beyond `limit` bytes in all the value is left out (what was read stays at its place in the log, which the
    headers name): a dead letter that cannot be written would stop the partition.
    """
    about: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "service": service,
        "code": code,
        "detail": detail,
        "attempts": _attempts(record),
    }
    ours = tuple((DEAD_LETTER + name, str(what).encode()) for name, what in about.items())
    kept: Iterable[tuple[str, bytes]] = [h for h in record.headers if not h[0].startswith(DEAD_LETTER)]
    value, key = record.value, record.key
    if size_of(record) + _ROOM_A_HEADER * len(record.headers) + _ROOM_FOR_OURS > limit:
        value, key, kept = (
            None,
            (key or b"")[:1024],
            [(DEAD_LETTER + "cut", str(size_of(record)).encode())],
        )
    return Emit("dead-letters", key, value, (*kept, *ours))


def _attempts(record: Record) -> int:
    """How often the record has been sent again; a header that is no small number counts as none."""
    text = header(record.headers, DEAD_LETTER + "attempts") or b""
    return int(text) if text.isdigit() and len(text) < 10 else 0
