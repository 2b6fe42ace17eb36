"""A real Kafka starts, keeps, breaks and stops as it says."""

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from holdshort.stream.embedded import (
    BrokerSettings,
    ConnectOnceError,
    EmbeddedKafka,
    ReadLogError,
    free_ports,
    prefetch,
)

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module", autouse=True)
def _jars() -> None:
    try:
        asyncio.run(prefetch())
    except ConnectOnceError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


async def create(kafka: EmbeddedKafka, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    await asyncio.to_thread(admin.create_topics([NewTopic(topic, 1)])[topic].result)


async def commit(kafka: EmbeddedKafka, topic: str, *values: bytes) -> None:
    """Write `values` in one transaction."""

    def write() -> None:
        producer = Producer(
            {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "test", "log_level": 0}
        )
        producer.init_transactions(60)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value)
        producer.commit_transaction(60)

    await asyncio.to_thread(write)


async def read(kafka: EmbeddedKafka, topic: str, count: int) -> list[bytes | None]:
    """The first `count` committed values."""

    def poll() -> list[bytes | None]:
        consumer = Consumer(
            {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "test", "log_level": 0}
        )
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        try:
            return [record.value() for record in consumer.consume(count, timeout=30)]
        finally:
            consumer.close()

    return await asyncio.to_thread(poll)


async def brokers(kafka: EmbeddedKafka) -> int:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    metadata = await asyncio.to_thread(producer.list_topics, timeout=30)
    return len(metadata.brokers)


async def end_of(pid: int) -> None:
    """Wait for the end of any process, also one that is not a child of ours."""
    if sys.platform != "linux":
        raise NotImplementedError
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_transaction_is_read_back_and_nothing_is_left_after_the_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async with EmbeddedKafka() as kafka:
        [pid] = kafka.pids.values()
        await create(kafka, "letters")
        await commit(kafka, "letters", b"a", b"b")
        assert await read(kafka, "letters", 2) == [b"a", b"b"]

    assert kafka.pids == {}
    assert not exists(pid)
    assert not await asyncio.to_thread(lambda: list(tmp_path.iterdir()))


async def test_a_given_directory_keeps_its_topics_on_other_ports(tmp_path: Path) -> None:
    settings = BrokerSettings(data_dir=tmp_path)
    async with EmbeddedKafka(settings) as kafka:
        first = kafka.bootstrap_servers
        await create(kafka, "letters")
        await commit(kafka, "letters", b"kept")

    async with EmbeddedKafka(settings) as kafka:
        assert kafka.bootstrap_servers != first
        await commit(kafka, "letters", b"added")
        assert await read(kafka, "letters", 2) == [b"kept", b"added"]


async def test_a_killed_node_is_seen_and_starts_again_with_its_records() -> None:
    soon_missed = {"broker.session.timeout.ms": "1000"}  # only then may it register again
    async with EmbeddedKafka(BrokerSettings(properties=soon_missed)) as kafka:
        address = kafka.bootstrap_servers
        await create(kafka, "letters")
        await commit(kafka, "letters", b"before")

        await kafka.kill_node(1)
        assert kafka.pids == {}

        await kafka.start_node(1)
        assert set(kafka.pids) == {1}
        assert kafka.bootstrap_servers == address
        await commit(kafka, "letters", b"after")
        assert await read(kafka, "letters", 2) == [b"before", b"after"]
        with pytest.raises(RuntimeError, match="node 1 runs"):
            await kafka.start_node(1)


async def test_three_nodes_lose_one_and_get_it_back() -> None:
    async with EmbeddedKafka(BrokerSettings(nodes=3)) as kafka:
        assert set(kafka.pids) == {1, 2, 3}
        assert await brokers(kafka) == 3
        await create(kafka, "letters")
        assert await replication(kafka, "letters") == (3, "2")

        await kafka.kill_node(3)
        await commit(kafka, "letters", b"with two")
        assert set(kafka.pids) == {1, 2}

        await kafka.start_node(3)
        assert await brokers(kafka) == 3
        assert await read(kafka, "letters", 1) == [b"with two"]


async def replication(kafka: EmbeddedKafka, topic: str) -> tuple[int, str | None]:
    """Copies of the topic, and how many must be in sync for a write."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    resource = ConfigResource(ResourceType.TOPIC, topic)

    def ask() -> tuple[int, str | None]:
        copies = admin.list_topics(topic, timeout=30).topics[topic].partitions[0].replicas
        settings = admin.describe_configs([resource])[resource].result()
        return len(copies), settings["min.insync.replicas"].value

    return await asyncio.to_thread(ask)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a killed parent cannot take the JVM along")
async def test_the_jvm_dies_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = """
import asyncio, pathlib
from holdshort.stream.embedded import BrokerSettings, EmbeddedKafka
async def main():
    async with EmbeddedKafka(BrokerSettings(data_dir=pathlib.Path("data"))) as kafka:
        print(kafka.pids[1], flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())

    parent.kill()

    await end_of(pid)
    await parent.communicate()


async def test_a_port_that_is_taken_meanwhile_is_replaced() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        choices = iter([[taken.getsockname()[1], *free_ports(1)], free_ports(2)])

        def choose(_: int) -> Sequence[int]:
            return next(choices)

        async with EmbeddedKafka(ports=choose) as kafka:
            assert await brokers(kafka) == 1


async def test_a_setting_that_kafka_refuses_is_shown_from_its_log() -> None:
    kafka = EmbeddedKafka(BrokerSettings(properties={"num.io.threads": "none"}))

    with pytest.raises(ReadLogError, match=r"Invalid value none for configuration num\.io\.threads"):
        await kafka.start()

    assert kafka.pids == {}


async def test_a_cluster_that_is_not_ready_in_time_is_stopped_and_shows_its_log() -> None:
    kafka = EmbeddedKafka(BrokerSettings(start_timeout_s=0.3))

    with pytest.raises(ReadLogError, match=r"node 1 was not ready within 0\.3 s\. The end of its log:\n"):
        await kafka.start()

    assert kafka.pids == {}
