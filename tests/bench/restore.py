"""W4: restore: so many pauses are open, the system is killed and started again; when does it answer?"""

import threading
import time
from statistics import median
from typing import Final

from tests.bench.subject import Subject

from holdshort.cli.bench.drain import Told
from holdshort.cli.bench.gate import Figures, Measured
from holdshort.cli.bench.load import pausing, resumes, thread_of
from holdshort.cli.bench.wire import MeasureAgainError, Reader, Wire

PATIENCE_S: Final = 120.0


def restore(gate: Subject, wire: Wire, open_: int, restarts: int, settle_s: float, told: Told) -> Measured:
    """Seconds from the start of the process to the answer of one thread in every partition; memory.

    For `settle_s` there is no load before a kill, so that no transaction is open.
    """
    threads = range(open_)
    gate.start()
    probes = Probes(wire.partitions, restarts)
    seen = _open_all(gate, wire, threads, probes, told)
    time.sleep(settle_s)
    figures: Figures = {}
    full = gate.spent().memory_mb
    times: list[tuple[float, float]] = []
    with wire.reader(wire.topics.runs) as runs:
        for number in range(restarts):
            told(f"killed, restart {number + 1} of {restarts}")
            gate.kill()
            times.append(_restart(gate, wire, runs, probes.take()))
            time.sleep(settle_s)
    restored = gate.spent().memory_mb
    gate.stop()
    figures["first answer s"] = median(first for first, _ in times)
    figures["all answers s"] = median(last for _, last in times)
    if full is not None and restored is not None:
        figures |= {"memory full MB": full, "memory restored MB": restored}
    problems = [] if seen == 2 * open_ else [f"events: {seen:,} instead of {2 * open_:,}"]
    return Measured(figures, problems + probes.problems(wire))


class Probes:
    """Threads to be answered after a restart: one of each partition, never the same twice."""

    def __init__(self, partitions: int, restarts: int) -> None:
        self._threads: list[list[int]] = [[] for _ in range(partitions)]
        self._wanted = restarts
        self._taken: list[int] = []

    def offer(self, partition: int, thread: int) -> None:
        threads = self._threads[partition]
        if len(threads) < self._wanted and thread not in threads:
            threads.append(thread)

    def take(self) -> list[int]:
        now = [threads.pop() for threads in self._threads]
        self._taken += now
        return now

    def problems(self, wire: Wire) -> list[str]:
        """Each was answered once, and nothing else was."""
        answered = sorted(thread_of(message.key()) for message in wire.everything(wire.topics.runs))
        return [] if answered == sorted(self._taken) else [f"runs: {len(answered)} of {len(self._taken)}"]


def _open_all(gate: Subject, wire: Wire, threads: range, probes: Probes, told: Told) -> int:
    """Open every pause; returns how many events became visible."""
    feeder = threading.Thread(
        target=wire.fill, args=(wire.topics.agent_events, pausing(threads)), name="feeder", daemon=True
    )
    wanted, seen = 2 * len(threads), 0
    with wire.reader(wire.topics.events) as reader:
        feeder.start()
        last = time.monotonic()
        while seen < wanted:
            messages = reader.take()
            for message in messages:
                probes.offer(message.partition(), thread_of(message.key()))
            seen += len(messages)
            last = time.monotonic() if messages else last
            told(f"opening pauses: {seen // 2:,} of {len(threads):,}")
            gate.check()
            if time.monotonic() - last > PATIENCE_S:
                raise MeasureAgainError(f"{seen:,} of {wanted:,} events came")
    feeder.join()
    return seen


def _restart(gate: Subject, wire: Wire, runs: Reader, probes: list[int]) -> tuple[float, float]:
    """Seconds from the start to the first and to the last answer."""
    began = gate.start()
    sender = wire.sender()
    for thread in probes:
        for record in resumes(range(thread, thread + 1)):
            sender.send(wire.topics.inputs, record)
    sender.flush()
    came: dict[bytes, float] = {}
    while len(came) < len(probes):
        for message in runs.take(0.2):
            if thread_of(message.key()) in probes:
                came.setdefault(message.key(), time.monotonic() - began)
        gate.check()
        if time.monotonic() - began > PATIENCE_S:
            raise MeasureAgainError(f"{len(came)} of {len(probes)} answers came after a restart")
    return min(came.values()), max(came.values())
