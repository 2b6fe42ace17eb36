"""What cannot be used to connect is told in a sentence that names the setting, before anything is tried."""

from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from structlog.testing import capture_logs
from tests.security.secured import Certificates

from holdshort.settings import MendSettingsError, load_settings
from holdshort.stream.connection import Connection, connection_of, warn_if_overheard

TLS = {"KAFKA_SECURITY_PROTOCOL": "SSL"}
SCRAM = {"KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "KAFKA_SASL_USERNAME": "me"}


def connected(environment: dict[str, str]) -> Connection:
    return connection_of(load_settings(environment)[0], "test")


def absent(variable: str) -> Callable[[Path], dict[str, str]]:
    return lambda directory: {variable: str(directory / "absent")}


def containing(variable: str, content: bytes) -> Callable[[Path], dict[str, str]]:
    def write(directory: Path) -> dict[str, str]:
        file = directory / "file"
        file.write_bytes(content)
        return {variable: str(file)}

    return write


def no_key(directory: Path) -> dict[str, str]:
    file = directory / "certificate.pem"
    trustme.CA().issue_cert("127.0.0.1").cert_chain_pems[0].write_to_path(file)
    return {"KAFKA_SSL_CERT_FILE": str(file)}


def anothers_key(directory: Path) -> dict[str, str]:
    key = directory / "key.pem"
    trustme.CA().issue_cert("127.0.0.1").private_key_pem.write_to_path(key)
    return no_key(directory) | {"KAFKA_SSL_KEY_FILE": str(key)}


def encrypted(directory: Path) -> dict[str, str]:
    file = Certificates(directory).issue("me", password="of-the-key")
    return {"KAFKA_SSL_CERT_FILE": str(file)}


def wrongly_decrypted(directory: Path) -> dict[str, str]:
    return encrypted(directory) | {"KAFKA_SSL_KEY_PASSWORD": "another"}


@pytest.mark.parametrize(
    ("environment", "more", "said"),
    [
        (SCRAM, absent("KAFKA_SASL_PASSWORD_FILE"), "KAFKA_SASL_PASSWORD_FILE: .*absent: No such file"),
        (SCRAM, containing("KAFKA_SASL_PASSWORD_FILE", b"\n"), "KAFKA_SASL_PASSWORD_FILE: .*is empty"),
        (SCRAM, containing("KAFKA_SASL_PASSWORD_FILE", b"\xff"), "KAFKA_SASL_PASSWORD_FILE: .*is not text"),
        (
            SCRAM | {"KAFKA_SASL_MECHANISM": "OAUTHBEARER"},
            absent("KAFKA_SASL_OAUTH_TOKEN_FILE"),
            "KAFKA_SASL_OAUTH_TOKEN_FILE: .*absent: No such file",
        ),
        (TLS, absent("KAFKA_SSL_CA_FILE"), "KAFKA_SSL_CA_FILE: .*absent: No such file"),
        (TLS, containing("KAFKA_SSL_CA_FILE", b"nothing"), "KAFKA_SSL_CA_FILE: .* holds no certificate"),
        (TLS, absent("KAFKA_SSL_CERT_FILE"), "KAFKA_SSL_CERT_FILE: .*absent: No such file"),
        (TLS, no_key, "KAFKA_SSL_CERT_FILE, KAFKA_SSL_KEY_FILE: .* no certificate with its key"),
        (TLS, anothers_key, "no certificate with its key, .*KEY_VALUES_MISMATCH"),
        (TLS, encrypted, "KAFKA_SSL_KEY_PASSWORD_FILE: the private key is encrypted"),
        (TLS, wrongly_decrypted, "or the key's password is wrong"),
        ({"KAFKA_BOOTSTRAP_SERVERS": "kafka:port"}, lambda _: {}, "KAFKA_BOOTSTRAP_SERVERS: 'kafka:port'"),
    ],
)
def test_what_cannot_be_used_is_told_by_its_setting(
    environment: dict[str, str], more: Callable[[Path], dict[str, str]], said: str, tmp_path: Path
) -> None:
    with pytest.raises(MendSettingsError, match=said) as mistake:
        _ = connected(environment | more(tmp_path)).servers

    assert "\n" not in str(mistake.value)
    assert "of-the-key" not in str(mistake.value)
    assert "another" not in str(mistake.value)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"KAFKA_SECURITY_PROTOCOL": "SASL_SSL"}, "needs KAFKA_SASL_USERNAME, and KAFKA_SASL_PASSWORD_FILE"),
        (SCRAM, "SASL_PLAINTEXT by SCRAM-SHA-512 needs KAFKA_SASL_USERNAME, and KAFKA_SASL_PASSWORD_FILE"),
        (SCRAM | {"KAFKA_SASL_MECHANISM": "OAUTHBEARER"}, "needs KAFKA_SASL_OAUTH_TOKEN_FILE"),
        (TLS | {"KAFKA_SSL_KEY_FILE": "/key"}, "of no use without KAFKA_SSL_CERT_FILE"),
        ({"KAFKA_SASL_MECHANISM": "GSSAPI"}, "KAFKA_SASL_MECHANISM: must be 'PLAIN', "),
    ],
)
def test_half_a_name_is_refused(environment: dict[str, str], said: str) -> None:
    with pytest.raises(MendSettingsError, match=said):
        load_settings(environment)


def test_an_encrypted_key_is_opened_with_its_password_by_both_libraries(tmp_path: Path) -> None:
    connection = connected(TLS | encrypted(tmp_path) | {"KAFKA_SSL_KEY_PASSWORD": "of-the-key"})

    assert connection.for_aiokafka()["ssl_context"].get_ca_certs() is not None
    assert connection.for_librdkafka()["ssl.key.password"] == "of-the-key"


@pytest.mark.parametrize(
    ("servers", "protocol", "hosts"),
    [
        ("127.0.0.1:9092,localhost,[::1]:9092,[::1]", "PLAINTEXT", []),
        ("127.0.0.1:9092,kafka-1:9092", "PLAINTEXT", ["kafka-1"]),
        ("10.0.0.1:9092", "SASL_PLAINTEXT", ["10.0.0.1"]),
        ("[fd00::1]:9092", "PLAINTEXT", ["fd00::1"]),
        ("kafka-1:9093", "SSL", []),
        ("kafka-1:9093", "SASL_SSL", []),
    ],
)
def test_whoever_is_told_in_clear_beyond_this_machine_is_warned_of(
    servers: str, protocol: str, hosts: list[str]
) -> None:
    with capture_logs() as logs:
        warn_if_overheard(Connection(bootstrap_servers=servers, security_protocol=protocol))

    expected = {"event": "connection_not_encrypted", "log_level": "warning"}
    assert logs == ([{**expected, "protocol": protocol, "hosts": hosts}] if hosts else [])
