"""A system that runs under test (gate.Gate), on topics of its own that go with it."""

import secrets
import tempfile
import time
from collections.abc import Iterator, Mapping
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
    """A Kafka to measure on; without a process id its CPU is not known."""

    bootstrap_servers: str
    pid: int | None


class Subject:
    """One system under test."""

    def __init__(self, system: System, program: Program | None, broker: Broker) -> None:
        self.refuses = system.refuses
        self._program = program
        self._broker = broker

    def start(self) -> float:
        return self._program.start() if self._program is not None else time.monotonic()

    def stop(self) -> None:
        if self._program is not None:
            self._program.stop()

    def kill(self) -> None:
        if self._program is not None:
            self._program.kill()

    def check(self) -> None:
        if self._program is not None:
            self._program.check()

    def spent(self) -> Spent:
        """CPU of its own processes and, apart, of the broker's."""
        own = self._program.spent() if self._program is not None else Spent()
        if self._broker.pid is None or not proc.is_known():
            return own
        return own._replace(broker_s=proc.cpu_seconds({self._broker.pid}))


@contextmanager
def subject(system: System, broker: Broker, told: Told) -> Iterator[tuple[Subject, Wire]]:
    """A system that is not started yet, and the way to its topics. Nothing of it is left afterwards."""
    command = system.command(told) if system.command is not None else None
    with ExitStack() as open_things:
        scratch = Path(open_things.enter_context(tempfile.TemporaryDirectory(prefix="holdshort-bench-")))
        prefix = f"bench-{secrets.token_hex(4)}."
        environment = _environment(system, broker, prefix, scratch)
        kafka, settings, config = load_settings(environment)
        room = Room(kafka, prefix)
        told("making topics")
        room.make(settings, config)
        open_things.callback(lambda: room.remove(room.topics()))
        program = Program(command, environment, scratch / "log") if command is not None else None
        one = Subject(system, program, broker)
        open_things.callback(one.kill)
        if program is not None:
            open_things.enter_context(program.explained())
        topics = Topics.of(prefix)
        if system.mirror:
            topics = topics._replace(events=topics.agent_events, runs=topics.inputs)
        yield one, Wire(connection_of(kafka, CLIENT).for_librdkafka(), topics, PARTITIONS)


def _environment(system: System, broker: Broker, prefix: str, scratch: Path) -> Mapping[str, str]:
    """What the system is told: ours as it is documented, the peers in the words of the benchmark."""
    copies = {"HOLDSHORT_REPLICATION": "1", "HOLDSHORT_MIN_ISR": "1"} if broker.pid is not None else {}
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
