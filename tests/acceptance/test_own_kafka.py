"""README's "On your own Kafka", word by word; and what stands in a service's log while its Kafka is away."""

import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.readme import README

from holdshort.stream.embedded import BrokerSettings, EmbeddedKafka, free_ports

pytestmark = [pytest.mark.broker, pytest.mark.system, pytest.mark.timeout(240)]

TEXT = README.read_text()
SECTION = TEXT.partition("## On your own Kafka")[2].partition("\n## ")[0]


@pytest.fixture
def environment(bootstrap_servers: str, tmp_path: Path) -> dict[str, str]:
    """What README exports, on the Kafka of the tests, which is a single broker."""
    (example,) = re.findall(r"```yaml\n(.*?)```", SECTION, flags=re.DOTALL)
    (tmp_path / "holdshort.yaml").write_text(example)
    exported = dict(re.findall(r"(\w+)=(\S+)", " ".join(re.findall(r"(?m)^export (.*?)(?:#|$)", SECTION))))
    assert exported["HOLDSHORT_REPLICATION"] == "3"
    return exported | {
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
        "HOLDSHORT_CONFIG": str(tmp_path / "holdshort.yaml"),
        "HOLDSHORT_PREFIX": f"t{secrets.token_hex(4)}.",
    }


SINGLE = {"HOLDSHORT_REPLICATION": "1", "HOLDSHORT_MIN_ISR": "1"}


def holdshort(environment: Mapping[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "holdshort.cli", *arguments]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=100
    )


@contextmanager
def served(environment: Mapping[str, str], service: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "holdshort.cli", service]
    with subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def until(process: "subprocess.Popen[str]", event: str) -> list[dict[str, Any]]:
    """The lines of its log up to the first of this event."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(json.loads(line))
        if lines[-1]["event"] == event:
            return lines
    raise AssertionError(f"no {event}: {lines}")


def test_on_a_single_broker_it_says_what_to_set_and_then_goes_as_written(
    environment: dict[str, str],
) -> None:
    assert holdshort(environment, "config", "check").returncode == 0
    assert holdshort(environment, "topics", "plan").returncode == 1
    refused = holdshort(environment, "topics", "apply")
    assert refused.returncode == 2
    assert "HOLDSHORT_REPLICATION and HOLDSHORT_MIN_ISR" in refused.stderr
    assert "1 and 1 for a single broker" in SECTION

    environment |= SINGLE
    assert holdshort(environment, "topics", "apply").returncode == 0
    assert holdshort(environment, "topics", "plan").returncode == 0
    first, second = free_ports(2)
    with served(environment | {"HOLDSHORT_MANAGEMENT_PORT": str(first)}, "gatekeeper") as gatekeeper:
        assert {line["service"] for line in until(gatekeeper, "lane_runs")} == {"gatekeeper"}
        taken = holdshort(environment | {"HOLDSHORT_MANAGEMENT_PORT": str(first)}, "router")
        assert taken.returncode == 1
        assert taken.stdout.count("HOLDSHORT_MANAGEMENT_PORT") == 1
        assert "HOLDSHORT_MANAGEMENT_PORT=8081 holdshort router" in SECTION
        with served(environment | {"HOLDSHORT_MANAGEMENT_PORT": str(second)}, "router") as router:
            until(router, "lane_runs")


async def test_an_outage_is_told_by_our_own_events_and_by_few_of_them() -> None:
    async with EmbeddedKafka(BrokerSettings()) as kafka:
        environment = {
            "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
            "HOLDSHORT_PARTITIONS": "2",
            "HOLDSHORT_LANES": "1",
            "HOLDSHORT_MANAGEMENT_PORT": "0",
            **SINGLE,
        }
        assert holdshort(environment, "topics", "apply").returncode == 0
        with served(environment, "gatekeeper") as gatekeeper:
            lines = until(gatekeeper, "lane_runs")
            await kafka.kill_node(1)
            for _ in range(3):
                lines += until(gatekeeper, "lane_retries")
            await kafka.start_node(1)
            lines += until(gatekeeper, "lane_runs")
            gatekeeper.send_signal(signal.SIGTERM)
            lines += until(gatekeeper, "service_stops")

    events = [line["event"] for line in lines]
    assert {line["service"] for line in lines} == {"gatekeeper"}
    assert all(re.fullmatch(r"[a-z_]+", event) for event in events), events
    assert len(lines) < 60
