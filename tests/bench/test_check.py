"""The exact check is checked: what is lost, doubled, out of order or foreign is found, and told as that."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest
from tests.bench.people import Names, problems
from tests.bench.subject import Broker, subject
from tests.bench.systems import FLOOR

from holdshort.cli.bench.exact import Story, passage_problems
from holdshort.cli.bench.load import (
    ANSWER,
    Keyed,
    Passage,
    delta,
    finished,
    key_of,
    pausing,
    resumes,
    run_of,
    started,
)
from holdshort.cli.bench.wire import Wire

pytestmark = [pytest.mark.slow, pytest.mark.broker]

PASSAGE = Passage.of(100)
THREADS = range(20)
STORY = Story(threads=THREADS, answered=THREADS)

Break = Callable[[list[Keyed]], list[Keyed]]


@pytest.fixture
def wire(bootstrap_servers: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """Topics where nothing stands between the load and its reader: what is written is what is found."""
    monkeypatch.setenv("HOLDSHORT_REPLICATION", "1")
    monkeypatch.setenv("HOLDSHORT_MIN_ISR", "1")
    with subject(FLOOR, Broker(bootstrap_servers), lambda _: None) as (_, wire):
        yield wire


def swapped(records: list[Keyed]) -> list[Keyed]:
    """Two neighbours of the first thread change places."""
    first, second = [n for n, (key, _) in enumerate(records) if key == key_of(0)][1:3]
    records[first], records[second] = records[second], records[first]
    return records


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda records: records, []),
        (lambda records: records[:-1], ["events are missing: 1"]),
        (lambda records: [*records, records[-1]], ["events are there twice: 1"]),
        (swapped, ["events are out of order: 1"]),
        (lambda records: [*records, (key_of(1), delta(0, 50))], ["events are not as they came: 1"]),
    ],
    ids=["whole", "lost", "doubled", "out of order", "another thread's"],
)
def test_of_what_passes(wire: Wire, broken: Break, said: list[str]) -> None:
    wire.fill(wire.topics.agent_events, broken(list(PASSAGE)))

    assert passage_problems(wire, PASSAGE) == said


def events() -> list[Keyed]:
    """What clients see when every thread pauses, is answered and ends."""
    ends = (
        (key_of(thread), event(thread, run_of(thread, ANSWER)))
        for thread in THREADS
        for event in (started, finished)
    )
    return [*pausing(THREADS), *ends]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda records: records, []),
        (lambda records: records[:-1], ["events: missing RUN_FINISHED: 1"]),
        (lambda records: [*records, records[0]], ["events: doubled RUN_STARTED: 1"]),
        (swapped, ["events out of order: 1"]),
        (
            lambda records: [*records, (key_of(99), started(99, run_of(99)))],
            ["events of threads that nobody began: 1"],
        ),
    ],
    ids=["whole", "lost", "doubled", "out of order", "foreign"],
)
def test_of_events(wire: Wire, broken: Break, said: list[str]) -> None:
    wire.fill(wire.topics.agent_events, broken(events()))
    wire.fill(wire.topics.inputs, resumes(THREADS))

    assert STORY.problems(wire) == said


def test_of_runs(wire: Wire) -> None:
    wire.fill(wire.topics.agent_events, events())
    wire.fill(wire.topics.inputs, chain(resumes(THREADS[1:]), resumes(range(5, 6))))

    assert STORY.problems(wire) == ["runs: missing input: 1", "runs: doubled input: 1"]


def test_of_dead_letters(wire: Wire) -> None:
    wire.fill(wire.topics.agent_events, PASSAGE)
    wire.fill(wire.topics.dead_letters, [(key_of(0), b"{}")])

    assert passage_problems(wire, PASSAGE) == ["dead letters: 1"]


def routed(wire: Wire) -> dict[str, list[Any]]:
    """What is there when every thread was asked, decided and ended, by topic."""
    names, found = Names.of(wire), dict[str, list[Any]]()
    runs = found[wire.topics.runs] = []
    events = found[wire.topics.events] = []
    approvals = found[names.approvals] = []
    for thread in THREADS:
        key, first, ours = key_of(thread), run_of(thread), b"hs-%08d" % thread
        runs += [(key, b'{"runId":"%s"}' % run) for run in (first, ours)]
        snapshot = b'{"type":"MESSAGES_SNAPSHOT","runId":"%s"}' % first
        events += [(key, one) for one in (started(thread, first), snapshot, finished(thread, first))]
        events += [(key, one) for one in (started(thread, ours), finished(thread, ours))]
        approvals += [(b"a-%d" % thread, b"{}"), (b"a-%d" % thread, None)]
    found[names.receipts] = [(key_of(thread), b'{"verdict":"accepted"}') for thread in THREADS]
    return found


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("", []),
        ("runs", ["runs that are not as they must be: 1"]),
        ("events", ["events that are not as they must be: 1"]),
        ("receipts", ["threads without just one receipt: 1"]),
        ("approvals", ["approvals too many, too few or still there: 1"]),
    ],
    ids=["whole", "runs", "events", "receipts", "approvals"],
)
def test_of_what_people_decided(wire: Wire, topic: str, said: list[str]) -> None:
    names = Names.of(wire)
    where = {"runs": wire.topics.runs, "events": wire.topics.events} | names._asdict()
    for name, records in routed(wire).items():
        wire.fill(name, records[:-1] if name == where.get(topic) else records)

    assert problems(wire, len(THREADS)) == said
