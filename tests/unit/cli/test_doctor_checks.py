"""Checks of `holdshort doctor` that need no Kafka: how long a server's certificate is good."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from holdshort.cli.checks import CERTIFICATE_DAYS, Finding, Patient, encryption
from holdshort.settings import Config, KafkaSettings, Settings
from holdshort.stream.connection import connection_of


async def looked_at(directory: Path, good_for: timedelta) -> list[Finding]:
    """What is said of a server whose certificate is good for so long."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    leaf = authority.issue_cert("127.0.0.1", not_after=datetime.now(UTC) + good_for)
    leaf.configure_cert(context)
    authority.cert_pem.write_to_path(directory / "authority.pem")
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        kafka = KafkaSettings(
            bootstrap_servers=f"127.0.0.1:{port}",
            security_protocol="SSL",
            ssl_ca_file=directory / "authority.pem",
        )
        patient = Patient(connection_of(kafka, "tests"), Settings(), Config(), None, False, 1.0)
        return [one async for one in encryption(patient)]


@pytest.mark.parametrize(
    ("days", "status"), [(CERTIFICATE_DAYS - 1, "finding"), (CERTIFICATE_DAYS + 1, "ok"), (1, "finding")]
)
def test_a_certificate_is_renewed_in_time(days: int, status: str, tmp_path: Path) -> None:
    [found] = asyncio.run(looked_at(tmp_path, timedelta(days=days, hours=1)))

    assert (found.check, found.status) == ("tls", status)
    assert f"its certificate is good for {days} days" in found.said
    if status == "finding":
        assert found.advice == "renew the broker's certificate"


def test_who_can_be_overheard_is_told_so() -> None:
    async def told() -> list[Finding]:
        connection = connection_of(KafkaSettings(bootstrap_servers="kafka.example.com:9092"), "tests")
        return [one async for one in encryption(Patient(connection, Settings(), Config(), None, False, 1.0))]

    [found] = asyncio.run(told())
    assert (found.check, found.status) == ("tls", "note")
    assert "KAFKA_SECURITY_PROTOCOL=SASL_SSL" in found.advice
