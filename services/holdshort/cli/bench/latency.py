"""W3: latency at fixed rates, in an open loop: it counts from when a record was due, however late it is sent.

At each rate first questions come, then, when all were visible, their answers; agents run what they are given.
"""

import gc
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from holdshort.cli.bench.agent import Agent
from holdshort.cli.bench.drain import Told, counting
from holdshort.cli.bench.exact import Story, fact_of
from holdshort.cli.bench.gate import Figures, Gate, Measured
from holdshort.cli.bench.load import (
    FIRST,
    Keyed,
    key_of,
    paused,
    pausing,
    resume,
    resumes,
    run_of,
    started,
    thread_of,
)
from holdshort.cli.bench.wire import MeasureAgainError, Reader, Sender, Wire

LEAD_S: Final = 0.5  # from the decision to begin to the first record that is due
PATIENCE_S: Final = 30.0
SWITCH_S: Final = 0.0005  # how long one of our threads may keep another from its turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What to measure: each rate for `seconds`, after `warm_up` threads; and `idle_s` of nothing at all."""

    per_second: Sequence[int]
    seconds: float
    warm_up: int
    idle_s: float

    @property
    def threads(self) -> int:
        return self.warm_up + sum(self.count(rate) for rate in self.per_second)

    def count(self, rate: int) -> int:
        return max(1, int(rate * self.seconds))


def latency(gate: Gate, wire: Wire, rates: Rates, told: Told) -> Measured:
    """Medians and tails from due to visible, of questions and of answers, and CPU at each rate."""
    gate.start()
    figures: Figures = {}
    sender = wire.sender()
    agent = Agent(sender, wire.topics.agent_events)
    with wire.reader(wire.topics.runs) as runs:
        _warm_up(gate, wire, runs, agent, rates.warm_up, told)
    if rates.idle_s:
        told("measuring what idling costs")
        figures |= _idle(gate, rates.idle_s)
    first = rates.warm_up
    for rate in rates.per_second:
        numbers = range(first, first + rates.count(rate))
        told(f"questions at {rate:,} a second")
        figures |= Phase(gate, wire, f"{rate}/s pause", rate).questions(numbers)
        told(f"answers at {rate:,} a second")
        figures |= Phase(gate, wire, f"{rate}/s answer", rate).answers(numbers, agent)
        first = numbers.stop
    memory = gate.spent().memory_mb
    if memory is not None:
        figures["memory MB"] = memory
    sender.flush()
    every = range(rates.threads)
    story = Story(threads=every, answered=every, refuses=gate.refuses)
    with wire.reader(wire.topics.events) as events:
        events.until(story.event_count, gate.check, counting(told, "events", story.event_count))
    gate.stop()
    told("reading it all again")
    return Measured(figures, story.problems(wire))


def _warm_up(gate: Gate, wire: Wire, runs: Reader, agent: Agent, threads: int, told: Told) -> None:
    """Compilers get warm, caches fill; what is answered was visible before, and all of it has ended after."""
    numbers = range(threads)
    progress = counting(told, "warm-up, events", 2 * threads)
    wire.fill(wire.topics.agent_events, pausing(numbers))
    with wire.reader(wire.topics.events) as events:
        events.until(2 * threads, gate.check, progress)
        wire.fill(wire.topics.inputs, resumes(numbers))
        _run_all(gate, runs, agent, threads)
        events.until(2 * threads, gate.check, progress)


def _run_all(gate: Gate, runs: Reader, agent: Agent, count: int) -> None:
    last = time.monotonic()
    while count > 0:
        for message in (messages := runs.take()):
            agent.run(message)
        count -= len(messages)
        last = time.monotonic() if messages else last
        gate.check()
        if time.monotonic() - last > PATIENCE_S:
            raise MeasureAgainError(f"{count:,} answers of the warm-up did not come")


def _idle(gate: Gate, seconds: float) -> Figures:
    before = gate.spent()
    time.sleep(seconds)
    return gate.spent().since(before).shares(seconds, "idle")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Neither our own garbage collector nor our own threads delay what is measured."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        sys.setswitchinterval(interval)


class Phase:
    """One kind of record at one rate."""

    def __init__(self, gate: Gate, wire: Wire, name: str, rate: int) -> None:
        self._gate = gate
        self._wire = wire
        self._name = name
        self._rate = rate

    def questions(self, threads: range) -> Figures:
        """From the agent's RUN_FINISHED to `events`."""
        records = [[(key_of(t), started(t, run_of(t))), (key_of(t), paused(t))] for t in threads]
        topics = self._wire.topics

        def asked(message: Any) -> int | None:
            fact = fact_of(message)
            is_question = fact.kind == "RUN_FINISHED" and fact.run.endswith(FIRST)
            return thread_of(message.key()) if is_question else None

        return self.measured(threads, records, topics.agent_events, topics.events, asked)

    def answers(self, threads: range, agent: Agent) -> Figures:
        """From the client's resume to `runs.default`."""
        records = [[(key_of(t), resume(t))] for t in threads]
        topics = self._wire.topics
        return self.measured(threads, records, topics.inputs, topics.runs, run_of_thread, agent)

    def measured(
        self,
        threads: range,
        records: list[list[Keyed]],
        into: str,
        out_of: str,
        thread: Callable[[Any], int | None],
        agent: Agent | None = None,
    ) -> Figures:
        """From when a thread's records were due in one topic to when what came of it was read in another.

        `thread` says whose a record that was read is; None for one that is nobody's answer.
        """
        with self._wire.reader(out_of) as reader, undisturbed():
            reader.skip()
            pacer = Pacer(self._wire.sender(), into, records, self._rate)
            before = self._gate.spent()
            pacer.start()
            came: dict[int, float] = {}
            while len(came) < len(threads):
                messages = reader.take(0.2)
                now = time.monotonic()
                for message in messages:
                    whose = thread(message)
                    if whose is not None and whose in threads:
                        came.setdefault(whose - threads.start, now)
                        if agent is not None:
                            agent.run(message)
                self._check(pacer, len(threads) - len(came), now)
            spent = self._gate.spent().since(before)
            shares = spent.shares(time.monotonic() - pacer.began, self._name)
            pacer.join()
        due = sorted(
            (came[n] - pacer.due(n)) * 1000 for n in range(self._skipped(len(threads)), len(threads))
        )
        return {f"{self._name} {name} ms": value for name, value in percentiles(due).items()} | shares

    def _check(self, pacer: "Pacer", left: int, now: float) -> None:
        self._gate.check()
        if now > pacer.end + PATIENCE_S:
            raise MeasureAgainError(f"{self._name}: {left:,} did not come within {PATIENCE_S:g} s")

    def _skipped(self, count: int) -> int:
        """The first second, or a fifth of a shorter phase, is not counted."""
        return min(self._rate, count // 5)


def run_of_thread(message: Any) -> int:
    """Whose a run is that the agent is given."""
    return thread_of(message.key())


class Pacer(threading.Thread):
    """Sends each group of records when it is due, whatever became of those before."""

    def __init__(self, sender: Sender, topic: str, records: list[list[Keyed]], rate: float) -> None:
        super().__init__(name="pacer", daemon=True)
        self._sender = sender
        self._topic = topic
        self._records = records
        self._rate = rate
        self._error: BaseException | None = None
        self.began = time.monotonic()
        self._first_due = self.began + LEAD_S

    def due(self, number: int) -> float:
        return self._first_due + number / self._rate

    @property
    def end(self) -> float:
        return self.due(len(self._records))

    def run(self) -> None:
        try:
            for number, group in enumerate(self._records):
                if (left := self.due(number) - time.monotonic()) > 0:
                    time.sleep(left)
                for record in group:
                    self._sender.send(self._topic, record)
            self._sender.flush()
        except BaseException as error:  # told by join, in the thread that can tell it
            self._error = error

    def join(self, timeout: float | None = None) -> None:
        super().join(timeout)
        if self._error is not None:
            raise self._error


def percentiles(ordered: Sequence[float]) -> dict[str, float]:
    """Of values in ascending order: the smallest that so many percent do not exceed."""
    return {
        name: ordered[max(0, math.ceil(len(ordered) * share) - 1)]
        for name, share in (("p50", 0.50), ("p90", 0.90), ("p99", 0.99), ("max", 1.0))
    }
