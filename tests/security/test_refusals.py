"""What cannot work is told in one sentence: which server, what it says, and which setting is about it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from tests.security.people import silent
from tests.security.secured import Secured, Served, Site, holdshort

from holdshort.sdk.agent import AgentWorker
from holdshort.sdk.approver import Approver
from holdshort.stream.errors import Fatal

pytestmark = [pytest.mark.broker]

Wrong = Callable[[Secured, Path], dict[str, str]]


def wrong_password(_: Secured, directory: Path) -> dict[str, str]:
    file = directory / "password"
    file.write_text("not-the-password")
    return {"KAFKA_SASL_PASSWORD_FILE": str(file)}


def no_such_user(_: Secured, __: Path) -> dict[str, str]:
    return {"KAFKA_SASL_USERNAME": "nobody"}


def mechanism_not_offered(secured: Secured, _: Path) -> dict[str, str]:
    return {
        "KAFKA_BOOTSTRAP_SERVERS": secured.kafka.servers("SASL_PLAINTEXT"),
        "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    }


def wrong_authority(_: Secured, directory: Path) -> dict[str, str]:
    file = directory / "authority.pem"
    trustme.CA().cert_pem.write_to_path(file)
    return {"KAFKA_SSL_CA_FILE": str(file)}


def wrong_host_name(secured: Secured, _: Path) -> dict[str, str]:
    return {"KAFKA_BOOTSTRAP_SERVERS": secured.kafka.bootstrap_servers.replace("127.0.0.1", "localhost")}


def tls_to_a_plain_port(secured: Secured, _: Path) -> dict[str, str]:
    return {"KAFKA_BOOTSTRAP_SERVERS": secured.kafka.servers("PLAINTEXT")}


def plain_to_a_tls_port(_: Secured, __: Path) -> dict[str, str]:
    return {"KAFKA_SECURITY_PROTOCOL": "PLAINTEXT"}


def sasl_in_clear_to_a_tls_port(_: Secured, __: Path) -> dict[str, str]:
    return {"KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT"}


def sasl_to_a_port_without(secured: Secured, _: Path) -> dict[str, str]:
    return {
        "KAFKA_BOOTSTRAP_SERVERS": secured.kafka.servers("PLAINTEXT"),
        "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    }


def nameless_to_a_sasl_port(secured: Secured, _: Path) -> dict[str, str]:
    return {
        "KAFKA_BOOTSTRAP_SERVERS": secured.kafka.servers("SASL_PLAINTEXT"),
        "KAFKA_SECURITY_PROTOCOL": "PLAINTEXT",
    }


def no_certificate_where_one_is_needed(secured: Secured, _: Path) -> dict[str, str]:
    return {"KAFKA_BOOTSTRAP_SERVERS": secured.kafka.servers("SSL"), "KAFKA_SECURITY_PROTOCOL": "SSL"}


def somebody_elses_certificate(secured: Secured, directory: Path) -> dict[str, str]:
    file = directory / "certificate.pem"
    trustme.CA().issue_cert("127.0.0.1", common_name="me").private_key_and_cert_chain_pem.write_to_path(file)
    return no_certificate_where_one_is_needed(secured, directory) | {"KAFKA_SSL_CERT_FILE": str(file)}


REFUSED: dict[Wrong, tuple[str, ...]] = {
    wrong_password: (" does not let ", "invalid credentials"),
    no_such_user: (" does not let nobody in: ", "invalid credentials"),
    mechanism_not_offered: (" does not offer SCRAM-SHA-512 (KAFKA_SASL_MECHANISM)",),
    wrong_authority: (" has a certificate that we do not trust: ", "(KAFKA_SSL_CA_FILE)"),
    wrong_host_name: (" has a certificate that we do not trust: ", "not valid for 'localhost'"),
    tls_to_a_plain_port: (" breaks off the TLS handshake", "we speak SASL_SSL (KAFKA_SECURITY_PROTOCOL)"),
    plain_to_a_tls_port: (" speaks TLS, so not PLAINTEXT (KAFKA_SECURITY_PROTOCOL)",),
    sasl_in_clear_to_a_tls_port: (" speaks TLS, so not SASL_PLAINTEXT (KAFKA_SECURITY_PROTOCOL)",),
    sasl_to_a_port_without: (" does not speak SASL, so not SASL_PLAINTEXT (KAFKA_SECURITY_PROTOCOL)",),
    nameless_to_a_sasl_port: (" asks for a name by SASL; we speak PLAINTEXT (KAFKA_SECURITY_PROTOCOL)",),
    no_certificate_where_one_is_needed: (" does not take our certificate: ", "(KAFKA_SSL_CERT_FILE)"),
    somebody_elses_certificate: (" does not take our certificate: ", "(KAFKA_SSL_CERT_FILE)"),
}


@pytest.mark.parametrize("wrong", REFUSED, ids=lambda wrong: wrong.__name__)
async def test_an_agent_and_a_team_say_in_a_sentence_why_kafka_cannot_be_used(
    wrong: Wrong, site: Site, tmp_path: Path
) -> None:
    more = wrong(site.secured, tmp_path)
    worker = AgentWorker("default", kafka=site.kafka("agent-default", **more), prefix=site.prefix)
    worker.on_run(silent)
    team = Approver("payments", kafka=site.kafka("team-payments", **more), prefix=site.prefix)

    for one in (worker, team):
        with pytest.raises(Fatal, match=r"^Kafka cannot be used: .*$") as refused:
            await one.serve()
        assert all(part in str(refused.value) for part in REFUSED[wrong]), refused.value


@pytest.mark.parametrize(
    "wrong", [wrong_authority, nameless_to_a_sasl_port], ids=lambda wrong: wrong.__name__
)
def test_the_command_line_says_the_same(wrong: Wrong, site: Site, tmp_path: Path) -> None:
    environment = site.environment("admin", **wrong(site.secured, tmp_path))

    done = holdshort(environment, "topics", "plan")

    [line] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith(f"holdshort: Kafka cannot be used: {environment['KAFKA_BOOTSTRAP_SERVERS']} ")
    assert all(part in line for part in REFUSED[wrong]), line


@pytest.mark.parametrize("wrong", [wrong_password, tls_to_a_plain_port], ids=lambda wrong: wrong.__name__)
def test_a_service_logs_it_as_its_last_line_and_ends(wrong: Wrong, site: Site, tmp_path: Path) -> None:
    environment = site.environment("gatekeeper", **wrong(site.secured, tmp_path))

    with Served(environment, "gatekeeper") as service:
        assert service.ended() == 1

    last = json.loads(service.lines[-1])
    assert last["event"] == "service_stops"
    assert all(part in last["error"] for part in REFUSED[wrong]), last
    assert "Traceback" not in service.output


def test_a_service_without_the_right_to_look_at_its_topics_says_so(site: Site) -> None:
    """The agent's user, as if the wrong secret had been mounted."""
    with Served(site.environment("agent-default"), "gatekeeper") as service:
        assert service.ended() == 1

    assert "Topic authorization failed" in service.lines[-1]
    assert "Traceback" not in service.output
