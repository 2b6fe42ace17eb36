"""How long the pure part takes: `python -m tests.contract.speed`, a benchmark and not a test.

Each thing is measured in turn with `orjson.loads` of the same bytes, round after round, so that a slow moment
of the machine falls on both; told are medians and the middle half of the rounds (microseconds of the thread
alone), and the ratio of the medians.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import orjson

from holdshort.contract.rules import Rules, World
from holdshort.contract.state import ThreadState
from holdshort.contract.thread import bounded, decide, evolve
from holdshort.gatekeeper.transcript import Line

ROUNDS = 200
TIMES = 200
START = 1_796_000_000_000
RULES = Rules(partitions=1)
WORLD = World(clock=START)
SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "comment": {"type": "string", "maxLength": 200}},
    "required": ["approved"],
    "additionalProperties": False,
}


def record(topic: str, value: Any, offset: int, **headers: str) -> Line:
    named = tuple((f"holdshort-{name}", text.encode()) for name, text in headers.items())
    return Line(topic, 0, offset, b"thread-1", orjson.dumps(value), named, START + 1000 * offset)


def judged(state: ThreadState, *records: Line) -> ThreadState:
    for one in records:
        state = evolve(state, decide(state, one, one.timestamp, WORLD, RULES).changes)
    return state


def a_passed_event() -> tuple[Callable[[], object], bytes]:
    """An event of 200 bytes of a run in flight that is shown as running."""
    asks = record("inputs", {"threadId": "thread-1", "runId": "run-1", "messages": []}, 1)
    starts = {"type": "RUN_STARTED", "threadId": "thread-1", "runId": "run-1"}
    told = {"run": "run-1", "admission": "inputs/0/1"}
    state = judged(ThreadState(), asks, record("agent-events.default", starts, 2, **told))
    value = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "message-1", "delta": ""}
    value["delta"] = "x" * (200 - len(orjson.dumps(value)))
    said = record("agent-events.default", value, 3, **told)
    assert len(said.value or b"") == 200
    state = judged(state, said)

    def judge() -> object:
        verdict = decide(state, said, said.timestamp, WORLD, RULES)
        return evolve(state, verdict.changes)

    assert decide(state, said, said.timestamp, WORLD, RULES).kind == "passed"
    return judge, said.value or b""


def a_covering_resume() -> tuple[Callable[[], object], bytes]:
    """The answer to one interrupt with a small schema, which has been seen before."""
    interrupt = {"id": "interrupt-1", "reason": "tool_call", "message": "Pay 950?", "responseSchema": SCHEMA}
    outcome = {"type": "interrupt", "interrupts": [interrupt]}
    ends = {"type": "RUN_FINISHED", "threadId": "thread-1", "runId": "run-1", "outcome": outcome}
    state = bounded(judged(ThreadState(), record("agent-events.default", ends, 1)), 0)
    entry = {
        "interruptId": "interrupt-1",
        "status": "resolved",
        "payload": {"approved": True, "comment": "as agreed"},
    }
    value = {
        "threadId": "thread-1",
        "runId": "run-2",
        "state": {},
        "messages": [{"id": "m1", "role": "user", "content": "please pay"}],
        "tools": [],
        "context": [],
        "forwardedProps": {},
        "resume": [entry],
    }
    said = record("inputs", value, 2)

    def judge() -> object:
        verdict = decide(state, said, said.timestamp, WORLD, RULES)
        return evolve(state, verdict.changes)

    assert decide(state, said, said.timestamp, WORLD, RULES).kind == "admitted"
    return judge, said.value or b""


def timed(one: Callable[[], object], times: int) -> float:
    """Microseconds a call, over so many calls."""
    began = time.thread_time_ns()
    for _ in range(times):
        one()
    return (time.thread_time_ns() - began) / 1000 / times


def told(name: str, one: Callable[[], object], raw: bytes, rounds: int) -> str:
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(timed(one, TIMES))
        theirs.append(timed(lambda: orjson.loads(raw), TIMES))
    ratio = statistics.median(ours) / statistics.median(theirs)
    loads = f"orjson.loads of its {len(raw)} bytes"
    return f"{name:<18}{_spread(ours)}, {loads}{_spread(theirs)}: x {ratio:.0f}"


def _spread(times: list[float]) -> str:
    low, median, high = statistics.quantiles(times, n=4)
    return f"{median:6.2f} us ({low:.2f} to {high:.2f})"


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    for name, make in (("a passed event", a_passed_event), ("a covering resume", a_covering_resume)):
        one, raw = make()
        timed(one, TIMES)
        sys.stdout.write(told(name, one, raw, rounds) + "\n")


if __name__ == "__main__":
    main()
