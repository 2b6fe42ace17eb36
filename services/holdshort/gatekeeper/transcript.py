"""A gate without Kafka: transcripts of records in, verdicts out, on the very code that the gatekeeper runs.

A transcript is one JSON object a line (contract 8): a record `{topic, at, key, value, headers, partition,
offset, clock, inputs_end}`, or `{at}` alone, which lets time pass.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from holdshort.contract import times
from holdshort.contract.inputs import INPUTS, RESUMES
from holdshort.contract.keys import partition_of
from holdshort.contract.messages import Emit, lenient_ids
from holdshort.contract.rules import Rules, World
from holdshort.contract.state import NOTHING, ThreadState
from holdshort.contract.thread import AGENT_EVENTS, Due, bounded, decide, evolve, fire, next_due
from holdshort.contract.verdicts import Verdict

_LAST_MS: Final = 253_402_300_799_999
_WRONG_TYPE: Final = re.compile(r"Expected `(.+)`, got `(.+)` - at `\$\.(.+)`")


class MendTranscriptError(ValueError):
    """A line that is not part of a transcript; the message says what to write instead."""


class Line(NamedTuple):
    """One record of a transcript, as the contract reads records."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int


class Moment(NamedTuple):
    """A record at the moment of its judgement: all that the verdict depends on beside the rules."""

    before: ThreadState
    record: Line
    now: int
    world: World


class _Form(msgspec.Struct, forbid_unknown_fields=True):
    """What a line may say; times and topic are judged on their own."""

    topic: Any = None
    at: Any = None
    key: str | None = None
    value: Any = None
    headers: dict[str, str | bool | int | float] | None = None
    partition: int | None = None
    offset: int | None = None
    clock: Any = None
    inputs_end: int | None = None


class Transcript:
    """The threads of a transcript, and what is said about each line."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.threads: dict[bytes | None, ThreadState] = {}
        self.ends: Counter[tuple[str, int]] = Counter()
        self.now: dict[tuple[str, int], int] = {}
        self.last_at = 0
        self.moment: Moment | None = None  # of the last record
        self._open: Counter[tuple[int, str]] = Counter()  # pauses by partition and agent
        self._bytes: Counter[tuple[int, str]] = Counter()
        self._dues: list[tuple[Due, bytes, bytes | None]] = []  # a heap; what has moved is passed over

    def play(self, line: dict[str, Any]) -> list[dict[str, Any]]:
        """What the gate says of one line: one answer a record, and one a fired deadline."""
        _form_of(line)
        self.last_at = read_time(line.get("at", self.last_at))
        if "topic" not in line:
            return list(self._pass_time(self.last_at))
        record = self._record(line)
        before = self.threads.get(record.key, NOTHING)
        self.moment = moment = Moment(before, record, self._now(record), self._world(record, line))
        verdict = decide(before, record, moment.now, moment.world, self.rules)
        after = bounded(evolve(before, verdict.changes), self._inputs_end(record, line))
        self.keep(record.key, after)
        return [_answer(verdict, after)]

    def _record(self, line: dict[str, Any]) -> Line:
        topic = line["topic"]
        if topic not in (INPUTS, RESUMES) and not str(topic).startswith(AGENT_EVENTS):
            known = f"{INPUTS}, {RESUMES} or {AGENT_EVENTS}<agent>"
            raise MendTranscriptError(f"topic must be {known}, not {topic!r}")
        form = _form_of(line)
        value = _value(line.get("value"))
        key = _key(line)
        partition = form.partition
        if partition is None:
            partition = partition_of(key or b"", self.rules.partitions)
        offset = self.ends[topic, partition] if form.offset is None else form.offset
        self.ends[topic, partition] = max(self.ends[topic, partition], offset + 1)
        headers = tuple((name, _header(text)) for name, text in (form.headers or {}).items())
        return Line(topic, partition, offset, key, value, headers, self.last_at)

    def _now(self, record: Line) -> int:
        place = (record.topic, record.partition)
        self.now[place] = max(record.timestamp, self.now.get(place, 0))
        return self.now[place]

    def _world(self, record: Line, line: dict[str, Any]) -> World:
        agent = record.topic.removeprefix(AGENT_EVENTS)
        where, own = (record.partition, agent), self.threads.get(record.key, NOTHING).pause
        counts = own is not None and own.agent == agent and not own.sealed
        return World(
            clock=record.timestamp if line.get("clock") is None else read_time(line["clock"]),
            open_pauses=self._open[where] - counts,
            open_bytes=self._bytes[where] - (own.size if own is not None and counts else 0),
        )

    def _inputs_end(self, record: Line, line: dict[str, Any]) -> int:
        end: int | None = line.get("inputs_end")
        return self.ends[INPUTS, record.partition] if end is None else end

    def keep(self, key: bytes | None, state: ThreadState) -> None:
        """This is the thread's state from here on."""
        self._count(key, self.threads.pop(key, NOTHING), -1)
        self._count(key, state, +1)
        if not state.empty:
            self.threads[key] = state
            if (due := next_due(state, self.rules)) is not None:
                heappush(self._dues, (due, key or b"", key))

    def _count(self, key: bytes | None, state: ThreadState, times: int) -> None:
        pause = state.pause
        if pause is not None and not pause.sealed:
            where = partition_of(key or b"", self.rules.partitions), pause.agent
            self._open[where] += times
            self._bytes[where] += times * pause.size

    def _pass_time(self, until: int) -> Iterator[dict[str, Any]]:
        while self._dues and self._dues[0][0].at <= until:
            due, _, key = heappop(self._dues)
            before = self.threads.get(key)
            if before is None or next_due(before, self.rules) != due:
                continue
            verdict = fire(before, due, (key or b"").decode(), self.rules)
            after = evolve(before, verdict.changes)
            self.keep(key, after)
            if due.kind != "memory":
                yield _answer(verdict, after)


def _form_of(line: dict[str, Any]) -> _Form:
    """The line, if it says nothing else than a line may say. Raises MendTranscriptError."""
    try:
        return msgspec.convert(line, _Form)
    except msgspec.ValidationError as error:
        text = str(error)
    if wrong := _WRONG_TYPE.search(text):
        expected, got, place = wrong.groups()
        raise MendTranscriptError(f"{place} must be {expected.replace(' | ', ' or ')}, not {got}")
    unknown = next(name for name in line if name not in _Form.__struct_fields__)
    raise MendTranscriptError(f"a line has no member {unknown!r}; it may have {', '.join(_MEMBERS)}")


_MEMBERS: Final = _Form.__struct_fields__


def _answer(verdict: Verdict, after: ThreadState) -> dict[str, Any]:
    pause = after.pause
    return {
        "verdict": verdict.kind,
        "code": verdict.code,
        "problems": [msgspec.to_builtins(problem) for problem in verdict.problems],
        "generation": pause.generation if pause else None,
        "status": pause.status if pause else None,
        "open": list(pause.ids) if pause and pause.status == "open" else [],
        "settled": verdict.settled,
        "superseded": verdict.superseded,
        "emits": [_emitted(emit) for emit in verdict.emits],
    }


def _emitted(emit: Emit) -> dict[str, Any]:
    return {
        "topic": emit.topic,
        "key": None if emit.key is None else emit.key.decode(errors="replace"),
        "value": _readable(emit.value),
        "headers": {name: value.decode(errors="replace") for name, value in emit.headers},
    }


def _readable(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        parsed = orjson.loads(value)
        orjson.dumps([[[parsed]]])  # as deep as it stands in the line that is printed
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return value.decode(errors="replace")
    return parsed


def _value(value: Any) -> bytes | None:
    """A string stands for raw bytes, so that a transcript can hold what is not JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON writes as an escape
        return json.dumps(value, separators=(",", ":")).encode()


def _header(text: Any) -> bytes:
    return str(text).encode(errors="surrogatepass")


def _key(line: dict[str, Any]) -> bytes | None:
    value = line.get("value")
    if "key" in line:
        key = line["key"]
    else:
        key = value.get("threadId") if isinstance(value, dict) else lenient_ids(_value(value))[0]
    return key.encode(errors="surrogatepass") if isinstance(key, str) else None


def read_time(value: Any) -> int:
    """Milliseconds since the epoch, from those or from RFC 3339."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= _LAST_MS:
            raise MendTranscriptError(f"a time lies between 1970 and 9999, not at {value} ms")
        return value
    at = times.read_time(value)
    if at is None:
        raise MendTranscriptError(f"a time is RFC 3339 or epoch milliseconds, not {value!r}")
    return at // 1000
