"""One secured Kafka for all of these tests."""

import asyncio
import os
import secrets
from collections.abc import Iterator

import pytest
from tests.security.secured import Certificates, Secured, Site, mechanisms, security

from holdshort.stream.embedded import BrokerSettings, ConnectOnceError, EmbeddedKafka


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    passwords = {"plain-user": secrets.token_urlsafe(16)}
    kafka = EmbeddedKafka(BrokerSettings(security=security(certificates), properties=mechanisms(passwords)))
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        try:
            runner.run(kafka.start())
        except ConnectOnceError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(error))
        yield Secured.started(kafka, certificates, passwords)
        runner.run(kafka.stop())


@pytest.fixture(scope="session")
def site(secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """An installation with users, rights and topics, for tests that leave it as it was."""
    made = Site(secured, tmp_path_factory.mktemp("site"))
    made.set_up()
    return made
