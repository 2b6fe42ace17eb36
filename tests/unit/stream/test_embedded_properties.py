"""What the nodes of an embedded Kafka are told."""

from pathlib import Path

import pytest

from holdshort.stream.embedded.properties import Cluster, Security, render, server_properties

ONE = Cluster.on_ports((21001, 21002))
THREE = Cluster.on_ports((21001, 21002, 21003, 21004))


def test_a_single_node_is_broker_and_controller_with_one_copy_of_everything() -> None:
    told = server_properties(ONE, 1, "/records", {})

    assert told["process.roles"] == "broker,controller"
    assert told["listeners"] == "PLAINTEXT://127.0.0.1:21001,CONTROLLER://127.0.0.1:21002"
    assert told["advertised.listeners"] == "PLAINTEXT://127.0.0.1:21001"
    assert told["controller.quorum.voters"] == "1@127.0.0.1:21002"
    assert told["log.dirs"] == "/records"
    assert told["transaction.state.log.replication.factor"] == "1"
    assert told["transaction.state.log.min.isr"] == "1"


def test_of_three_nodes_the_first_leads_and_everything_has_three_copies_two_in_sync() -> None:
    first, third = (server_properties(THREE, node, "/records", {}) for node in (1, 3))

    assert first["process.roles"] == "broker,controller"
    assert third["process.roles"] == "broker"
    assert third["listeners"] == "PLAINTEXT://127.0.0.1:21003"
    assert third["controller.quorum.voters"] == "1@127.0.0.1:21004"
    for told in (first, third):
        assert told["default.replication.factor"] == "3"
        assert told["min.insync.replicas"] == "2"
        assert told["offsets.topic.replication.factor"] == "3"
        assert told["transaction.state.log.min.isr"] == "2"


def test_every_node_is_a_bootstrap_server_and_the_controller_is_not() -> None:
    assert THREE.bootstrap_servers == "127.0.0.1:21001,127.0.0.1:21002,127.0.0.1:21003"


def test_nothing_is_made_or_lost_by_accident_and_a_whole_thread_fits_a_record() -> None:
    told = server_properties(ONE, 1, "/records", {})

    assert told["auto.create.topics.enable"] == "false"
    assert told["unclean.leader.election.enable"] == "false"
    assert int(told["message.max.bytes"]) >= 3 * 1024 * 1024
    assert told["transaction.max.timeout.ms"] == "60000"


def test_extra_properties_win() -> None:
    told = server_properties(ONE, 1, "/records", {"num.io.threads": "1", "compression.type": "zstd"})

    assert told["num.io.threads"] == "1"
    assert told["compression.type"] == "zstd"


def test_a_secured_cluster_speaks_every_protocol_and_its_nodes_know_each_other_by_certificate() -> None:
    cluster = Cluster.on_ports((21001, 21002, 21003), ("SASL_SSL", "SSL"))
    who = Security(certificate=Path("/node.pem"), authority=Path("/authority.pem"), super_user="set-up")
    told = server_properties(cluster, 1, "/records", {}, who)

    assert cluster.bootstrap_servers == "127.0.0.1:21001"
    assert cluster.servers("SSL") == "127.0.0.1:21002"
    assert told["inter.broker.listener.name"] == "SSL"
    assert told["listener.security.protocol.map"] == "SASL_SSL:SASL_SSL,SSL:SSL,CONTROLLER:SSL"
    assert told["listener.name.ssl.ssl.client.auth"] == "required"
    assert told["listener.name.controller.ssl.client.auth"] == "required"
    assert told["authorizer.class.name"].endswith(".StandardAuthorizer")
    assert told["super.users"] == "User:set-up"
    assert "allow.everyone.if.no.acl.found" not in told


def test_a_cluster_without_security_asks_nobody() -> None:
    assert not [name for name in server_properties(ONE, 1, "/records", {}) if "ssl" in name or "auth" in name]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("plain: a=b", "key=plain: a=b\n"),
        (" led by a space", "key=\\ led by a space\n"),
        ("C:\\records", "key=C:\\\\records\n"),
        ("two\nlines", "key=two\\u000alines\n"),
        ("größe", "key=gr\\u00f6\\u00dfe\n"),
        ("\N{ROCKET}", "key=\\ud83d\\ude80\n"),
    ],
)
def test_values_are_escaped_as_java_reads_them(value: str, line: str) -> None:
    assert render({"key": value}) == line


def test_keys_are_escaped_as_java_reads_them() -> None:
    assert render({"a b:c=d": "e"}) == "a\\ b\\:c\\=d=e\n"
