"""Passwords and certificates come from files, and a restart is all that another one takes."""

from pathlib import Path

import pytest
from tests.security.secured import Certificates, Secured, Served, Site

from holdshort.settings import load_settings
from holdshort.stream.connection import connection_of
from holdshort.stream.errors import Fatal
from holdshort.stream.reach import reach

pytestmark = [pytest.mark.broker, pytest.mark.system]


async def knock(environment: dict[str, str]) -> None:
    """What every process does first; raises Fatal with what it would say as its last word."""
    await reach(connection_of(load_settings(environment)[0], "test"))


async def test_a_password_is_changed_in_kafka_then_in_the_file_and_counts_after_a_restart(site: Site) -> None:
    environment, file = site.environment("gatekeeper"), site.password_file("gatekeeper")
    with Served(environment, "gatekeeper") as service:
        service.until_ready()
        site.secured.let_in({site.user("gatekeeper"): "another-password"})
        with pytest.raises(Fatal, match="invalid credentials"):
            await knock(environment)

        file.write_text("another-password\n")

        service.stop()  # in order: what runs goes on with what it began with
    with Served(environment, "gatekeeper") as service:
        service.until_ready().stop()


async def test_a_certificate_is_replaced_in_its_file_and_counts_after_a_restart(
    secured: Secured, site: Site, tmp_path: Path
) -> None:
    name, file = site.user("gatekeeper"), tmp_path / "ours.pem"
    environment = site.environment(
        "gatekeeper",
        KAFKA_BOOTSTRAP_SERVERS=secured.kafka.servers("SSL"),
        KAFKA_SECURITY_PROTOCOL="SSL",
        KAFKA_SSL_CERT_FILE=str(file),
    )
    secured.certificates.issue(name).replace(file)
    with Served(environment, "gatekeeper") as service:
        service.until_ready().stop()

    Certificates(tmp_path).issue(name).replace(file)
    with pytest.raises(Fatal, match="does not take our certificate"):
        await knock(environment)

    secured.certificates.issue(name).replace(file)
    with Served(environment, "gatekeeper") as service:
        service.until_ready().stop()


async def test_the_authority_is_replaced_in_its_file_and_counts_for_who_starts_then(
    secured: Secured, site: Site, tmp_path: Path
) -> None:
    file = Certificates(tmp_path).authority
    environment = site.environment("gatekeeper", KAFKA_SSL_CA_FILE=str(file))
    with pytest.raises(Fatal, match="a certificate that we do not trust"):
        await knock(environment)

    file.write_bytes(secured.certificates.authority.read_bytes())

    await knock(environment)
