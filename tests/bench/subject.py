"""A system that runs under test (gate.Gate), on topics of its own that go with it."""

import secrets
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench.systems import System, Told

from holdshort.cli.bench import proc
from holdshort.cli.bench.gate import Spent
from holdshort.cli.bench.program import OWN_PORT, Program
from holdshort.cli.bench.room import CLIENT, Room
from holdshort.cli.bench.wire import Topics, Wire
from holdshort.settings import load_settings
from holdshort.stream.connection import connection_of

PARTITIONS: Final = 4


class Broker(NamedTuple):
    """A Kafka to measure on, by the processes of its nodes; of one that was there already none are known.

    Topics have a copy on every node of one that we started, and are in sync on all but one.
    """

    bootstrap_servers: str
    pids: tuple[int, ...] = ()

    def told(self) -> str:
        """What of it belongs into the title of a measurement."""
        return "" if len(self.pids) < 2 else f", {len(self.pids)} brokers"


class Subject:
    """One system under test."""

    def __init__(self, system: System, programs: Sequence[Program], broker: Broker) -> None:
        self.refuses = system.refuses
        self._programs = programs
        self._broker = broker

    def start(self) -> float:
        began = time.monotonic()
        for program in self._programs:
            program.start()
        return began

    def stop(self) -> None:
        for program in self._programs:
            program.stop()

    def kill(self) -> None:
        for program in self._programs:
            program.kill()

    @property
    def processes(self) -> int:
        return len(self._programs)

    def restart(self, number: int) -> None:
        """Stop one of its processes in order, and start it again at once."""
        self._programs[number].stop()
        self._programs[number].start()

    def check(self) -> None:
        for program in self._programs:
            program.check()

    def spent(self) -> Spent:
        """CPU of its own processes and, apart, of the broker's."""
        own = _together([program.spent() for program in self._programs])
        if not self._broker.pids or not proc.is_known():
            return own
        return own._replace(broker_s=proc.cpu_seconds(self._broker.pids))


def _together(spent: Sequence[Spent]) -> Spent:
    """Of all programs; None where nobody can tell."""

    def total(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    return Spent(
        system_s=total([one.system_s for one in spent]), memory_mb=total([one.memory_mb for one in spent])
    )


@contextmanager
def subject(system: System, broker: Broker, told: Told) -> Iterator[tuple[Subject, Wire]]:
    """A system that is not started yet, and the way to its topics. Nothing of it is left afterwards."""
    commands = [command(told) for command in (system.command, *system.beside) if command is not None]
    with ExitStack() as open_things:
        scratch = Path(open_things.enter_context(tempfile.TemporaryDirectory(prefix="holdshort-bench-")))
        prefix = f"bench-{secrets.token_hex(4)}."
        environment = _environment(system, broker, prefix, scratch)
        kafka, settings, config = load_settings(environment)
        room = Room(kafka, prefix)
        told("making topics")
        room.make(settings, config)
        open_things.callback(lambda: room.remove(room.topics()))
        programs = [Program(one, environment, scratch / f"log-{n}") for n, one in enumerate(commands)]
        one = Subject(system, programs, broker)
        open_things.callback(one.kill)
        for program in programs:
            open_things.enter_context(program.explained())
        topics = Topics.of(prefix)
        if system.mirror:
            topics = topics._replace(events=topics.agent_events, runs=topics.inputs)
        yield one, Wire(connection_of(kafka, CLIENT).for_librdkafka(), topics, PARTITIONS)


def _environment(system: System, broker: Broker, prefix: str, scratch: Path) -> Mapping[str, str]:
    """What the system is told: ours as it is documented, the peers in the words of the benchmark."""
    nodes = len(broker.pids)
    in_sync = max(1, nodes - 1)
    copies = {"HOLDSHORT_REPLICATION": str(nodes), "HOLDSHORT_MIN_ISR": str(in_sync)} if nodes else {}
    ours = {
        "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
        "HOLDSHORT_CONFIG": str(files("holdshort.cli.bench") / "bench.yaml"),
        "HOLDSHORT_PREFIX": prefix,
        "HOLDSHORT_PARTITIONS": str(PARTITIONS),
        "HOLDSHORT_LANES": "2",
        **copies,
        **OWN_PORT,
    }
    theirs = {
        "BENCH_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
        "BENCH_PREFIX": prefix,
        "BENCH_PARTITIONS": str(PARTITIONS),
        "BENCH_STATE_DIRECTORY": str(scratch / "state"),
    }
    return {**ours, **theirs, **system.environment}
