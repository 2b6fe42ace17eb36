"""`holdshort doctor`: what is fine is said to be, and each fault is found, with what to do about it."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from tests.clients import Json, finished, told
from tests.commands import PAYMENTS_AND_DBA, asks, environment, run, runs
from tests.installations import Installation, installed

from holdshort.cli import checks
from holdshort.settings import Config, KafkaSettings, Settings
from holdshort.stream.admin import Admin
from holdshort.stream.connection import connection_of

READ = ["events", "runs.default", "runs.other", "gathering"]

pytestmark = [
    pytest.mark.system,
    pytest.mark.broker,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(
    bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    directory = tmp_path_factory.mktemp("doctor")
    async with installed(bootstrap_servers, directory, PAYMENTS_AND_DBA, topics=READ) as installation:
        await works(installation)
        yield installation


async def examined(site: Installation, *options: str, **settings: str) -> tuple[int, list[Json]]:
    done = await run(environment(site) | settings, "doctor", "--json", *options)
    return done.status, done.objects


def wrong(findings: list[Json]) -> list[tuple[str, str]]:
    return [(one["check"], one["said"]) for one in findings if one["status"] == "finding"]


async def test_a_healthy_installation_is_fine_in_every_check(site: Installation) -> None:
    ports = [f"--at=127.0.0.1:{process.port}" for process in site.stack.processes]
    status, found = await examined(site, "--principal=router", "--write", *ports)

    assert wrong(found) == []
    assert status == 0
    assert {one["check"] for one in found if one["status"] == "ok"} == {
        *("names", "tcp", "sasl", "brokers", "topics", "rights", "transaction", "clock", "hanging", "lanes"),
        "processes",
    }
    [broker] = [one["said"] for one in found if one["check"] == "brokers"]
    assert "metadata.version" in broker
    lanes = [one["said"] for one in found if one["check"] == "lanes"]
    assert len(lanes) == 4, lanes


async def works(site: Installation) -> None:
    """A question on each of the lanes, so that both services have been at work."""
    for number in (1, 2, 3, 4):
        await asks(site.wire, f"t-{number}", {"id": "one", "reason": "payments:x"}, run=f"r{number}")
    await site.wire.until(lambda _: len(site.wire.of("gathering")) >= 4, why="the router is not at work")


async def test_services_go_on_after_a_doctors_transactions(site: Installation) -> None:
    for principal in ("gatekeeper", "router"):
        status, found = await examined(site, f"--principal={principal}", "--write")
        assert (status, wrong(found)) == (0, [])

    await asks(site.wire, "t-after", {"id": "after", "reason": "payments:x"})
    await site.wire.until(lambda _: bool(site.wire.of("gathering", "t-after")), why="the router stands")
    status, found = await examined(site)

    assert (status, wrong(found)) == (0, [])


async def test_people_read_what_to_do(site: Installation) -> None:
    done = await run(environment(site, KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1"), "doctor")

    assert done.status == 1
    assert "WRONG  tcp" in done.out
    assert "-> is the broker up" in done.out


async def test_a_name_that_is_not_known(site: Installation) -> None:
    status, found = await examined(site, KAFKA_BOOTSTRAP_SERVERS="kafka.invalid:9092")

    assert status == 1
    assert [check for check, _ in wrong(found)] == ["names"]


async def test_topics_that_are_missing(site: Installation) -> None:
    status, found = await examined(site, HOLDSHORT_PREFIX="nothing.")

    assert status == 1
    assert ("topics", "nothing.pending does not exist") in wrong(found)


async def test_another_number_of_partitions(site: Installation) -> None:
    status, found = await examined(site, HOLDSHORT_PARTITIONS="6")

    assert status == 1
    said = f"{site.prefix}inputs has 4 partitions, must have 6; keys would move"
    assert ("topics", said) in wrong(found)
    assert ("lanes", "lane 0 of the gatekeeper was run with 4 partitions and 2 lanes") in wrong(found)


async def test_topics_that_count_as_written_too_early(site: Installation) -> None:
    status, found = await examined(site, HOLDSHORT_MIN_ISR="2")

    assert status == 1
    [(check, said)] = wrong(found)
    assert check == "topics"
    assert "have a min.insync.replicas below 2" in said


async def test_fewer_brokers_than_copies(site: Installation) -> None:
    status, found = await examined(site, HOLDSHORT_REPLICATION="3")

    assert status == 1
    assert ("brokers", "1 brokers, topics are made with 3 copies") in wrong(found)


async def test_a_clock_that_is_wrong(site: Installation) -> None:
    """The broker's clock cannot be moved here, so this machine's is."""
    kafka = KafkaSettings(bootstrap_servers=site.stack.bootstrap_servers)
    settings = Settings(prefix=site.prefix, partitions=4, lanes=2, replication=1, min_isr=1)
    connection = connection_of(kafka, "tests")
    config = Config.model_validate(yaml.safe_load(PAYMENTS_AND_DBA))
    right = checks.Patient(connection, settings, config, "router", True, 5.0)

    async def findings(wrong_by: int) -> list[tuple[str, str]]:
        off = right._replace(now=lambda: checks.wall_clock() + wrong_by)
        admin = Admin(connection, settings.prefix)
        seen = await admin.look([one.name for one in off.topics])
        found = [*[one async for one in checks.a_transaction(off)]]
        found += [one async for one in checks.clock(off, admin, seen)]
        return [(one.check, one.said) for one in found if one.status == "finding"]

    await asks(site.wire, "t-clock", {"id": "clock", "reason": "payments:x"})
    assert await findings(0) == []
    slow, fast = await findings(-3_600_000), await findings(3_600_000)

    assert [check for check, _ in slow] == ["clock", "clock"]  # by the transaction, and by what was appended
    assert all("the broker's clock is at least" in said and "ahead of this" in said for _, said in slow)
    assert [check for check, _ in fast] == ["clock"]
    assert "behind this machine's" in fast[0][1]


async def test_an_agent_that_pauses_unseen_by_the_gate(site: Installation) -> None:
    wire, run_ = site.wire, {"holdshort-run": "r1"}
    await runs(wire, "t-legacy", agent="other")
    custom = {"type": "CUSTOM", "name": "on_interrupt", "value": "sure?"}
    for event in (custom, finished("t-legacy", "r1")):
        wire.send("agent-events.other", event, key="t-legacy", headers=run_)
    await wire.until(lambda _: bool(told(wire, "events", "t-legacy", "RUN_FINISHED", "r1")), why="not ended")

    status, found = await examined(site)

    assert status == 1
    said = "agent other pauses by CUSTOM on_interrupt, unseen by the gate, in 1 threads"
    assert wrong(found) == [("gating", said)]
    [advice] = [one["advice"] for one in found if one["check"] == "gating"]
    assert advice == "agents: {other: {legacy_interrupts: true}}"

    done = await run(environment(site), "threads", "forget", "t-legacy", "--yes")
    assert done.status == 0, done.err
    assert (await examined(site))[0] == 0


async def test_a_state_topic_that_is_not_compacted(site: Installation, bootstrap_servers: str) -> None:
    set_config(bootstrap_servers, f"{site.prefix}gathering", "cleanup.policy", "delete")
    try:
        status, found = await examined(site)
    finally:
        set_config(bootstrap_servers, f"{site.prefix}gathering", "cleanup.policy", "compact")

    assert status == 1
    [(check, said)] = wrong(found)
    assert (check, "cleanup.policy: delete -> compact" in said, "state would be lost" in said) == (
        "topics",
        True,
        True,
    )


def set_config(bootstrap_servers: str, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)


async def test_a_transaction_that_does_not_end(site: Installation, bootstrap_servers: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "transactional.id": f"{site.prefix}hangs",
            "transaction.timeout.ms": 30_000,
        }
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(f"{site.prefix}audit", b"{}", b"k", 1)
    producer.flush(20)
    try:
        status, found = await examined(site, "--patience=2")
    finally:
        producer.abort_transaction(20)

    assert status == 1
    [(check, said)] = wrong(found)
    assert check == "hanging"
    assert said.startswith("audit/1 has a transaction that does not end")


async def test_a_lane_that_is_behind_and_a_process_that_does_not_answer(site: Installation) -> None:
    """The router is stopped in its tracks; a question goes by that it does not see."""
    [router] = [one for one in site.stack.processes if one.service == "router"]
    assert router.pid is not None
    os.kill(router.pid, 19)  # SIGSTOP: it is there and does nothing
    try:
        await asks(site.wire, "t-behind", {"id": "behind", "reason": "payments:x"})
        status, found = await examined(site, "--most-lag=0", f"--at=127.0.0.1:{router.port}")
    finally:
        os.kill(router.pid, 18)

    assert status == 1
    checks = {check for check, _ in wrong(found)}
    assert checks == {"lanes", "processes"}
    behind = [said for check, said in wrong(found) if check == "lanes"]
    assert any("of the router is" in said and "most in pending/" in said for said in behind), behind


async def test_positions_that_the_log_does_not_bear_out(bootstrap_servers: str, tmp_path: Path) -> None:
    """Records deleted before they were read: the lane halts when it begins again."""
    async with installed(bootstrap_servers, tmp_path, PAYMENTS_AND_DBA, topics=READ) as site:
        await asks(site.wire, "t-lost", {"id": "lost", "reason": "payments:x"})
        settings = environment(site)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    recreate(admin, f"{site.prefix}inputs")
    done = await run(settings, "doctor", "--json")

    assert done.status == 1
    halts = [said for check, said in wrong(done.objects) if check == "lanes"]
    assert any("halts: inputs was deleted and made again" in said for said in halts), done.objects
    [advice] = {
        one["advice"] for one in done.objects if "halts: inputs" in one["said"] and "lane 0" in one["said"]
    }
    assert "`holdshort lanes accept-loss gatekeeper 0`" in advice


async def test_a_deleted_state_topic_is_not_taken_for_a_missing_right(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    async with installed(bootstrap_servers, tmp_path, PAYMENTS_AND_DBA, topics=READ) as site:
        settings = environment(site)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    topic = f"{site.prefix}pending"
    admin.delete_topics([topic], operation_timeout=20)[topic].result(20)
    done = await run(settings, "doctor", "--json", "--patience=1")

    of_lanes = {one["said"]: one["advice"] for one in done.objects if one["check"] == "lanes"}
    assert done.status == 1
    [advice] = [of_lanes[said] for said in of_lanes if said.startswith("no lane of the gatekeeper can run")]
    assert "there is no pending" in str(of_lanes)
    assert "Backup and disaster" in advice
    assert "may not be read" not in str(of_lanes)


def recreate(admin: AdminClient, topic: str) -> None:
    """Delete a topic and make another of its name, as somebody did who should not have."""
    admin.delete_topics([topic], operation_timeout=20)[topic].result(20)
    config = {"message.timestamp.type": "LogAppendTime", "max.message.bytes": str(2 << 20)}
    for _ in range(100):  # until the old one is gone
        [made] = admin.create_topics([NewTopic(topic, 4, 1, config=config)], operation_timeout=20).values()
        error = made.exception(20)
        if error is None:
            return
        assert "ALREADY_EXISTS" in repr(error), error
    raise AssertionError("the topic does not go away")
