"""What `holdshort judge` is given: transcripts, files of cases, and dumps, read and played. Pure.

- A transcript: one record a line, which may say what it `expect`s of its answers and a remark (`says`).
- Cases: `{"case", "says", "transcript": [records], "expect": [what holds of the last answers]}`, as a list or
  one a line; each is played on a gate of its own.
- Dumps of topics (dumps.py): put in order, and played as one transcript.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from holdshort.gatekeeper import dumps
from holdshort.gatekeeper.expectations import read_expected, unmet
from holdshort.gatekeeper.transcript import MendTranscriptError, Moment, Transcript


class Source(NamedTuple):
    """One file as text; `topic` is that of a dump which does not say it."""

    name: str
    text: str
    topic: str | None = None


class Said(NamedTuple):
    """One line, where it stands, and what it expects of its answers."""

    where: str
    line: dict[str, Any]
    expect: list[dict[str, Any]] | None = None


class Case(NamedTuple):
    """Lines that are played on one gate; `expect` is what must hold of its last answers."""

    name: str
    lines: list[Said]
    expect: list[dict[str, Any]] | None = None


class Answered(NamedTuple):
    """One answer; `moment` is None for a fired deadline."""

    where: str
    moment: Moment | None
    answer: dict[str, Any]


class Compared(NamedTuple):
    """An expectation, and how what came differs from it."""

    where: str
    differences: list[str]


def read_cases(sources: Sequence[Source], prefix: str) -> list[Case]:
    """The cases that the files hold, and everything else as one. Raises MendTranscriptError.

    `prefix` stands before every topic of a dump.
    """
    cases: list[Case] = []
    told: list[Said] = []
    dumped: list[dict[str, Any]] = []
    for source in sources:
        file = source.name + ", " if len(sources) > 1 else ""
        for place, text in _parts(source.text):
            where = file + place
            try:
                if isinstance(text, str) and dumps.is_columns(text):
                    dumped.append(dumps.from_columns(text, source.topic))
                    continue
                parsed = _object(text)
                if dumps.is_kcat(parsed):
                    dumped.append(dumps.from_kcat(parsed))
                elif "transcript" in parsed:
                    cases.append(_case(where, parsed))
                else:
                    told.append(_said(where, parsed))
            except MendTranscriptError as error:
                raise MendTranscriptError(f"{where}: {error}") from None
    if told and dumped:
        raise MendTranscriptError("a transcript and dumps cannot be judged together")
    told += [Said(_place(line), line) for line in dumps.in_order(dumped, prefix)]
    return [*cases, Case("", told)]


def play(case: Case, gate: Transcript) -> Iterator[Answered | Compared]:
    """Play a case on that gate. Raises MendTranscriptError."""
    answers: list[dict[str, Any]] = []
    for where, line, expect in case.lines:
        try:
            said = gate.play(line)
        except MendTranscriptError as error:
            raise MendTranscriptError(f"{where}: {error}") from None
        for answer in said:
            yield Answered(where, gate.moment if "topic" in line else None, answer)
        if expect is not None:
            yield Compared(where, unmet(expect, said))
        answers += said
    if case.expect is not None:
        last = answers[max(len(answers) - len(case.expect), 0) :]
        yield Compared(case.name, unmet(case.expect, last))


def agents_of(cases: Sequence[Case]) -> Iterator[str]:
    """A gate reads the events of configured agents only: whoever has a topic in a transcript is one."""
    yield "default"
    for case in cases:
        for said in case.lines:
            topic = str(said.line.get("topic", ""))
            if topic.startswith("agent-events."):
                yield topic.removeprefix("agent-events.")


def _parts(text: str) -> Iterator[tuple[str, Any]]:
    """Where each part of a file stands, and its text or, of a list, the part itself."""
    if text.lstrip().startswith("["):
        for number, part in enumerate(_json(text), 1):
            yield f"case {part.get('case', number) if isinstance(part, dict) else number}", part
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"line {number}", line


def _object(text: Any) -> dict[str, Any]:
    parsed = _json(text) if isinstance(text, str) else text
    if not isinstance(parsed, dict):
        raise MendTranscriptError("it is not an object")
    return parsed


class _Twice(dict[str, Any]):
    """An object in which a name stands twice: a value is judged, and so written again, as it was written."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs

    def items(self) -> Any:  # what json.dumps asks for
        return self._pairs


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    return parsed if len(parsed) == len(pairs) else _Twice(pairs)


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_pairs)
    except (ValueError, RecursionError) as error:
        raise MendTranscriptError(f"it is not JSON: {error}") from None


def _case(where: str, raw: dict[str, Any]) -> Case:
    if unknown := [name for name in raw if name not in ("case", "says", "transcript", "expect")]:
        raise MendTranscriptError(f"a case has no member {unknown[0]!r}")
    lines = raw["transcript"]
    if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
        raise MendTranscriptError("transcript must be a list of records")
    said = [_said(f"{where}, record {number}", line) for number, line in enumerate(lines, 1)]
    return Case(where, said, read_expected(raw["expect"]) if "expect" in raw else None)


def _said(where: str, line: dict[str, Any]) -> Said:
    if isinstance(line, _Twice):
        raise MendTranscriptError("a name stands twice in it")
    if "topic" not in line and "at" not in line:
        raise MendTranscriptError("it is neither a record, which has a topic, nor a time that passes (at)")
    bare = {name: value for name, value in line.items() if name not in ("expect", "says")}
    return Said(where, bare, read_expected(line["expect"]) if "expect" in line else None)


def _place(line: dict[str, Any]) -> str:
    return f"{line['topic']}/{line['partition']}/{line['offset']}" if "topic" in line else "in between"
