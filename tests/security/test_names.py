"""Every way of saying who we are, on a real Kafka and with both client libraries; and one that expires."""

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.clients import an_input
from tests.security.people import read, send
from tests.security.secured import Served, Site

from holdshort.stream.admin import Admin
from holdshort.stream.connection import connection_of

pytestmark = [pytest.mark.broker]

Name = Callable[[Site, Path], dict[str, str]]


def scram_256(site: Site, directory: Path) -> dict[str, str]:
    site.secured.let_in({site.user("admin"): "a-password-for-256"}, "SCRAM-SHA-256")
    return _password(directory, "a-password-for-256") | {"KAFKA_SASL_MECHANISM": "SCRAM-SHA-256"}


def scram_256_in_clear(site: Site, directory: Path) -> dict[str, str]:
    return scram_256(site, directory) | {
        "KAFKA_BOOTSTRAP_SERVERS": site.secured.kafka.servers("SASL_PLAINTEXT"),
        "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    }


def scram_512(_: Site, __: Path) -> dict[str, str]:
    return {"KAFKA_SASL_MECHANISM": "SCRAM-SHA-512"}


def plain(site: Site, directory: Path, principal: str = "admin") -> dict[str, str]:
    """Kafka knows one user by PLAIN, who then has the rights of this principal."""
    [(user, password)] = site.secured.plain_passwords.items()
    site.secured.allow(site.script.replace(f"User:{site.user(principal)} ", f"User:{user} "))
    return _password(directory, password) | {"KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": user}


def bearer_token(site: Site, directory: Path) -> dict[str, str]:
    return bearing(directory / "token", site.user("admin"), 3600)


def certificate(site: Site, _: Path, principal: str = "admin") -> dict[str, str]:
    file = site.secured.certificates.issue(site.user(principal))
    return {
        "KAFKA_BOOTSTRAP_SERVERS": site.secured.kafka.servers("SSL"),
        "KAFKA_SECURITY_PROTOCOL": "SSL",
        "KAFKA_SSL_CERT_FILE": str(file),
    }


def certificate_with_an_encrypted_key(site: Site, directory: Path) -> dict[str, str]:
    file = site.secured.certificates.issue(site.user("admin"), file="encrypted.pem", password="of-the-key")
    password = directory / "key.password"
    password.write_text("of-the-key\n")
    return certificate(site, directory) | {
        "KAFKA_SSL_CERT_FILE": str(file),
        "KAFKA_SSL_KEY_FILE": str(file),
        "KAFKA_SSL_KEY_PASSWORD_FILE": str(password),
    }


def _password(directory: Path, password: str) -> dict[str, str]:
    file = directory / "password"
    file.write_text(password)
    return {"KAFKA_SASL_PASSWORD_FILE": str(file)}


def bearing(file: Path, user: str, seconds: float) -> dict[str, str]:
    """A token that Kafka's unsecured validator takes (RFC 7519, 6.1), written as a whole."""
    now = time.time()
    parts = ({"alg": "none"}, {"sub": user, "iat": now, "exp": now + seconds})
    text = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
    )
    beside = file.with_suffix(".new")
    beside.write_text(f"{text}.\n")
    beside.replace(file)
    return {"KAFKA_SASL_MECHANISM": "OAUTHBEARER", "KAFKA_SASL_OAUTH_TOKEN_FILE": str(file)}


@pytest.mark.parametrize(
    "name",
    [
        scram_256,
        scram_256_in_clear,
        scram_512,
        plain,
        bearer_token,
        certificate,
        certificate_with_an_encrypted_key,
    ],
    ids=lambda name: name.__name__,
)
async def test_whoever_says_who_it_is_may_do_what_it_may(name: Name, site: Site, tmp_path: Path) -> None:
    """Before it describes topics with one library, Admin knocks with the other."""
    connection = connection_of(site.kafka("admin", **name(site, tmp_path)), "test")

    described = await Admin(connection, site.prefix).describe(["inputs", "audit"])

    assert set(described) == {"inputs", "audit"}


def test_a_service_outlives_its_bearer_token_if_somebody_renews_the_file(site: Site, tmp_path: Path) -> None:
    """Kafka closes the connections of an expired token; new ones are made with what the file then holds."""
    token = tmp_path / "token"
    environment = site.environment("gatekeeper", **bearing(token, site.user("gatekeeper"), 8))
    environment |= {"HOLDSHORT_LOG_LEVEL": "DEBUG"}  # at which aiokafka is heard, too
    with Served(environment, "gatekeeper") as service:
        service.until_ready()
        bearing(token, site.user("gatekeeper"), 3600)
        service.until("closed")
        send(site, "client", "inputs", an_input("t-token", "r1"))
        assert read(site, "auditor", "audit", 1, threadId="t-token", verdict="admitted")
        service.stop()
