"""W7: planned handover: two processes share the lanes; each in turn is stopped in order and started again."""

import threading
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from tests.bench.kills import WARM_UP, People, questions
from tests.bench.subject import Subject

from holdshort.cli.bench.drain import Told
from holdshort.cli.bench.exact import Story
from holdshort.cli.bench.gate import Measured
from holdshort.cli.bench.latency import Pacer, undisturbed
from holdshort.cli.bench.load import pausing
from holdshort.cli.bench.wire import Wire

PATIENCE_S: Final = 60.0


def handover(gate: Subject, wire: Wire, rate: int, seconds: float, every: float, told: Told) -> Measured:
    """Threads at a fixed rate, and every so many seconds one process leaves and comes back.

    What a client notices is a silence of its own partition: of each restart the longest one counts that any
    partition had until the next.
    """
    threads = range(WARM_UP + int(rate * seconds))
    gate.start()
    with wire.reader(wire.topics.events, wire.topics.runs) as reader, undisturbed():
        people = People(wire, reader, threads)
        wire.fill(wire.topics.agent_events, pausing(threads[:WARM_UP]))
        people.watch(lambda: people.ended == WARM_UP, gate.check, PATIENCE_S)
        pacer = Pacer(wire.sender(), wire.topics.agent_events, questions(threads[WARM_UP:]), rate)
        roller = Roller(gate, every, pacer.end)
        pacer.start()
        roller.start()
        people.watch(
            lambda: people.ended == len(threads),
            lambda: told(f"{people.ended:,} of {len(threads):,} threads ended, {len(roller.at)} restarts"),
            seconds + PATIENCE_S,
        )
        pacer.join()
        roller.join()
    people.flush()
    gate.check()
    gate.stop()
    told("reading it all again")
    silences = [
        longest_silence(people.by_partition.values(), at, min(at + every, pacer.end)) for at in roller.at
    ]
    figures = {
        "restarts": float(len(silences)),
        "longest silence s": max(silences),
        "median silence s": median(silences),
    }
    story = Story(threads=threads, answered=threads, others=people.others, refuses=gate.refuses)
    return Measured(figures, story.problems(wire))


class Roller(threading.Thread):
    """Restarts one process after the other, in order, every so many seconds until `end`."""

    def __init__(self, gate: Subject, every: float, end: float) -> None:
        super().__init__(name="roller", daemon=True)
        self.at: list[float] = []
        self._gate = gate
        self._every = every
        self._end = end

    def run(self) -> None:
        while time.monotonic() + self._every < self._end:
            time.sleep(self._every)
            self.at.append(time.monotonic())
            self._gate.restart(len(self.at) % self._gate.processes)


def longest_silence(arrivals: Iterable[Sequence[float]], since: float, until: float) -> float:
    """The longest time between two outputs of one partition that reaches into the time given."""
    return max(
        (b - a for times in arrivals for a, b in pairwise(times) if b > since and a < until), default=0.0
    )
