"""The exact check: after a measurement everything is read again and held against what must be there."""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from holdshort.cli.bench.load import ANSWER, FIRST, OTHER, Passage, key_of, number_of, run_of
from holdshort.cli.bench.wire import Wire
from holdshort.contract.messages import RUN as RUN_HEADER
from holdshort.contract.messages import header

TYPE: Final = re.compile(rb'"type"\s*:\s*"([A-Z_]+)"')
RUN: Final = re.compile(rb'"runId"\s*:\s*"([^"]+)"')


class Fact(NamedTuple):
    """What one record is: the type of an event, or `input`, and the run that it names."""

    kind: str
    run: bytes


def fact_of(message: Any) -> Fact:
    """Of a record as a reader has it; an event that names no run has it in a header of the gate's."""
    value = message.value()
    kind, run = TYPE.search(value[:200]), RUN.search(value)
    named = run[1] if run else header(message.headers() or (), RUN_HEADER)
    return Fact(kind[1].decode() if kind else "input", named or b"")


def passage_problems(wire: Wire, passage: Passage) -> list[str]:
    """Each event once, byte for byte, those of a thread in their order."""
    seen = bytearray(passage.records)
    newest: dict[bytes, int] = {}
    problems: Counter[str] = Counter()
    for message in wire.everything(wire.topics.events):
        key, value = message.key(), message.value()
        number = number_of(value)
        if not 0 <= number < passage.records or (key, value) != passage.record(number):
            problems["events are not as they came"] += 1
            continue
        problems["events are there twice"] += seen[number]
        problems["events are out of order"] += number < newest.get(key, -1)
        seen[number], newest[key] = 1, number
    problems["events are missing"] = passage.records - sum(seen)
    problems["dead letters"] = _count(wire, wire.topics.dead_letters)
    return _told(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What must be there of threads that each paused.

    `answered` are those whose answer was sent; `others` those whose client sent something else before;
    `refuses` says that it is refused; `ended` that the agent ends the runs which it is given.
    """

    threads: range
    answered: Container[int]
    others: Container[int] = ()
    refuses: bool = True
    ended: bool = True

    def runs(self, thread: int) -> list[Fact]:
        """What the agent is given, in order."""
        runs = [OTHER] if thread in self.others and not self.refuses else []
        runs += [ANSWER] if thread in self.answered else []
        return [Fact("input", run_of(thread, run)) for run in runs]

    def events(self, thread: int) -> list[Fact]:
        """What clients see, in order."""
        events = _run(run_of(thread, FIRST), "RUN_FINISHED")
        if thread in self.others and self.refuses:
            events += _run(run_of(thread, OTHER), "RUN_ERROR")
        for given in self.runs(thread) if self.ended else ():
            events += _run(given.run, "RUN_FINISHED")
        return events

    @property
    def event_count(self) -> int:
        return sum(len(self.events(thread)) for thread in self.threads)

    def problems(self, wire: Wire) -> list[str]:
        """Everything once, in its order, and nothing else."""
        problems: Counter[str] = Counter()
        for where, topic, wanted in (
            ("events", wire.topics.events, self.events),
            ("runs", wire.topics.runs, self.runs),
        ):
            found = _by_key(wire.everything(topic))
            for thread in self.threads:
                problems += _differences(where, found.pop(key_of(thread), []), wanted(thread))
            problems[f"{where} of threads that nobody began"] = len(found)
        problems["dead letters"] = _count(wire, wire.topics.dead_letters)
        return _told(problems)


def _run(run: bytes, end: str) -> list[Fact]:
    return [Fact("RUN_STARTED", run), Fact(end, run)]


def _by_key(messages: Iterator[Any]) -> dict[bytes, list[Fact]]:
    facts: dict[bytes, list[Fact]] = defaultdict(list)
    for message in messages:
        facts[message.key()].append(fact_of(message))
    return facts


def _differences(where: str, found: list[Fact], wanted: list[Fact]) -> Counter[str]:
    problems: Counter[str] = Counter()
    if found == wanted:
        return problems
    for fact, count in (Counter(wanted) - Counter(found)).items():
        problems[f"{where}: missing {fact.kind}"] += count
    for fact, count in (Counter(found) - Counter(wanted)).items():
        problems[f"{where}: {'doubled' if fact in wanted else 'wrong'} {fact.kind}"] += count
    if not problems:
        problems[f"{where} out of order"] += 1
    return problems


def _count(wire: Wire, topic: str) -> int:
    return sum(1 for _ in wire.everything(topic))


def _told(problems: Mapping[str, int]) -> list[str]:
    return [f"{what}: {count:,}" for what, count in problems.items() if count]
