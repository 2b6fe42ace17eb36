"""A service as a process: it says what it is, refuses topics that do not fit, and stops in order."""

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from tests.clients import Json, Wire, an_input, an_interrupt
from tests.commands import asks
from tests.commands import environment as command_environment
from tests.installations import TWO_TEAMS, installed

from holdshort.cli.stack import Process

pytestmark = [pytest.mark.broker, pytest.mark.system]


@pytest.fixture
def environment(bootstrap_servers: str, tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "holdshort.yaml"
    file.write_text(TWO_TEAMS)
    return {
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
        "HOLDSHORT_CONFIG": str(file),
        "HOLDSHORT_PREFIX": f"t{secrets.token_hex(4)}.",
        "HOLDSHORT_PARTITIONS": "2",
        "HOLDSHORT_LANES": "1",
        "HOLDSHORT_REPLICATION": "1",
        "HOLDSHORT_MIN_ISR": "1",
        "HOLDSHORT_MANAGEMENT_PORT": "0",
    }


def holdshort(environment: dict[str, str], *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "holdshort.cli", *command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_topics_are_planned_made_and_then_as_they_must_be(environment: dict[str, str]) -> None:
    plan = holdshort(environment, "topics", "plan")
    assert plan.returncode == 1
    assert "create     pending " in plan.stdout

    assert holdshort(environment, "topics", "apply").returncode == 0

    after = holdshort(environment, "topics", "plan")
    assert (after.returncode, after.stdout) == (0, "The topics are as they must be.\n")


def test_a_service_without_its_topics_says_which_and_what_to_do(environment: dict[str, str]) -> None:
    done = holdshort(environment, "gatekeeper")

    assert done.returncode == 1
    assert "pending does not exist" in done.stdout
    assert "holdshort topics apply" in done.stdout


def test_a_service_refuses_another_number_of_partitions(environment: dict[str, str]) -> None:
    assert holdshort(environment, "topics", "apply").returncode == 0

    done = holdshort(environment | {"HOLDSHORT_PARTITIONS": "4"}, "gatekeeper")

    assert done.returncode == 1
    assert "inputs has 2 partitions, must have 4; keys would move" in done.stdout


def test_a_service_refuses_state_that_kafka_would_delete(
    bootstrap_servers: str, environment: dict[str, str]
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    name = environment["HOLDSHORT_PREFIX"] + "pending"
    wrong = NewTopic(name, 2, 1, config={"cleanup.policy": "delete"})
    admin.create_topics([wrong])[name].result()
    plan = holdshort(environment, "topics", "plan")

    done = holdshort(environment, "router")

    assert "cleanup.policy: delete -> compact" in plan.stdout
    assert done.returncode == 1
    assert "pending has another cleanup.policy" in done.stdout


@pytest.mark.parametrize(
    ("set_to", "after"), [("31536000000", "31536000000"), ("-1", "-1"), ("3600000", "7776000000")]
)
def test_a_longer_retention_is_left_and_a_shorter_one_set_back(
    bootstrap_servers: str, environment: dict[str, str], set_to: str, after: str
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    name = environment["HOLDSHORT_PREFIX"] + "audit"
    config = {"retention.ms": set_to, "message.timestamp.type": "CreateTime", "max.message.bytes": "2097152"}
    admin.create_topics([NewTopic(name, 2, 1, config=config)])[name].result()

    assert holdshort(environment, "topics", "apply").returncode == 0

    limit, kept = time.monotonic() + 20, ""
    while kept != after:  # a broker hears of it a moment after it was agreed to
        assert time.monotonic() < limit, kept
        (described,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)]).values()
        kept = described.result()["retention.ms"].value
    assert holdshort(environment, "topics", "plan").returncode == 0


def test_a_broker_that_is_not_there_is_told(environment: dict[str, str]) -> None:
    done = holdshort(environment | {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}, "topics", "plan")

    assert done.returncode == 2
    waiting, told = done.stderr.splitlines()
    assert waiting == "holdshort: Waiting for Kafka at 127.0.0.1:1 ..."
    assert told.startswith("holdshort: topics could not be described: Kafka does not answer at 127.0.0.1:1")
    assert "Connection refused" in told
    assert "Traceback" not in done.stderr


@contextmanager
def serving(environment: dict[str, str], service: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "holdshort.cli", service],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_sigterm_ends_a_service_in_order(environment: dict[str, str]) -> None:
    assert holdshort(environment, "topics", "apply").returncode == 0
    with serving(environment, "gatekeeper") as process:
        assert process.stdout is not None
        assert any("lane_runs" in line for line in process.stdout)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=10)

    assert process.returncode == 0
    assert "lane_closed" in output
    assert time.monotonic() - began < 10


def test_a_service_ends_when_partitions_are_added_under_it(
    bootstrap_servers: str, environment: dict[str, str]
) -> None:
    """Clients would write some threads where nobody reads them, and others out of their order."""
    assert holdshort(environment, "topics", "apply").returncode == 0
    with serving(environment, "gatekeeper") as process:
        assert process.stdout is not None
        assert any("lane_runs" in line for line in process.stdout)
        name = environment["HOLDSHORT_PREFIX"] + "inputs"
        admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        admin.create_partitions([NewPartitions(name, 5)])[name].result()
        output, _ = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "inputs has 5 partitions, must have 2; keys would move" in output


def test_a_lane_that_lost_its_input_goes_on_once_the_loss_is_accepted(
    bootstrap_servers: str, environment: dict[str, str]
) -> None:
    assert holdshort(environment, "topics", "apply").returncode == 0
    name = environment["HOLDSHORT_PREFIX"] + "inputs"
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(name, b"not json", b"k", 0)
    assert producer.flush(10) == 0
    with serving(environment, "gatekeeper") as process:
        assert process.stdout is not None
        assert any("record_dead" in line for line in process.stdout)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.delete_topics([name])[name].result()
    assert holdshort(environment, "topics", "apply").returncode == 0

    with serving(environment, "gatekeeper") as process:
        assert process.stdout is not None
        halted = json.loads(next(line for line in process.stdout if "lane_halted" in line))
        assert halted["command"] == "holdshort lanes accept-loss gatekeeper 0"
        assert halted["reason"] == "inputs is not the topic it was: it was deleted and made again"
        command = halted["command"].split()[1:]
        declined = holdshort(environment, *command)
        assert declined.returncode == 1
        assert "held from 1 on before it was deleted and made again" in declined.stdout
        assert holdshort(environment, *command, "--yes").returncode == 0
        assert any("lane_runs" in line and json.loads(line)["lane"] == 0 for line in process.stdout)
    assert holdshort(environment, *command, "--yes").returncode == 1


async def test_services_halt_soon_when_state_is_deleted_and_made_again(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    """They are idle: nothing that they read or write tells them."""
    more = {"HOLDSHORT_LANES": "1"}
    async with installed(bootstrap_servers, tmp_path, TWO_TEAMS, partitions=2, settings=more) as site:
        await asks(site.wire, "t", an_interrupt("i"))
        await site.wire.until(lambda _: bool(site.wire.of("gathering", "t")), why="the router has no state")
        known = command_environment(site)
        name = f"{site.prefix}pending"
        admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        admin.delete_topics([name], operation_timeout=20)[name].result(20)
        assert holdshort(known, "topics", "apply").returncode == 0
        began = time.monotonic()
        for process in site.stack.processes:
            command = f"holdshort lanes accept-loss {process.service} 0"
            halted = await lane_until(process, "command", command)
            assert halted["halted"] == "pending is not the topic it was: it was deleted and made again"
        assert time.monotonic() - began < 15, "not within seconds"
        for process in site.stack.processes:
            lost = holdshort(known, "lanes", "accept-loss", process.service, "0", "--yes")
            assert lost.returncode == 0, lost.stderr
            assert (await lane_until(process, "state", "running"))["halted"] is None


async def lane_until(process: Process, member: str, value: str) -> Json:
    """What `/readyz` says of the only lane, once it is so."""
    limit = time.monotonic() + 60
    while True:
        _, report = await asyncio.to_thread(process.ask, "/readyz")
        lanes = (report or {}).get("lanes", [])
        if lanes and lanes[0][member] == value:
            found: Json = lanes[0]
            return found
        assert time.monotonic() < limit, report


def test_two_processes_of_one_name_are_told(environment: dict[str, str]) -> None:
    assert holdshort(environment, "topics", "apply").returncode == 0
    named = environment | {"HOLDSHORT_INSTANCE": "a-name"}
    with serving(named, "gatekeeper") as one, serving(named, "gatekeeper") as other:
        until = time.monotonic() + 60
        while one.poll() is None and other.poll() is None:
            assert time.monotonic() < until, "they replace each other for ever"
            with suppress(subprocess.TimeoutExpired):
                one.wait(0.1)
        ended = one if one.poll() is not None else other
        assert ended.stdout is not None
        output = ended.stdout.read()

    assert ended.returncode == 1
    assert "another process is called a-name, too: HOLDSHORT_INSTANCE must be unique" in output


async def test_the_management_port_tells_health_and_metrics(bootstrap_servers: str, tmp_path: Path) -> None:
    async with installed(bootstrap_servers, tmp_path, TWO_TEAMS) as installation:
        say_hello(installation.wire)
        await installation.wire.until(lambda _: bool(installation.wire.of("runs.default", "t")))
        for process in installation.stack.processes:
            assert process.ask("/livez")[0]
            ready, report = process.ask("/readyz")
            assert ready
            assert {lane["state"] for lane in report["lanes"]} == {"running"}
            metrics = process.ask("/metrics")[1]
            for name in METRICS[process.service]:
                assert f"\n{name}" in metrics, name
        gatekeeper = installation.stack.processes[0].ask("/metrics")[1]
        assert (
            'holdshort_records_judged_total{code="",service="gatekeeper",verdict="admitted"} 1.0'
            in gatekeeper
        )


def say_hello(wire: Wire) -> None:
    wire.send("inputs", an_input("t", "r1"))


BOTH = (
    "holdshort_records_judged_total",
    "holdshort_transactions_total",
    "holdshort_transaction_seconds_bucket",
    "holdshort_restore_seconds_bucket",
    "holdshort_input_lag_records",
    "holdshort_state_entries",
    "holdshort_lanes",
)
METRICS = {
    "gatekeeper": (*BOTH, "holdshort_interrupts_pending", "holdshort_interrupts_opened_total"),
    "router": (*BOTH, "holdshort_batches_forwarded_total"),
}


async def test_tools_that_show_lag_find_the_inputs_read_to_their_ends(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    async with installed(bootstrap_servers, tmp_path, TWO_TEAMS, topics=["runs.default"]) as gate:
        for number in range(10):
            gate.wire.send("inputs", an_input(f"t{number}", "r1"))
        await gate.wire.until(lambda seen: len(seen) == 10)
        admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        inputs = [TopicPartition(f"{gate.prefix}inputs", partition) for partition in range(gate.partitions)]
        ends = {one: OffsetSpec.latest() for one in inputs}  # type: ignore[no-untyped-call]
        wanted = {one.partition: found.result().offset for one, found in admin.list_offsets(ends).items()}
        assert sum(wanted.values()) == 10

        def committed() -> dict[int, int]:
            group = ConsumerGroupTopicPartitions(f"{gate.prefix}gatekeeper", inputs)
            (future,) = admin.list_consumer_group_offsets([group]).values()
            return {one.partition: one.offset for one in future.result().topic_partitions}

        limit = time.monotonic() + 30
        while await asyncio.to_thread(committed) != wanted:
            assert time.monotonic() < limit, "the group does not say how far its inputs were read"
