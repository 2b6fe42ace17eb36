"""The order of the tables of contract 2 and 3: what matches two rows gets the earlier."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from tests.expected import (
    Expected,
    abandoned,
    duplicate,
    forgotten,
    ignored,
    quietly_refused,
    refused,
    replayed,
    unreadable,
    violated,
)
from tests.playbook import (
    Agent,
    Passes,
    Playbook,
    Said,
    agent,
    cancelled,
    client,
    entries,
    later,
    moment,
    question,
    sdk,
    team,
)

from holdshort.contract.routes import Route, RouteTable
from holdshort.contract.rules import Limits

MEGABYTE = 1024 * 1024
SIDE_DOOR = {"command": {"resume": True}}
RESERVED = {"routes": RouteTable([Route(name="r", team="x", reason="test:question")])}
SEALED = {"limits": Limits(open_pauses=0)}
NO_AGENT = {"agents": ["another"], "default_agent": "another"}

Given = list[Said | Passes]


class Both(NamedTuple):
    """An input that two rows match: what it is, in which thread, and what the earlier row says of it."""

    earlier: str
    rows_later: str
    given: Given
    said: Said | Callable[[Playbook], Said]
    expected: Expected
    rules: Mapping[str, Any] = {}


OPEN: Given = [agent.interrupts("r0", "a", "b")]
RESUMING: Given = [*OPEN, client.resumes("r1", a=1, b=1)]
SETTLED: Given = [*RESUMING, sdk.finishes("r1")]
BUSY: Given = [client.asks("r1")]
EXPIRING: Given = [
    agent.interrupts("r0", question("a", expiresAt=moment(1), responseSchema={"type": "null"}), "b")
]
TWO_GENERATIONS = [
    {**entries({"a": 1})[0], "metadata": {"holdshort:binding": {"generation": 1}}},
    {**entries({"b": 1})[0], "metadata": {"holdshort:binding": {"generation": 2}}},
]
NOT_JSON = '{"threadId":"t","runId":"r1","resume":"x","state":NaN}'


def same_bytes_as_r1_long_ago(play: Playbook) -> Said:
    return client.asks("r1").but(at=play.at - 10_000)


INPUTS = [
    Both("unreadable input", "miskeyed", [], Said("inputs", NOT_JSON, "u"), unreadable("MALFORMED_INPUT")),
    Both(
        "miskeyed",
        "too large",
        [],
        client.asks("r1").padded(MEGABYTE + 9).but(key="u"),
        unreadable("MISKEYED_RECORD"),
    ),
    Both("too large", "malformed resume", [], client.asks("r1", resume="x" * MEGABYTE), refused("TOO_LARGE")),
    Both(
        "too large",
        "wrong address",
        OPEN,
        team.resumes("hs-1", a="x" * MEGABYTE, generation=7),
        quietly_refused("TOO_LARGE"),
    ),
    Both(
        "malformed resume",
        "wrong address",
        OPEN,
        team.resumes("hs-1", generation=7).adding(resume=[1]),
        quietly_refused("INVALID_RESUME"),
    ),
    Both(
        "malformed resume",
        "run id in use",
        [client.asks("r1")],
        client.asks("r1", resume="x"),
        quietly_refused("INVALID_RESUME"),
    ),
    Both(
        "wrong address",
        "same input again",
        [*OPEN, team.resumes("hs-1", a=1, b=1)],
        team.resumes("hs-1", a=1, b=1, generation=7),
        quietly_refused("STALE_BINDING"),
    ),
    Both(
        "wrong address",
        "thread busy",
        RESUMING,
        team.abandons().having(admission="inputs/0/0"),
        quietly_refused("STALE_BINDING"),
    ),
    Both(
        "abandon",
        "same input again",
        BUSY,
        client.asks("r1").but(topic="resumes").having(action="abandon", admission="inputs/0/0"),
        abandoned(),
    ),
    Both(
        "abandon", "run id in use", BUSY, team.abandons(run="r1").having(admission="inputs/0/0"), abandoned()
    ),
    Both(
        "wrong address",
        "forget",
        BUSY,
        team.forgets(),
        quietly_refused("STALE_BINDING"),
    ),
    Both(
        "forget",
        "run id in use",
        BUSY,
        team.forgets(run="r1").having(admission="inputs/0/0"),
        forgotten(code="ABANDONED"),
    ),
    Both(
        "same input again",
        "same input late",
        [client.asks("r1"), sdk.finishes("r1"), client.asks("r1")],
        same_bytes_as_r1_long_ago,
        duplicate,
    ),
    Both("same input again", "run id in use", BUSY, client.asks("r1"), duplicate),
    Both(
        "same input late",
        "run id in use",
        [client.asks("r1"), sdk.finishes("r1").but(after=10), client.asks("r1", x=1).but(after=-5)],
        client.asks("r1"),
        replayed(emitted=[]),
    ),
    Both(
        "same input late",
        "input while pending",
        [client.asks("r1"), sdk.interrupts("r1", "a")],
        lambda play: client.asks("r1").but(at=play.at - 1),
        replayed(open=["a"]),
    ),
    Both(
        "run id in use",
        "past answer",
        [*SETTLED, client.asks("r2")],
        client.resumes("r2", a=1, b=1),
        quietly_refused("RUN_ID_IN_USE"),
    ),
    Both(
        "run id in use",
        "conflicting answer",
        RESUMING,
        client.resumes("r1", a=2, b=2),
        quietly_refused("RUN_ID_IN_USE"),
    ),
    Both(
        "past answer",
        "thread busy",
        [*SETTLED, client.asks("r2")],
        client.resumes("r9", a=1, b=1),
        replayed("THREAD_BUSY"),
    ),
    Both(
        "past answer",
        "conflicting answer",
        [*SETTLED, client.asks("r2"), sdk.interrupts("r2", "a", "b"), client.resumes("r3", a=1, b=2)],
        client.resumes("r9", a=1, b=1).echoing(1),
        replayed("THREAD_BUSY"),
    ),
    Both(
        "past answer",
        "sealed",
        [],
        client.resumes("r9", a=cancelled).echoing(1),
        replayed("TOO_MANY_PAUSES"),
        SEALED | {"outside_runs": "pass"},
    ),
    Both(
        "past answer",
        "two channels",
        SETTLED,
        client.resumes("r9", a=1, b=1).adding(forwardedProps=SIDE_DOOR),
        replayed(),
    ),
    Both(
        "past answer",
        "other past answer",
        [
            *SETTLED,
            client.asks("r2"),
            sdk.interrupts("r2", "a", "b"),
            client.resumes("r3", a=2, b=2),
            sdk.finishes("r3"),
        ],
        client.resumes("r9", a=1, b=1),
        replayed(),
    ),
    Both(
        "other past answer",
        "two channels",
        SETTLED,
        client.resumes("r9", a=2, b=1).adding(forwardedProps=SIDE_DOOR),
        refused("RESUME_CONFLICT"),
    ),
    Both(
        "other past answer",
        "resume of nothing",
        SETTLED,
        client.resumes("r9", a=2),
        refused("RESUME_CONFLICT"),
    ),
    Both(
        "several generations",
        "conflicting answer",
        RESUMING,
        client.asks("r9", resume=TWO_GENERATIONS),
        refused("STALE_BINDING"),
    ),
    Both(
        "several generations",
        "answered twice",
        OPEN,
        client.asks("r9", resume=[*TWO_GENERATIONS, *TWO_GENERATIONS]),
        refused("STALE_BINDING"),
    ),
    Both(
        "conflicting answer",
        "thread busy",
        RESUMING,
        client.resumes("r9", a=2, b=2),
        refused("RESUME_CONFLICT"),
    ),
    Both("thread busy", "input while pending", RESUMING, client.asks("r9"), refused("THREAD_BUSY")),
    Both(
        "thread busy",
        "two channels",
        BUSY,
        client.asks("r9", forwardedProps=SIDE_DOOR),
        refused("THREAD_BUSY"),
    ),
    Both("thread busy", "resume of nothing", BUSY, client.resumes("r9", a=1), refused("THREAD_BUSY")),
    Both("sealed", "input while pending", OPEN, client.asks("r9"), refused("TOO_MANY_PAUSES"), SEALED),
    Both(
        "sealed",
        "two channels",
        OPEN,
        client.resumes("r9", a=1).adding(forwardedProps=SIDE_DOOR),
        refused("TOO_MANY_PAUSES"),
        SEALED,
    ),
    Both(
        "sealed",
        "answered twice",
        OPEN,
        client.asks("r9", resume=entries({"a": 1}) * 2),
        refused("TOO_MANY_PAUSES"),
        SEALED,
    ),
    Both(
        "input while pending",
        "two channels",
        OPEN,
        client.asks("r9", forwardedProps=SIDE_DOOR),
        refused("PENDING_INTERRUPTS"),
    ),
    Both(
        "two channels",
        "ordinary input",
        [],
        client.asks("r9", forwardedProps=SIDE_DOOR).having(agent="nobody"),
        refused("CONFLICTING_CHANNELS"),
    ),
    Both(
        "two channels",
        "resume of nothing",
        [],
        client.resumes("r9", a=1).adding(forwardedProps=SIDE_DOOR),
        refused("CONFLICTING_CHANNELS"),
    ),
    Both(
        "two channels",
        "answered twice",
        OPEN,
        client.asks("r9", resume=entries({"a": 1}) * 2, forwardedProps=SIDE_DOOR),
        refused("CONFLICTING_CHANNELS"),
    ),
    Both(
        "resume of nothing",
        "answered twice",
        [],
        client.asks("r9", resume=entries({"a": 1}) * 2),
        refused("UNKNOWN_INTERRUPT_ID"),
    ),
    Both(
        "answered twice",
        "unknown interrupt",
        OPEN,
        client.asks("r9", resume=entries({"z": 1}) * 2),
        refused("DUPLICATE_INTERRUPT_ID"),
    ),
    Both(
        "answered twice",
        "partial",
        OPEN,
        client.asks("r9", resume=entries({"a": 1}) * 2),
        refused("DUPLICATE_INTERRUPT_ID"),
    ),
    Both(
        "unknown interrupt",
        "stale binding",
        [OPEN[0]],
        client.resumes("r9", z=1).but(offset=0).echoing(1, interruptedRunId="x"),
        refused("UNKNOWN_INTERRUPT_ID"),
    ),
    Both(
        "unknown interrupt",
        "reserved",
        OPEN,
        client.resumes("r9", a=1, b=1, z=1),
        refused("UNKNOWN_INTERRUPT_ID"),
        RESERVED,
    ),
    Both(
        "stale binding",
        "reserved",
        OPEN,
        client.resumes("r9", a=1, b=1).echoing(1, interruptedRunId="x"),
        refused("STALE_BINDING"),
        RESERVED,
    ),
    Both(
        "stale binding",
        "partial",
        OPEN,
        client.resumes("r9", a=1).echoing(1, interruptedRunId="x"),
        refused("STALE_BINDING"),
    ),
    Both("reserved", "partial", OPEN, client.resumes("r9", a=1), refused("RESERVED_FOR_TEAM"), RESERVED),
    Both(
        "reserved",
        "expired",
        EXPIRING,
        client.resumes("r9", a=1, b=1),
        refused("RESERVED_FOR_TEAM"),
        RESERVED,
    ),
    Both("partial", "expired", EXPIRING, client.resumes("r9", a=1), refused("PARTIAL_RESUME")),
    Both(
        "expired", "payload refused", EXPIRING, client.resumes("r9", a=1, b=1), refused("INTERRUPT_EXPIRED")
    ),
    Both(
        "payload refused",
        "covering resume",
        [agent.interrupts("r0", question("a", responseSchema={"type": "null"}))],
        client.resumes("r9", a=1),
        refused("INVALID_PAYLOAD"),
        NO_AGENT,
    ),
]

HUGE = {"x": "x" * MEGABYTE}
other = Agent("other")
TWO_AGENTS = {"agents": ["default", "other"]}
EVENTS = [
    Both(
        "unreadable",
        "miskeyed",
        [],
        Said("agent-events.default", '{"threadId":"u","x":NaN}'),
        unreadable("MALFORMED_EVENT"),
    ),
    Both(
        "miskeyed",
        "unknown run",
        BUSY,
        agent.finishes("x").adding(threadId="u"),
        unreadable("MISKEYED_RECORD"),
    ),
    Both(
        "echo of the past",
        "foreign",
        [client.asks("r1"), sdk.finishes("r1"), other.starts("x")],
        sdk.finishes("r1"),
        ignored(),
        TWO_AGENTS,
    ),
    Both(
        "echo of the past",
        "too large",
        [client.asks("r1"), sdk.finishes("r1")],
        sdk.says(run="r1").adding(**HUGE),
        ignored(emitted=[]),
    ),
    Both("foreign", "unknown run", BUSY, other.finishes("x"), violated("FOREIGN_RUN"), TWO_AGENTS),
    Both("unknown run", "too large", BUSY, agent.says(run="x").adding(**HUGE), ignored(emitted=[])),
    Both("unknown run", "malformed outcome", BUSY, agent.interrupts("x"), violated("STALE_RUN")),
    Both("unknown run", "heartbeat", BUSY, agent.beats("x"), ignored(emitted=[])),
    Both("interrupted run runs on", "heartbeat", OPEN, agent.beats("r0"), ignored(emitted=[], status="open")),
    Both(
        "interrupted run runs on", "too large", OPEN, agent.says(run="r0").adding(**HUGE), ignored(emitted=[])
    ),
    Both(
        "interrupted run runs on", "finished", OPEN, agent.finishes("r0"), ignored(emitted=[], status="open")
    ),
    Both("interrupted run runs on", "failed", OPEN, agent.fails("r0"), ignored(emitted=[], status="open")),
    Both("interrupted run runs on", "started", OPEN, agent.starts("r0"), ignored(emitted=[], status="open")),
    Both(
        "malformed outcome",
        "too large",
        [agent.starts("r0")],
        agent.interrupts("r0").adding(**HUGE),
        violated("INVALID_OUTCOME", shown=["RUN_ERROR"]),
    ),
    Both(
        "heartbeat", "too large", [agent.starts("r0")], agent.beats("r0").adding(**HUGE), ignored(emitted=[])
    ),
]


def prepared(both: Both) -> Playbook:
    play = Playbook(**both.rules)
    if both.rules.get("outside_runs") == "pass":
        return sealed_over_a_gone_pause()
    for said in both.given:
        _ = play >> said
    play.unchecked.clear()
    return play


def sealed_over_a_gone_pause() -> Playbook:
    play = Playbook(limits=Limits(open_bytes=100))
    play(*OPEN, client.resumes("r1", a=1, b=1), sdk.interrupts("r1", question("c", message="x" * 200)))
    return play


@pytest.mark.parametrize(
    "both", [*INPUTS, *EVENTS], ids=lambda both: f"{both.earlier} before {both.rows_later}"
)
def test_what_matches_two_rows_gets_the_earlier(both: Both) -> None:
    play = prepared(both)
    said = both.said(play) if callable(both.said) else both.said
    play >> said << both.expected


def test_time_alone_changes_no_order() -> None:
    play = Playbook()
    play(*EXPIRING, later(hours=1))
    play >> client.asks("r9") << refused("PENDING_INTERRUPTS")
