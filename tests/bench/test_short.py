"""The short form measures every workload, exactly, and no figure is missing; how fast it is it cannot say."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.timeout(300)]

DRAIN = {"events/s", "second half events/s", "first output s", "CPU s per 1,000 events", "memory MB"}
ANSWERS = {"pauses/s", "answers/s", "all answers s", "CPU s per 1,000 answers", "memory MB"}
LATENCY = {f"50/s {kind} {name} ms" for kind in ("pause", "answer") for name in ("p50", "p99")} | {
    "idle CPU %"
}
RESTORE = {"first answer s", "all answers s", "memory full MB", "memory restored MB"}
KILLS = {"kills", "longest silence s"}
PEOPLE = {f"50/s {kind} {name} ms" for kind in ("approval", "decision") for name in ("p50", "p99")} | {
    "pauses/s",
    "decisions/s",
    "CPU s per 1,000 decisions",
    "memory MB",
}
HANDOVER = {"restarts", "longest silence s", "median silence s"}
FIGURES = {
    "W1": DRAIN,
    "W2": ANSWERS,
    "W3": LATENCY,
    "W4": RESTORE,
    "W5": KILLS,
    "W6": PEOPLE,
    "W7": HANDOVER,
}
ALONE = {"W6", "W7"}  # of people no peer knows anything, and no peer shares lanes


@pytest.fixture(scope="module")
def measurements(bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    directory = tmp_path_factory.mktemp("bench")
    environment = {
        **os.environ,
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
        "HOLDSHORT_REPLICATION": "1",
        "HOLDSHORT_MIN_ISR": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-m", "tests.bench", "--short"]
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (kept,) = (directory / "build" / "bench").glob("*.jsonl")
    return [json.loads(line) for line in kept.read_text().splitlines()]


def test_every_workload_is_exact_for_us_and_for_a_peer(measurements: list[dict[str, Any]]) -> None:
    assert {(one["workload"], one["system"].split("-")[0]) for one in measurements} == {
        (workload, system)
        for workload in FIGURES
        for system in ("holdshort", "limit")
        if system == "holdshort" or workload not in ALONE
    }
    assert [one["problems"] for one in measurements] == [[]] * (2 * len(FIGURES) - len(ALONE))


def test_every_figure_is_there(measurements: list[dict[str, Any]]) -> None:
    for one in measurements:
        missing = FIGURES[one["workload"]] - one["figures"].keys()
        assert not missing, (one["workload"], one["system"])
        assert all(value >= 0 for value in one["figures"].values())
