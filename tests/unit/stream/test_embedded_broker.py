"""What the embedded Kafka decides before any Java runs."""

import socket
from pathlib import Path

import pytest

from holdshort.stream.embedded import (
    BrokerSettings,
    EmbeddedKafka,
    UseAnotherDirectoryError,
    free_ports,
)


def test_free_ports_differ_and_are_below_those_of_outgoing_connections() -> None:
    ports = free_ports(50)

    assert len(set(ports)) == 50
    assert all(1024 < port < 32768 for port in ports)


def test_a_port_in_use_is_not_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(OSError, match="no 1 free ports"):
            free_ports(1, among=[port])


def test_a_cluster_has_a_node() -> None:
    with pytest.raises(ValueError, match="at least one node"):
        BrokerSettings(nodes=0)


def test_before_the_start_there_is_no_address_and_no_process() -> None:
    kafka = EmbeddedKafka()

    assert kafka.pids == {}
    with pytest.raises(RuntimeError, match="not started"):
        _ = kafka.bootstrap_servers


async def test_a_directory_of_three_nodes_is_not_opened_as_one(tmp_path: Path) -> None:
    for node in (1, 2, 3):
        (tmp_path / f"node-{node}").mkdir()

    with pytest.raises(UseAnotherDirectoryError, match="3 nodes, not of 1"):
        await EmbeddedKafka(BrokerSettings(data_dir=tmp_path)).start()
