"""`holdshort bench`: its report, and what it refuses before it touches a cluster."""

import os
import subprocess
import sys

import pytest

from holdshort.cli.bench.gate import Measured
from holdshort.cli.bench.report import About, report, rounded

ABOUT = About("2026-11-30 12:00 UTC", "holdshort 1", "a machine", "a Kafka", "12 partitions", "a load")
LATENCY = {f"50/s {kind} {name} ms": 4.125 for kind in ("pause", "answer") for name in ("p50", "p99")}
MEASURED = {
    "passage": Measured({"events/s": 61_287.0, "CPU s per 1,000 events": 0.0064}, []),
    "drain": Measured({"pauses/s": 9_000.0, "answers/s": 12_000.0}, []),
    "latency": Measured(LATENCY, []),
}


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "holdshort.cli", "bench", *arguments]
    nobody = {**os.environ, "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    return subprocess.run(command, env=nobody, capture_output=True, text=True, check=False)


def test_the_report_says_what_was_measured_on_what() -> None:
    said = report(ABOUT, MEASURED, [50])

    for line in (
        "- a Kafka",
        "| agents' events passed to clients, per second | 61,300 |",
        "| CPU seconds per 1,000 events passed | 0.0064 |",
        "| answer: `inputs` to `runs` | 4.12 / 4.12 |",
    ):
        assert line in said.splitlines()
    assert "Not exact" not in said


def test_the_report_of_something_lost_says_so() -> None:
    lost = MEASURED | {"drain": Measured(MEASURED["drain"].figures, ["runs: missing input: 3"])}

    assert "- drain: runs: missing input: 3" in report(ABOUT, lost, [50]).splitlines()


@pytest.mark.parametrize(
    ("value", "text"), [(0.00641, "0.00641"), (4.126, "4.13"), (61_287, "61,300"), (0, "0")]
)
def test_figures_have_the_digits_that_are_read(value: float, text: str) -> None:
    assert rounded(value) == text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--prefix", "holdshort."], "must contain `bench`"),
        (["--rates", "50,fast"], "must be numbers"),
        (["--rates", "0"], "must be numbers"),
    ],
)
def test_a_mistake_ends_in_a_sentence(arguments: list[str], said: str) -> None:
    done = bench(*arguments)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_cluster_that_is_not_there_ends_in_a_sentence() -> None:
    done = bench()

    assert done.returncode == 2
    assert done.stderr.startswith("holdshort: ")
    assert "Traceback" not in done.stderr
