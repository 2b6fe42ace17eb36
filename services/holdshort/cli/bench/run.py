"""One benchmark of an installation: each load on topics and with a gatekeeper of its own, then the report."""

import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final, NamedTuple

import orjson
from rich.console import Console
from rich.status import Status

from holdshort import __version__
from holdshort.cli.bench.drain import Told, pass_through, pauses_and_answers
from holdshort.cli.bench.gate import Gate, Measured
from holdshort.cli.bench.latency import Rates, latency
from holdshort.cli.bench.program import GatekeeperProcess
from holdshort.cli.bench.report import About, report
from holdshort.cli.bench.room import CLIENT, Room
from holdshort.cli.bench.wire import Topics, Wire
from holdshort.settings import KafkaSettings, Settings, load_settings
from holdshort.stream.connection import connection_of

WARM_UP: Final = 2_000
REFRESHES_PER_SECOND: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much of everything."""

    records: int
    threads: int
    rates: Sequence[int]
    seconds: float

    def told(self) -> str:
        rates = ", ".join(f"{rate:,}" for rate in self.rates)
        return (
            f"{self.records:,} events to pass; {self.threads:,} threads that pause and are answered; "
            f"{rates} a second for {self.seconds:g} s each"
        )


class Report(NamedTuple):
    """What was measured, and on what."""

    about: About
    measured: Mapping[str, Measured]
    rates: Sequence[int]

    @property
    def exact(self) -> bool:
        return not any(one.problems for one in self.measured.values())

    def text(self) -> str:
        return report(self.about, self.measured, self.rates)

    def json(self) -> str:
        return orjson.dumps(
            {
                "about": self.about._asdict(),
                "figures": {name: one.figures for name, one in self.measured.items()},
                "problems": {name: one.problems for name, one in self.measured.items()},
            }
        ).decode()


def measure(room: Room, load: Load) -> Report:
    """Every load in turn. Raises MeasureAgainError, and Fatal if the cluster cannot be used."""
    rates = Rates(per_second=load.rates, seconds=load.seconds, warm_up=WARM_UP, idle_s=0)
    loads: dict[str, Callable[[Gate, Wire, Told], Measured]] = {
        "passage": lambda gate, wire, told: pass_through(gate, wire, load.records, told),
        "drain": lambda gate, wire, told: pauses_and_answers(gate, wire, load.threads, told),
        "latency": lambda gate, wire, told: latency(gate, wire, rates, told),
    }
    measured: dict[str, Measured] = {}
    console = Console(stderr=True)
    with console.status("", refresh_per_second=REFRESHES_PER_SECOND) as status:
        for name, one in loads.items():
            status.update(f"{name}: making topics")
            with _installed(room, name) as (gate, wire):
                measured[name] = one(gate, wire, _teller(status, name))
    kafka, settings, _ = load_settings()
    return Report(_about(room, load, kafka, settings), measured, load.rates)


def _teller(status: Status, name: str) -> Told:
    return lambda what: status.update(f"{name}: {what}")


@contextmanager
def _installed(room: Room, name: str) -> Iterator[tuple[GatekeeperProcess, Wire]]:
    """A gatekeeper that is not started yet, on topics of its own; it ends with the context."""
    with ExitStack() as open_things:
        config_file = open_things.enter_context(as_file(files("holdshort.cli.bench") / "bench.yaml"))
        directory = Path(open_things.enter_context(tempfile.TemporaryDirectory(prefix="holdshort-bench-")))
        environment = {"HOLDSHORT_PREFIX": f"{room.prefix}{name}.", "HOLDSHORT_CONFIG": str(config_file)}
        kafka, settings, config = load_settings(environment)
        room.make(settings, config)
        gate = GatekeeperProcess(environment, directory / "gatekeeper.log")
        open_things.callback(gate.stop)
        open_things.enter_context(gate.explained())
        connection = connection_of(kafka, CLIENT).for_librdkafka()
        yield gate, Wire(connection, Topics.of(settings.prefix), settings.partitions)


def _about(room: Room, load: Load, kafka: KafkaSettings, settings: Settings) -> About:
    return About(
        at=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        version=f"holdshort {__version__}, Python {platform.python_version()}",
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, for load and gatekeeper",
        cluster=f"Kafka, {kafka.security_protocol}; brokers: {room.brokers()}",
        settings=(
            f"{settings.partitions} partitions, {settings.lanes} lanes, "
            f"replication {settings.replication}, min.insync.replicas {settings.min_isr}"
        ),
        load=load.told(),
    )
