"""W5: kill loop: people answer questions as they see them while the system is killed and started again."""

import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, Final

from tests.bench.subject import Subject

from holdshort.cli.bench.agent import Agent
from holdshort.cli.bench.drain import Told
from holdshort.cli.bench.exact import Story, fact_of
from holdshort.cli.bench.gate import Measured
from holdshort.cli.bench.latency import Pacer, undisturbed
from holdshort.cli.bench.load import (
    ANSWER,
    FIRST,
    Keyed,
    key_of,
    other_input,
    paused,
    pausing,
    resume,
    run_of,
    started,
    thread_of,
)
from holdshort.cli.bench.wire import MeasureAgainError, Reader, Sender, Wire

OTHER_EVERY: Final = 4  # each fourth thread's client first sends something that answers nothing
WARM_UP: Final = 50  # threads that end before the first kill
PATIENCE_S: Final = 120.0


def kills(gate: Subject, wire: Wire, rate: int, seconds: float, every: float, told: Told) -> Measured:
    """Threads at a fixed rate, SIGKILL every so many seconds, and a supervisor that restarts at once.

    A silence is a time without any output; of each kill the longest counts that reaches into the time from it
    to the next one.
    """
    threads = range(WARM_UP + int(rate * seconds))
    gate.start()
    with wire.reader(wire.topics.events, wire.topics.runs) as reader, undisturbed():
        people = People(wire, reader, threads)
        wire.fill(wire.topics.agent_events, pausing(threads[:WARM_UP]))
        people.watch(lambda: people.ended == WARM_UP, gate.check, PATIENCE_S)
        pacer = Pacer(wire.sender(), wire.topics.agent_events, questions(threads[WARM_UP:]), rate)
        killer = Killer(gate, every, pacer.end)
        pacer.start()
        killer.start()

        def check() -> None:
            killer.check()
            told(f"{people.ended:,} of {len(threads):,} threads ended, {len(killer.kills)} kills")

        people.watch(lambda: people.ended == len(threads), check, seconds + PATIENCE_S)
        drained = time.monotonic() - pacer.end
        pacer.join()
        killer.join()
    people.flush()
    gate.check()
    gate.stop()
    told("reading it all again")
    silences = silences_after(killer.kills, every, people.arrivals)
    figures = {
        "kills": float(len(silences)),
        "longest silence s": max(silences),
        "median silence s": median(silences),
        "drained after s": max(0.0, drained),
    }
    story = Story(threads=threads, answered=threads, others=people.others, refuses=gate.refuses)
    return Measured(figures, story.problems(wire))


def questions(threads: Sequence[int]) -> list[list[Keyed]]:
    return [[(key_of(t), started(t, run_of(t))), (key_of(t), paused(t))] for t in threads]


class People:
    """Clients and the agent: each does its next thing when it has seen what it waits for."""

    def __init__(self, wire: Wire, reader: Reader, threads: range) -> None:
        self.arrivals: list[float] = []
        self.by_partition: dict[int, list[float]] = {}
        self.others = range(threads.start, threads.stop, OTHER_EVERY)
        self._reader = reader
        self._topics = wire.topics
        self._sender: Sender = wire.sender()
        self._agent = Agent(self._sender, wire.topics.agent_events)
        self._asked: set[int] = set()
        self._ended: set[int] = set()

    @property
    def ended(self) -> int:
        return len(self._ended)

    def watch(self, done: Callable[[], bool], check: Callable[[], None], patience_s: float) -> None:
        """React to what becomes visible until `done`. Raises MeasureAgainError, and what `check` raises."""
        deadline = time.monotonic() + patience_s
        while not done():
            if messages := self._reader.take(0.2):
                self._note(messages, time.monotonic())
            for message in messages:
                self._see(message)
            check()
            if time.monotonic() > deadline:
                raise MeasureAgainError(f"only {self.ended:,} threads ended")

    def _note(self, messages: Sequence[Any], now: float) -> None:
        self.arrivals.append(now)
        for partition in {message.partition() for message in messages}:
            self.by_partition.setdefault(partition, []).append(now)

    def _see(self, message: Any) -> None:
        if message.topic() == self._topics.runs:
            self._agent.run(message)
            return
        fact, thread = fact_of(message), thread_of(message.key())
        if fact.kind != "RUN_FINISHED":
            return
        if fact.run == run_of(thread, ANSWER):
            self._ended.add(thread)
        elif fact.run == run_of(thread, FIRST) and thread not in self._asked:
            self._asked.add(thread)
            self._answer(thread)

    def _answer(self, thread: int) -> None:
        if thread in self.others:
            self._sender.send(self._topics.inputs, (key_of(thread), other_input(thread)))
        self._sender.send(self._topics.inputs, (key_of(thread), resume(thread)))

    def flush(self) -> None:
        self._sender.flush()


class Killer(threading.Thread):
    """SIGKILLs the system every so many seconds until `end`, and starts it again at once."""

    def __init__(self, gate: Subject, every: float, end: float) -> None:
        super().__init__(name="killer", daemon=True)
        self.kills: list[float] = []
        self._gate = gate
        self._every = every
        self._end = end
        self._lock = threading.Lock()

    def run(self) -> None:
        while (left := self._end - time.monotonic()) > 0:
            time.sleep(min(self._every, left))
            if time.monotonic() < self._end:
                with self._lock:
                    self.kills.append(time.monotonic())
                    self._gate.kill()
                    self._gate.start()

    def check(self) -> None:
        """Raises MeasureAgainError if the system has ended otherwise than by us."""
        with self._lock:
            self._gate.check()


def silences_after(kills: Sequence[float], every: float, arrivals: Sequence[float]) -> list[float]:
    """For each kill the longest pause between two outputs that reaches into the time until the next one."""
    return [
        max(
            (
                after - before
                for before, after in pairwise(arrivals)
                if after > kill and before < kill + every
            ),
            default=0.0,
        )
        for kill in kills
    ]
